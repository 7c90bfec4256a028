"""Query nodes in Dagster: assets ask them by a resource, and a check says whether a version is served."""

from datetime import UTC, datetime, timedelta

import dagster as dg
import pyarrow as pa
import pytest

import lakehouse
from lakehouse.dagster import LakehouseResource, ServingResource, build_checks, checks
from lakehouse.serving.node import NodeSettings
from lakehouse.testing.serving_nodes import served

ROWS = pa.table({"at": [datetime(2013, 1, 5, 7, tzinfo=UTC), datetime(2013, 1, 6, 7, tzinfo=UTC)], "value": [1, 2]})
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def looked(address: dict[str, str], check: checks.TableCheck) -> tuple[bool, str]:
    (definition,) = build_checks("events", [check])
    run = dg.Definitions(
        asset_checks=[definition], resources={"lakehouse": LakehouseResource(**address)},
        jobs=[dg.define_asset_job("look", dg.AssetSelection.checks(definition))],
    ).resolve_job_def("look").execute_in_process(run_config=QUIET, raise_on_error=False)  # fmt: skip
    (found,) = run.get_asset_check_evaluations()
    return found.passed, str(found.description)


def test_a_version_counts_as_served_once_its_group_is_live_at_it(address: dict[str, str]) -> None:
    with lakehouse.connect(**address) as lake:
        events = lake.create_table("events", "at TIMESTAMP, value BIGINT", time="at")
        events.append(ROWS)
        assert looked(address, checks.served("dashboards")) == (
            False, "no node serves group dashboards; start one: lakehouse serve --group dashboards",
        )  # fmt: skip
        with served(lake, "dashboards", NodeSettings(lease_seconds=60.0)) as node:
            assert looked(address, checks.served("dashboards")) == (True, "version 2 is served, by 1 nodes")
            url = node.url
        groups, head = lake.catalog.serving(), lake.head
        groups.report(node.node.status()[0], head, lease_seconds=60.0)
        events.append(ROWS)
        assert looked(address, checks.served("dashboards"))[0] is False
        assert looked(address, checks.served("dashboards", within=timedelta(days=1)))[0] is True
    with ServingResource(urls=[url], wait_seconds=0.2).get_client() as client, pytest.raises(lakehouse.NodeUnavailable):
        client.sql("SELECT 1")


def test_an_asset_asks_query_nodes(address: dict[str, str]) -> None:
    @dg.asset
    def total(serving: ServingResource) -> int:
        with serving.get_client() as client:
            return int(client.sql("SELECT sum(value) AS n FROM events").rows["n"][0].as_py())

    with lakehouse.connect(**address) as lake:
        lake.create_table("events", "at TIMESTAMP, value BIGINT", time="at").append(ROWS)
        with served(lake) as node:
            run = dg.materialize([total], resources={"serving": ServingResource(urls=[node.url])}, run_config=QUIET)
            assert run.output_for_node("total") == 3
