"""Tables as a streaming source of Spark: rows in are rows out, whatever happened to the table in between."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import lakehouse
from lakehouse.testing import behind
from lakehouse.testing.history import Author, World, create_tables, do
from lakehouse.testing.rows import COLUMNS, KEYED, arrow

DAY = "2013-01-05"


@pytest.fixture
def lake(spark: Any, sqlite_url: str, warehouse: Path) -> Any:
    with lakehouse.connect(sqlite_url, str(warehouse), spark=spark) as opened:
        yield opened


def forget_readers(lake: Any) -> None:
    """As after the leases of processes that have ended."""
    behind.change(lake.catalog, sa.text("DELETE FROM pin"))


class Sink:
    """Keeps what a stream wrote, with a checkpoint of its own."""

    def __init__(self, folder: Path) -> None:
        self.checkpoint = str(folder / "checkpoint")
        self.batches: list[list[dict[str, Any]]] = []

    def run(self, frame: Any) -> Any:
        """Read all that there is now."""

        def keep(rows: Any, _: int) -> None:
            self.batches.append([one.asDict() for one in rows.collect()])

        writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", self.checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return query

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [one for batch in self.batches for one in batch]


@pytest.fixture
def sink(tmp_path: Path) -> Sink:
    return Sink(tmp_path)


def plain(rows: list[dict[str, Any]]) -> Counter[Any]:
    return Counter((one["time"].replace(tzinfo=UTC), one["client"], one["value"]) for one in rows)


def visible(table: Any) -> Counter[Any]:
    found = table.scan().to_arrow()
    return Counter(zip(*(found[name].to_pylist() for name in COLUMNS), strict=True))


def test_a_stream_of_changes_gives_the_table_through_everything(lake: Any, sink: Sink) -> None:
    create_tables(lake)
    author = Author(random.Random(7), World(), {})
    table = lake.table(author.world.names[0])
    held: Counter[Any] = Counter()
    for turn in range(2):
        for _ in range(30):
            step = author.step()
            if step.kind != "erase":
                do(lake, step)
        name = author.world.names[0]
        before = len(sink.batches)
        sink.run(lakehouse.streaming.read(lake, name, changes=True, consumer="spark", max_versions=12))
        for batch in sink.batches[before:]:
            for sign, kinds in ((-1, ("delete", "update_before")), (1, ("insert", "update_after"))):
                found = plain([one for one in batch if one["_change_type"] in kinds])
                for row, count in found.items():
                    held[row] += sign * count
        assert +held == visible(table)
        assert min([0, *held.values()]) == 0, turn
    assert len(sink.batches) >= 2
    assert {one.name for one in lake.consumers()} == {"spark"}


def test_rows_are_read_by_tasks_once_with_limits_and_after_a_start(lake: Any, sink: Sink) -> None:
    table = lake.create_table("t", KEYED, time="time", primary_key=("value",), properties={"target_rows": "10"})
    table.append(arrow([(DAY, "a", value) for value in range(55)]))
    table.delete("value = 3")
    query = sink.run(lakehouse.streaming.read(lake, table, max_rows=20))
    assert len(sink.batches) == 3
    assert sorted(one["value"] for one in sink.rows) == [value for value in range(55) if value != 3]
    (source,) = query.lastProgress["sources"]
    assert json.loads(source["endOffset"])["version"] == lake.head
    table.upsert(arrow([(DAY, "b", 3), (DAY, "b", 4)]))
    table.compact()
    sink.run(lakehouse.streaming.read(lake, table, max_rows=20))
    assert [sorted(one["value"] for one in batch) for batch in sink.batches[3:]] == [[3, 4]]
    sink.run(lakehouse.streaming.read(lake, table))
    assert len([batch for batch in sink.batches if batch]) == 4


def test_options_of_the_format_are_those_of_the_call(lake: Any, sink: Sink, spark: Any) -> None:
    table = lake.create_table("t", KEYED, time="time", primary_key=("value",))
    first = table.append(arrow([(DAY, "a", 1)]))
    table.update({"client": "'z'"}, "value = 1")
    options = {"table": "t", "catalog": lake.catalog.address, "warehouse": str(lake.warehouse)}
    lakehouse.register(spark)
    stream = spark.readStream.format("lakehouse").options(**options)
    sink.run(stream.option("changes", "true").option("since", first.version).option("consumer", "c").load())
    assert [(one["_change_type"], one["client"]) for one in sink.rows] == [
        ("update_before", "a"),
        ("update_after", "z"),
    ]
    assert [one.table for one in lake.consumers()] == ["t"]


def test_what_a_consumer_of_spark_has_yet_to_read_is_kept(lake: Any, sink: Sink) -> None:
    table = lake.create_table("t", KEYED, time="time", primary_key=("value",))
    table.append(arrow([(DAY, "a", 1)]))
    table.append(arrow([(DAY, "a", 1)]))
    sink.run(lakehouse.streaming.read(lake, table, since=table.version - 1, consumer="c"))
    assert [one.lag for one in lake.consumers()] == [0]
    for value in range(4):
        table.upsert(arrow([(DAY, "b", 1), (DAY, "b", 10 + value)]))
    table.compact()
    forget_readers(lake)
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    sink.run(lakehouse.streaming.read(lake, table, consumer="c"))
    assert Counter(one["value"] for one in sink.rows) == Counter({1: 5, 10: 1, 11: 1, 12: 1, 13: 1})


def fails(ask: Callable[[], Any]) -> str:
    with pytest.raises(Exception) as found:  # noqa: PT011 - Spark's own, of several kinds
        ask()
    return str(found.value)


def test_what_is_gone_or_wrong_is_an_error_by_name(lake: Any, sink: Sink) -> None:
    table = lake.create_table("t", KEYED, time="time", primary_key=("value",))
    table.append(arrow([(DAY, "a", 1)]))
    sink.run(lakehouse.streaming.read(lake, table))
    table.upsert(arrow([(DAY, "b", 1)]))
    table.upsert(arrow([(DAY, "b", 1)]))
    forget_readers(lake)
    lake.expire(keep_last=1)
    assert "has expired" in fails(lambda: sink.run(lakehouse.streaming.read(lake, table)))
    for options, message in (
        ({"max_rows": 0}, "max_rows is a whole number above 0"),
        ({"since": "nowhere"}, "no such tag"),
        ({"consumer": " "}, "a consumer has a name"),
    ):
        other = Sink(Path(sink.checkpoint).parent / message.replace(" ", "_"))
        assert message in fails(lambda: other.run(lakehouse.streaming.read(lake, table, **options)))  # noqa: B023


def test_a_stream_whose_columns_changed_says_so_and_goes_on_when_started_again(lake: Any, sink: Sink) -> None:
    table = lake.create_table("t", KEYED, time="time", primary_key=("value",))
    table.append(arrow([(DAY, "a", 1)]))
    sink.run(lakehouse.streaming.read(lake, table))
    table.append(arrow([(DAY, "a", 2)]))
    frame = lakehouse.streaming.read(lake, table)
    table.rename_column("client", "customer")
    assert "start it again" in fails(lambda: sink.run(frame))
    sink.run(lakehouse.streaming.read(lake, table))
    assert [(one.get("client"), one.get("customer"), one["value"]) for one in sink.rows] == [
        ("a", None, 1),
        (None, "a", 2),
    ]
