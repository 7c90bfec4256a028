"""Listings as Arrow tables."""

from __future__ import annotations

from datetime import UTC, datetime

from lakehouse.core.commit import Commit
from lakehouse.core.diff import Diff
from lakehouse.core.interval import Interval
from lakehouse.core.listing import Listing
from lakehouse.core.lock import ChunkLock


def commit(version: int, txn: tuple[str, int] | None) -> Commit:
    return Commit(version, "append", datetime(2026, 1, 1, tzinfo=UTC), ("flights",), txn=txn, properties={"run": "7"})


def test_commits_with_and_without_a_txn_make_one_table() -> None:
    table = Listing([commit(2, ("loader", 17)), commit(1, None)]).to_arrow()
    assert table["txn"].to_pylist() == ['["loader", 17]', None]
    assert table["tables"].to_pylist() == [["flights"], ["flights"]]
    assert table["properties"].to_pylist() == ['{"run": "7"}'] * 2


def test_an_interval_becomes_its_start_and_end() -> None:
    lock = ChunkLock(Interval.of("2013-01-05"), "0af1", 10, 1, datetime(2026, 1, 1, tzinfo=UTC), keys={"client": (1,)})
    table = Listing([lock]).to_arrow()
    assert table.column_names[:3] == ["start", "end", "operation"]
    assert table["keys"].to_pylist() == ['{"client": [1]}']


def test_nothing_makes_an_empty_table_and_an_empty_diff_says_so() -> None:
    assert Listing().to_arrow().num_rows == 0
    assert Diff(1, 2).to_arrow().num_rows == 0
    assert repr(Diff(1, 2)) == "<diff from 1 to 2: 0 added, 0 dropped in 0 chunks>"
