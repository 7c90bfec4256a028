"""How the file of each segment is compressed."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Null for what is there: a table's property may have changed since, so it would be a guess."""
    op.add_column("segment", sa.Column("codec", sa.BigInteger(), nullable=True))
