"""Following a table: what comes, in what order, and what is kept for a reader that has a name."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.errors import (
    ConsumerExpired,
    ConsumerLost,
    ConsumerNotFound,
    InvalidArgument,
    TableNotFound,
    VersionNotFound,
)
from lakehouse.reading import feed as feeding
from lakehouse.reading import follow as following
from lakehouse.testing.history import Author, World, create_tables, do
from lakehouse.testing.rows import COLUMNS, KEYED, arrow

FIRST = datetime(2013, 1, 5, tzinfo=UTC)
Open = Callable[..., Any]


def rows(*values: int, hour: int = 0) -> pa.Table:
    return arrow([(FIRST + timedelta(hours=hour), "a", value) for value in values])


def keyed(lake: Any, **properties: str) -> Any:
    return lake.create_table("t", KEYED, time="time", primary_key=("value",), properties=properties)


def read(table: Any, **options: Any) -> list[tuple[int, list[int]]]:
    """Versions and sorted values of all batches that there are."""
    found = table.follow(wait_seconds=0, **options)
    return [(batch.version, sorted(batch.rows["value"].to_pylist())) for batch in found]


def plain(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(table[name].to_pylist() for name in COLUMNS), strict=True))


# What comes


def test_without_since_all_rows_come_first_and_then_what_each_commit_adds(lake: Any) -> None:
    table = keyed(lake)
    table.append(rows(1, 2, 3))
    now = table.delete("value = 2").version
    batches = table.follow(wait_seconds=0)
    later = table.append(rows(4)).version
    assert [(one.version, sorted(one.rows["value"].to_pylist())) for one in batches] == [(now, [1, 3]), (later, [4])]
    assert read(table, since=table.version) == []


def test_rows_are_what_was_inserted_and_what_updates_made(lake: Any) -> None:
    table = keyed(lake)
    start = table.version
    added = table.append(rows(1, 2, 3)).version
    updated = table.update({"client": "'z'"}, "value < 3").version
    table.update({"client": "'z'"}, "value < 3")  # changes no value
    upserted = table.upsert(rows(3, 9)).version
    table.delete("value = 1")
    table.compact()
    table.resolve()
    replaced = table.replace(rows(7), "2013-01-05").version
    restored = table.restore(added).version
    expected = [(added, [1, 2, 3]), (updated, [1, 2]), (upserted, [3, 9]), (replaced, [7]), (restored, [1, 2, 3])]
    assert read(table, since=start) == expected


def test_changes_say_what_became_of_each_row_deleted_ones_first(lake: Any) -> None:
    table = keyed(lake)
    start = table.append(rows(1, 2, 3)).version
    upserted = table.upsert(rows(2, 9)).version
    updated = table.update({"client": "'z'"}, "value = 3").version
    found = [
        (batch.version, [(one["_change_type"], one["value"], one["client"]) for one in batch.rows.to_pylist()])
        for batch in table.follow(since=start, changes=True, wait_seconds=0)
    ]
    assert found == [
        (upserted, [("delete", 2, "a"), ("insert", 2, "a"), ("insert", 9, "a")]),
        (updated, [("update_before", 3, "a"), ("update_after", 3, "z")]),
    ]
    (batch,) = table.follow(since=updated - 1, changes=True, wait_seconds=0)
    assert batch.rows.schema.names == [*table.schema.names, "_change_type", "_commit_version", "_commit_timestamp"]
    assert set(batch.rows["_commit_version"].to_pylist()) == {updated}


def test_a_replace_that_ran_beside_others_gives_what_they_left(connect: Open) -> None:
    table = keyed(connect())
    table.append(rows(1, 2))
    start = table.version
    op = table.begin_replace("2013-01-05")
    op.write(rows(3, 4))
    hidden = table.update({"client": "'z'"}, "value = 1").version
    beside = table.append(rows(5)).version
    replaced = op.commit().version
    changes = {
        batch.version: sorted(zip(batch.rows["_change_type"].to_pylist(), batch.rows["value"].to_pylist(), strict=True))
        for batch in table.follow(since=start, changes=True, wait_seconds=0)
    }
    assert changes == {
        beside: [("insert", 5)],
        hidden: [("update_after", 1), ("update_before", 1)],
        replaced: [("delete", 1), ("delete", 2), ("insert", 3), ("insert", 4)],
    }


def test_a_large_commit_comes_in_several_batches_of_one_version(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed(lake, target_rows="50")
    start = table.version
    version = table.append(rows(*range(1000))).version
    monkeypatch.setattr(following, "BATCH_ROWS", 100)
    found = read(table, since=start)
    assert len(found) >= 10
    assert {one for one, _ in found} == {version}
    assert sorted(value for _, values in found for value in values) == list(range(1000))


def test_a_restore_over_a_compaction_gives_no_row_however_large_its_files_are(
    lake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = keyed(lake)
    table.append(rows(*range(100)))
    start = table.append(rows(*range(100, 150))).version
    table.compact()
    table.update({"client": "'z'"}, "value = 7")
    table.restore(start)
    monkeypatch.setattr(following, "BATCH_ROWS", 10)
    assert [values for _, values in read(table, since=start)] == [[7], [7]]
    batches = table.follow(since=start, changes=True, wait_seconds=0)
    found = [(one["_change_type"], one["client"]) for batch in batches for one in batch.rows.to_pylist()]
    assert found == [("update_before", "a"), ("update_after", "z"), ("update_before", "z"), ("update_after", "a")]


def test_updates_are_paired_in_parts_when_they_are_many(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed(lake, target_rows="100")
    table.append(rows(*range(1000)))
    table.compact()
    start = table.version
    table.update({"client": "'z'"}, "value % 3 = 0")
    monkeypatch.setattr(feeding, "PAIRED_BYTES", 1)
    found = [one for batch in table.follow(since=start, changes=True, wait_seconds=0) for one in batch.rows.to_pylist()]
    assert [one["_change_type"] for one in found] == ["update_before", "update_after"] * 334
    assert all(a["value"] == b["value"] and b["client"] == "z" for a, b in zip(found[::2], found[1::2], strict=True))
    assert {one["value"] for one in found} == set(range(0, 1000, 3))


def test_rows_have_the_columns_of_today(lake: Any) -> None:
    table = keyed(lake)
    start = table.append(rows(1)).version
    table.append(rows(2))
    table.add_column("note", "STRING", default="old", default_for_new="new")
    table.rename_column("client", "customer")
    table.append(pa.table({"time": [FIRST], "customer": ["b"], "value": [3]}).cast(
        pa.schema([*(table.schema.field(one).remove_metadata() for one in ("time", "customer", "value"))])
    ))  # fmt: skip
    found = [batch.rows.select(["customer", "value", "note"]).to_pylist()
             for batch in table.follow(since=start, wait_seconds=0)]  # fmt: skip
    assert found == [
        [{"customer": "a", "value": 2, "note": "old"}],
        [{"customer": "b", "value": 3, "note": "new"}],
    ]


def test_a_rebuild_for_another_layout_is_not_read(lake: Any) -> None:
    table = keyed(lake)
    table.append(rows(1, 2))
    start = table.version
    table.rebuild(grain="month", cluster_by=["client"])
    table.rebuild()
    assert table.segments()[0].path not in {one.path for one in table.segments(as_of=start)}
    for one in table.segments():
        (lake.warehouse / one.path).unlink()
    assert read(table, since=start) == []
    assert table.changes(start).count() == 0
    assert table.log()[1].operation == "transaction"


def test_an_erasure_gives_no_batch_and_earlier_versions_come_without_its_rows(lake: Any) -> None:
    table = keyed(lake)
    start = table.version
    added = table.append(rows(1, 2)).version
    table.erase("value = 1")
    assert read(table, since=start) == [(added, [2])]
    assert [kind for batch in table.follow(since=added, changes=True, wait_seconds=0) for kind in batch.rows] == []


def test_a_dropped_table_is_read_to_its_end_and_then_refused(connect: Open) -> None:
    table = keyed(connect())
    start = table.version
    added = table.append(rows(1)).version
    batches = table.follow(since=start)
    connect().drop_table("t")
    assert next(batches).version == added
    with pytest.raises(TableNotFound, match="dropped"):
        next(batches)


def test_a_table_without_time_and_an_empty_one_are_followed(lake: Any) -> None:
    codes = lake.create_table("codes", "code STRING, name STRING")
    assert list(codes.follow(wait_seconds=0)) == []
    table = pa.table({"code": ["a", "é"], "name": [None, "ü"]})
    batches = codes.follow(since=codes.version, changes=True, wait_seconds=0)
    codes.replace(table)
    codes.replace(table.slice(1))
    found = [(one["_change_type"], one["code"]) for batch in batches for one in batch.rows.to_pylist()]
    assert found == [("insert", "a"), ("insert", "é"), ("delete", "a"), ("delete", "é"), ("insert", "é")]


@pytest.mark.parametrize(("seed", "most"), [(0, 1 << 17), (1, 2)])
def test_replaying_the_feed_gives_every_version(
    seed: int, most: int, connect: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A follower of each table applies changes to a bag of rows, through everything that a history may do."""
    monkeypatch.setattr(following, "BATCH_ROWS", most)
    lake, there = connect(), connect()
    create_tables(lake)
    author = Author(random.Random(seed), World(), {})
    names = list(author.world.names)
    tables = [there.table(name) for name in names]
    feeds = [
        table.follow(since=table.version, changes=True, wait_seconds=0, consumer=f"c{seed}{n}")
        for n, table in enumerate(tables)
    ]
    held: list[Counter[Any]] = [Counter(), Counter()]
    for list_ in feeds:
        assert list(list_) == []
    seen = 0
    for _ in range(45):
        step = author.step()
        do(lake, step)
        if step.kind == "erase":  # rows of no version: a reader is not told of them
            held[step.place] = Counter({row: n for row, n in held[step.place].items() if row[2] % 10 != step.version})
        for place, table in enumerate(tables):
            if author.chance.random() < 0.4 and step.kind != "erase":
                continue
            for batch in table.follow(changes=True, wait_seconds=0, consumer=f"c{seed}{place}"):
                seen += 1
                for one in batch.rows.to_pylist():
                    row = tuple(one[name] for name in COLUMNS)
                    if one["_change_type"] in ("delete", "update_before"):
                        assert held[place][row] > 0
                        held[place][row] -= 1
                    else:
                        held[place][row] += 1
            assert +held[place] == plain(table.scan().to_arrow())
    assert seen > 20


# Waiting


def test_a_commit_wakes_a_reader_that_waits(connect: Open) -> None:
    lake, there = connect(), connect()
    table = keyed(lake)
    for writer in (lake, there):
        batches = table.follow(since=table.version)
        found: list[Any] = []
        reader = threading.Thread(target=lambda: found.append(next(batches)))  # noqa: B023 - joined below
        reader.start()
        version = writer.table("t").append(rows(1)).version
        reader.join(30)
        assert [one.version for one in found] == [version]


def test_a_reader_ends_when_nothing_comes_in_time(lake: Any) -> None:
    table = keyed(lake)
    assert list(table.follow(since=table.version, wait_seconds=0.05)) == []


# Consumers


def test_a_consumer_goes_on_where_it_was_elsewhere_too(connect: Open) -> None:
    table = keyed(connect())
    added = [table.append(rows(value)).version for value in range(4)]
    start = added[0]
    batches = table.follow(since=start, consumer="c")
    assert [next(batches).version for _ in range(2)] == added[1:3]
    (known,) = connect().consumers()
    assert (known.name, known.table, known.version, known.lag) == ("c", "t", added[1], 2)
    elsewhere = connect().table("t")
    assert [one for one, _ in read(elsewhere, since=start, consumer="c")] == added[2:]
    assert [(one.version, one.lag) for one in connect().consumers()] == [(added[3], 0)]
    assert read(elsewhere, consumer="c") == []


def test_a_snapshot_that_was_interrupted_goes_on(connect: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    table = keyed(connect(), target_rows="10")
    table.append(rows(*range(100)))
    monkeypatch.setattr(following, "BATCH_ROWS", 10)
    batches = table.follow(consumer="c")
    first = [next(batches).rows["value"].to_pylist() for _ in range(3)]
    table.delete("value >= 0")
    table.append(rows(1000))
    rest = [value for _, values in read(connect().table("t"), consumer="c") for value in values]
    acknowledged = [value for values in first[:2] for value in values]
    assert sorted([*acknowledged, *rest]) == [*range(100), 1000]


def copied(source: Any, target: Any, batches: int, **options: Any) -> bool:
    """Copy some batches by their marks, as a process that dies before it asks for the next; whether that was all."""
    found = source.follow(consumer="copy", wait_seconds=0, **options)
    for _ in range(batches):
        batch = next(found, None)
        if batch is None:
            return True
        target.append(batch.rows, txn=batch.txn)
    return False


@pytest.mark.parametrize("seed", range(2))
def test_batches_are_copied_once_whenever_the_reader_dies(
    seed: int, connect: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large commits come in several batches, rows are erased between two runs, and the next cuts batches otherwise."""
    chance = random.Random(seed)
    lake = connect()
    source, target = keyed(lake, target_rows="500"), lake.create_table("copy", KEYED, time="time")
    source.append(rows(*range(300)))
    source.append(rows(*range(300, 500)))
    source.compact()  # files with row ids of their own
    erased: set[int] = set()
    there = set(range(500))
    for turn in range(9):
        monkeypatch.setattr(following, "BATCH_ROWS", chance.choice([1 << 17, 200, 70]))
        copied(connect().table("t"), target, chance.randrange(1, 4))
        match chance.choice(["append", "erase", "none"]):
            case "append":
                new = range(1000 * (turn + 1), 1000 * (turn + 1) + 150)
                source.append(rows(*new))
                there |= set(new)
            case "erase":
                gone = chance.sample(sorted(there), 40)
                where = f"value IN ({', '.join(map(str, gone))})"
                for table in (source, target):
                    table.erase(where)
                erased |= set(gone)
    while not copied(connect().table("t"), target, 5):
        pass
    found = target.scan().to_arrow()["value"].to_pylist()
    assert sorted(found) == sorted(there - erased)


def test_a_batch_counts_as_read_when_the_next_is_asked_for(connect: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "BATCH_ROWS", 1000)
    table = keyed(connect())
    table.append(rows(*range(5000)))  # one file
    batches = table.follow(consumer="c", wait_seconds=0)
    first, second = next(batches), next(batches)
    again = list(connect().table("t").follow(consumer="c", wait_seconds=0))
    assert (again[0].txn, again[0].rows) == (second.txn, second.rows)
    marks = [one.txn for one in (first, *again)]
    assert len(set(marks)) == len(marks) >= 4
    values = [value for one in (first, *again) for value in one.rows["value"].to_pylist()]
    assert sorted(values) == list(range(5000))
    assert [one.txn for one in table.follow(wait_seconds=0)] == [None] * len(marks)


def test_a_consumer_that_was_dropped_and_begins_anew_has_other_marks(connect: Open) -> None:
    lake = connect()
    source, target = keyed(lake), lake.create_table("copy", KEYED, time="time")
    source.append(rows(1))
    source.append(rows(2))
    for _ in range(2):
        assert copied(source, target, 9)
        assert sorted(target.scan().to_arrow()["value"].to_pylist()) == [1, 2]
        lake.drop_consumer("copy")
        target.delete("value > 0")


def test_nothing_that_was_erased_is_given_afterwards(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "BATCH_ROWS", 100)
    table = keyed(lake)
    start = table.version
    for first in range(0, 20, 5):
        table.append(rows(*range(first, first + 5)))
    table.append(rows(*range(100, 1000)))
    batches = table.follow(since=start, wait_seconds=0)
    next(batches)
    table.erase("value % 5 = 2")
    late = [value for batch in batches for value in batch.rows["value"].to_pylist()]
    assert sorted(late) == [one for one in [*range(5, 20), *range(100, 1000)] if one % 5 != 2]
    start = table.version
    table.append(rows(*range(1000, 2000)))
    batches = table.follow(since=start, wait_seconds=0)
    assert next(batches).rows["value"].to_pylist() == list(range(1000, 1100))
    table.erase("value % 5 = 3")  # within a file
    late = [value for batch in batches for value in batch.rows["value"].to_pylist()]
    assert late == [one for one in range(1100, 2000) if one % 5 != 3]


def test_each_batch_has_the_columns_of_its_moment(lake: Any) -> None:
    table = keyed(lake)
    start = table.version
    for value in range(3):
        table.append(rows(value))
    batches = table.follow(since=start, wait_seconds=0)
    next(batches)
    table.drop_column("client")
    table.add_column("x", "BIGINT", default=1)
    assert [one.rows.to_pylist() for one in batches] == [
        [{"time": FIRST, "value": value, "x": 1}] for value in (1, 2)
    ]  # fmt: skip


def test_two_readers_of_one_name_take_over_from_each_other(connect: Open) -> None:
    table = keyed(connect())
    added = [table.append(rows(value)).version for value in range(5)]
    first = table.follow(since=added[0], consumer="c")
    assert next(first).version == added[1]
    second = connect().table("t").follow(consumer="c")
    assert next(second).version == added[1]
    with pytest.raises(ConsumerLost, match="taken over"):
        next(first)
    assert [next(second).version for _ in range(3)] == added[2:]


def test_a_reader_that_waits_is_told_that_it_was_taken_over(connect: Open) -> None:
    table = keyed(connect())
    first = table.follow(since=table.version, consumer="c")
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            next(first)
        except ConsumerLost as error:
            errors.append(error)

    reader = threading.Thread(target=wait)
    reader.start()
    assert read(connect().table("t"), consumer="c") == []
    reader.join(30)
    assert len(errors) == 1


def test_what_a_consumer_has_yet_to_read_does_not_expire_while_its_lease_lasts(connect: Open) -> None:
    lake = connect()
    table = keyed(lake)
    start = table.append(rows(1)).version
    assert read(table, since=start, consumer="c") == []
    for value in range(2, 6):
        table.upsert(rows(value, 1))
    table.compact()
    lake.close()
    lake = connect()
    assert lake.expire(keep_last=1).horizon <= start
    lake.collect(grace_seconds=0)
    table = lake.table("t")
    assert [values for _, values in read(table, consumer="c")] == [[1, value] for value in range(2, 6)]
    assert lake.expire(keep_last=1).horizon > start


def test_a_consumer_that_is_late_is_told_what_to_do(connect: Open) -> None:
    lake = connect()
    table = keyed(lake)
    start = table.append(rows(1)).version
    list(table.follow(since=start, consumer="c", wait_seconds=0, lease_seconds=0))
    table.append(rows(2))
    table.upsert(rows(1))
    lake.close()
    lake = connect()
    lake.expire(keep_last=1)
    table = lake.table("t")
    with pytest.raises(ConsumerExpired, match="drop the consumer") as found:
        table.follow(consumer="c")
    assert (found.value.consumer, found.value.version) == ("c", start)
    with pytest.raises(VersionNotFound):
        table.follow(consumer="c", since=start)
    later = table.version
    added = table.append(rows(3)).version
    assert read(table, consumer="c", since=later) == [(added, [3])]
    lake.drop_consumer("c")
    assert read(table, consumer="c") == [(added, [1, 2, 3])]


def test_a_known_consumer_goes_on_though_the_version_to_begin_with_has_expired(connect: Open) -> None:
    lake = connect()
    table = keyed(lake)
    start = table.append(rows(1)).version
    table.append(rows(2))
    assert len(read(table, since=start, consumer="c")) == 1
    lake.close()
    lake = connect()
    lake.expire(keep_last=1)
    table = lake.table("t")
    added = table.append(rows(3)).version
    assert read(table, since=start, consumer="c") == [(added, [3])]
    with pytest.raises(VersionNotFound):
        table.follow(since=start, consumer="new")


def test_a_late_consumer_whose_versions_are_there_goes_on(connect: Open) -> None:
    lake = connect()
    table, other = keyed(lake), lake.create_table("other", KEYED, time="time")
    list(table.follow(consumer="c", wait_seconds=0, lease_seconds=0))
    for value in range(3):
        other.append(rows(value))
    lake.close()
    lake = connect()
    lake.expire(keep_last=1)
    table = lake.table("t")
    added = table.append(rows(1)).version
    assert read(table, consumer="c") == [(added, [1])]


def test_consumers_are_listed_and_dropped(connect: Open) -> None:
    lake = connect()
    table = keyed(lake)
    batches = table.follow(consumer="c")
    with pytest.raises(ConsumerNotFound, match="no such consumer"):
        lake.drop_consumer("d")
    lake.drop_consumer("c")
    assert lake.consumers() == []
    with pytest.raises(ConsumerLost):
        next(batches)
    other = lake.create_table("other", KEYED, time="time")
    list(table.follow(consumer="c", wait_seconds=0))
    with pytest.raises(InvalidArgument, match="another table"):
        other.follow(consumer="c")
    for wrong in ("", " ", 7, "x" * 201, "a\nb"):
        with pytest.raises(InvalidArgument, match="a consumer has a name"):
            table.follow(consumer=wrong)


_CHILD = """
import os, sys, lakehouse
lake = lakehouse.connect(sys.argv[1], sys.argv[2])
for batch in lake.table("t").follow(since=int(sys.argv[3]), consumer="c"):
    print(batch.version, flush=True)
    if sys.stdin.readline() == "":
        os._exit(1)
"""


def test_a_consumer_that_is_killed_goes_on_elsewhere(catalog_url: str, warehouse: Any, connect: Open) -> None:
    table = keyed(connect())
    start = table.version
    added = [table.append(rows(value)).version for value in range(5)]
    command = [sys.executable, "-c", _CHILD, catalog_url, str(warehouse), str(start)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for _ in range(2):
            child.stdout.readline()
            child.stdin.write("\n")
            child.stdin.flush()
        assert int(child.stdout.readline()) == added[2]
        child.kill()
    assert [one for one, _ in read(table, consumer="c")] == added[2:]


def test_history_that_has_expired_is_refused_by_name(connect: Open) -> None:
    lake = connect()
    table = keyed(lake)
    start = table.append(rows(1)).version
    table.upsert(rows(1))
    table.upsert(rows(2))
    lake.expire(keep_last=1)
    with pytest.raises(VersionNotFound, match="expired"):
        table.follow(since=start)
    with pytest.raises(VersionNotFound):
        table.follow(since=table.version + 1000)
    with pytest.raises(lakehouse.InvalidInput):
        table.follow(since=True)
