"""Tables as a streaming source of Spark: what is Spark's own in it; `test_stream_reader` has what the reader does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lakehouse
from lakehouse.testing.rows import KEYED, arrow

DAY = "2013-01-05"


@pytest.fixture
def lake(spark: Any, sqlite_url: str, warehouse: Path) -> Any:
    with lakehouse.connect(sqlite_url, str(warehouse), spark=spark) as opened:
        yield opened


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


def fails(ask: Callable[[], Any]) -> str:
    with pytest.raises(Exception) as found:  # noqa: PT011 - Spark's own, of several kinds
        ask()
    return str(found.value)


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
