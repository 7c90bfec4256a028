"""Query nodes: groups with a live version, and the nodes' leases and reports."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two tables; what is there stays as it is."""
    op.create_table(
        "serving_group",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("lake", sa.Text(), nullable=False),
        sa.Column("live", sa.BigInteger(), nullable=False),
        sa.Column("target", sa.BigInteger(), nullable=True),
        sa.Column("flips", sa.BigInteger(), nullable=False),
        sa.Column("replicas", sa.Integer(), nullable=True),
        sa.Column("flipped_us", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("target IS NULL OR target > live"),
    )
    op.create_table(
        "serving_node",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("group_name", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("live", sa.BigInteger(), nullable=False),
        sa.Column("least", sa.BigInteger(), nullable=False),
        sa.Column("lease_until_us", sa.BigInteger(), nullable=False),
        sa.Column("report", sa.Text(), nullable=False),
    )
    op.create_index("serving_node_group", "serving_node", ["group_name"])
