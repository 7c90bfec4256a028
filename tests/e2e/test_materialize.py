"""Assets on a real Dagster instance and real Spark: what a run commits, and what is reported to Dagster."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest

import lakehouse
from lakehouse.dagster import chunk_asset, chunk_partitions, replace_chunks
from lakehouse.errors import InvalidInput
from tests.e2e.conftest import Row, days

Materialize = Callable[..., dg.ExecuteInProcessResult]
ByDay = dict[str, list[Row]]


def counts_by_day(table: lakehouse.Table, **options: Any) -> dict[str, int]:
    """Visible rows by day, read in process."""
    times = table.scan(columns=[table.time], **options).to_arrow()[table.time].to_pylist()
    return dict(Counter(f"{at:%Y-%m-%d}" for at in times))


def expected_counts(flights_by_day: ByDay, keys: list[str]) -> dict[str, int]:
    return {key: len(flights_by_day[key]) for key in keys}


def test_one_partition_is_one_chunk_one_version_and_the_rows_of_the_source(
    materialize: Materialize, lake: lakehouse.Lake, flights_by_day: ByDay
) -> None:
    materialize("flights", first="2013-01-05")
    flights = lake.table("flights")
    assert [commit.version for commit in flights.log()] == [flights.version]
    found = flights.scan().to_arrow().to_pylist()
    assert len(found) == len(flights_by_day["2013-01-05"])
    assert Counter(as_text(row) for row in found) == Counter(
        tuple(sorted(row.items())) for row in flights_by_day["2013-01-05"]
    )


def as_text(row: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """A row as the source writes it."""
    time_hour = f"{row['time_hour']:%Y-%m-%dT%H:%M:%SZ}"
    plain = {name: "NA" if value is None else str(value) for name, value in row.items() if name != "scheduled_at"}
    return tuple(sorted((plain | {"time_hour": time_hour}).items()))


def test_a_range_of_partitions_is_one_run_and_one_version(
    materialize: Materialize, lake: lakehouse.Lake, flights_by_day: ByDay, instance: dg.DagsterInstance
) -> None:
    keys = days("2013-02-25", 10)
    materialize("flights", first=keys[0], last=keys[-1])
    flights = lake.table("flights")
    assert len(flights.log()) == 1
    assert counts_by_day(flights) == expected_counts(flights_by_day, keys)
    assert instance.get_materialized_partitions(dg.AssetKey("flights")) == set(keys)
    assert instance.get_runs_count() == 1


def test_metadata_shows_version_rows_segments_bytes_tombstones_interval_and_duration(
    materialize: Materialize, lake: lakehouse.Lake, flights_by_day: ByDay
) -> None:
    keys = days("2013-01-01", 3)
    result = materialize("flights", first=keys[0], last=keys[-1])
    flights = lake.table("flights")
    segments = flights.segments()
    events = {event.partition: event.materialization for event in result.get_asset_materialization_events()}
    assert set(events) == set(keys)
    for key, event in events.items():
        metadata = {name: value.value for name, value in event.metadata.items()}
        assert metadata.pop("duration_seconds") > 0
        rows = sum(expected_counts(flights_by_day, keys).values())
        schema, _ = metadata.pop("dagster/column_schema"), metadata.pop("columns")
        assert [column.name for column in schema.columns] == flights.schema.names
        bounds = {record.data["column"]: record.data for record in event.metadata["columns"].records}
        assert bounds["carrier"] == {"column": "carrier", "min": "9E", "max": "YV", "nulls": "0"}
        assert len(metadata["timeline"]) < 5_000
        assert metadata.pop("timeline").startswith(
            f"![timeline of flights at version {flights.version}](data:image/svg+xml;"
        )
        assert metadata == {
            "dagster/table_name": "flights",
            "dagster/row_count": rows,
            "dagster/partition_row_count": len(flights_by_day[key]),
            "version": flights.version,
            "operation": "replace",
            "rows_in": rows,
            "rows_out": 0,
            "rows": rows,
            "segments": len(segments),
            "bytes": sum(segment.bytes for segment in segments),
            "tombstones": 0,
            "interval": "2013-01-01/2013-01-04",
            "console": f"http://127.0.0.1:8501/timeline?table=flights&version={flights.version}",
        }
        assert event.tags["dagster/data_version"] == str(flights.version)


def test_a_version_leads_back_to_its_run(materialize: Materialize, lake: lakehouse.Lake) -> None:
    result = materialize("flights", first="2013-01-05", last="2013-01-06")
    commit = lake.table("flights").log()[0]
    assert commit.properties == {"dagster_run_id": result.run_id}
    assert commit.message == "materialize flights 2013-01-05...2013-01-06"


def test_materializing_again_replaces_and_does_not_double(
    materialize: Materialize, lake: lakehouse.Lake, flights_by_day: ByDay
) -> None:
    keys = days("2013-01-01", 3)
    materialize("flights", first=keys[0], last=keys[-1])
    materialize("flights", first=keys[1])
    materialize("flights", first=keys[0], last=keys[-1])
    flights = lake.table("flights")
    assert len(flights.log()) == 3
    for commit in flights.log():
        assert counts_by_day(flights, as_of=commit.version) == expected_counts(flights_by_day, keys)
    assert not flights.tombstones()


def test_reading_four_days_returns_four(materialize: Materialize, lake: lakehouse.Lake, flights_by_day: ByDay) -> None:
    keys = days("2013-01-10", 6)
    materialize("flights", first=keys[0], last=keys[-1])
    four = keys[1:5]
    flights = lake.table("flights")
    interval = lakehouse.Interval(four[0], keys[5])
    assert counts_by_day(flights, interval=interval) == expected_counts(flights_by_day, four)
    by_spark = flights.read(interval=interval).selectExpr("date_format(scheduled_at, 'yyyy-MM-dd') AS day")
    assert dict(Counter(row["day"] for row in by_spark.collect())) == expected_counts(flights_by_day, four)


def test_replacing_partitions_b_to_c_leaves_a_and_d(
    materialize: Materialize, lake: lakehouse.Lake, flights_by_day: ByDay
) -> None:
    a, b, c, d = keys = days("2013-06-01", 4)
    materialize("flights", first=a, last=d)
    flights = lake.table("flights")
    before = {segment.id for segment in flights.segments(interval=a)} | {s.id for s in flights.segments(interval=d)}
    materialize("flights", first=b, last=c)
    assert counts_by_day(flights) == expected_counts(flights_by_day, keys)
    assert before <= {segment.id for segment in flights.segments()}


def test_a_reversed_range_fails_and_commits_nothing(
    materialize: Materialize, lake: lakehouse.Lake, instance: dg.DagsterInstance
) -> None:
    result = materialize("flights", first="2013-01-03", last="2013-01-01", raise_on_error=False)
    assert not result.success
    assert "reversed" in str(result.failure_data_for_node("flights"))
    assert "flights" not in lake.tables() or not lake.table("flights").log()
    assert not instance.get_materialized_partitions(dg.AssetKey("flights"))


def test_a_run_whose_rows_leave_its_chunks_fails_and_commits_nothing(
    lake: lakehouse.Lake, spark: Any, instance: dg.DagsterInstance
) -> None:
    lake.create_table("events", "at TIMESTAMP, value INT", time="at")
    rows = spark.sql("SELECT TIMESTAMP '2013-01-02T00:00:00Z' AS at, 1 AS value")

    @chunk_asset(partitions_def=chunk_partitions("day", "2013-01-01", "2013-02-01"))
    def events(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        return replace_chunks(context, lake.table("events"), rows)

    result = dg.materialize([events], instance=instance, partition_key="2013-01-01", raise_on_error=False)
    assert not result.success
    assert "outside" in str(result.failure_data_for_node("events"))
    assert not lake.table("events").log()
    assert not instance.get_materialized_partitions(dg.AssetKey("events"))
    assert dg.materialize([events], instance=instance, partition_key="2013-01-02").success
    assert counts_by_day(lake.table("events")) == {"2013-01-02": 1}


def test_an_asset_without_partitions_cannot_replace_chunks(lake: lakehouse.Lake, instance: dg.DagsterInstance) -> None:
    lake.create_table("events", "at TIMESTAMP", time="at")

    @dg.asset
    def events(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        return replace_chunks(context, lake.table("events"), None)

    with pytest.raises(InvalidInput, match="no partitions"):
        dg.materialize([events], instance=instance)


def test_look_ups_are_updated_together_in_one_version(
    materialize: Materialize, lake: lakehouse.Lake, source: Callable[[str], list[Row]]
) -> None:
    names = ("airlines", "airports", "planes")
    for _ in range(2):
        result = materialize(*names)
        head = lake.log(limit=1)[0]
        assert sorted(head.tables) == sorted(names)
        assert {lake.table(name).version for name in names} == {head.version}
        metadata = {event.asset_key.to_user_string(): event.materialization.metadata for event in
                result.get_asset_materialization_events()}  # fmt: skip
        for name in names:
            rows = lake.table(name).scan().to_arrow().to_pylist()
            assert Counter(map(values, rows)) == Counter(map(source_values, source(name)))
            assert metadata[name]["version"].value == head.version
            assert metadata[name]["rows"].value == len(rows)


def values(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in sorted(row))


def source_values(row: Row) -> tuple[Any, ...]:
    """A look-up's row of the source, numbers as numbers."""
    number = {
        "lat": float,
        "lon": float,
        "alt": int,
        "tz": int,
        "year": int,
        "engines": int,
        "seats": int,
        "speed": int,
    }
    return tuple(None if row[name] == "NA" else number.get(name, str)(row[name]) for name in sorted(row))


def test_the_whole_year_in_one_run_is_the_source(
    materialize: Materialize, lake: lakehouse.Lake, flights_by_day: ByDay, source: Callable[[str], list[Row]]
) -> None:
    materialize("flights", "weather", first="2013-01-01", last="2014-01-01")
    flights, weather = lake.table("flights"), lake.table("weather")
    assert (len(flights.log()), len(weather.log())) == (1, 1)
    assert counts_by_day(flights) == {key: len(rows) for key, rows in flights_by_day.items()}
    assert counts_by_day(weather) == Counter(row["time_hour"][:10] for row in source("weather"))
    for table in (flights, weather):
        stored = table.scan().to_arrow()
        nulls = {name: stored[name].null_count for name in stored.column_names if stored[name].null_count}
        assert nulls == {
            name: missing
            for name in source(table.name)[0]
            if (missing := sum(row[name] == "NA" for row in source(table.name)))
        }
