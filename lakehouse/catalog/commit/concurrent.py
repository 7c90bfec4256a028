"""What happened to rows after an operation read them: queried under the head, so nothing more can happen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, exists, func, select, text

from lakehouse.catalog.state.bins import PAIRS, prepared_over, rows_by_id, rows_of_pairs, touching
from lakehouse.catalog.store.encoding import decode_keys
from lakehouse.catalog.store.models import chunk_lock, commit_table, operation, segment
from lakehouse.catalog.store.rows import tombstone_from_row
from lakehouse.core.hits import EVERYTHING, Removal
from lakehouse.core.interval import Interval, from_us
from lakehouse.core.operation import COPIERS, ENTRY_BITS, Kind
from lakehouse.core.ordinal import known_ordinal
from lakehouse.core.spec import TableSpec
from lakehouse.core.tombstone import Tombstone


@dataclass(frozen=True, slots=True)
class Change:
    """A tombstone that was added, and by which kind of operation."""

    tombstone: Tombstone
    operation: int
    kind: Kind


def changes_since(connection: Connection, spec: TableSpec, interval: Interval, version: int) -> list[Change]:
    """Row and key tombstones that were added after a version and may match rows of an interval.

    Includes those that were dropped again. Cost: the bins of the interval, and the changes in them since.
    """
    parameters = {"table": spec.id, "after": version}
    rows = rows_of_pairs(connection, _ADDED, touching(spec, interval), parameters)
    found = rows_by_id(connection, "tombstone", {row[0] for row in rows})
    wanted = [row for row in found if row["kind"] != "interval"]
    if not wanted:
        return []
    makers = {row["operation"] for row in wanted}
    kinds = {
        row.number: Kind(row.kind)
        for row in connection.execute(
            select(operation.c.number, operation.c.kind).where(operation.c.number.in_(makers))
        )
    }
    current = spec.current_names
    return [Change(tombstone_from_row(row, current), row["operation"], kinds[row["operation"]]) for row in wanted]


_ADDED = prepared_over(
    PAIRS,
    """
    SELECT DISTINCT delta.entry FROM {wanted} bin CROSS JOIN delta
    WHERE bin.table_id = :table AND bin.bin BETWEEN pair.first AND pair.second AND bin.version > :after
      AND delta.table_id = bin.table_id AND delta.bin = bin.bin AND delta.version > :after
      AND delta.action = 1 AND delta.is_tombstone
    """,
)


def removals_since(connection: Connection, spec: TableSpec, version: int) -> Iterator[tuple[Kind, Removal]]:
    """Operations after a version that replaced or deleted whole intervals; a restore covers all of its chunks."""
    columns = (operation.c.kind, operation.c.start_us, operation.c.end_us, operation.c["keys"])
    query = select(*columns, operation.c.ordinal, operation.c.version).where(
        operation.c.table_id == spec.id, operation.c.version > version, operation.c.start_us.is_not(None)
    )
    current = spec.current_names
    for row in connection.execute(query):
        kind = Kind(row.kind)
        ordinal = EVERYTHING if kind is Kind.RESTORE else (row.ordinal or row.version)
        yield (
            kind,
            Removal(Interval(from_us(row.start_us), from_us(row.end_us)), decode_keys(row.keys, current), ordinal),
        )


@dataclass(frozen=True, slots=True)
class RunningReplace:
    """A replace that holds its chunks, and what its commit will remove."""

    number: int
    id: str
    removal: Removal


def running_replaces(connection: Connection, spec: TableSpec, interval: Interval) -> list[RunningReplace]:
    """Replaces that hold a lock on chunks of an interval."""
    columns = (operation.c.number, operation.c.id, operation.c.start_us, operation.c.end_us, operation.c["keys"])
    query = (
        select(*columns, operation.c.ordinal)
        .join(chunk_lock, chunk_lock.c.operation == operation.c.number)
        .where(
            chunk_lock.c.table_id == spec.id,
            chunk_lock.c.start_us < interval.end_us,
            chunk_lock.c.end_us > interval.start_us,
            operation.c.kind == Kind.REPLACE.value,
        )
    )
    current = spec.current_names
    return [_running(row, current) for row in connection.execute(query)]


def _running(row: Any, current: Mapping[str, str]) -> RunningReplace:
    covered = Interval(from_us(row.start_us), from_us(row.end_us))
    return RunningReplace(row.number, row.id, Removal(covered, decode_keys(row.keys, current), row.ordinal))


def written_interval(connection: Connection, number: int) -> Interval | None:
    """The interval covered by the segments that an operation made; None without any."""
    made = segment.c.id.between(number << ENTRY_BITS, (number + 1 << ENTRY_BITS) - 1)
    query = select(func.min(segment.c.start_us), func.max(segment.c.end_us)).where(made)
    start_us, end_us = connection.execute(query).one()
    return None if start_us is None else Interval(from_us(start_us), from_us(end_us))


def rows_came_since(connection: Connection, spec: TableSpec, version: int) -> bool:
    """Whether an operation that may bring rows into a table committed after a version."""
    of = commit_table.c
    mine = (of.table_id == spec.id, of.version > version, of.operation != Kind.COMPACTION.value)
    brought = of.segments_added + of.tombstones_dropped > 0
    return bool(connection.execute(select(exists().where(*mine, brought))).scalar())


def has_copiers_since(connection: Connection, spec: TableSpec, version: int) -> bool:
    """Whether an operation that copies rows committed after a version."""
    mine = (commit_table.c.table_id == spec.id, commit_table.c.version > version)
    copied = commit_table.c.operation.in_([kind.value for kind in COPIERS])
    return bool(connection.execute(select(exists().where(*mine, copied))).scalar())


def least_in_flight(connection: Connection, spec: TableSpec, *, but: int | None = None) -> int:
    """The least ordinal with which a running operation may still add rows; greater than every number if none runs.

    The operation ``but`` is ignored.
    """
    query = select(operation.c.number, operation.c.kind, operation.c.ordinal, operation.c.base_version).where(
        text("state IN ('running', 'aborted')"),  # as the index says it
        operation.c.state == "running",
        operation.c.table_id == spec.id,
    )
    ordinals = (
        known_ordinal(row.kind, drawn=row.ordinal, base_version=row.base_version)
        for row in connection.execute(query)
        if row.number != but
    )
    return min((one for one in ordinals if one is not None), default=EVERYTHING)


def compactions(connection: Connection, numbers: Iterable[int]) -> set[int]:
    """Those of some operations that are compactions."""
    listed = list(numbers)
    if not listed:
        return set()
    query = select(operation.c.number).where(operation.c.number.in_(listed), operation.c.kind == Kind.COMPACTION.value)
    return set(connection.execute(query).scalars())
