"""Where a lake's files lie."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column; the next operation that writes fills it."""
    op.add_column("lake", sa.Column("warehouse", sa.Text()))
