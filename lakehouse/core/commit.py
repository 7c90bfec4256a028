"""A commit: one version, as the log tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from lakehouse.core.listing import Listing


@dataclass(frozen=True, slots=True, repr=False)
class Commit:
    """One version: what an operation did, all at once.

    ``added`` and ``dropped`` count segments. ``rows_added`` counts the rows of new segments; ``rows_deleted`` those
    that readers lost or saw rewritten, as of the version that the operation read. Where not ``is_exact`` nobody looked
    at them (an upsert; a delete of keys; a restore; a replace or keyed delete that cuts more than a million rows), and
    it counts those of dropped segments, as stored. Of an erasure it counts rows that went from files, whether a reader
    still saw them or not. Both are 0 for a compaction, which changes no row; ``bytes_added`` counts its segments too.
    """

    version: int
    operation: str
    committed_at: datetime
    tables: tuple[str, ...]
    added: int = 0
    dropped: int = 0
    rows_added: int = 0
    rows_deleted: int = 0
    tombstones_added: int = 0
    tombstones_dropped: int = 0
    message: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    txn: tuple[str, int] | None = None
    bytes_added: int = 0
    is_exact: bool = True

    @property
    def rows_lost(self) -> str:
        """The deleted rows for people: ``2``; ``2 stored`` or ``?`` where nobody counted what readers lost.

        >>> Commit(2, "restore", datetime(2013, 1, 1), ("t",), rows_deleted=1200, is_exact=False).rows_lost
        '1,200 stored'
        """
        if self.is_exact:
            return f"{self.rows_deleted:,}"
        return f"{self.rows_deleted:,} stored" if self.rows_deleted else "?"

    def __repr__(self) -> str:
        rows = f"+{self.rows_added:,} -{self.rows_lost} rows"
        return f"<commit {self.version}: {self.operation} {', '.join(self.tables)}, {rows}, {self.committed_at:%F %T}>"

    def _repr_html_(self) -> str:
        return Listing([self])._repr_html_()

    def to_arrow(self) -> pa.Table:
        """The commit as an Arrow table of one row."""
        return Listing([self]).to_arrow()
