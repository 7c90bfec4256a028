"""Components of `dg`: what their YAML makes, from a lake of the test's own; and that `dg` finds them."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from dagster.components.core.component_tree import ComponentTreeException
from dagster.components.testing import DefsFolderSandbox, create_defs_folder_sandbox

import lakehouse
from lakehouse.dagster import LakehouseResource, components
from lakehouse.dagster.components import (
    LakehouseChunkedAssetComponent,
    LakehouseMaintenanceComponent,
    LakehouseTablesComponent,
)

# Dagster's own, as it reads YAML and notes where a definition is.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`parse_obj_as`:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore:Property `OpDefinition.version`:DeprecationWarning"),
]
BIN = Path(sys.executable).parent
DAILY = "SELECT date_trunc('DAY', at) AS day, count(*) AS n FROM trips WHERE at >= :start AND at < :end GROUP BY ALL"
FUNCTION = """
def twice(lake, interval):
    rows = lake.table("trips").scan(interval=interval).to_arrow()
    return rows.set_column(rows.schema.get_field_index("client"), "client", rows["client"].cast("double"))
"""


@pytest.fixture
def lake(address: dict[str, str]) -> Iterator[lakehouse.Lake]:
    with lakehouse.connect(**address) as one:
        trips = one.create_table("trips", "at TIMESTAMP, client BIGINT", time="at", primary_key=["client"])
        days = [datetime(2013, 1, 5 + day, 7, tzinfo=UTC) for day in (0, 0, 1)]
        trips.append(pa.table({"at": pa.array(days, pa.timestamp("us", "UTC")), "client": [12, 77, 78]}))
        one.create_table("people", "client BIGINT, name STRING")
        one.create_table("other", "client BIGINT")
        yield one


@pytest.fixture
def sandbox() -> Iterator[DefsFolderSandbox]:
    with create_defs_folder_sandbox() as one:
        yield one


def write(sandbox: DefsFolderSandbox, component: type, **attributes: Any) -> Path:
    contents = {"type": f"lakehouse.dagster.components.{component.__name__}", "attributes": attributes}
    return sandbox.scaffold_component(component, defs_yaml_contents=contents)


def test_tables_are_listed_once_and_then_load_without_the_lake(
    sandbox: DefsFolderSandbox, lake: lakehouse.Lake, address: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(
        sandbox, LakehouseTablesComponent, **address, tables=["trips", "peop*"], fresh_within_hours=24,
        checks=["primary_key_unique", "tombstone_debt"], observe_every_minutes=60, group_name="lake",
    )  # fmt: skip
    with sandbox.load_component_and_build_defs(folder) as (component, empty):
        assert list(empty.assets or ()) == []
        asyncio.run(component.refresh_state(sandbox.project_root))  # type: ignore[attr-defined]
    with monkeypatch.context() as closed, sandbox.load_component_and_build_defs(folder) as (_, defs):
        closed.setattr(lakehouse, "connect", None)
    made = {one.key.to_user_string(): one for one in defs.assets}  # type: ignore[union-attr]
    assert set(made) == {"trips", "people"}
    assert made["trips"].partitions_def.get_first_partition_key() == "2013-01-05"
    assert (made["people"].partitions_def, made["people"].group_name) == (None, "lake")
    names = {(spec.asset_key.to_user_string(), spec.name) for one in defs.asset_checks for spec in one.check_specs}  # type: ignore[union-attr]
    assert names == {
        ("trips", "primary_key_unique"), ("trips", "tombstone_debt"), ("trips", "freshness"),
        ("people", "tombstone_debt"), ("people", "freshness"),
    }  # fmt: skip
    job = dg.define_asset_job("checks", dg.AssetSelection.all_asset_checks())
    resources = {"lakehouse": LakehouseResource(**address)}
    whole = dg.Definitions.merge(defs, dg.Definitions(jobs=[job], resources=resources))
    done = whole.resolve_job_def("checks").execute_in_process(raise_on_error=False)
    passed = {
        (one.asset_key.to_user_string(), one.check_name): one.passed for one in done.get_asset_check_evaluations()
    }
    assert {name for name, well in passed.items() if not well} == {("trips", "freshness"), ("people", "freshness")}


@pytest.mark.parametrize("source", ["sql", "sql_file", "function"])
def test_a_run_of_chunks_replaces_their_interval(
    sandbox: DefsFolderSandbox, lake: lakehouse.Lake, address: dict[str, str], source: str
) -> None:
    given = {"sql": DAILY, "sql_file": "made.sql", "function": ".made.twice"}[source]
    time = "at" if source == "function" else "day"
    folder = write(
        sandbox, LakehouseChunkedAssetComponent, table="made", time=time, start="2013-01-05", end="2013-01-07",
        deps=["trips"], **{source: given},
    )  # fmt: skip
    (folder / "made.sql").write_text(DAILY)
    (folder / "made.py").write_text(FUNCTION)
    with sandbox.load_component_and_build_defs(folder) as (_, defs):
        (asset,) = defs.assets  # type: ignore[misc]
        resources = {"lakehouse": LakehouseResource(**address)}
        tags = {"dagster/asset_partition_range_start": "2013-01-05", "dagster/asset_partition_range_end": "2013-01-06"}
        assert dg.materialize([asset], resources=resources, tags=tags).success
    made = lake.table("made")
    rows = made.scan().to_arrow()
    assert len(made.log()) == 1
    if source == "function":
        assert sorted(rows["client"].to_pylist()) == [12.0, 77.0, 78.0]
    else:
        assert sorted(rows["n"].to_pylist()) == [1, 2]


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({}, "given: none"),
        ({"sql": DAILY, "function": "a.b"}, "given: sql, function"),
        ({"function": "no_such_module.rows"}, "there is no such function"),
        ({"sql_file": "absent.sql"}, "cannot read the component's query"),
        ({"sql": DAILY, "grain": "fortnight"}, "grain"),
    ],
)
def test_a_wrong_component_says_what_is_wrong(
    sandbox: DefsFolderSandbox, attributes: dict[str, Any], message: str
) -> None:
    folder = write(sandbox, LakehouseChunkedAssetComponent, table="made", time="day", start="2013-01-05", **attributes)
    with (
        pytest.raises((dg.DagsterError, ComponentTreeException)) as caught,
        sandbox.load_component_and_build_defs(folder),
    ):
        pass
    told, error = "", caught.value
    while error is not None:  # Dagster wraps what a component raises
        told, error = f"{told} {error}", error.__cause__ or error.__context__  # type: ignore[assignment]
    assert message in told


def test_maintenance_is_a_sensor_over_a_job_for_each_kind(sandbox: DefsFolderSandbox) -> None:
    folder = write(sandbox, LakehouseMaintenanceComponent, kinds=["compact", "collect"], enabled=True)
    with sandbox.load_component_and_build_defs(folder) as (_, defs):
        assert [job.name for job in defs.jobs or ()] == ["lakehouse_compact", "lakehouse_collect"]
        (sensor,) = defs.sensors or ()
        assert sensor.default_status is dg.DefaultSensorStatus.RUNNING  # type: ignore[union-attr]


def test_what_is_scaffolded_loads(sandbox: DefsFolderSandbox) -> None:
    for name in components.__all__:
        sandbox.scaffold_component(getattr(components, name))
    resources = dg.Definitions(resources={"lakehouse": LakehouseResource()})
    with sandbox.build_all_defs() as scaffolded:
        defs = dg.Definitions.merge(scaffolded, resources)
        dg.Definitions.validate_loadable(defs)
        assert {key.to_user_string() for key in defs.resolve_all_asset_keys()} == {"trips", "daily_trips"}
        assert len(list(defs.jobs or ())) == 6


def test_dg_lists_the_components(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "empty"\nversion = "1"\n[tool.dg]\ndirectory_type = "project"\n'
        '[tool.dg.project]\nroot_module = "empty"\n'
    )
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/__init__.py").touch()
    environment = {
        **os.environ,
        "VIRTUAL_ENV": sys.prefix,
        "HOME": str(tmp_path),
        "PATH": f"{BIN}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        [BIN / "dg", "list", "components", "--json"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    listed = {one["key"] for one in json.loads(done.stdout)["items"]}
    assert {f"lakehouse.dagster.components.{name}" for name in components.__all__} <= listed
