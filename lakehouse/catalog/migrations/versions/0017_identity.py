"""The name by which a warehouse knows its lake."""

from uuid import uuid4

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two columns; the warehouse learns the name with the next operation that writes to it."""
    op.add_column("lake", sa.Column("identity", sa.Text(), nullable=False, server_default=""))
    op.add_column("lake", sa.Column("warehouse", sa.Text()))
    op.execute(sa.text("UPDATE lake SET identity = :identity").bindparams(identity=uuid4().hex))
