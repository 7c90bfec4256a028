"""The rules of the reference model: every schedule ends serially, and without any one of the rules some does not."""

from __future__ import annotations

import pytest

from lakehouse.testing import model, model_conflict, model_operation, model_rows
from lakehouse.testing.cases import STAGES, every, places, sample
from lakehouse.testing.planned import MENU, Stage
from lakehouse.testing.schedules import model_differences

ORDERS = [Stage(masked=True), Stage(write_order="start", masked=True)]


@pytest.mark.parametrize("stage", ORDERS, ids=str)
def test_every_schedule_of_two_operations_ends_as_a_serial_order_does(stage):
    assert [found for case in every(stage, 2) for found in model_differences(case)] == []


@pytest.mark.parametrize("size", [3, 4])
def test_more_operations_end_serially_unless_two_of_them_read_while_one_adds(size):
    for case in sample(4_000, seed=size, sizes=[size]):
        found = model_differences(case)
        kinds = [one.kind for one in case.planned]
        reading = [kind for kind in kinds if kind in model_operation.CONDITIONAL]
        adding = {"append", "upsert", "delete_keys", "replace"} & set(kinds)
        assert not found or (len(reading) > 1 and adding), (str(case), found)


def lost_row_id(table, stored, ordinal):
    return table.store([stored.row], ordinal, stored.written)[0]


def restore_without_fencing(lake, table, version):
    found = lake.table(table)
    number = lake.draw()
    found.versions[number] = found.at(version)
    found.restores.append(number)
    return number


def only_without(*names):
    return tuple(one for one in model_conflict.REASONS if one[0].__name__ not in names)


MOVED = only_without("moves_out_of_a_replace", "saw_what_comes_after")
NOT_RESTORED = only_without("was_restored_since")
BROKEN = {
    "equal ordinals": [(model_rows, "is_newer", lambda one, stored: one.ordinal >= stored.ordinal), "upsert"],
    "compaction at its commit's number": [
        (model_operation, "output_ordinal", lambda compaction, version: version),
        *("compact", "replace", "delete"),
    ],
    "compaction loses row ids": [(model_operation, "compacted", lost_row_id), "compact", "delete", "update"],
    "replace ignores what was rewritten": [
        (model_operation, "derived_since", lambda table, replacing: []),
        *("replace", "update"),
    ],
    "rows leave a running replace": [(model_conflict, "REASONS", MOVED), "append", "replace", "update"],
    "restore leaves maintenance running": [
        (model.ModelLake, "restore", restore_without_fencing),
        *("restore", "compact", "resolve", "update", "upsert"),
    ],
    "deletes are not repeated after a restore": [
        (model_conflict, "REASONS", NOT_RESTORED),
        "restore",
        "delete",
        "update",
    ],
}


def assert_noticed(monkeypatch, broken, kinds):
    """Some schedule that is right ends otherwise where a rule is broken."""
    for case in sample(20_000, seed=1, sizes=[2, 3], chosen=places(*kinds)):
        with monkeypatch.context() as patched:
            patched.setattr(*broken)
            wrong = model_differences(case)
        if wrong and not model_differences(case):
            return
    pytest.fail("no schedule noticed it")


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_lets_some_schedule_end_otherwise(monkeypatch, rule):
    broken, *kinds = BROKEN[rule]
    assert_noticed(monkeypatch, broken, kinds)


CHANGES = ("append", "replace", "delete", "update", "merge", "restore")


@pytest.mark.parametrize(
    "reason", [name for one in model_conflict.REASONS if (name := one[0].__name__) != "moves_out_of_a_replace"]
)
def test_every_reason_to_conflict_is_needed(monkeypatch, reason):
    kinds = ("append", "update", "erase") if reason == "was_erased_since" else CHANGES
    assert_noticed(monkeypatch, (model_conflict, "REASONS", only_without(reason)), kinds)


def test_an_erasure_has_to_wait_for_what_it_overtakes(monkeypatch):
    assert_noticed(monkeypatch, (model_conflict, "OVERTAKEN", ()), ("append", "replace", "erase"))


def test_every_kind_of_table_and_operation_is_drawn():
    drawn = list(sample(2_000, seed=0))
    assert {case.stage for case in drawn} == set(STAGES)
    assert {index for case in drawn for index in case.menu} == set(range(len(MENU)))
    assert {len(case.menu) for case in drawn} == {2, 3, 4, 5, 6}
    assert [type(case).read(str(case)) for case in drawn] == drawn
