"""Tasks of the table service, what it knows of each table, how often chunks are planned, and the bytes of commits."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def _table_id() -> sa.Column:  # type: ignore[type-arg]
    key = sa.ForeignKey("lake_table.id")
    return sa.Column("table_id", sa.BigInteger(), key, primary_key=True, autoincrement=False)


def upgrade() -> None:
    """Add tables and a column; the bytes of older commits count as none."""
    op.add_column("commit_table", sa.Column("bytes_added", sa.BigInteger(), nullable=False, server_default="0"))
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "task",
        sa.Column("id", number, primary_key=True, autoincrement=True),
        sa.Column("table_id", sa.BigInteger(), sa.ForeignKey("lake_table.id"), nullable=True),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("kind", "state", "worker", "identity")),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=True) for name in ("start_us", "end_us")),
        sa.Column("segments", sa.BigInteger(), nullable=False),
        sa.Column("entries", sa.LargeBinary(), nullable=False),
        sa.Column("budget_bytes", sa.BigInteger(), nullable=False),
        sa.Column("predicted", sa.Text(), nullable=False),
        sa.Column("actual", sa.Text(), nullable=True),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("attempts", "created_us", "not_before_us")),
        *(sa.Column(name, sa.BigInteger(), nullable=True) for name in ("started_us", "ended_us", "lease_until_us")),
        *(sa.Column(name, sa.Text(), nullable=True) for name in ("owner", "operation")),
        sa.Column("version", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.CheckConstraint("state IN ('waiting', 'running', 'done', 'failed', 'cancelled')"),
        sa.CheckConstraint("(state = 'running') = (owner IS NOT NULL)"),
        sa.CheckConstraint("(start_us IS NULL) = (end_us IS NULL)"),
        sqlite_autoincrement=True,
    )
    where = sa.text("state IN ('waiting', 'running')")
    for name, column, unique in (("task_open", "identity", True), ("task_score", "score", False)):
        op.create_index(name, "task", [column], unique=unique, sqlite_where=where, postgresql_where=where)
    op.create_index("ix_task_ended_us", "task", ["ended_us"], unique=False)
    op.create_table(
        "upkeep",
        _table_id(),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("planned_version", "planned_us")),
        sa.Column("not_before_us", sa.BigInteger(), nullable=False),
        sa.Column("due_us", sa.BigInteger(), nullable=True),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("appended_bytes", "rewritten_bytes")),
    )
    op.create_table(
        "plan_count",
        _table_id(),
        sa.Column("bin", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("plans", sa.Float(), nullable=False),
        sa.Column("counted_us", sa.BigInteger(), nullable=False),
    )
