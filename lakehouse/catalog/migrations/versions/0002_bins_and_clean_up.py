"""Bins instead of chunks, what expiry and collection need, and the queue for locks."""

import json
from collections import defaultdict
from typing import Any

import sqlalchemy as sa
from alembic import op

from lakehouse.core.bins import bins_of
from lakehouse.core.chunk import Grain
from lakehouse.core.interval import Interval, from_us

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_KEPT = ("lake_table", "operation", "chunk_lock", "commit_log", "commit_table", "txn", "tag")
"""Tables whose rows stay as they are."""

Rows = dict[str, list[dict[str, Any]]]


def upgrade() -> None:
    """Make every table anew and put the rows back. Key frames are left out: they are derived."""
    connection = op.get_bind()
    old = sa.MetaData()
    old.reflect(connection, only=lambda name, _: name != "alembic_version")
    held = {
        table.name: [dict(row) for row in connection.execute(sa.select(table)).mappings()]
        for table in old.sorted_tables
    }
    old.drop_all(connection)
    _create()
    new = sa.MetaData()
    new.reflect(connection)
    for name, rows in _converted(held).items():
        if rows:
            connection.execute(new.tables[name].insert(), rows)
    if connection.dialect.name == "postgresql":
        for table, column in (("lake_table", "id"), ("operation", "number")):
            number = sa.select(sa.func.max(new.tables[table].c[column])).scalar_subquery()
            sequence = sa.func.pg_get_serial_sequence(table, column)
            connection.execute(sa.select(sa.func.setval(sequence, sa.func.coalesce(number, 1))))


def _converted(held: Rows) -> Rows:
    """The rows of the new tables, in an order in which what is referred to comes first."""
    rows: Rows = {"lake": [{**row, "horizon": 0} for row in held["lake"]]}
    rows |= {name: held[name] for name in _KEPT}
    grains = {row["id"]: Grain(json.loads(row["definition"])["grain"]) for row in held["lake_table"]}
    added: dict[int, int] = {}
    dropped: dict[int, int | None] = {}
    for row in sorted(held["delta"], key=lambda one: one["version"]):
        added.setdefault(row["entry"], row["version"])
        dropped[row["entry"]] = row["version"] if row["action"] < 0 else None
    for name in ("segment", "tombstone"):
        rows[name] = [
            {**row, "added_version": added[row["id"]], "dropped_version": dropped[row["id"]]}
            for row in held[name]
            if row["id"] in added
        ]
    intervals = {
        row["id"]: Interval(from_us(row["start_us"]), from_us(row["end_us"]))
        for row in (*rows["segment"], *rows["tombstone"])
    }
    deltas: dict[tuple[int, int, int, int], dict[str, Any]] = {}
    for row in held["delta"]:
        for one in bins_of(grains[row["table_id"]], intervals[row["entry"]]):
            kept = {name: value for name, value in row.items() if name != "chunk_us"}
            deltas[row["table_id"], one, row["version"], row["entry"]] = {**kept, "bin": one}
    rows["delta"] = list(deltas.values())
    versions: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for table, one, version, _ in deltas:
        versions[table, one].add(version)
    rows["bin"] = [
        {"table_id": table, "bin": one, "version": max(found), "frame_entries": 0, "chain": len(found)}
        for (table, one), found in versions.items()
    ]
    return rows


def _create() -> None:
    op.create_table(
        "commit_log",
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("committed_us", sa.BigInteger(), nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("properties", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("version"),
    )
    op.create_index(op.f("ix_commit_log_committed_us"), "commit_log", ["committed_us"], unique=False)
    op.create_table(
        "lake",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("head", sa.BigInteger(), nullable=False),
        sa.Column("counter", sa.BigInteger(), nullable=False),
        sa.Column("next_token", sa.BigInteger(), nullable=False),
        sa.Column("clock_us", sa.BigInteger(), nullable=False),
        sa.Column("horizon", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("head <= counter"),
        sa.CheckConstraint("horizon <= head"),
        sa.CheckConstraint("id = 1"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "lake_table",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("created_version", sa.BigInteger(), nullable=False),
        sa.Column("dropped_version", sa.BigInteger(), nullable=True),
        sa.Column("next_row_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("folder"),
    )
    op.create_index(
        "lake_table_live_name",
        "lake_table",
        ["name"],
        unique=True,
        sqlite_where=sa.text("dropped_version IS NULL"),
        postgresql_where=sa.text("dropped_version IS NULL"),
    )
    op.create_table(
        "pin",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("lease_until_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "tag",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("tagged_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "bin",
        sa.Column("table_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("bin", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("frame_version", sa.BigInteger(), nullable=True),
        sa.Column("frame_entries", sa.BigInteger(), nullable=False),
        sa.Column("chain", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["table_id"],
            ["lake_table.id"],
        ),
        sa.PrimaryKeyConstraint("table_id", "bin"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "commit_table",
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("table_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("segments_added", sa.BigInteger(), nullable=False),
        sa.Column("segments_dropped", sa.BigInteger(), nullable=False),
        sa.Column("tombstones_added", sa.BigInteger(), nullable=False),
        sa.Column("tombstones_dropped", sa.BigInteger(), nullable=False),
        sa.Column("rows_added", sa.BigInteger(), nullable=False),
        sa.Column("rows_deleted", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["table_id"],
            ["lake_table.id"],
        ),
        sa.ForeignKeyConstraint(
            ["version"],
            ["commit_log.version"],
        ),
        sa.PrimaryKeyConstraint("version", "table_id"),
    )
    op.create_index("commit_table_history", "commit_table", ["table_id", "version"], unique=False)
    op.create_table(
        "delta",
        sa.Column("table_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("bin", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("entry", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("action", sa.SmallInteger(), nullable=False),
        sa.Column("is_tombstone", sa.Boolean(), nullable=False),
        sa.CheckConstraint("action IN (1, -1)"),
        sa.ForeignKeyConstraint(
            ["table_id"],
            ["lake_table.id"],
        ),
        sa.PrimaryKeyConstraint("table_id", "bin", "version", "entry"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "garbage",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("table_id", sa.BigInteger(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("marked_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["table_id"],
            ["lake_table.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_garbage_marked_us"), "garbage", ["marked_us"], unique=False)
    op.create_table(
        "key_frame",
        sa.Column("table_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("bin", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("entries", sa.BigInteger(), nullable=False),
        sa.Column("page", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["table_id"],
            ["lake_table.id"],
        ),
        sa.PrimaryKeyConstraint("table_id", "bin", "version"),
    )
    op.create_table(
        "lock_wait",
        sa.Column("token", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("table_id", sa.BigInteger(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("start_us", sa.BigInteger(), nullable=False),
        sa.Column("end_us", sa.BigInteger(), nullable=False),
        sa.Column("keys", sa.Text(), nullable=True),
        sa.Column("priority", sa.SmallInteger(), nullable=False),
        sa.Column("lease_until_us", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("start_us < end_us"),
        sa.ForeignKeyConstraint(
            ["table_id"],
            ["lake_table.id"],
        ),
        sa.PrimaryKeyConstraint("token"),
    )
    op.create_index("lock_wait_queue", "lock_wait", ["table_id", "token"], unique=False)
    op.create_table(
        "operation",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("table_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("base_version", sa.BigInteger(), nullable=False),
        sa.Column("ordinal", sa.BigInteger(), nullable=True),
        sa.Column("begun_us", sa.BigInteger(), nullable=False),
        sa.Column("lease_until_us", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("(state = 'committed') = (version IS NOT NULL)"),
        sa.CheckConstraint("state IN ('running', 'committed', 'aborted', 'collected')"),
        sa.ForeignKeyConstraint(
            ["table_id"],
            ["lake_table.id"],
        ),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "operation_open",
        "operation",
        ["lease_until_us"],
        unique=False,
        sqlite_where=sa.text("state IN ('running', 'aborted')"),
        postgresql_where=sa.text("state IN ('running', 'aborted')"),
    )
    op.create_table(
        "txn",
        sa.Column("table_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["table_id"],
            ["lake_table.id"],
        ),
        sa.PrimaryKeyConstraint("table_id", "app", "sequence"),
    )
    op.create_index(op.f("ix_txn_version"), "txn", ["version"], unique=False)
    op.create_table(
        "chunk_lock",
        sa.Column("token", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("table_id", sa.BigInteger(), nullable=False),
        sa.Column("operation", sa.BigInteger(), nullable=False),
        sa.Column("start_us", sa.BigInteger(), nullable=False),
        sa.Column("end_us", sa.BigInteger(), nullable=False),
        sa.Column("keys", sa.Text(), nullable=True),
        sa.Column("priority", sa.SmallInteger(), nullable=False),
        sa.CheckConstraint("start_us < end_us"),
        sa.ForeignKeyConstraint(
            ["operation"],
            ["operation.number"],
        ),
        sa.ForeignKeyConstraint(
            ["table_id"],
            ["lake_table.id"],
        ),
        sa.PrimaryKeyConstraint("token"),
    )
    op.create_index("chunk_lock_range", "chunk_lock", ["table_id", "start_us"], unique=False)
    op.create_index(op.f("ix_chunk_lock_operation"), "chunk_lock", ["operation"], unique=False)
    op.create_table(
        "segment",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("table_id", sa.BigInteger(), nullable=False),
        sa.Column("operation", sa.BigInteger(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("start_us", sa.BigInteger(), nullable=False),
        sa.Column("end_us", sa.BigInteger(), nullable=False),
        sa.Column("ordinal", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("first_row_id", sa.BigInteger(), nullable=False),
        sa.Column("has_row_ids", sa.Boolean(), nullable=False),
        sa.Column("statistics", sa.Text(), nullable=False),
        sa.Column("added_version", sa.BigInteger(), nullable=False),
        sa.Column("dropped_version", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("rows > 0"),
        sa.CheckConstraint("start_us < end_us"),
        sa.ForeignKeyConstraint(
            ["operation"],
            ["operation.number"],
        ),
        sa.ForeignKeyConstraint(
            ["table_id"],
            ["lake_table.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("operation", "path"),
    )
    op.create_index(
        "segment_dropped",
        "segment",
        ["dropped_version"],
        unique=False,
        sqlite_where=sa.text("dropped_version IS NOT NULL"),
        postgresql_where=sa.text("dropped_version IS NOT NULL"),
    )
    op.create_table(
        "tombstone",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("table_id", sa.BigInteger(), nullable=False),
        sa.Column("operation", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("start_us", sa.BigInteger(), nullable=False),
        sa.Column("end_us", sa.BigInteger(), nullable=False),
        sa.Column("ordinal", sa.BigInteger(), nullable=False),
        sa.Column("keys", sa.Text(), nullable=True),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("added_version", sa.BigInteger(), nullable=False),
        sa.Column("dropped_version", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("kind IN ('interval', 'key', 'row')"),
        sa.CheckConstraint("start_us < end_us"),
        sa.ForeignKeyConstraint(
            ["operation"],
            ["operation.number"],
        ),
        sa.ForeignKeyConstraint(
            ["table_id"],
            ["lake_table.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "tombstone_dropped",
        "tombstone",
        ["dropped_version"],
        unique=False,
        sqlite_where=sa.text("dropped_version IS NOT NULL"),
        postgresql_where=sa.text("dropped_version IS NOT NULL"),
    )
    # ### end Alembic commands ###
