"""Assets over a lake in an object store: its credentials reach the run, and are shown nowhere."""

import logging
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

import lakehouse
from lakehouse.dagster import LakehouseIOManager, LakehouseResource, table_metadata
from lakehouse.testing.object_stores import Store

ROWS = pa.table({"at": pa.array([0, 1], pa.timestamp("us", "UTC")), "value": [1, 2]})
VARIABLES = {"LAKE_KEY": "aws_access_key_id", "LAKE_SECRET": "aws_secret_access_key"}


@pytest.fixture
def place(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Where the lake is, as resources take it; the environment alone has nothing but the two credentials."""
    for name in store.options:
        monkeypatch.delenv(f"LAKEHOUSE_STORAGE_{name.upper()}")
    for name in ("LAKEHOUSE_CATALOG", "LAKEHOUSE_WAREHOUSE", "LAKEHOUSE_CACHE_DIR"):
        monkeypatch.delenv(name)
    options: dict[str, Any] = dict(store.options)
    for variable, name in VARIABLES.items():
        monkeypatch.setenv(variable, options[name])
        options[name] = dg.EnvVar(variable)
    return {
        "catalog": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": store.url,
        "storage_options": options,
        "cache_dir": str(tmp_path / "copies"),
        "cache_bytes": 1_000_000,
    }


@dg.asset(metadata=table_metadata(time="at"))
def events() -> pa.Table:
    return ROWS


@dg.asset
def total(events: pa.Table, lake: LakehouseResource) -> dg.MaterializeResult[None]:
    with lake.get_lake(spark=False) as opened:
        counted = opened.table("events").scan().count()
        limit = opened.cache.limit_bytes
    return dg.MaterializeResult(
        metadata={"rows": events.num_rows, "counted": counted, "place": str(opened.warehouse), "limit": limit}
    )


@dg.asset
def broken(lake: LakehouseResource) -> None:
    with lake.get_lake(spark=False) as opened:
        opened.create_table("none", "at TIMESTAMP", time="at").append(ROWS.select(["at"]))


def test_a_run_uses_credentials_that_nothing_shows(
    place: dict[str, Any], store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    resources = {"io_manager": LakehouseIOManager(**place), "lake": LakehouseResource(**place)}
    with dg.DagsterInstance.ephemeral() as instance:
        done = dg.materialize([events, total], resources=resources, instance=instance)
        told = [str(one) for one in instance.all_logs(done.run_id)]
        kept = [str(one.metadata) for name in ("events", "total") for one in done.asset_materializations_for_node(name)]
        values = {name: one.value for name, one in done.asset_materializations_for_node("total")[0].metadata.items()}
    assert {name: values[name] for name in ("rows", "counted", "limit", "place")} == {
        "rows": 2, "counted": 2, "limit": 1_000_000, "place": store.url,
    }  # fmt: skip
    assert list((tmp_path / "copies").rglob("*.parquet"))
    shown = [str(one.get_resource_definition().config_schema.default_value) for one in resources.values()]
    secret = store.options["aws_secret_access_key"]
    assert all("'env': 'LAKE_SECRET'" in one for one in shown), "the page of a resource shows the variable's name"
    for text in (*told, *kept, *shown, caplog.text, repr(resources)):
        assert secret not in text


def test_a_run_that_the_store_refuses_shows_no_credential(
    place: dict[str, Any], store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    lake = LakehouseResource(**{**place, "warehouse": "s3://no-such-bucket/lake"})
    with dg.DagsterInstance.ephemeral() as instance:
        done = dg.materialize([broken], resources={"lake": lake}, instance=instance, raise_on_error=False)
        told = [str(one) for one in instance.all_logs(done.run_id)]
    assert not done.success
    assert any("there is no such bucket" in one for one in told)
    assert not any(store.options["aws_secret_access_key"] in one for one in (*told, caplog.text))


def test_settings_of_a_store_are_those_of_connect(place: dict[str, Any], store: Store) -> None:
    plain = {**place, "storage_options": dict(store.options)}
    with LakehouseResource(**plain).get_lake(spark=False) as opened:
        assert opened.warehouse == store.url
    with lakehouse.connect(**plain) as lake:
        assert lake.tables() == []
