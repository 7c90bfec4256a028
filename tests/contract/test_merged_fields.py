"""Rows whose structs have other fields than the table's: merged into it, or fitted, at any depth."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from lakehouse.errors import InvalidInput, InvalidName, InvalidRows
from tests.unit.engine import grown

DAY = datetime(2013, 1, 5, tzinfo=UTC)


def rows(ids, values, kind):
    at = pa.array([DAY] * len(ids), pa.timestamp("us", "UTC"))
    return pa.table({"at": at, "id": pa.array(ids, pa.int64()), "x": pa.array(values, kind)})


def make(lake, kind, **options):
    columns = [("at", pa.timestamp("us", "UTC")), ("id", pa.int64()), ("x", kind)]
    return lake.create_table("t", pa.schema(columns), time="at", primary_key=["id"], **options)


def seen(table, **scan):
    return {row["id"]: row["x"] for row in table.scan(**scan).to_arrow().to_pylist()}


@pytest.mark.parametrize("seed", range(6))
def test_structs_grow_at_random_at_any_depth_and_every_version_reads_as_it_was(lake, seed):
    chance = random.Random(seed)
    kind = {"p": grown.made(chance), "q": grown.made(chance), "s": ("list", {"r": 8})}
    table = make(lake, grown.arrow(kind))
    held, versions, following = {}, {}, 0
    for _ in range(9):
        mode = chance.choice(["merge", "merge", "ignore"])
        found = grown.changed(chance, kind, is_wider=mode == "merge")
        count = chance.randrange(1, 5)
        what = chance.choice(["append", "append", "upsert", "replace", "compact"])
        ids = list(range(following, following + count))
        if what == "upsert":
            ids = chance.sample(range(following + count), count)
        following += count
        values = [grown.value(chance, found) for _ in ids]
        given = rows(ids, values, grown.arrow(found))
        match what:
            case "compact":
                table.compact()
            case "replace":
                table.replace(given, "2013-01-05", schema=mode)
                held = {}
            case _:
                getattr(table, what)(given, schema=mode)
        if what != "compact":
            kind = grown.merged(kind, found) if mode == "merge" else kind
            # What is left out when it is written does not come back with a later field of its name.
            held |= {one: grown.fitted(value, kind) for one, value in zip(ids, values, strict=True)}
        versions[table.version] = (kind, dict(held))
        assert table.schema.field("x").type == grown.arrow(kind)
        assert seen(table) == {one: grown.fitted(value, kind) for one, value in held.items()}
    for version, (then, values) in versions.items():
        assert seen(table, as_of=version) == {one: grown.fitted(value, then) for one, value in values.items()}
        current = {one: grown.fitted(value, kind) for one, value in values.items()}
        assert seen(table, as_of=version, schema="current") == current
    assert not lake.check(deep=True).findings


def test_new_fields_are_one_version_with_their_rows_and_say_what_they_did(lake):
    table = make(lake, pa.struct([("a", pa.int8())]))
    table.append(rows([1], [{"a": 1}], pa.struct([("a", pa.int8())])))
    wider = pa.struct([("b", pa.list_(pa.struct([("u", pa.uint16())]))), ("a", pa.int64()), ("c", pa.null())])
    before = table.version
    commit = table.append(rows([2], [{"b": [{"u": 1}], "a": 1 << 40, "c": None}], wider), schema="merge")
    assert commit.version == before + 1
    assert list(map(str, table.column_changes(before, commit.version))) == [
        "column x.a widened: int8 to int64", "column x.b added: list<item: struct<u: int32>>",
    ]  # fmt: skip
    assert seen(table) == {1: {"a": 1, "b": None}, 2: {"a": 1 << 40, "b": [{"u": 1}]}}
    again = table.append(rows([3], [{"a": 3}], pa.struct([("a", pa.int8())])), schema="merge")
    assert again.operation == "append"  # no column changed
    with lake.transaction() as tx:
        tx.table("t").append(rows([4], [{"z": True}], pa.struct([("z", pa.bool_())])), schema="merge")
    assert seen(table)[4] == {"a": None, "b": None, "z": True}


@pytest.mark.parametrize("schema", ["merge", "ignore"])
def test_a_field_that_rows_lack_has_its_default_and_others_are_left_out(lake, schema):
    table = make(lake, pa.struct([("a", pa.int8())]))
    table.append(rows([1], [{"a": 1}], pa.struct([("a", pa.int8())])))
    table.add_column(("x", "gate"), "STRING", default="A1")
    table.rename_column(("x", "a"), "b")
    kind = pa.struct([("b", pa.int8())])
    table.append(rows([2, 3], [{"b": 2}, None], kind), schema=schema)
    assert seen(table) == {1: {"b": 1, "gate": "A1"}, 2: {"b": 2, "gate": "A1"}, 3: None}
    other = pa.struct([("gate", pa.string()), ("more", pa.int8()), ("b", pa.int8())])
    table.upsert(rows([2], [{"gate": None, "more": 5, "b": 7}], other), schema=schema)
    more = {"more": 5} if schema == "merge" else {}
    assert seen(table)[2] == {"b": 7, "gate": None, **more}


def test_strict_rows_have_the_fields_of_the_table(lake):
    table = make(lake, pa.struct([("a", pa.int8()), ("b", pa.int8())]))
    for fields in ([("a", pa.int8())], [("a", pa.int8()), ("b", pa.int8()), ("c", pa.int8())]):
        kind = pa.struct(fields)
        with pytest.raises(InvalidRows, match="column=x"):
            table.append(rows([1], [{}], kind))
    assert table.version == 1


def test_what_fits_no_table_is_refused_and_changes_nothing(lake):
    table = make(lake, pa.struct([("a", pa.int8()), ("m", pa.map_(pa.string(), pa.int8()))]))
    before = table.version
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["c", "c"])
    given = rows([1], [None], pa.null()).set_column(2, "x", twice)
    with pytest.raises(InvalidRows, match="field twice"):
        table.append(given, schema="ignore")
    for kind, value, error in (
        (pa.struct([("A", pa.int8())]), {"A": 1}, InvalidName),
        (pa.struct([("_a", pa.int8())]), {"_a": 1}, InvalidName),
        (pa.struct([("a", pa.string())]), {"a": "1"}, InvalidRows),
        (pa.struct([("n", pa.time64("us"))]), {"n": None}, InvalidInput),
        (pa.list_(pa.int8()), [1], InvalidRows),
    ):
        with pytest.raises(error):
            table.append(rows([1], [value], kind), schema="merge")
    assert (table.version, table.count()) == (before, 0)


def test_keys_that_become_one_when_a_field_is_left_out_are_refused(lake):
    key = pa.struct([("a", pa.int8())])
    table = make(lake, pa.map_(key, pa.int8()))
    wide = pa.map_(pa.struct([("a", pa.int8()), ("b", pa.int8())]), pa.int8())
    given = rows([1], [[({"a": 1, "b": 1}, 1), ({"a": 1, "b": 2}, 2)]], wide)
    with pytest.raises(InvalidRows, match="one key twice"):
        table.append(given, schema="ignore")
    table.append(given, schema="merge")
    assert seen(table) == {1: [({"a": 1, "b": 1}, 1), ({"a": 1, "b": 2}, 2)]}


def test_slices_nulls_and_other_lists_of_arrow_are_fitted(lake):
    table = make(lake, pa.list_(pa.struct([("a", pa.int64()), ("v", pa.list_(pa.float32(), 2))])))
    element = pa.struct([("b", pa.int8()), ("v", pa.list_(pa.float64(), 2)), ("a", pa.int8())])
    values = [[{"b": 0, "v": None, "a": 9}], None, [], [{"b": 1, "v": [0.5, None], "a": 1}, None], [None]]
    want = {n: one and [part and {"a": part["a"], "v": part["v"]} for part in one] for n, one in enumerate(values)}
    for number, outer in enumerate((pa.list_(element), pa.large_list(element), pa.list_view(element))):
        given = rows(range(10 * number, 10 * number + 5), values, outer)
        table.append(given.slice(1), schema="ignore")
        expected = {10 * number + one: value for one, value in want.items() if one}
        assert {one: value for one, value in seen(table).items() if one // 10 == number} == expected
