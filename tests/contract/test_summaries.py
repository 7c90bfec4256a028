"""Indexes and sketches: reads leave out segments by them, clean-up knows them, and no row changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakehouse.catalog.store.models import garbage, operation, segment_summary
from lakehouse.core.summary import SummaryKind
from lakehouse.errors import InvalidInput, SegmentUnreadable
from lakehouse.operations.summarize import build_indexes, build_statistics, missing_indexes, missing_statistics
from lakehouse.session.index_cache import IndexCache
from lakehouse.testing import behind, faults
from lakehouse.testing.rows import SCHEMA, TIME_TYPE

DAY_US = 86_400_000_000
FIRST_US = 1_357_344_000_000_000
ROWS = 50


@pytest.fixture
def events(lake: Any) -> Any:
    """A table whose clients are indexed."""
    return lake.create_table("events", SCHEMA, time="time", properties={"index": "client, value"})


def rows(first: int, count: int = ROWS, *, day: int = 0) -> pa.Table:
    """Rows of a day with values that are spread over all there are, so that bounds prune nothing."""
    values = [(first + n) * 7_919 % 100_003 for n in range(count)]
    times = pa.array([FIRST_US + day * DAY_US + n for n in range(count)], pa.int64()).cast(TIME_TYPE)
    clients = pa.array([f"client {value}" for value in values])
    return pa.table([times, clients, pa.array(values, pa.int64())], schema=SCHEMA)


def appended(table: Any, segments: int = 8, count: int = ROWS) -> None:
    for number in range(segments):
        table.append(rows(number * count, count))


def missing(lake: Any, table: Any) -> list[int]:
    return missing_indexes(lake.session, table.spec, lake.catalog.live(table.spec, lake.head)[0])


def build(lake: Any, table: Any) -> int:
    return build_indexes(lake.session, table.spec, missing(lake, table))


def files_below(warehouse: Path, ending: str) -> list[Path]:
    return sorted(warehouse.rglob(f"*{ending}"))


def stored_paths(lake: Any) -> list[str]:
    query = segment_summary.select().where(segment_summary.c.path != "")
    return sorted(row.path for row in behind.rows_of(lake.catalog, query))


def test_a_look_up_opens_only_the_segment_that_holds_the_value(lake, events):
    appended(events)
    before = events.scan().to_arrow()
    head, log = lake.head, len(lake.log())
    assert len(events.scan(where="value = 7919").plan().segments) == 8
    assert len(missing(lake, events)) == 8
    assert build(lake, events) == 16
    assert missing(lake, events) == []
    assert (lake.head, len(lake.log())) == (head, log)
    scan = events.scan(where="value = 7919")
    assert len(scan.plan().segments) == 1
    assert scan.to_arrow()["value"].to_pylist() == [7919]
    assert len(events.scan(where="client IN ('client 7919', 'nobody')").plan().segments) == 1
    assert len(events.scan(where="value = 7919 OR client = 'client 0'").plan().segments) <= 2
    assert len(events.scan(where="client = 'nobody' AND value > 5").plan().segments) == 0
    assert len(events.scan(where="client = 'nobody' OR value > 5").plan().segments) == 8
    assert events.scan().to_arrow().equals(before)
    assert lake.check().is_sound


def test_a_table_without_the_property_asks_nothing(lake, table):
    table.append(rows(0))
    assert missing(lake, table) == []
    assert build_indexes(lake.session, table.spec, lake.catalog.live(table.spec, lake.head)[0].ids.tolist()) == 0
    asked: list[Any] = []
    lake.catalog.summaries.read = lambda *given: asked.append(given) or []
    assert table.scan(where="value = 7919").count() == 1
    assert asked == []


def test_an_index_is_not_asked_where_bounds_leave_nothing(lake, events):
    appended(events, 3)
    build(lake, events)
    asked: list[Any] = []
    ask = lake.catalog.summaries.read
    lake.catalog.summaries.read = lambda *given: asked.append(given) or ask(*given)
    for where in (
        "value = 5000000",
        "value > 3",
        "value = 7919 OR client LIKE 'c%'",
        "time < '2000-01-01' AND value = 3",
    ):
        events.scan(where=where).plan()
    assert asked == []
    for _ in range(3):
        assert len(events.scan(where="value = 7919").plan().segments) == 1
    assert len(asked) == 1, "filters are remembered"


def test_what_is_remembered_is_bounded_and_look_ups_are_right_without_it(lake, events, warehouse, monkeypatch):
    appended(events, 12)
    build(lake, events)
    monkeypatch.setattr("lakehouse.session.index_cache.TOGETHER", 5)
    asked = []
    ask = lake.catalog.summaries.read
    monkeypatch.setattr(
        lake.catalog.summaries,
        "read",
        lambda kind, segments, field: asked.extend(segments) or ask(kind, segments, field),
    )
    for size, kept in ((0, 1), (1_500, 3), (1 << 20, 12)):
        lake.session.index_cache = IndexCache(lake.catalog.summaries, lake.session.warehouse, size=size)
        for _ in range(2):
            asked.clear()
            assert len(events.scan(where="value = 7919").plan().segments) == 1
            assert len(events.scan(where="value IN (0, 7919, 50)").plan().segments) <= 3
        assert 24 - 2 * kept <= len(asked) <= (0 if kept == 12 else 24)


def test_changes_of_rows_go_on_by_the_index(lake, events):
    appended(events)
    build(lake, events)
    events.update({"client": "'somebody'"}, "value = 7919")
    assert events.scan(where="client = 'somebody'").to_arrow()["value"].to_pylist() == [7919]
    assert events.scan(where="client = 'client 7919'").count() == 0
    assert len(missing(lake, events)) == 1
    build(lake, events)
    events.delete("client = 'somebody'")
    assert events.scan(where="value = 7919").count() == 0
    events.compact()
    assert events.scan().count() == 8 * ROWS - 1
    assert build(lake, events) == 2
    assert events.scan(where="value = 7919").count() == 0
    assert events.scan(where="value = 0").count() == 1


def test_a_large_index_is_a_file_of_which_a_look_up_reads_a_page(lake, events, warehouse):
    events.append(rows(0, 20_000))
    assert build(lake, events) == 2
    assert len(files_below(warehouse, ".index")) == 2
    assert lake.check().is_sound
    held = set(rows(0, 20_000)["value"].to_pylist())
    gone = [value for value in range(100_003) if value not in held]
    assert all(events.scan(where=f"value = {value}").plan().files for value in sorted(held)[:50])
    assert sum(bool(events.scan(where=f"value = {value}").plan().files) for value in gone[:100]) < 10
    assert events.scan(where=f"value IN ({', '.join(map(str, [*gone[:20], *sorted(held)[:3]]))})").count() == 3


@pytest.mark.parametrize("damage", ["gone", "changed", "short"])
def test_a_damaged_index_is_passed_over_and_its_segment_read(lake, events, warehouse, damage, caplog):
    events.append(rows(0, 20_000))
    build(lake, events)
    for path in files_below(warehouse, ".index"):
        if damage == "gone":
            path.unlink()
        elif damage == "changed":
            path.write_bytes(np.zeros(path.stat().st_size, np.uint8).tobytes())
        else:
            path.write_bytes(path.read_bytes()[:4000])
    assert events.scan(where="value = 7919").count() == 1
    assert "is skipped" in caplog.text
    assert lake.check().is_sound == (damage == "changed")


def test_a_changed_index_in_the_catalog_is_passed_over(lake, events, caplog):
    appended(events, 2)
    build(lake, events)
    behind.change(lake.catalog, segment_summary.update().values(content=b"\0" * 64))
    assert events.scan(where="value = 7919").count() == 1
    assert "is skipped" in caplog.text


def test_indexes_of_forgotten_segments_go(lake, events, warehouse):
    events.append(rows(0, 20_000))
    events.append(rows(20_000))
    build(lake, events)
    build_statistics(lake.session, events.spec, [one.id for one in events.segments()])
    assert len(files_below(warehouse, ".index")) == 2
    old = stored_paths(lake)
    events.replace(rows(5), "2013-01-05")
    assert lake.expire(keep_last=1).segments == 2
    assert stored_paths(lake) == []
    listed = {row.path for row in behind.rows_of(lake.catalog, garbage.select())}
    assert set(old) <= listed
    lake.collect(grace_seconds=0)
    assert files_below(warehouse, ".index") == []
    assert behind.rows_of(lake.catalog, segment_summary.select()) == []
    assert build(lake, events) == 2
    assert lake.check().is_sound


def test_indexes_of_a_dropped_table_go(lake, events, warehouse):
    events.append(rows(0, 20_000))
    build(lake, events)
    lake.drop_table("events")
    lake.create_table("other", SCHEMA, time="time")
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    assert files_below(warehouse, ".index") == []
    assert lake.check().is_sound


def test_segments_that_are_gone_are_left_out(lake, events):
    appended(events, 3)
    ids = [one.id for one in events.segments()]
    events.replace(None, "2013-01-05")
    assert build_indexes(lake.session, events.spec, [*ids, 12345]) == 0
    lake.expire(keep_last=1)
    assert build_indexes(lake.session, events.spec, ids) == 0


@pytest.mark.parametrize("count", [ROWS, 20_000])
def test_a_segment_forgotten_while_its_index_is_made_takes_it_along(lake, connect, events, warehouse, count):
    events.append(rows(0, count))
    (one,) = events.segments()
    other = connect(lease_seconds=60)

    def forget() -> None:
        other.table("events").replace(rows(9), "2013-01-05")
        # The running operation holds its base, and with it the segment: only its end lets go.
        other.expire(keep_last=1)

    with faults.armed({"summaries.written": forget}):
        build_indexes(lake.session, events.spec, [one.id])
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    assert files_below(warehouse, ".index") == []
    assert lake.check().is_sound


@pytest.mark.parametrize("point", ["summaries.written", "summaries.stored", "summaries.registered"])
@pytest.mark.parametrize("count", [ROWS, 20_000])
def test_an_end_at_any_point_leaves_nothing_wrong(lake, connect, events, warehouse, point, count):
    """As where the process is killed: nothing of the operation is ended or tidied."""
    events.append(rows(0, count))
    events.append(rows(count, ROWS))
    killed = connect(lease_seconds=0.0)

    class Killed(BaseException):
        pass

    def kill() -> None:
        killed.catalog.abort = lambda begun: False
        killed.session.heartbeat.close()
        raise Killed

    with faults.armed({point: kill}), pytest.raises(Killed):
        build(killed, events)
    for _ in range(2):
        assert events.scan(where="value = 7919").count() == 1
        assert events.scan(where="client = 'nobody'").count() == 0
        lake.collect(grace_seconds=0)
        assert lake.check().is_sound
        build(lake, events)
    assert missing(lake, events) == []
    assert len(files_below(warehouse, ".index")) == (2 if count > ROWS else 0)
    assert len(stored_paths(lake)) == (2 if count > ROWS else 0)


def test_what_two_builds_make_is_there_once(lake, connect, events, warehouse):
    events.append(rows(0, 20_000))
    ids = missing(lake, events)
    other = connect()

    def again() -> None:
        assert build_indexes(other.session, events.spec, ids) == 2

    with faults.armed({"summaries.written": faults.on_count(1, again)}):
        assert build_indexes(lake.session, events.spec, ids) == 0
    assert len(files_below(warehouse, ".index")) == 4
    lake.collect(grace_seconds=0)
    assert len(files_below(warehouse, ".index")) == 2
    assert lake.check().is_sound
    assert events.scan(where="value = 7919").count() == 1


def test_a_file_that_cannot_be_read_is_named_when_all_others_are_done(lake, events, warehouse):
    appended(events, 3)
    (warehouse / events.segments()[0].path).write_bytes(b"")
    with pytest.raises(SegmentUnreadable, match="cut short"):
        build(lake, events)
    assert len(missing(lake, events)) == 1


def test_operations_that_made_indexes_are_forgotten_when_no_file_is_left(lake, events):
    appended(events, 2)
    build(lake, events)
    numbers = behind.rows_of(lake.catalog, operation.select().where(operation.c.kind == "summarize"))
    assert [row.state for row in numbers] == ["committed"]


def test_an_index_names_a_column_that_can_have_one(lake):
    with pytest.raises(InvalidInput, match="index"):
        lake.create_table("bad", SCHEMA, time="time", properties={"index": "nothing"})


def test_recovery_goes_on_without_indexes(lake, events, warehouse, tmp_path):
    import lakehouse  # noqa: PLC0415

    events.append(rows(0, 20_000))
    events.append(rows(20_000))
    build(lake, events)
    lake.export()
    url = f"sqlite:///{tmp_path}/new.db"
    found = lakehouse.recover(warehouse, url)
    assert (found.segments, found.unknown, found.missing) == (2, (), ())
    with lakehouse.connect(url, warehouse) as again:
        table = again.table("events")
        assert table.scan(where="value = 7919").count() == 1
        assert build(again, table) == 4
        assert table.scan(where="client = 'nobody'").plan().files == []


def test_statistics_count_what_catalog_and_sketches_know(lake, events):
    appended(events)
    events.append(
        pa.table({"time": rows(0, 2)["time"], "client": [None, "x"], "value": pa.array([None, 5], pa.int64())})
    )
    by_name = {one.column: one for one in events.statistics()}
    assert (by_name["value"].rows, by_name["value"].nulls, by_name["value"].distinct) == (8 * ROWS + 2, 1, None)
    ids = missing_statistics(lake.session, events.spec, lake.catalog.live(events.spec, lake.head)[0])
    assert len(ids) == 9
    assert build_statistics(lake.session, events.spec, ids) == 27
    assert missing_statistics(lake.session, events.spec, lake.catalog.live(events.spec, lake.head)[0]) == []
    found = {one.column: one for one in events.statistics()}
    value = found["value"]
    assert value.sketched == 1.0
    assert 0.95 * (8 * ROWS + 1) < value.distinct < 1.05 * (8 * ROWS + 1)
    everything = events.scan().to_arrow()["value"]
    assert (value.min, value.max) == (pa.compute.min(everything).as_py(), pa.compute.max(everything).as_py())
    assert found["time"].distinct <= ROWS + 2
    assert value.bytes > 0
    events.append(rows(0))
    assert 0.8 < {one.column: one for one in events.statistics()}["value"].sketched < 1
    assert events.statistics(interval="2020-01-01").to_arrow()["rows"].to_pylist() == [0, 0, 0]
    assert events.statistics().to_arrow().num_rows == 3


def test_sketches_and_indexes_do_not_meet(lake, events):
    appended(events, 2)
    ids = [one.id for one in events.segments()]
    build_statistics(lake.session, events.spec, ids)
    assert len(missing(lake, events)) == 2
    build(lake, events)
    assert len(lake.catalog.summaries.read(SummaryKind.SKETCH, ids)) == 6
    assert len(lake.catalog.summaries.read(SummaryKind.INDEX, ids)) == 4
