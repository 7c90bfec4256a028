"""Erasures: rows go from every version and from all that the catalog holds of them, and nobody brings them back."""

from __future__ import annotations

import math
import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakehouse
from lakehouse.admin.recover import recover
from lakehouse.catalog.recovery.contents import Contents
from lakehouse.catalog.store.models import key_frame, segment, segment_summary
from lakehouse.errors import InvalidInput, LockLost, SegmentUnreadable, StorageUnavailable, WriteConflict
from lakehouse.operations.summarize import build_indexes, missing_indexes
from lakehouse.storage.exports import read_manifest, read_part
from lakehouse.testing import behind
from lakehouse.testing.faults import armed, on_count
from lakehouse.testing.rows import SCHEMA, arrow, many, values, with_row_ids
from tests.contract.test_accidents import FullDisk

DAY, NEXT = "2013-01-05", "2013-01-06"
WHO = "Zacharias"


def row_ids(table: Any, **scan: Any) -> dict[int, int]:
    """Row ids by value."""
    found = with_row_ids(table.scan(**scan))
    return dict(zip(found.column("value").to_pylist(), found.column("_row_id").to_pylist(), strict=True))


def stored_clients(warehouse: Path) -> set[str]:
    """Clients in all data files."""
    found: set[str] = set()
    for path in warehouse.rglob("*.parquet"):
        table = pq.read_table(path, partitioning=None)
        if "client" in table.column_names:
            found.update(table.column("client").to_pylist())
    return found


def catalog_text(lake: Any) -> str:
    """All that the catalog holds of values: bounds, key frames (not compressed, where few), indexes."""

    def question(connection: Any) -> str:
        pages = connection.execute(key_frame.select()).all()
        bounds = connection.execute(segment.select()).all()
        return repr([bytes(row.page) for row in pages]) + repr([row.statistics for row in bounds])

    return behind.ask(lake.catalog, question)


def history(table: Any) -> list[int]:
    """Rows of one client under everything that hides and copies them; the versions with rows."""
    made = [
        table.append(arrow([(DAY, WHO, 1), (DAY, "b", 2), (NEXT, WHO, 3)])),
        table.append(arrow([(DAY, WHO, 4)])),
        table.append(arrow([(NEXT, "b", 5), (NEXT, None, 6)])),
        table.update({"value": "value + 100"}, "value = 1"),
        table.delete("value = 4"),
        table.compact(),
        table.replace(arrow([(NEXT, WHO, 7), (NEXT, "b", 8)]), NEXT),
    ]
    return [one.version for one in made]


def test_rows_go_from_every_version_shown_there_or_not(lake, table, warehouse):
    versions = history(table)
    kept = {version: values(table, as_of=version, where=f"client IS NULL OR client <> '{WHO}'") for version in versions}
    ids = row_ids(table, where="client = 'b'")
    commit = table.erase(f"client = '{WHO}'", message="request 17")
    assert (commit.operation, commit.message, commit.rows_added) == ("erase", "request 17", 0)
    # Each once, in however many files: 1 as it was, as 101 and compacted; 3 and its compacted copy; 4 and 7.
    assert commit.rows_deleted == 4
    assert {version: values(table, as_of=version) for version in versions} == kept
    assert values(table) == [2, 8]
    assert row_ids(table) == ids
    assert lake.check(deep=True).findings == []
    lake.collect(grace_seconds=0)
    assert WHO not in stored_clients(warehouse)
    assert {version: values(table, as_of=version) for version in versions} == kept
    assert lake.check(deep=True).findings == []


def test_values_leave_bounds_key_frames_and_exports(lake, table, warehouse):
    history(table)
    for _ in range(40):
        table.append(arrow([(DAY, "c", 9)]))
    lake.export()
    frames = len(table.key_frames())
    assert WHO in catalog_text(lake)
    table.erase(f"client = '{WHO}'")
    assert WHO not in catalog_text(lake)
    assert len(table.key_frames()) == frames, "frames are written again"
    assert max(one.chain for one in lake.catalog.chain_lengths(table.spec, None, 100)) <= 32
    (export,) = (warehouse / "_catalog").iterdir()
    manifest = read_manifest(lake.session.warehouse, export, lake)
    pages = Contents(partial(read_part, export, manifest)).pages()
    bounds = [(one.min.get("client"), one.max.get("client")) for _, state, _ in pages for one in state.segments]
    assert ("b", "b") in bounds
    assert WHO not in repr(bounds)


def test_what_comes_back_of_an_export_has_no_erased_row(lake, table, warehouse, tmp_path):
    history(table)
    lake.export()
    table.erase(f"client = '{WHO}'")
    lake.collect(grace_seconds=0)
    recovered = recover(str(warehouse), f"sqlite:///{tmp_path}/again.db")
    assert recovered.missing == ()
    with lakehouse.connect(f"sqlite:///{tmp_path}/again.db", str(warehouse)) as again:
        assert values(again.table("flights")) == [2, 8]
        assert [one.rewrites for one in again.table("flights").segments()] == [one.rewrites for one in table.segments()]
        again.table("flights").erase("value = 8")
        assert values(again.table("flights")) == [2]


def test_a_segment_of_which_nothing_is_left_is_in_no_version(lake, table):
    first = table.append(arrow([(DAY, WHO, 1)])).version
    second = table.append(arrow([(NEXT, "b", 2)])).version
    table.drop(DAY)
    assert table.erase(f"client = '{WHO}'").rows_deleted == 1
    assert values(table, as_of=first) == []
    assert table.segments(as_of=first) == []
    assert values(table, as_of=second) == [2]
    table.append(arrow([(DAY, "b", 3)]))
    table.restore(second)
    assert values(table) == [2]
    assert lake.check(deep=True).findings == []


def test_segments_say_how_often_they_were_rewritten(table):
    table.append(many(100))
    table.append(many(10, start=NEXT, value=1_000))
    table.erase("value = 3")
    table.erase("value = 4")
    assert [(one.rewrites, one.rows, one.has_row_ids) for one in table.segments()] == [(2, 98, True), (0, 10, False)]
    assert row_ids(table, where="value < 200")[99] == 99


def test_an_erasure_that_finds_nothing_changes_no_file(table, warehouse):
    table.append(many(100))
    before = sorted(path for path in warehouse.rglob("*") if path.is_file())
    commit = table.erase("value = 1000")
    assert (commit.operation, commit.rows_deleted) == ("erase", 0)
    assert sorted(path for path in warehouse.rglob("*") if path.is_file()) == before


def test_a_row_of_which_the_condition_is_null_stays(table):
    table.append(arrow([(DAY, None, 1), (DAY, "b", 2), (DAY, "a", 3)]))
    table.erase("client <> 'a'")
    assert values(table) == [1, 3]


def test_a_ragged_segment_over_many_chunks_stays_one(lake):
    table = lake.create_table("ragged", SCHEMA, time="time", properties={"ragged": "true"})
    table.append(many(48, step_us=3_600_000_000 * 6))
    assert len(table.segments()) == 1
    before = table.segments()[0]
    table.erase("value % 2 = 0")
    (after,) = table.segments()
    assert (after.id, after.interval, after.ordinal, after.rows) == (before.id, before.interval, before.ordinal, 24)
    assert lake.check(deep=True).findings == []


def test_not_a_number_and_unicode_names(lake):
    schema = "at TIMESTAMP NOT NULL, `größe ü` DOUBLE, n BIGINT"
    table = lake.create_table("odd", schema, time="at")
    at = pa.array([0, 1, 2, 3], pa.timestamp("us", "UTC"))
    table.append(pa.table({"at": at, "größe ü": [1.0, math.nan, None, 7.0], "n": [1, 2, 3, 4]}))
    table.erase("`größe ü` = 7.0")
    found = table.scan().to_arrow().column("größe ü").to_pylist()
    assert (found[0], math.isnan(found[1]), found[2], len(found)) == (1.0, True, None, 3)
    assert [one.n for one in table.scan(where="`größe ü` > 100").to_pandas().itertuples()] == [2], "NaN is greatest"


def test_every_process_sees_it_at_versions_that_it_remembers(connect, lake, table):
    version = history(table)[2]
    other = connect()
    seen = other.table("flights")
    assert values(seen, as_of=version) == [1, 2, 3, 4, 5, 6]
    table.erase(f"client = '{WHO}'")
    assert values(seen, as_of=version) == [2, 5, 6]
    seen.append(arrow([(DAY, "b", 9)]))
    assert values(seen) == [2, 8, 9]
    assert values(table) == [2, 8, 9]


def test_changes_have_no_erased_row(table):
    first = table.append(arrow([(DAY, "b", 0)])).version
    table.append(arrow([(DAY, WHO, 1), (DAY, "b", 2)]))
    table.update({"value": "value + 10"}, "TRUE")
    table.erase(f"client = '{WHO}'")
    changed = table.changes(first).to_arrow().to_pylist()
    assert {one["client"] for one in changed} == {"b"}
    assert sorted((one["_change_type"], one["value"]) for one in changed) == [
        ("insert", 2), ("update_after", 10), ("update_after", 12), ("update_before", 0), ("update_before", 2),
    ]  # fmt: skip
    assert table.changes(table.version - 1).to_arrow().num_rows == 0


def test_an_erasure_is_reported_like_any_commit(lake, table):
    history(table)
    given = {"ticket": "17", "by": "Ada"}
    erased = table.erase(f"client = '{WHO}'", properties=given)
    version = erased.version
    (newest,) = table.log(1)
    assert (newest.version, newest.operation, newest.properties) == (version, "erase", erased.properties)
    assert {name: text for name, text in newest.properties.items() if not name.startswith("erased.")} == given
    assert lake.log(1)[0].version == version == table.version
    assert table.log(operation="erase") == [newest]
    assert table.diff(version - 1, version).added == []


# Beside others


def test_a_compaction_that_read_such_rows_fails_and_brings_none_back(lake, table):
    table.append(many(50))
    table.append(many(50, value=50))
    compaction = table.begin_compaction()
    compaction.run()
    table.erase("value = 7")
    with pytest.raises(LockLost):
        compaction.commit()
    compaction.abort()
    assert table.compact() is not None
    assert values(table) == [value for value in range(100) if value != 7]
    assert lake.check(deep=True).findings == []


def test_a_compaction_of_other_segments_goes_on(table):
    for start in (DAY, NEXT):
        for _ in range(2):
            table.append(many(50, start=start, value=0 if start == DAY else 1_000))
    compaction = table.begin_compaction(NEXT)
    compaction.run()
    table.erase("value = 7")
    compaction.commit()
    assert table.scan().count() == 198


@pytest.mark.parametrize("change", ["update", "merge"])
def test_what_read_such_rows_and_would_write_them_again_runs_again(table, change):
    table.append(arrow([(DAY, WHO, 1), (DAY, "b", 2)]))
    if change == "update":
        operation = table.begin_update({"value": "value + 10"}, "value = 1")
    else:
        source = arrow([(DAY, WHO, 1)])
        operation = table.begin_merge(source, ["client"], when_matched_update={"value": "target.value + 10"})
    operation.run()
    table.erase(f"client = '{WHO}'")
    with pytest.raises(WriteConflict):
        operation.commit()
    table.update({"value": "value + 10"}, "value = 1 OR value = 2")
    assert values(table) == [12]


def test_it_runs_after_a_replace_than_which_something_newer_is_there(lake, table):
    # The append stays, so it comes after the replace; the erasure takes a row of it, and leaves the replace's.
    replacing = table.begin_replace(DAY)
    replacing.write(arrow([(DAY, WHO, 1), (DAY, "b", 2)]))
    table.append(arrow([(DAY, WHO, 3), (DAY, "b", 4)]))
    with pytest.raises(WriteConflict, match="run it again after the replace"):
        table.begin_erase(f"client = '{WHO}'").commit()
    assert values(table) == [3, 4]
    erasing = threading.Thread(target=lambda: table.erase(f"client = '{WHO}'"))
    erasing.start()
    replacing.commit()
    erasing.join()
    assert values(table) == [2, 4]
    assert lake.check(deep=True).findings == []


def test_a_replace_that_nothing_overtook_is_not_waited_for(table):
    table.append(arrow([(DAY, WHO, 3), (NEXT, WHO, 4), (NEXT, "b", 5)]))
    replacing = table.begin_replace(DAY)
    replacing.write(arrow([(DAY, "b", 1)]))
    table.erase(f"client = '{WHO}'")
    replacing.commit()
    assert values(table) == [1, 5]


@pytest.mark.parametrize("between", ["update", "compact"])
def test_copies_that_are_committed_while_it_looks_are_found(table, between):
    table.append(arrow([(DAY, WHO, 1), (DAY, "b", 2)]))
    table.append(arrow([(DAY, WHO, 3), (DAY, "b", 4)]))

    def copy() -> None:
        if between == "update":
            table.update({"value": "value + 10"}, "TRUE")
        else:
            table.compact()

    with armed({"erase.looked": on_count(1, copy)}):
        commit = table.erase(f"client = '{WHO}'")
    assert commit.rows_deleted == 2
    assert values(table, where=f"client = '{WHO}'") == []
    assert len(values(table)) == 2


def test_it_looks_again_while_the_lake_waits(table):
    table.append(arrow([(DAY, WHO, 1), (DAY, "b", 2)]))
    looks = []

    def update() -> None:
        looks.append(len(looks))
        if len(looks) < 8:
            table.update({"value": "value + 1"}, "client = 'b'")

    with armed({"erase.looked": update}):
        table.begin_erase(f"client = '{WHO}'").commit()
    assert len(looks) == 8
    assert values(table) == [2 + 7]


def test_it_gives_up_where_others_are_always_faster(table, connect):
    table.append(arrow([(DAY, WHO, 1), (DAY, "b", 2)]))
    impatient = connect(wait_seconds=0).table("flights")
    with (
        armed({"erase.looked": lambda: table.update({"value": "value + 1"}, "client = 'b'")}),
        pytest.raises(WriteConflict, match="faster than they are found"),
    ):
        impatient.begin_erase(f"client = '{WHO}'").commit()
    assert values(table, where=f"client = '{WHO}'") == [1]


def test_appends_go_on_beside_it(table):
    table.append(arrow([(DAY, WHO, 1), (DAY, "b", 2)]))
    with armed({"erase.looked": lambda: table.append(arrow([(DAY, "c", 3)]))}):
        table.erase(f"client = '{WHO}'")
    assert values(table) == [2, 3]


def test_erasures_side_by_side_all_succeed(connect, table):
    table.append(many(200))
    failures: list[BaseException] = []

    def erase(value: int) -> None:
        try:
            connect().table("flights").erase(f"value = {value}")
        except BaseException as error:  # noqa: BLE001 - raised below
            failures.append(error)

    threads = [threading.Thread(target=erase, args=(value,)) for value in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failures
    assert values(table) == list(range(3, 200))


def test_erasures_beside_everything_lose_and_bring_back_nothing(connect, lake, table):
    table.append(arrow([(DAY, f"c{n % 8}", n) for n in range(80)]))
    failures: list[BaseException] = []

    def repeated(work: Any, times: int) -> threading.Thread:
        def run() -> None:
            own = connect().table("flights")
            for turn in range(times):
                try:
                    work(own, turn)
                except BaseException as error:  # noqa: BLE001 - raised below
                    failures.append(error)

        return threading.Thread(target=run)

    threads = [
        repeated(lambda own, turn: own.append(arrow([(DAY, "new", 1_000 + turn)])), 20),
        repeated(lambda own, turn: own.update({"value": "value + 10000"}, f"client = 'c{4 + turn % 4}'"), 12),
        repeated(lambda own, turn: own.compact(), 6),
        repeated(lambda own, turn: own.erase(f"client = 'c{turn}'"), 4),
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failures
    erased = " OR ".join(f"client = 'c{turn}'" for turn in range(4))
    assert all(values(table, as_of=one.version, where=erased) == [] for one in table.log() if one.operation != "create")
    kept = sorted(value % 10_000 for value in values(table))
    assert kept == [n for n in range(80) if n % 8 >= 4] + list(range(1_000, 1_020))
    assert lake.check(deep=True).findings == []


def test_an_expiry_between_forgets_the_new_file_too(lake, table, warehouse):
    table.append(many(100))
    table.drop(DAY)
    table.append(many(10, start=NEXT))

    def erase() -> None:
        table.erase("value = 7")

    with armed({"expire.recorded": on_count(1, erase)}):
        lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    assert lake.check().findings == []
    assert len(list(warehouse.rglob("*.parquet"))) == len(table.segments())


def test_an_erasure_of_what_was_forgotten_meanwhile_leaves_no_file(lake, table, warehouse):
    table.append(many(100))
    table.drop(DAY)
    table.append(many(10, start=NEXT, value=500))
    erase = table.begin_erase("value = 7")
    lake.expire(keep_last=1)
    erase.run()
    with armed({"erase.looked": lambda: lake.expire(keep_last=1)}):
        erase.commit()
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    assert lake.check().findings == []
    assert len(list(warehouse.rglob("*.parquet"))) == len(table.segments())


# What is derived


def test_indexes_of_rewritten_segments_are_made_again(lake):
    table = lake.create_table("indexed", SCHEMA, time="time", properties={"index": "client"})
    table.append(arrow([(DAY, WHO, 1), (DAY, "b", 2)]))
    segments, _ = lake.catalog.live(table.spec, lake.head)
    build_indexes(lake.session, table.spec, missing_indexes(lake.session, table.spec, segments))
    assert not missing_indexes(lake.session, table.spec, segments)
    table.erase(f"client = '{WHO}'")
    stored = behind.rows_of(lake.catalog, segment_summary.select())
    assert stored == []
    assert missing_indexes(lake.session, table.spec, segments) == segments.ids.tolist()
    assert build_indexes(lake.session, table.spec, segments.ids.tolist()) == 1
    assert values(table, where="client = 'b'") == [2]


def test_an_index_of_a_file_that_was_erased_from_meanwhile_is_not_kept(lake):
    table = lake.create_table("indexed", SCHEMA, time="time", properties={"index": "client"})
    table.append(arrow([(DAY, WHO, 1), (DAY, "b", 2)]))
    (one,) = table.segments()
    with armed({"summaries.written": on_count(1, lambda: table.erase(f"client = '{WHO}'"))}):
        assert build_indexes(lake.session, table.spec, [one.id]) == 0


# Errors


def test_a_file_that_cannot_be_read_is_named_and_nothing_changes(lake, table, warehouse):
    table.append(many(100))
    table.append(many(100, start=NEXT, value=100))
    path = warehouse / table.segments()[1].path
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(SegmentUnreadable, match=path.name):
        table.erase("value >= 0")
    assert [one.rewrites for one in table.segments()] == [0, 0]
    assert lake.activity().operations == []


def test_a_full_disk_changes_nothing_and_says_so(table):
    noise = pa.array(np.random.default_rng(1).integers(0, 2**62, 200_000))
    table.append(many(200_000, step_us=1000).set_column(2, "value", noise))
    with FullDisk(600_000), pytest.raises(StorageUnavailable, match="check its disk"):
        table.erase("value % 2 = 0")
    assert table.scan().count() == 200_000
    assert table.erase("value % 2 = 0").rows_deleted == 200_000 - table.scan().count() > 0


@pytest.mark.parametrize("where", ["", "nobody = 1", "reflect('java.lang.System', 'exit')"])
def test_a_condition_that_is_none_is_refused(table, where):
    table.append(many(10))
    with pytest.raises(InvalidInput):
        table.erase(where)
    assert len(values(table)) == 10


def test_a_condition_that_fails_on_a_row_changes_nothing(table):
    table.append(arrow([(DAY, "a", 1), (DAY, "x", 2)]))
    with pytest.raises(InvalidInput):
        table.erase("CAST(client AS BIGINT) = 1")
    assert values(table) == [1, 2]


def test_an_empty_table_has_nothing_to_erase(table):
    assert table.erase("value = 1").rows_deleted == 0
