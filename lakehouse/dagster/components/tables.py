"""Tables of a lake that others write, as observable assets with checks and freshness."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import dagster as dg
from dagster.components import DefsStateConfig, DefsStateConfigArgs, ResolvedDefsStateConfig
from pydantic import Field

import lakehouse
from lakehouse.dagster import checks
from lakehouse.dagster.automation import observe_table
from lakehouse.dagster.checks import TableCheck, build_checks
from lakehouse.dagster.components.scaffold import Attributes
from lakehouse.dagster.options import table_metadata
from lakehouse.dagster.partitions import FIRST_YEAR, chunk_partitions

_CHECKS: Mapping[str, Callable[[], TableCheck]] = {
    "chunk_complete": checks.chunk_complete,
    "no_null_time": checks.no_null_time,
    "primary_key_unique": checks.primary_key_unique,
    "tombstone_debt": checks.tombstone_debt,
}
CheckName = Literal["chunk_complete", "no_null_time", "primary_key_unique", "tombstone_debt"]


class TablesScaffolder(Attributes):
    """Observes every table hourly."""

    attributes: Mapping[str, Any] = {
        "tables": ["*"],
        "group_name": "lake",
        "observe_every_minutes": 60,
        "checks": ["tombstone_debt"],
    }


@dg.scaffold_with(TablesScaffolder)
class LakehouseTablesComponent(dg.StateBackedComponent, dg.Model, dg.Resolvable):
    """Tables of a lake that others write, as observable assets with checks and freshness.

    Which tables there are, with their columns and chunks, is asked once and kept as state: loading the definitions
    opens no lake. ``dg utils refresh-defs-state`` asks again; ``dg dev`` does so each time it loads.
    """

    tables: list[str] = Field(
        default=["*"], description="Names of tables; * and ? stand for any text.", examples=[["trips", "sensor_*"]]
    )
    catalog: str | None = Field(
        default=None,
        description="The catalog from which the tables are listed; default $LAKEHOUSE_CATALOG.",
        examples=["{{ env.LAKEHOUSE_CATALOG }}"],
    )
    warehouse: str | None = Field(
        default=None,
        description="The warehouse of that lake; default $LAKEHOUSE_WAREHOUSE.",
        examples=["s3://bucket/prefix"],
    )
    key_prefix: list[str] = Field(default=[], description="Parts of the assets' keys before the table's name.")
    group_name: str | None = Field(default=None, description="The group of the assets.")
    partitions: bool = Field(
        default=True, description="Whether a table's time chunks are the asset's partitions, each with its own version."
    )
    observe_every_minutes: int | None = Field(
        default=None, ge=1, description="How often Dagster's daemon asks for new versions; by default only on request."
    )
    checks: list[CheckName] = Field(
        default=[], description="Checks of every table; those of time or keys only where a table has them."
    )
    fresh_within_hours: float | None = Field(
        default=None,
        gt=0,
        description="A check that the newest row (of a table without a time, the newest version) is not older.",
    )
    lakehouse_key: str = Field(default="lakehouse", description="The resource by which assets and checks read.")
    defs_state: ResolvedDefsStateConfig = DefsStateConfigArgs.local_filesystem()

    @property
    def defs_state_config(self) -> DefsStateConfig:
        """Where the list of tables is kept."""
        names = ",".join([self.catalog or "", *self.key_prefix, *self.tables])
        return DefsStateConfig.from_args(self.defs_state, default_key=f"{type(self).__name__}[{names}]")

    def write_state_to_path(self, state_path: Path) -> None:
        """Ask the lake for its tables. Raises `CatalogUnavailable`."""
        with lakehouse.connect(self.catalog, self.warehouse) as lake:
            found = [_described(lake.table(name)) for name in lake.tables() if self._is_wanted(name)]
        state_path.write_text(json.dumps(found, indent=1))

    def build_defs_from_state(self, context: dg.ComponentLoadContext, state_path: Path | None) -> dg.Definitions:
        """Assets and checks of the tables that were found; none before the state was fetched."""
        found = [] if state_path is None else json.loads(state_path.read_text())
        return dg.Definitions(
            assets=[self._asset(one) for one in found],
            asset_checks=[check for one in found for check in self._checks(one)],
        )

    def _is_wanted(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.tables)

    def _key(self, described: Mapping[str, Any]) -> dg.AssetKey:
        return dg.AssetKey([*self.key_prefix, described["name"]])

    def _asset(self, described: Mapping[str, Any]) -> dg.SourceAsset:
        schema = dg.TableSchema([dg.TableColumn(*column) for column in described["columns"]])
        is_chunked = self.partitions and described["start"] is not None
        every = self.observe_every_minutes
        return observe_table(
            described["name"],
            key=self._key(described),
            partitions_def=chunk_partitions(described["grain"], described["start"], end_offset=1)
            if is_chunked
            else None,
            every=None if every is None else timedelta(minutes=every),
            lakehouse_key=self.lakehouse_key,
            group_name=self.group_name,
            metadata={"dagster/column_schema": schema, **table_metadata(table=described["name"])},
        )

    def _checks(self, described: Mapping[str, Any]) -> list[dg.AssetChecksDefinition]:
        return build_checks(
            self._key(described),
            list(self._wanted_checks(described)),
            table=described["name"],
            lakehouse_key=self.lakehouse_key,
        )

    def _wanted_checks(self, described: Mapping[str, Any]) -> Iterator[TableCheck]:
        has_time = described["time"] is not None
        fits = {
            "chunk_complete": has_time,
            "no_null_time": has_time,
            "primary_key_unique": bool(described["primary_key"]),
        }
        for name in dict.fromkeys(self.checks):
            if fits.get(name, True):
                yield _CHECKS[name]()
        if self.fresh_within_hours is not None:
            yield checks.freshness(timedelta(hours=self.fresh_within_hours), of="rows" if has_time else "version")


def _described(table: Any) -> dict[str, Any]:
    """What definitions are made of, as JSON. A table without rows, or of too long ago, has no first chunk."""
    starts = [one.start for one in table.segments()] if table.time else []
    first = min(starts, default=None)
    return {
        "name": table.name,
        "time": table.time,
        "grain": str(table.grain),
        "start": None if first is None or first.year < FIRST_YEAR else first.isoformat(),
        "primary_key": list(table.primary_key),
        "columns": [(field.name, str(field.type), table.spec.history(field).comment or None) for field in table.schema],
    }
