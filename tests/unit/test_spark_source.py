"""The Spark source's own code, as Spark calls it but in this process: planning, tasks, commit."""

from __future__ import annotations

import importlib.util
import sys
import threading
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark import TaskContext, cloudpickle
from pyspark.sql import datasource
from pyspark.sql.types import StructType
from sqlalchemy import text

import lakehouse
from lakehouse import spark_source
from lakehouse.core.predicate import Unknown
from lakehouse.engine.spark import to_spark_type
from lakehouse.errors import EngineUnavailable, InvalidAddress, InvalidInterval, VersionNotFound, WriteConflict
from lakehouse.spark_source import LakehouseSource, predicate_of, source_of
from lakehouse.testing import behind
from lakehouse.testing.object_stores import Store
from lakehouse.testing.rows import KEYED, arrow, plain, visible

DAY = "2013-01-05"
NEWER_THAN_40 = {
    "DataSourceStreamArrowWriter", "EqualNullSafe", "EqualTo", "Filter", "GreaterThan", "GreaterThanOrEqual", "In",
    "IsNotNull", "IsNull", "LessThan", "LessThanOrEqual", "Not",
}  # fmt: skip


@pytest.fixture
def options(sqlite_url: str, warehouse: Any) -> dict[str, str]:
    return {"table": "flights", "catalog": sqlite_url, "warehouse": str(warehouse)}


@pytest.fixture
def lake(options: dict[str, str]) -> Any:
    with lakehouse.connect(options["catalog"], options["warehouse"]) as opened:
        yield opened


@pytest.fixture
def flights(lake: Any) -> Any:
    table = lake.create_table("flights", KEYED, time="time", primary_key=("value",), cluster_by=("client",))
    for first in (0, 20):
        hours = range(20)
        table.append(arrow([(f"{DAY}T{hour:02d}:00", "ab"[hour % 2], first + hour) for hour in hours]))
    return table


def source(options: dict[str, str], **more: str) -> LakehouseSource:
    return LakehouseSource({**options, **more})


def reader(options: dict[str, str], filters: list[Any] | None = None, **more: str) -> Any:
    made = source(options, **more).reader(StructType())
    assert list(made.pushFilters(filters or [])) == (filters or [])
    return made


def test_spark_41_and_40_read_and_write_and_refuse_what_they_cannot(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str], flights: Any
) -> None:
    monkeypatch.setitem(sys.modules, "lakehouse.streaming.reader", None)
    monkeypatch.setitem(sys.modules, "lakehouse.streaming.writer", None)
    for name in [name for name in dir(datasource) if name in NEWER_THAN_40 or name.startswith("String")]:
        monkeypatch.delattr(datasource, name)
    found = importlib.util.spec_from_file_location("older_spark_source", str(spark_source.__file__))
    assert found is not None
    assert found.loader is not None
    older = importlib.util.module_from_spec(found)
    monkeypatch.setitem(sys.modules, found.name, older)
    found.loader.exec_module(older)
    monkeypatch.setattr(pyspark, "__version__", "4.0.5")
    made = older.LakehouseSource(dict(options))
    read = made.reader(StructType())
    assert sum(batch.num_rows for part in read.partitions() for batch in read.read(part)) == 40
    with pytest.raises(EngineUnavailable, match=r"a table as a streaming source needs Spark 4\.2 .*found=4\.0\.5"):
        made.streamReader(StructType())
    with pytest.raises(EngineUnavailable, match=r"needs Spark 4\.1 or newer"):
        made.streamWriter(StructType(), False)


def rows(made: Any) -> Any:
    parts = list(made.partitions()) or [datasource.InputPartition(None)]
    batches = [batch for part in parts for batch in made.read(part)]
    return plain(pa.Table.from_batches(batches, KEYED))


def pins(lake: Any) -> list[int]:
    query = text("SELECT version FROM pin ORDER BY version")
    return [version for (version,) in behind.rows_of(lake.catalog, query)]


def test_rows_hidden_in_every_way_are_not_read(options: dict[str, str], flights: Any) -> None:
    first = flights.version
    flights.delete("value % 5 = 1")
    flights.upsert(arrow([(f"{DAY}T05:00", "z", 5), (f"{DAY}T06:00", "z", 100)]))
    flights.delete_keys(pa.table({"value": [7, 8]}))
    flights.replace(arrow([(f"{DAY}T09:30", "b", 200)]), (f"{DAY}T09:00", f"{DAY}T11:00"))
    flights.replace(None, (f"{DAY}T12:00", f"{DAY}T14:00"), keys={"client": "a"})
    flights.update({"client": "'u'"}, "value = 30")
    kinds = {one.kind for one in flights.tombstones()}
    assert kinds == {"row", "key", "interval"}
    assert rows(reader(options)) == visible(flights)
    flights.erase("value = 31")
    assert rows(reader(options)) == visible(flights)
    assert rows(reader(options, as_of=str(first))) == visible(flights, as_of=first)
    assert rows(reader(options, interval=f"{DAY}T09")) == visible(flights, interval=f"{DAY}T09")


def test_a_version_a_tag_or_a_time_is_read(options: dict[str, str], lake: Any, flights: Any) -> None:
    lake.tag("kept")
    held, moment = visible(flights), flights.log()[0].committed_at
    flights.delete("value < 10")
    for as_of in ("kept", str(lake.tags()["kept"]), moment.isoformat()):
        assert rows(reader(options, as_of=as_of)) == held
    with pytest.raises(VersionNotFound):
        reader(options, as_of="none")


def test_an_empty_table_has_no_rows(options: dict[str, str], lake: Any) -> None:
    lake.create_table("flights", KEYED, time="time")
    assert rows(reader(options)) == []


def test_what_was_planned_is_held_for_the_tasks_that_read_it(options: dict[str, str], lake: Any, flights: Any) -> None:
    flights.delete("value % 5 = 1")
    held = visible(flights)
    made = reader(options)
    parts = list(made.partitions())
    assert set(pins(lake)) == {flights.version}
    flights.replace(arrow([(DAY, "c", 99)]), DAY)
    flights.clean()
    assert lake.expire(keep_last=1).segments == 0
    lake.collect(grace_seconds=0)
    found = plain(pa.Table.from_batches([batch for part in parts for batch in made.read(part)], KEYED))
    assert found == held


def test_a_task_that_comes_too_late_is_refused_by_name(options: dict[str, str], lake: Any, flights: Any) -> None:
    made = reader(options)
    parts = list(made.partitions())
    behind.change(lake.catalog, text("DELETE FROM pin"))  # an hour later
    flights.replace(arrow([(DAY, "c", 99)]), DAY)
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    with pytest.raises(VersionNotFound):
        [batch for part in parts for batch in made.read(part)]


def test_a_plan_is_counted_like_any_other(options: dict[str, str], lake: Any, flights: Any) -> None:
    counted = text("SELECT sum(plans) FROM plan_count")

    def plans() -> float:
        return behind.rows_of(lake.catalog, counted)[0][0] or 0

    before = plans()
    list(reader(options).partitions())
    assert plans() > before


@pytest.mark.parametrize(
    ("pushed", "opens"),
    [
        (datasource.GreaterThan(("value",), 25), 1),
        (datasource.EqualTo(("value",), 3), 1),
        (datasource.EqualTo(("value",), 77), 0),
        (datasource.In(("value",), (3, None, 77)), 1),
        (datasource.IsNull(("value",)), 0),
        (datasource.LessThan(("time",), datetime(2013, 1, 5, tzinfo=UTC)), 0),
    ],
    ids=str,
)
def test_filters_leave_segments_out(options: dict[str, str], flights: Any, pushed: Any, opens: int) -> None:
    made = reader(options, [pushed])
    assert sum(len(part.group.segments) for part in made.partitions()) == opens


@pytest.mark.parametrize(
    "pushed",
    [
        datasource.EqualNullSafe(("value",), 77),
        datasource.Not(datasource.EqualTo(("value",), 3)),
        datasource.StringStartsWith(("client",), "z"),
        datasource.EqualTo(("value",), 77.0),
        datasource.EqualTo(("value",), "77"),
        datasource.EqualTo(("value",), Decimal(77)),
        datasource.EqualTo(("value",), 2**70),
        datasource.EqualTo(("value",), None),
        datasource.EqualTo(("value", "x"), 77),
        datasource.EqualTo(("none",), 77),
        datasource.In(("value",), (77, "78")),
        datasource.LessThan(("time",), datetime(2013, 1, 5)),  # noqa: DTZ001 - Spark might give one
        datasource.EqualTo(("double",), float("nan")),
    ],
    ids=str,
)
def test_a_filter_that_is_not_plainly_understood_leaves_nothing_out(pushed: Any) -> None:
    schema = pa.schema([*KEYED, ("double", pa.float64()), ("value.x", pa.int64())])
    assert isinstance(predicate_of(pushed, schema), Unknown)


def written(
    made: Any,
    first: int,
    attempt: int,
    *,
    slowly: threading.Event | None = None,
    more: dict[str, pa.Array] | None = None,
) -> Any:
    """What a task does: one attempt's rows."""
    context = TaskContext._getOrCreate()
    context._taskAttemptId = context._attemptNumber = attempt  # type: ignore[misc] - as Spark's worker does

    def batches() -> Any:
        table = arrow([(f"{DAY}T07:00", "w", first + place) for place in range(4)])
        for name, values in (more or {}).items():
            table = table.append_column(name, values)
        yield from table.slice(0, 2).to_batches()
        if slowly is not None:
            slowly.wait()
        yield from table.slice(2).to_batches()

    return made.write(batches())


def test_attempts_that_failed_or_lost_count_for_nothing(options: dict[str, str], lake: Any, flights: Any) -> None:
    made = source(options, message="by Spark").writer(to_spark_type(KEYED), overwrite=False)
    lost, won, other = (written(made, first, attempt) for attempt, first in enumerate((1000, 1000, 2000)))
    assert not {one.name for one in lost.files} & {one.name for one in won.files}
    made.commit([won, other, None])
    assert [row[2] for row in visible(flights) if row[2] >= 1000] == [1000, 1001, 1002, 1003, 2000, 2001, 2002, 2003]
    commit = flights.log(1)[0]
    assert (commit.operation, commit.rows_added, commit.message) == ("append", 8, "by Spark")
    assert lake.check().findings == []


@pytest.mark.parametrize("others", [0, 1, 2])
def test_columns_that_a_write_makes_are_made_of_the_table_that_it_began_with_or_not_at_all(
    options: dict[str, str], lake: Any, flights: Any, others: int
) -> None:
    """Columns that others make meanwhile get the ids for which the rows were written."""
    schema = pa.schema([*KEYED, ("gate", pa.int64())])
    made = source(options, schema="merge").writer(to_spark_type(schema), overwrite=False)
    done = written(made, 1000, 0, more={"gate": pa.array([1, 2, 3, 4])})
    for number in range(others):
        flights.add_column(f"other{number}", "BIGINT")
    before = flights.version
    if others:
        with pytest.raises(WriteConflict, match="altered the table"):
            made.commit([done])
        made.abort([])
        assert (flights.version, [row for row in visible(flights) if row[2] >= 1000]) == (before, [])
    else:
        made.commit([done])
        assert flights.scan(where="value >= 1000", columns=["gate"]).to_arrow()["gate"].to_pylist() == [1, 2, 3, 4]
    assert lake.check().findings == []


def test_a_write_that_is_given_up_leaves_no_file(options: dict[str, str], lake: Any, flights: Any) -> None:
    before = flights.version
    made = source(options).writer(to_spark_type(KEYED), overwrite=False)
    written(made, 1000, 0)
    made.abort([])
    assert flights.version == before
    assert lake.check().findings == []


def test_a_task_that_writes_for_long_keeps_its_lease(options: dict[str, str], lake: Any, flights: Any) -> None:
    made = source(options, lease_seconds="0.6").writer(to_spark_type(KEYED), overwrite=False)
    go_on, done = threading.Event(), []
    task = threading.Thread(target=lambda: done.append(written(made, 1000, 0, slowly=go_on)))
    task.start()
    for _ in range(4):
        threading.Event().wait(0.5)
        lake.collect(grace_seconds=0)
    go_on.set()
    task.join()
    made.commit(done)
    assert len([row for row in visible(flights) if row[2] >= 1000]) == 4


def test_a_write_waits_for_its_first_task_for_an_hour(options: dict[str, str], lake: Any, flights: Any) -> None:
    made = source(options).writer(to_spark_type(KEYED), overwrite=False)
    (running,) = lake.operations()
    assert running.lease_seconds > 3000
    made.abort([])


def test_a_timeless_table_is_read_whole_and_refuses_an_interval(options: dict[str, str], lake: Any) -> None:
    table = lake.create_table("codes", KEYED, primary_key=("value",), cluster_by=("client",))
    table.append(arrow([(DAY, "a", 1), (DAY, None, 2)]))
    table.upsert(arrow([(DAY, "b", 2), (DAY, "c", 3)]))
    options["table"] = "codes"
    assert rows(reader(options)) == visible(table)
    only = reader(options, [datasource.EqualTo(("client",), "b")])
    assert [one for one in rows(only) if one[1] == "b"] == [one for one in visible(table) if one[1] == "b"]
    with pytest.raises(InvalidInterval, match=r"no time.*table=codes"):
        reader(options, interval="2013")


def test_options_of_a_store_are_those_of_connect(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    with lakehouse.connect() as lake:
        lake.create_table("flights", KEYED, time="time", primary_key=("value",), cluster_by=("client",))
        lake.table("flights").append(arrow([(f"{DAY}T01:00", "a", 1), (f"{DAY}T02:00", "b", 2)]))
    for name in store.options:
        monkeypatch.delenv(f"LAKEHOUSE_STORAGE_{name.upper()}")
    storage = {f"storage.{name}": value for name, value in store.options.items()}
    options = {"table": "flights", "cache_dir": str(tmp_path / "other"), "cache_bytes": "1000000", **storage}
    made = LakehouseSource(options)
    reader = made.reader(
        made.schema(),
    )
    rows = [row for task in reader.partitions() for batch in reader.read(task) for row in batch.to_pylist()]
    assert sorted(row["value"] for row in rows) == [1, 2]
    assert list((tmp_path / "other").rglob("*.parquet"))


def test_without_addresses_it_is_the_connected_lake_also_where_it_was_pickled(
    lake: Any, flights: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other tests of this process have lakes open, too.
    monkeypatch.setattr("lakehouse.spark_source.open_lakes", lambda: [lake])
    made = cloudpickle.loads(cloudpickle.dumps(source_of()))
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert made({"table": "flights"}).schema().names == ["time", "client", "value"]
    assert issubclass(source_of(lake), LakehouseSource)
    with lakehouse.connect(f"sqlite:///{tmp_path}/other.db", tmp_path / "other"):
        assert source_of() is LakehouseSource  # two are open
        assert source_of(lake).addresses == made.addresses


def test_a_lake_that_is_not_there_is_named_and_none_is_made(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("LAKEHOUSE_CATALOG", "LAKEHOUSE_WAREHOUSE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InvalidAddress, match=r"connect to yours before lakehouse.register\(spark\).*catalog.db"):
        LakehouseSource({"table": "flights"}).schema()
    assert list(tmp_path.iterdir()) == []
