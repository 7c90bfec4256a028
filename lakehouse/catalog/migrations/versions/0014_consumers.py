"""Named readers with a position in a table's change feed."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table."""
    op.create_table(
        "consumer",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("table_id", sa.BigInteger(), sa.ForeignKey("lake_table.id"), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("file", sa.BigInteger(), nullable=False),
        sa.Column("is_snapshot", sa.Boolean(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("lease_us", sa.BigInteger(), nullable=False),
        sa.Column("lease_until_us", sa.BigInteger(), nullable=False),
    )
