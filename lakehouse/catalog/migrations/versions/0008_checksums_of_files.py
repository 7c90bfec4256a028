"""Checksums of the files of segments, tombstones' sets and summaries."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns; the checksums of files that are there are not known."""
    for table in ("segment", "tombstone", "segment_summary"):
        op.add_column(table, sa.Column("checksum", sa.LargeBinary(), nullable=True))
