"""What spans many chunks costs a few bins, and a planner that holds a version reads only what came after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from lakehouse.catalog.store.models import delta
from lakehouse.catalog.store.prepared import Prepared
from lakehouse.core.bins import MOST_BINS
from lakehouse.core.interval import Interval, to_utc
from lakehouse.testing import behind
from lakehouse.testing.rows import SCHEMA, arrow

FIRST = to_utc("2013-01-05")


@contextmanager
def statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Prepared]]:
    """The prepared statements that are run."""
    seen: list[Prepared] = []
    run = Prepared.run

    def noted(self: Prepared, *arguments: Any) -> Any:
        seen.append(self)
        return run(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Prepared, "run", noted)
        yield seen


def deltas(lake: Any) -> int:
    return len(behind.rows_of(lake.catalog, delta.select()))


def test_a_segment_over_300_days_is_kept_a_few_times_and_found_from_every_day(lake: Any) -> None:
    table = lake.create_table("flights", SCHEMA, time="time", properties={"ragged": "true"})
    days = [FIRST + timedelta(days=day) for day in range(300)]
    table.append(arrow([(day, "a", number) for number, day in enumerate(days)]))
    assert len(table.segments()) == 1
    assert deltas(lake) <= MOST_BINS
    for day in (days[0], days[150], days[299]):
        assert table.scan(interval=(day, day + timedelta(days=1))).count() == 1
    assert len(table.chunks()) == 300
    assert table.scan(interval=(days[0] - timedelta(days=9), days[0])).plan().segments == []
    table.replace(arrow([(days[150], "b", -1)]), (days[150], days[150] + timedelta(days=1)))
    assert table.scan().count() == 300
    assert table.scan(interval=(days[150], days[151])).to_arrow()["value"].to_pylist() == [-1]
    before = deltas(lake)
    table.compact()
    assert table.scan().count() == 300
    assert deltas(lake) - before <= 2 * MOST_BINS + 301
    table.restore(table.log()[-1].version)
    assert table.scan().count() == 300
    assert table.scan(interval=(days[150], days[151])).to_arrow()["value"].to_pylist() == [150]


def test_a_planner_that_holds_a_version_reads_one_delta_to_reach_the_next(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan asks for its version, whether that is retained, and the bins; then for what came, and its segments."""
    for value in range(20):
        table.append(arrow([(FIRST, "a", value)]))
    assert len(table.scan().plan().segments) == 20
    with statements(monkeypatch) as seen:
        assert len(table.scan().plan().segments) == 20
    assert len(seen) == 3
    table.append(arrow([(FIRST, "a", 20)]))
    with statements(monkeypatch) as seen:
        assert len(table.scan().plan().segments) == 21
    assert len(seen) == len(set(seen)) == 3 + 2


def test_chunks_and_differences_list_every_chunk_that_something_spans(lake: Any) -> None:
    table = lake.create_table("flights", SCHEMA, time="time", properties={"ragged": "true"})
    before = table.version
    table.append(arrow([(FIRST, "a", 1), (FIRST + timedelta(days=9), "a", 2)]))
    whole = Interval(FIRST, FIRST + timedelta(days=10))
    assert [one.start for one in table.chunks()] == [FIRST + timedelta(days=day) for day in range(10)]
    assert {one.segments for one in table.chunks()} == {1}
    found = table.diff(before, table.version)
    assert len(found.chunks) == 10
    assert len(found.added) == 1
    assert all(whole.contains(chunk) for chunk in found.chunks)
