"""The first form of the catalog."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create every table, and the row that holds the number sequence."""
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
        sa.CheckConstraint("head <= counter"),
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
        "tag",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("tagged_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "chunk",
        sa.Column("table_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("start_us", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("frame_entries", sa.BigInteger(), nullable=True),
        sa.Column("chain", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["table_id"],
            ["lake_table.id"],
        ),
        sa.PrimaryKeyConstraint("table_id", "start_us"),
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
        sa.Column("chunk_us", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("entry", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("action", sa.SmallInteger(), nullable=False),
        sa.Column("is_tombstone", sa.Boolean(), nullable=False),
        sa.CheckConstraint("action IN (1, -1)"),
        sa.ForeignKeyConstraint(
            ["table_id"],
            ["lake_table.id"],
        ),
        sa.ForeignKeyConstraint(
            ["version"],
            ["commit_log.version"],
        ),
        sa.PrimaryKeyConstraint("table_id", "chunk_us", "version", "entry"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "key_frame",
        sa.Column("table_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("chunk_us", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("entries", sa.BigInteger(), nullable=False),
        sa.Column("page", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["table_id"],
            ["lake_table.id"],
        ),
        sa.PrimaryKeyConstraint("table_id", "chunk_us", "version"),
    )
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
        sa.CheckConstraint("state IN ('running', 'committed', 'aborted')"),
        sa.ForeignKeyConstraint(
            ["table_id"],
            ["lake_table.id"],
        ),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("operation_running", "operation", ["table_id", "state"], unique=False)
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
        sa.ForeignKeyConstraint(
            ["version"],
            ["commit_log.version"],
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
        sa.UniqueConstraint("path"),
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
    op.execute("INSERT INTO lake (id, head, counter, next_token, clock_us) VALUES (1, 0, 0, 1, 0)")
