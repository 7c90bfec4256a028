"""How often a segment's file was written anew, and a table's newest erasure."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns; what is there stays as it is."""
    op.add_column("lake_table", sa.Column("erased_version", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("segment", sa.Column("rewrites", sa.BigInteger(), nullable=False, server_default="0"))
