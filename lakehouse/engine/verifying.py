"""What of its files a query has to be sure of, and files looked through in tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from lakehouse.core.segment import Segment
from lakehouse.core.spec import ROW_ID, VERIFY, Verify
from lakehouse.engine import Engine, Query
from lakehouse.engine.hidden import Part
from lakehouse.storage.verify import Verifying, raised


def columns_read(query: Query, parts: Iterable[Part], *, counting: bool = False) -> frozenset[str] | None:
    """Columns of files that a query's rows may come of, or be left out by; None for all. More than there are is fine.

    ``counting`` needs none for their own sake.
    """
    if query.columns is None and not counting:
        return None
    wanted = set() if counting or query.columns is None else {*query.columns, ROW_ID}
    texts = [query.where or ""]
    for part in parts:
        texts.append("" if part.condition is None else part.condition.duckdb)
        wanted.update(name for mask in part.masks for name in mask.columns)
        if part.places or part.masks:
            wanted.add(ROW_ID)
    # A text names a column as it is, but for quotes, which are doubled.
    spellings = {name: {name, name.replace('"', '""'), name.replace("`", "``")} for name in query.spec.schema.names}
    wanted.update(name for name, ways in spellings.items() if any(way in text for way in ways for text in texts))
    return frozenset(wanted)


def stored_columns_read(query: Query, parts: Iterable[Part], *, counting: bool = False) -> frozenset[str] | None:
    """The same under the names that they have in files."""
    stored, wanted = query.spec.stored_names, columns_read(query, parts, counting=counting)
    return wanted if wanted is None else frozenset(stored.get(name, name) for name in wanted)


def at_least(verify: Verify, least: Verify) -> Verify:
    """The one of two that compares more.

    >>> at_least("size", "pages"), at_least("content", "pages")
    ('pages', 'content')
    """
    return max(verify, least, key=VERIFY.index)


def verify_whole(engine: Engine, warehouse: Path, segments: Sequence[Segment]) -> None:
    """Compare every byte of segments' files, in process or in Spark's tasks, before something is made of them.

    Raises `SegmentUnreadable` naming one that is not what was written.
    """
    for _ in raised(engine.each(Verifying(warehouse), list(segments))):
        pass
