"""Sets of row and key tombstones, and what operations that take an interval over cover."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns and tables; what is there stays as it is."""
    for name, kind in (("start_us", sa.BigInteger()), ("end_us", sa.BigInteger()), ("keys", sa.Text())):
        op.add_column("operation", sa.Column(name, kind, nullable=True))
    where = sa.text("start_us IS NOT NULL")
    op.create_index(
        "operation_taking_over", "operation", ["table_id", "version"], sqlite_where=where, postgresql_where=where
    )
    op.add_column("tombstone", sa.Column("path", sa.Text(), nullable=False, server_default=""))
    op.add_column("tombstone", sa.Column("bytes", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("tombstone", sa.Column("statistics", sa.Text(), nullable=False, server_default="{}"))
    op.create_table(
        "tombstone_set",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "rewritten",
        sa.Column("operation", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("row_ids", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["operation"], ["operation.number"]),
        sa.PrimaryKeyConstraint("operation", "version"),
    )
