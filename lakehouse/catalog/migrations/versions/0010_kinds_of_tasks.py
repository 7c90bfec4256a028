"""Tasks that merge segments are called compact, those that delete garbage collect."""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


_NAMES = {"merge": "compact", "gc": "collect"}


def upgrade() -> None:
    """Give stored tasks, and their keys, the names of today."""
    for old, new in _NAMES.items():
        whole = f"identity = CASE identity WHEN '{old}' THEN '{new}' ELSE replace(identity, ':{old}:', ':{new}:') END"
        op.execute(f"UPDATE task SET kind = '{new}', {whole} WHERE kind = '{old}'")  # noqa: S608 - constants
