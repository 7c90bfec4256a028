"""Activity: running operations, the locks of all tables, and the queue for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, and_, func, select

from lakehouse.catalog.store.encoding import decode_keys
from lakehouse.catalog.store.models import chunk_lock, lake_table, lock_wait, operation
from lakehouse.catalog.store.rows import spec_from_row
from lakehouse.core.activity import Activity, HeldLock, LockWait, RunningOperation
from lakehouse.core.conflict import Cell, locks_clash
from lakehouse.core.interval import Interval, from_us
from lakehouse.core.listing import Listing
from lakehouse.core.operation import RESERVED


def read_activity(connection: Connection, now_us: int) -> Activity:
    """Activity at one moment; expired places in the queue are left out.

    Cost: running operations, not history, and one comparison for each place and lock of the same table.
    """
    locks, places = _locks(connection), _places(connection, now_us)
    names = _names(connection, {one.table_id for one in (*locks, *places) if one.keys is not None})
    ahead: dict[int, list[str]] = {}
    waiting: Counter[int] = Counter()
    for number, place in enumerate(places):
        cell = _cell(place, names)
        near = (one for one in (*locks, *places[:number]) if one.table_id == place.table_id)
        clashing = [one for one in near if one.priority >= place.priority and locks_clash(cell, _cell(one, names))]
        ahead[place.token] = [one.holder for one in clashing]
        waiting.update(one.token for one in clashing)
    return Activity(
        operations=_operations(connection, now_us),
        locks=Listing(
            HeldLock(**_shared(row, now_us, names), token=row.token, waiting=waiting[row.token]) for row in locks
        ),
        waits=Listing(
            LockWait(**_shared(row, now_us, names), place=row.token, behind=tuple(ahead[row.token])) for row in places
        ),
    )


def read_living(connection: Connection, now_us: int) -> frozenset[str]:
    """Ids of operations that may still write and commit, those that are preregistered too: their leases last."""
    is_living = and_(operation.c.state == "running", operation.c.lease_until_us >= now_us)
    return frozenset(connection.execute(select(operation.c.id).where(is_living)).scalars())


def _operations(connection: Connection, now_us: int) -> Listing[RunningOperation]:
    held = select(func.count()).where(chunk_lock.c.operation == operation.c.number).scalar_subquery()
    query = (
        select(operation, lake_table.c.name, held.label("held"))
        .join(lake_table, lake_table.c.id == operation.c.table_id)
        .where(operation.c.state == "running", operation.c.kind != RESERVED)
        .order_by(operation.c.begun_us, operation.c.number)
    )
    return Listing(
        RunningOperation(
            operation=row.id,
            table=row.name,
            kind=row.kind,
            base_version=row.base_version,
            begun_at=from_us(row.begun_us),
            age_seconds=_seconds(now_us - row.begun_us),
            lease_seconds=_seconds(row.lease_until_us - now_us),
            locks=row.held,
        )
        for row in connection.execute(query)
    )


def _locks(connection: Connection) -> list[Any]:
    query = (
        select(
            chunk_lock, operation.c.id.label("holder"), operation.c.kind, operation.c.lease_until_us, lake_table.c.name
        )
        .join(operation, operation.c.number == chunk_lock.c.operation)
        .join(lake_table, lake_table.c.id == chunk_lock.c.table_id)
        .order_by(lake_table.c.name, chunk_lock.c.start_us, chunk_lock.c.token)
    )
    return list(connection.execute(query))


def _places(connection: Connection, now_us: int) -> list[Any]:
    query = (
        select(lock_wait, lock_wait.c.operation.label("holder"), lake_table.c.name)
        .join(lake_table, lake_table.c.id == lock_wait.c.table_id)
        .where(lock_wait.c.lease_until_us >= now_us)
        .order_by(lock_wait.c.token)
    )
    return list(connection.execute(query))


def _names(connection: Connection, tables: Collection[int]) -> dict[int, Mapping[str, str]]:
    """For each of some tables that were altered, the names that its columns have now by those in the catalog."""
    altered = select(lake_table).where(lake_table.c.id.in_(tables), lake_table.c.schema_number > 0)
    return {row.id: spec_from_row(row).current_names for row in connection.execute(altered)} if tables else {}


def _shared(row: Any, now_us: int, names: Mapping[int, Mapping[str, str]]) -> dict[str, Any]:
    cell = _cell(row, names)
    return {
        "table": row.name,
        "interval": cell.interval,
        "keys": cell.keys,
        "operation": row.holder,
        "kind": row.kind,
        "priority": row.priority,
        "lease_seconds": _seconds(row.lease_until_us - now_us),
    }


def _cell(row: Any, names: Mapping[int, Mapping[str, str]]) -> Cell:
    keys = decode_keys(row.keys, names.get(row.table_id, {}))
    return Cell(Interval(from_us(row.start_us), from_us(row.end_us)), keys)


def _seconds(microseconds: int) -> float:
    return microseconds / 1_000_000
