"""Definitions that tables had, and under which of them segments were written."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table and columns; nothing was altered before."""
    op.add_column("lake_table", sa.Column("schema_number", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("segment", sa.Column("schema_number", sa.BigInteger(), nullable=False, server_default="0"))
    op.create_table(
        "table_schema",
        sa.Column("table_id", sa.BigInteger(), sa.ForeignKey("lake_table.id"), primary_key=True, autoincrement=False),
        sa.Column("number", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
    )
