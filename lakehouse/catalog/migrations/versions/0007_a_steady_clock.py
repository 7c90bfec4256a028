"""At which tick of which boot the catalog's clock was set, where the host keeps it."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns; what is there stays as it is."""
    op.add_column("lake", sa.Column("clock_boot", sa.Text(), nullable=False, server_default=""))
    op.add_column("lake", sa.Column("clock_ticks_us", sa.BigInteger(), nullable=False, server_default="0"))
