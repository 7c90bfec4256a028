"""The lake as a Dagster resource: configured as any other, opened late, closed again."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

import lakehouse
from lakehouse.dagster import LakehouseIOManager, LakehouseResource, commit_metadata
from lakehouse.errors import CatalogUnavailable

ROWS = pa.table({"at": [datetime(2013, 1, 5, 7, tzinfo=UTC), datetime(2013, 1, 6, 7, tzinfo=UTC)], "value": [1, 2]})


def test_a_lake_without_spark_starts_none(tmp_path: Path) -> None:
    program = f"""
from lakehouse.dagster import LakehouseResource
from pyspark import SparkContext
resource = LakehouseResource(catalog="sqlite:///{tmp_path}/catalog.db", warehouse="{tmp_path}/warehouse")
with resource.get_lake(spark=False) as lake:
    lake.create_table("events", "at TIMESTAMP", time="at")
assert SparkContext._gateway is None
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_a_lake_is_open_inside_its_block_and_writes_with_the_running_session(
    address: dict[str, str], spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    resource = LakehouseResource(**address, spark_config={"spark": {"sql": {"session": {"timeZone": "UTC"}}}})
    with resource.get_lake() as lake:
        assert lake.spark is spark
        events = lake.create_table("events", "at TIMESTAMP, value INT", time="at")
        events.append(spark.sql("SELECT TIMESTAMP '2013-01-05T07:00:00Z' AS at, 1 AS value"))
        assert events.scan().count() == 1
    assert "without these settings" not in caplog.text


def test_settings_that_a_running_session_does_not_have_are_named(
    address: dict[str, str], spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = {"spark.executor.memory": "7g", "spark.ui.enabled": False}
    with LakehouseResource(**address, spark_config=wanted).get_lake() as lake:
        assert lake.spark is spark
    assert "['spark.executor.memory']" in caplog.text


def test_the_address_may_come_from_the_environment(
    tmp_path: Path, address: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_CATALOG", address["catalog"])
    monkeypatch.setenv("LAKEHOUSE_WAREHOUSE", address["warehouse"])

    @dg.asset
    def events(lake: LakehouseResource) -> dg.MaterializeResult[None]:
        with lake.get_lake(spark=False) as opened:
            table = opened.create_table("events", "at TIMESTAMP", time="at")
            return dg.MaterializeResult(metadata={"tables": opened.tables(), "columns": table.schema.names})

    resources = {"lake": LakehouseResource(catalog=dg.EnvVar("SOME_CATALOG"))}
    with dg.DagsterInstance.ephemeral() as instance:
        assert dg.materialize([events], resources=resources, instance=instance).success
    with lakehouse.connect(**address) as opened:
        assert opened.tables() == ["events"]


def test_a_catalog_that_cannot_be_opened_fails_the_run_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    resource = LakehouseResource(catalog=f"sqlite:///{tmp_path}/file/catalog.db", warehouse=str(tmp_path))
    with pytest.raises(CatalogUnavailable, match="catalog"), resource.get_lake(spark=False):
        pass


def test_metadata_of_a_commit_shows_what_lies_in_the_interval_at_its_version(address: dict[str, str]) -> None:
    with lakehouse.connect(**address) as lake:
        events = lake.create_table("events", "at TIMESTAMP, value INT", time="at")
        first = events.append(ROWS)
        events.append(ROWS)
        metadata = commit_metadata(events, first)
        assert (metadata["version"], metadata["rows"], metadata["segments"]) == (first.version, 2, 2)
        assert metadata["interval"] == "all time"
        assert "duration_seconds" not in metadata
        half = events.drop(("2013-01-05", "2013-01-05T12:00"))
        day = commit_metadata(events, half, lakehouse.Interval.of("2013-01-06"), duration_seconds=0.12345)
        assert (day["rows"], day["segments"], day["interval"]) == (2, 2, "2013-01-06/2013-01-07")
        assert day["duration_seconds"] == 0.123
        assert day["bytes"] == sum(segment.bytes for segment in events.segments(interval="2013-01-06"))


@pytest.mark.parametrize("field", ["mode", "schema_mode", "form"])
def test_an_io_manager_refuses_what_it_could_never_do_when_it_is_made(field: str) -> None:
    with pytest.raises(ValueError, match="merged"):
        LakehouseIOManager(**{field: "merged"})
    LakehouseIOManager(**{field: dg.EnvVar("WHATEVER_IT_IS")})  # read when a run begins
