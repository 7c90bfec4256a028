"""The statements that every operation runs, prepared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import BigInteger, bindparam, func, select, update

from lakehouse.catalog.store.clock import now_us, remembered
from lakehouse.catalog.store.columns import inserting
from lakehouse.catalog.store.models import (
    bin,  # noqa: A004 - the word of the scheme
    commit_log,
    commit_table,
    delta,
    key_frame,
    lake,
    lake_table,
    operation,
    segment,
    tombstone,
    tombstone_set,
    txn,
)
from lakehouse.catalog.store.prepared import Prepared


def touching(version: Any) -> Callable[[str], Any]:
    """Builds the statement that records a version of a bin and returns its newest key frame."""

    def build(dialect: str) -> Any:
        insert = inserting(bin, dialect)
        columns = ("table_id", "bin", "frame_version", "frame_entries", "chain")
        upsert = insert.values(
            {**{name: bindparam(name) for name in columns}, "version": version}
        ).on_conflict_do_update(
            index_elements=[bin.c.table_id, bin.c.bin],
            set_={"version": insert.excluded.version, "chain": bin.c.chain + 1},
        )
        return upsert.returning(bin.c.bin, bin.c.chain, bin.c.frame_version)

    return build


def _take_version(dialect: str) -> Any:
    following = lake.c.counter + 1
    greatest = func.max if dialect == "sqlite" else func.greatest
    return (
        update(lake)
        .values(
            counter=following,
            head=following,
            clock_us=greatest(lake.c.clock_us + 1, now_us(dialect)),
            **remembered(dialect),
        )
        .returning(lake.c.counter, lake.c.clock_us)
    )


def _dropped(of: Any) -> Prepared:
    return Prepared(lambda _: update(of).where(of.c.id == bindparam("changed")).values(dropped_version=bindparam("at")))


def _insert(into: Any) -> Prepared:
    return Prepared(lambda _: into.insert())


TAKE_VERSION = Prepared(_take_version)
MARK = Prepared(
    lambda _: select(txn.c.version).where(
        txn.c.table_id == bindparam("table"),
        txn.c.app == bindparam("app"),
        txn.c.sequence == bindparam("sequence"),
    )
)
RESERVE = Prepared(
    lambda _: (
        update(lake_table)
        .where(lake_table.c.id == bindparam("table"), lake_table.c.dropped_version.is_(None))
        .values(next_row_id=lake_table.c.next_row_id + bindparam("rows"))
        .returning(lake_table.c.next_row_id, lake_table.c.schema_number)
    )
)
END = Prepared(
    lambda _: (
        update(operation)
        .where(operation.c.number == bindparam("ended"), operation.c.state == "running")
        .values(state="committed", kind=bindparam("ended_kind"), version=select(lake.c.counter).scalar_subquery())
        .returning(operation.c.version)
    )
)
TAKE_BACK = Prepared(
    lambda _: update(operation).where(operation.c.number == bindparam("repeated")).values(state="aborted", version=None)
)
TOUCH = Prepared(touching(bindparam("version")))
DROP_SEGMENT, DROP_TOMBSTONE = _dropped(segment), _dropped(tombstone)
INSERT_SEGMENT, INSERT_TOMBSTONE, INSERT_DELTA = _insert(segment), _insert(tombstone), _insert(delta)
INSERT_SET = _insert(tombstone_set)
INSERT_VERSION, INSERT_COUNTS, INSERT_MARK = _insert(commit_log), _insert(commit_table), _insert(txn)


def _begin(dialect: str) -> Any:
    """Registers an operation that takes no number and no lock, at the head."""
    values = {name: bindparam(name, type_=operation.c[name].type) for name in ("id", "table_id", "kind", "state")}
    now = now_us(dialect)
    row = select(*values.values(), lake.c.head, now, now + bindparam("lease_us", type_=BigInteger))
    columns = [*values, "base_version", "begun_us", "lease_until_us"]
    return (
        operation.insert()
        .from_select(columns, row)
        .returning(operation.c.number, operation.c.id, operation.c.base_version)
    )


BEGIN = Prepared(_begin)


def _insert_frame(dialect: str) -> Any:
    """Keeps the key frame that another writer stored first: both are the same."""
    insert = inserting(key_frame, dialect)
    return insert.values({name: bindparam(name) for name in key_frame.c.keys()}).on_conflict_do_nothing()  # noqa: SIM118


def _frame_bin(_: str) -> Any:
    """Records a bin's newest key frame, and the number of versions since."""
    version = bindparam("version", type_=BigInteger)
    behind = (
        select(func.count(delta.c.version.distinct()))
        .where(delta.c.table_id == bin.c.table_id, delta.c.bin == bin.c.bin, delta.c.version > version)
        .correlate(bin)
        .scalar_subquery()
    )
    return (
        update(bin)
        .where(
            bin.c.table_id == bindparam("table_id"),
            bin.c.bin == bindparam("bin"),
            func.coalesce(bin.c.frame_version, -1) < version,
        )
        .values(frame_version=version, frame_entries=bindparam("entries"), chain=behind)
    )


INSERT_FRAME, FRAME_BIN = Prepared(_insert_frame), Prepared(_frame_bin)
