"""Indexes and sketches of columns in segments."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table; what is there stays as it is."""
    op.create_table(
        "segment_summary",
        sa.Column("segment", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("field", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("operation", sa.BigInteger(), nullable=True),
        sa.Column("content", sa.LargeBinary(), nullable=True),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("kind IN ('index', 'sketch')"),
        sa.CheckConstraint("(path = '') = (content IS NOT NULL)"),
        sa.CheckConstraint("(path = '') = (operation IS NULL)"),
        sa.ForeignKeyConstraint(["segment"], ["segment.id"]),
        sa.ForeignKeyConstraint(["operation"], ["operation.number"]),
        sa.PrimaryKeyConstraint("segment", "kind", "field"),
    )
    op.create_index("ix_segment_summary_operation", "segment_summary", ["operation"])
