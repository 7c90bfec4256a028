"""Uploads in parts that are not over: whoever ends an operation knows what to abort in the store."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table; what is there stays as it is."""
    op.create_table(
        "upload",
        sa.Column("operation", sa.BigInteger(), sa.ForeignKey("operation.number"), primary_key=True),
        sa.Column("path", sa.Text(), primary_key=True),
        sa.Column("id", sa.Text(), primary_key=True),
    )
