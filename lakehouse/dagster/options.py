"""What an asset's metadata says about its table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import dagster as dg
import pyarrow as pa

from lakehouse.arguments import Fit, read_fit
from lakehouse.core.chunk import Grain
from lakehouse.dagster.frames import schema_of
from lakehouse.dagster.partitions import partitions_grain
from lakehouse.dagster.write import MODES, Mode
from lakehouse.errors import InvalidArgument, TableNotFound

if TYPE_CHECKING:
    from lakehouse.lake import Lake
    from lakehouse.table.table import Table

PREFIX = "lakehouse/"
_NAMES = ("table", "mode", "time", "grain", "primary_key", "cluster_by", "newest", "schema", "properties")


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The table behind an asset, and how it is written. Times and keys only matter until the table exists."""

    table: str
    mode: Mode | None = None
    time: str | None = None
    grain: str | None = None
    primary_key: tuple[str, ...] = ()
    cluster_by: Any = ()
    newest: str | None = None
    schema: Fit | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    """The column of each dimension of the partitions."""

    @classmethod
    def of(cls, key: dg.AssetKey, metadata: Mapping[str, Any] | None) -> "TableOptions":
        """Read an asset's metadata. Raises `InvalidInput` for anything that `table_metadata` would not produce."""
        plain = {name: _plain(value) for name, value in (metadata or {}).items()}
        ours = {name.removeprefix(PREFIX): value for name, value in plain.items() if name.startswith(PREFIX)}
        unknown = sorted(set(ours) - set(_NAMES))
        if unknown:
            raise InvalidArgument("no such metadata of a table; choose one", asset=key, unknown=unknown, names=_NAMES)
        columns = plain.get("partition_expr", {})
        if isinstance(columns, str):
            columns = {"": columns}
        if ours.get("mode") not in (None, *MODES):
            raise InvalidArgument("no such mode; choose one", asset=key, mode=ours["mode"], modes=MODES)
        if ours.get("schema") is not None:
            read_fit(ours["schema"])
        ours["primary_key"] = _listed(ours.get("primary_key", ()))
        return cls(**({"table": "_".join(key.path)} | ours), columns=columns)

    def find_or_create(self, lake: "Lake", rows: Any, partitions: dg.PartitionsDefinition[Any] | None) -> "Table":
        """The table, created with the schema of the rows if it does not exist."""
        try:
            return lake.table(self.table)
        except TableNotFound:
            schema = schema_of(rows)
            clustered = dict.fromkeys(self._key_columns(partitions), 0) | _with_buckets(self.cluster_by)
            return lake.create_table(
                self.table,
                schema,
                time=self._time(schema, partitions),
                grain=None if self.grain == Grain.ALL else self.grain or partitions_grain(partitions),
                primary_key=self.primary_key,
                cluster_by=clustered,
                properties=self.properties or None,
                if_not_exists=True,
            )

    def _key_columns(self, partitions: dg.PartitionsDefinition[Any] | None) -> list[str]:
        match partitions:
            case None | dg.TimeWindowPartitionsDefinition():
                return []
            case dg.MultiPartitionsDefinition():
                keys = [
                    one.name
                    for one in partitions.partitions_defs
                    if not isinstance(one.partitions_def, dg.TimeWindowPartitionsDefinition)
                ]
                return [self.columns.get(name, name) for name in keys]
            case _:
                return [self.columns[""]] if "" in self.columns else []

    def _time(self, schema: Any, partitions: dg.PartitionsDefinition[Any] | None) -> str | None:
        """The time column; None for a table without one: of an asset without partitions, whose rows have no times."""
        if self.grain == Grain.ALL:
            return None
        named = self.time
        if named is None and isinstance(partitions, dg.TimeWindowPartitionsDefinition):
            named = self.columns.get("")
        if named is not None:
            return named
        times = _times(schema)
        if not times and partitions is None and self.grain is None:
            return None
        if len(times) != 1:
            raise InvalidArgument(
                "the table's time column is not known; name it with table_metadata(time=...)",
                table=self.table,
                columns=times,
            )
        return str(times[0])


def table_metadata(
    *,
    table: str | None = None,
    mode: Mode | None = None,
    time: str | None = None,
    grain: str | None = None,
    primary_key: Sequence[str] = (),
    cluster_by: Sequence[str] | Mapping[str, int] = (),
    newest: str | None = None,
    schema: Fit | None = None,
    properties: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Metadata that says which table an asset is and how it is written.

    By default, the table is named like the asset (parts joined by ``_``), the mode is the IO manager's, the time is the
    only timestamp column, and the grain is that of the partitions, or a day. Without partitions and timestamp columns
    the table is timeless, and so it is with ``grain="all"``, whatever timestamps it has. ``newest``: see
    `Table.upsert`. ``schema`` is that of `Table.append`: what becomes of rows with other columns than the table's; by
    default the IO manager's. What defines the table only matters until it exists.

    Examples
    --------
    >>> table_metadata(mode="upsert", time="at", primary_key=["id"])
    {'lakehouse/mode': 'upsert', 'lakehouse/time': 'at', 'lakehouse/primary_key': ['id']}
    """
    given = {
        "table": table,
        "mode": mode,
        "time": time,
        "grain": grain,
        "primary_key": list(primary_key),
        "cluster_by": dict(cluster_by) if isinstance(cluster_by, Mapping) else list(cluster_by),
        "newest": newest,
        "schema": schema,
        "properties": dict(properties or {}),
    }
    return {f"{PREFIX}{name}": value for name, value in given.items() if value}


def _plain(value: Any) -> Any:
    """The value inside a Dagster metadata value."""
    return value.value if isinstance(value, dg.MetadataValue) else value


def _listed(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _with_buckets(columns: str | Sequence[str] | Mapping[str, int]) -> dict[str, int]:
    """Cluster columns with their numbers of hash buckets."""
    return dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(_listed(columns), 0)


def _times(schema: Any) -> list[str]:
    """Timestamp columns of an Arrow or Spark schema."""
    if isinstance(schema, pa.Schema):
        return [field.name for field in schema if pa.types.is_timestamp(field.type)]
    return [field.name for field in schema if field.dataType.typeName().startswith("timestamp")]
