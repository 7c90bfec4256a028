"""The batch that a consumer's reader was given last."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column; a consumer that is there gets its first batch's number when it reads on."""
    op.add_column("consumer", sa.Column("given", sa.Text(), nullable=True))
