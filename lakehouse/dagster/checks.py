"""Asset checks over a table: most of them query only the catalog and open no data file."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import dagster as dg
import pyarrow as pa

from lakehouse.core.column import is_uuid_column
from lakehouse.core.interval import Interval, to_utc
from lakehouse.dagster.options import TableOptions
from lakehouse.errors import InvalidArgument, NoPrimaryKey

if TYPE_CHECKING:
    from lakehouse.table.table import Table

Found = tuple[bool, dict[str, Any], str]
"""Whether a check passed, its metadata, and a sentence."""
_MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class TableCheck:
    """A condition on a table."""

    name: str
    description: str
    look: Callable[["Table"], Found]


def build_checks(
    asset: "dg.AssetKey | dg.AssetSpec | dg.AssetsDefinition | Sequence[str] | str",
    checks: Sequence[TableCheck],
    *,
    table: str | None = None,
    blocking: bool | Collection[str] = False,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
    lakehouse_key: str = "lakehouse",
) -> list[dg.AssetChecksDefinition]:
    """Checks of the table behind an asset, each its own definition, so that each runs and fails by itself.

    ``blocking`` checks (True: all; or their names) keep downstream assets from running in the same run. A version that
    fails them is committed all the same: to keep it from readers, let them read by tag, or restore. ``table``: its
    name, if the asset's metadata does not say it.

    Examples
    --------
    >>> from lakehouse.dagster import build_checks, checks
    >>> found = build_checks("flights", [checks.no_null_time(), checks.freshness(timedelta(days=2))], blocking=True)
    >>> [spec.name for one in found for spec in one.check_specs]
    ['no_null_time', 'freshness']
    """
    key, metadata = _asset(asset)
    name = table or TableOptions.of(key, metadata).table
    wanted = {one.name for one in checks}
    stops = wanted if blocking is True else set(blocking or ())
    if stops - wanted:
        raise InvalidArgument("no such check; name one of these", unknown=sorted(stops - wanted), checks=sorted(wanted))
    return [_definition(key, name, one, one.name in stops, severity, lakehouse_key) for one in checks]


def _definition(
    key: dg.AssetKey, table: str, check: TableCheck, blocking: bool, severity: Any, lakehouse_key: str
) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=key,
        name=check.name,
        description=check.description,
        blocking=blocking,
        required_resource_keys={lakehouse_key},
    )
    def looked(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        with getattr(context.resources, lakehouse_key).get_lake(spark=False) as lake:
            found = lake.table(table)
            version = found.version
            passed, facts, sentence = check.look(found)
        return dg.AssetCheckResult(
            passed=passed, severity=severity, description=sentence, metadata={"version": version, **facts}
        )

    return looked


def _asset(asset: Any) -> tuple[dg.AssetKey, Any]:
    if isinstance(asset, dg.AssetsDefinition):
        return asset.key, asset.metadata_by_key[asset.key]
    if isinstance(asset, dg.AssetSpec):
        return asset.key, asset.metadata
    return dg.AssetKey.from_coercible(asset), None


# The available checks


def chunk_complete(interval: Any = None, *, allowed: int = 0) -> TableCheck:
    """Every time chunk of an interval holds visible rows (None: from the table's first chunk to its last).

    ``allowed`` chunks may be missing. From the catalog: a chunk counts if any part of its timeline is visible.
    """
    wanted = None if interval is None else Interval.of(interval)

    def look(table: "Table") -> Found:
        grain = table.spec.grain
        slices = table.timeline(wanted).slices
        span = wanted or (Interval(slices[0].start, slices[-1].end) if slices else None)
        if span is None:
            return False, {"missing": 0}, "the table is empty"
        seen = {chunk.start for one in slices for chunk in grain.chunks(one.interval)}
        missing = [chunk for chunk in grain.chunks(span) if chunk.start not in seen]
        facts = {"missing": len(missing), "examples": [grain.label(one.start) for one in missing[:_MOST_NAMED]]}
        return len(missing) <= allowed, facts, f"{len(missing)} of the chunks of {span} hold no visible row"

    return TableCheck("chunk_complete", "Every time chunk holds rows.", look)


def row_count(expected: Callable[["Table"], int] | int, *, interval: Any = None, tolerance: float = 0.0) -> TableCheck:
    """As many visible rows as the source has, or up to a ``tolerance`` (0.01: one in a hundred) fewer or more.

    ``expected`` is that number, or a function that returns it. Cost: counted from the catalog if nothing masks rows.
    """

    def look(table: "Table") -> Found:
        must = expected(table) if callable(expected) else expected
        found = table.scan(interval=interval).count()
        facts = {"expected": must, "found": found}
        return abs(found - must) <= tolerance * must, facts, f"{found:,} rows, and the source has {must:,}"

    return TableCheck("row_count", "As many rows as the source has.", look)


def primary_key_unique(columns: Sequence[str] = (), *, interval: Any = None) -> TableCheck:
    """No two visible rows have the same primary key (or values of ``columns``). Reads these columns."""

    def look(table: "Table") -> Found:
        names = list(columns or table.primary_key)
        if not names:
            raise NoPrimaryKey("the table has no primary key; name the columns that are unique", table=table.name)
        keys = table.scan(columns=names, interval=interval).to_arrow()
        grouped = keys.append_column("_rows", pa.repeat(1, keys.num_rows)).group_by(names).aggregate([("_rows", "sum")])
        twice = grouped.filter(pa.compute.greater(grouped["_rows_sum"], 1))
        examples = [str({name: row[name] for name in names}) for row in twice.slice(0, _MOST_NAMED).to_pylist()]
        return (
            not twice.num_rows,
            {"keys": twice.num_rows, "examples": examples},
            f"{twice.num_rows} keys are there twice",
        )

    return TableCheck("primary_key_unique", "No key is there twice.", look)


def no_null_time() -> TableCheck:
    """No row lacks a time. The library refuses such rows, so a failure means that files were written by other means."""

    def look(table: "Table") -> Found:
        if not table.time:
            raise InvalidArgument("the table has no time; leave this check out", table=table.name)
        nulls = sum(segment.nulls.get(table.time, 0) for segment in table.segments())
        return not nulls, {"nulls": nulls}, f"{nulls} rows have no time"

    return TableCheck("no_null_time", "Every row has a time.", look)


def schema_is(schema: Any) -> TableCheck:
    """The table has the columns and types that the code expects (Arrow's or Spark's schema, or DDL)."""

    def look(table: "Table") -> Found:
        # The DDL parser takes half a second to import, for which loading a code location need not wait.
        from lakehouse.schema import to_schema  # noqa: PLC0415

        must, found = (
            {field.name: "uuid" if is_uuid_column(field) else str(field.type) for field in columns}
            for columns in (to_schema(schema, table.time), table.schema)
        )
        drift = {
            name: f"{must.get(name, 'none')} expected, {found.get(name, 'none')} found"
            for name in sorted(must.keys() | found.keys())
            if must.get(name) != found.get(name)
        }
        return not drift, {"drift": drift}, f"{len(drift)} columns differ from the expected schema"

    return TableCheck("schema_drift", "Columns and types are the expected ones.", look)


def tombstone_debt(most: int = 100, *, share: float = 0.2) -> TableCheck:
    """At most this many tombstones, and this share of stored rows hidden: more means that maintenance is behind.

    The share counts row and key tombstones against stored rows; both from the catalog.
    """

    def look(table: "Table") -> Found:
        tombstones = table.tombstones()
        hidden = sum(one.rows for one in tombstones)
        stored = sum(segment.rows for segment in table.segments())
        part = hidden / stored if stored else 0.0
        facts = {"tombstones": len(tombstones), "rows_listed": hidden, "share": round(part, 4)}
        return (
            len(tombstones) <= most and part <= share,
            facts,
            f"{len(tombstones)} tombstones list {part:.1%} of the rows",
        )

    return TableCheck("tombstone_debt", "Few rows are hidden by tombstones.", look)


def freshness(
    most: timedelta, *, of: str = "rows", now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> TableCheck:
    """The newest row (or with ``of="version"`` the newest commit) is not older than this. From the catalog.

    Rows of a timeless table have no age: of it only the version can be asked for.
    """
    if of not in ("rows", "version"):
        raise InvalidArgument("freshness is of rows or of the version", of=of)

    def look(table: "Table") -> Found:
        if of == "rows":
            if not table.time:
                raise InvalidArgument(
                    "the table has no time, so its rows have no age; use of='version'", table=table.name
                )
            newest = max((one.end for one in table.timeline().slices), default=None)
        else:
            newest = next((commit.committed_at for commit in table.log(limit=1)), None)
        if newest is None:
            return False, {}, "the table is empty"
        age = to_utc(now()) - newest
        facts = {"newest": newest.isoformat(), "age_seconds": round(age.total_seconds(), 3)}
        return age <= most, facts, f"the newest of {of} is {age} old, and {most} is allowed"

    return TableCheck("freshness", "What is there is new enough.", look)


def served(group: str, *, within: timedelta = timedelta()) -> TableCheck:
    """The table's newest version is live in a group of query nodes, or was committed within some time.

    From the catalog. What a handoff waits for, and why a node cannot load a version, is in the metadata.
    """

    def look(table: "Table") -> Found:
        catalog = table.session.catalog
        found, newest = catalog.serving().group(group), table.version
        nodes = [] if found is None else [one for one in found.nodes if one.is_leased]
        if found is None or not nodes:
            return False, {"nodes": 0}, f"no node serves group {group}; start one: lakehouse serve --group {group}"
        causes = {f"{one.id} at {version}": why for one in nodes for version, why in one.report.failed.items()}
        facts = {"nodes": len(nodes), "live": found.live, "waits_for": list(found.waits_for), "causes": causes}
        if found.live >= newest:
            return True, facts, f"version {newest} is served, by {len(nodes)} nodes"
        committed = next((commit.committed_at for commit in table.log(limit=1)), None)
        age = timedelta() if committed is None else catalog.now() - committed
        return age <= within, facts, f"version {newest} is not served for {age}; {found.live} is"

    return TableCheck("served", "The newest version is served by query nodes.", look)
