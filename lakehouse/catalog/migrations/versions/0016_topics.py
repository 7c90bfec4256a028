"""Topics: streams that processes run, and what they last reported."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table; what is there stays as it is."""
    op.create_table(
        "topic",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("process", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reported_us", sa.BigInteger(), nullable=False),
        sa.Column("report", sa.Text(), nullable=False),
    )
