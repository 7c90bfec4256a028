"""Operations from begin to end, except commits."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, and_, bindparam, case, delete, select, update

from lakehouse.catalog.locks.locks import Wanted, release, take
from lakehouse.catalog.store import statements
from lakehouse.catalog.store.clock import host_clocks
from lakehouse.catalog.store.encoding import encode_keys
from lakehouse.catalog.store.models import chunk_lock, lake, lake_table, operation, updated_rows
from lakehouse.catalog.store.prepared import Fetched, run_for_each
from lakehouse.core.interval import Interval
from lakehouse.core.operation import RESERVED, Altered, Begun, Kind
from lakehouse.core.ordinal import draws_number
from lakehouse.core.spec import TableSpec


def new_id() -> str:
    """A new operation's id: 32 hexadecimal digits, the first 12 from its millisecond, so new ones sort last."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"


def draw(connection: Connection) -> int:
    """Take the next number, and with it the head until the transaction ends."""
    return int(
        connection.execute(update(lake).values(counter=lake.c.counter + 1).returning(lake.c.counter)).scalar_one()
    )


def begin(
    connection: Connection,
    spec: TableSpec,
    kind: Kind,
    *,
    operation_id: str,
    now_us: int,
    lease_us: int,
    interval: Interval | None = None,
    wanted: Wanted | None = None,
) -> Begun:
    """Register an operation under the head, and lock what is wanted.

    Raises `locks.ChunkHeld` if a lock is in the way, and `Altered`.
    """
    ordinal = draw(connection) if draws_number(kind, spec.write_order) else None
    schema_number = select(lake_table.c.schema_number).where(lake_table.c.id == spec.id).scalar_subquery()
    base = select(lake.c.head if ordinal is None else lake.c.counter, schema_number)
    base_version, number_now = connection.execute(base).one()
    if number_now is not None and number_now != spec.schema_number:
        raise Altered
    taken: dict[str, int | str | None] = {}
    if kind is Kind.REPLACE and interval is not None:
        keys = None if wanted is None else wanted.cell.keys
        taken = {"start_us": interval.start_us, "end_us": interval.end_us, "keys": encode_keys(keys, spec.stored_names)}
    number: int = connection.execute(
        operation.insert()
        .values(
            id=operation_id,
            table_id=spec.id,
            kind=kind.value,
            state="running",
            base_version=base_version,
            ordinal=ordinal,
            begun_us=now_us,
            lease_until_us=now_us + lease_us,
            **taken,
        )
        .returning(operation.c.number)
    ).scalar_one()
    if wanted is not None:
        take(connection, wanted, number=number, now_us=now_us)
    return Begun(
        id=operation_id,
        number=number,
        kind=kind,
        table=spec,
        base_version=base_version,
        ordinal=ordinal,
        interval=interval,
        keys=None if wanted is None else wanted.cell.keys,
        locks=int(wanted is not None),
    )


def register(connection: Connection, spec: TableSpec, kind: str, *, operation_id: str, lease_us: int) -> Any:
    """Register an operation that neither draws a number nor locks, without waiting.

    Returns a cursor over its row, which `registered` reads.
    """
    values = {"id": operation_id, "table_id": spec.id, "kind": str(kind), "state": "running", "lease_us": lease_us}
    return statements.BEGIN.run(connection, {**values, **host_clocks()})


def registered(cursor: Any, spec: TableSpec) -> Begun:
    """The append that `register` made."""
    number, operation_id, base_version = cursor.fetchone()
    return Begun(id=operation_id, number=number, kind=Kind.APPEND, table=spec, base_version=base_version)


def find_registered(connection: Connection, ids: Iterable[str]) -> list[Any]:
    """The results of `register` for operations of these ids; shorter if some were not begun."""
    columns = (operation.c.number, operation.c.id, operation.c.base_version)
    rows = connection.execute(select(*columns).where(operation.c.id.in_(list(ids)))).all()
    return [Fetched([tuple(row)]) for row in rows]


def give_back(connection: Connection, reserved: Iterable[Begun]) -> None:
    """Remove preregistered operations that never began; others stay."""
    numbers = [one.number for one in reserved]
    connection.execute(
        delete(operation).where(
            operation.c.number.in_(numbers), operation.c.kind == RESERVED, operation.c.state == "running"
        )
    )


def abort(connection: Connection, begun: Begun) -> bool:
    """End an operation that did not commit, and release its locks.

    True if it can never commit, whoever ended it, so its files can never become visible. False if it was committed.
    """
    ended = connection.execute(
        update(operation)
        .where(operation.c.number == begun.number, operation.c.state == "running")
        .values(state="aborted")
    )
    release(connection, begun.number)
    if ended.rowcount == 1:
        return True
    state = connection.execute(select(operation.c.state).where(operation.c.number == begun.number)).scalar()
    return state in ("aborted", "collected")


def release_by_id(connection: Connection, operation_id: str) -> bool:
    """End any operation and release its locks; False if no such operation runs."""
    number: int | None = connection.execute(
        update(operation)
        .where(operation.c.id == operation_id, operation.c.state == "running")
        .values(state="aborted")
        .returning(operation.c.number)
    ).scalar()
    if number is None:
        return False
    release(connection, number)
    return True


_KIND_SEEN = case((operation.c.kind == RESERVED, Kind.APPEND.value), else_=operation.c.kind)


def renew(connection: Connection, numbers: Iterable[int], until_us: int) -> None:
    """Renew the leases of running operations; a preregistered append is shown as running from now on."""
    connection.execute(
        update(operation)
        .where(operation.c.number.in_(list(numbers)), operation.c.state == "running")
        .values(lease_until_us=until_us, kind=_KIND_SEEN)
    )


def is_registered(connection: Connection, operation_id: str) -> bool:
    """Whether an operation with this id was begun."""
    return connection.execute(select(operation.c.number).where(operation.c.id == operation_id)).first() is not None


def end_operations(connection: Connection, numbers: list[int]) -> None:
    """Make sure that operations never commit; call it under the head."""
    values = [{"ended": number} for number in numbers]
    running = and_(operation.c.number == bindparam("ended"), operation.c.state == "running")
    run_for_each(connection, update(operation).where(running).values(state="aborted"), values)
    for of in (chunk_lock, updated_rows):
        run_for_each(connection, delete(of).where(of.c.operation == bindparam("ended")), values)
