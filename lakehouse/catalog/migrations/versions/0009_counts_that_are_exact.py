"""Whether a commit counted the rows that it took away."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_NOT_COUNTED = "'replace', 'delete', 'upsert', 'delete_keys', 'restore', 'transaction', 'recover'"


def upgrade() -> None:
    """Add a column; what took rows away without a look at them counted those of dropped segments, as stored."""
    op.add_column("commit_table", sa.Column("is_exact", sa.Boolean(), nullable=False, server_default=sa.true()))
    op.execute(f"UPDATE commit_table SET is_exact = false WHERE operation IN ({_NOT_COUNTED})")  # noqa: S608 - constant
