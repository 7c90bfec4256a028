"""The reader of Spark's streams, asked as Spark asks it: rows in are rows out, whatever happened in between."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from lakehouse.errors import CheckpointMismatch, InvalidArgument, LakehouseError, VersionNotFound
from lakehouse.spark_source import LakehouseSource
from lakehouse.testing import behind
from lakehouse.testing.history import Author, World, create_tables, do
from lakehouse.testing.rows import COLUMNS, KEYED, arrow, plain

DAY = "2013-01-05"
Open = Callable[..., Any]


class Query:
    """A query with the trigger ``availableNow``: its checkpoint, and what its tasks gave, each in a process anew."""

    def __init__(self) -> None:
        self.checkpoint: dict[str, Any] | None = None
        self.batches: list[list[dict[str, Any]]] = []

    def run(self, lake: Any, table: Any, **options: Any) -> None:
        """Read all that there is now."""
        address = {"catalog": lake.catalog.address, "warehouse": str(lake.warehouse), "table": table.name}
        source = LakehouseSource({**address, **{name: str(value).lower() for name, value in options.items()}})
        reader = source.streamReader(source.schema())
        reader.prepareForTriggerAvailableNow()
        limit = reader.getDefaultReadLimit()
        try:
            offset = self.checkpoint or reader.initialOffset()
            while (end := reader.latestOffset(offset, limit)) != offset:
                there, tasks = pickle.loads(pickle.dumps((reader, reader.partitions(offset, end))))
                self.batches.append([row for one in tasks for rows in there.read(one) for row in rows.to_pylist()])
                self.checkpoint = offset = end
                reader.commit(end)
        finally:
            reader.stop()

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [one for batch in self.batches for one in batch]


def keyed(lake: Any) -> Any:
    return lake.create_table("t", KEYED, time="time", primary_key=("value",))


def forget_readers(lake: Any) -> None:
    """As after the leases of processes that have ended."""
    behind.change(lake.catalog, sa.text("DELETE FROM pin"))


def test_a_stream_of_changes_gives_the_table_through_everything(connect: Open) -> None:
    lake, query = connect(), Query()
    create_tables(lake)
    author = Author(random.Random(7), World(), {})
    held: Counter[Any] = Counter()
    for turn in range(2):
        for _ in range(30):
            step = author.step()
            if step.kind != "erase":
                do(lake, step)
        table = lake.table(author.world.names[0])
        before = len(query.batches)
        query.run(lake, table, changes=True, consumer="spark", max_versions=2)
        for one in (row for batch in query.batches[before:] for row in batch):
            sign = -1 if one["_change_type"] in ("delete", "update_before") else 1
            held[tuple(one[name] for name in COLUMNS)] += sign
        assert +held == Counter(plain(table.scan().to_arrow()))
        assert min([0, *held.values()]) == 0, turn
    assert len(query.batches) >= 4
    assert {one.name for one in lake.consumers()} == {"spark"}


@pytest.mark.parametrize("is_new", [False, True], ids=["another", "made again"])
def test_an_offset_of_another_table_is_refused_and_none_without_one(connect: Open, is_new: bool) -> None:
    lake, query = connect(), Query()
    table = keyed(lake)
    table.append(arrow([(DAY, "a", 1)]))
    query.run(lake, table, consumer="spark")
    assert query.checkpoint == {"version": lake.head, "file": 0, "table": table.spec.id}
    if is_new:
        lake.drop_table("t")
        other = keyed(lake)
    else:
        other = lake.create_table("other", KEYED, time="time", primary_key=("value",))
    other.append(arrow([(DAY, "a", 2)]))
    for name in ("spark", "new"):
        with pytest.raises(CheckpointMismatch, match="another table"):
            query.run(lake, other, consumer=name)
    assert [one["value"] for one in query.rows] == [1]
    assert "new" not in {one.name for one in lake.consumers()}
    if not is_new:
        query.checkpoint = {name: value for name, value in query.checkpoint.items() if name != "table"}
        table.append(arrow([(DAY, "a", 3)]))
        query.run(lake, table, consumer="spark")
        assert [one["value"] for one in query.rows] == [1, 3]


@pytest.mark.parametrize(
    ("limits", "most"), [({}, 22), ({"max_rows": 5}, 4), ({"max_versions": 1}, 2), ({"max_versions": 300}, 22)]
)
def test_commits_are_admitted_across_looks_at_them(
    connect: Open, monkeypatch: pytest.MonkeyPatch, limits: dict[str, int], most: int
) -> None:
    monkeypatch.setattr("lakehouse.catalog.state.feed.MOST_COMMITS", 3)
    lake, query = connect(), Query()
    table = keyed(lake)
    for value in range(11):
        last = table.append(arrow([(DAY, "a", value), (DAY, "b", value)])).version
    table.compact()
    query.run(lake, table, since=1, **limits)
    sizes = [len(batch) for batch in query.batches]
    assert [one["value"] for one in query.rows] == [value for value in range(11) for _ in range(2)]
    assert max(sizes) == most
    assert query.checkpoint == {"version": last, "file": 0, "table": table.spec.id}


def test_what_a_consumer_of_spark_has_yet_to_read_is_kept(connect: Open) -> None:
    lake, query = connect(), Query()
    table = keyed(lake)
    table.append(arrow([(DAY, "a", 1)]))
    table.append(arrow([(DAY, "a", 1)]))
    query.run(lake, table, since=table.version - 1, consumer="c")
    assert [one.lag for one in lake.consumers()] == [0]
    for value in range(4):
        table.upsert(arrow([(DAY, "b", 1), (DAY, "b", 10 + value)]))
    table.compact()
    forget_readers(lake)
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    query.run(lake, table, consumer="c")
    assert Counter(one["value"] for one in query.rows) == Counter({1: 5, 10: 1, 11: 1, 12: 1, 13: 1})


def test_what_is_gone_or_wrong_is_an_error_by_name(connect: Open) -> None:
    lake, query = connect(), Query()
    table = keyed(lake)
    table.append(arrow([(DAY, "a", 1)]))
    query.run(lake, table)
    table.upsert(arrow([(DAY, "b", 1)]))
    table.upsert(arrow([(DAY, "b", 1)]))
    forget_readers(lake)
    lake.expire(keep_last=1)
    with pytest.raises(VersionNotFound, match="has expired"):
        query.run(lake, table)
    wrong: list[tuple[dict[str, Any], type[LakehouseError], str]] = [
        ({"max_rows": 0}, InvalidArgument, "max_rows is a whole number above 0"),
        ({"since": "nowhere"}, VersionNotFound, "no such tag"),
        ({"consumer": " "}, InvalidArgument, "a consumer has a name"),
    ]
    for options, error, message in wrong:
        with pytest.raises(error, match=message):
            Query().run(lake, table, **options)
