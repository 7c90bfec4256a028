"""Views."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table; what is there stays as it is."""
    op.create_table(
        "lake_view",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("columns", sa.Text(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("created_version", sa.BigInteger(), nullable=False),
        sa.Column("dropped_version", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("created_version < dropped_version"),
        sa.PrimaryKeyConstraint("id"),
    )
    live = sa.text("dropped_version IS NULL")
    op.create_index("lake_view_live_name", "lake_view", ["name"], unique=True, sqlite_where=live, postgresql_where=live)
