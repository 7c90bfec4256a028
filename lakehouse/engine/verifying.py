"""What of its files a query has to be sure of, and files looked through in tasks."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse.core.segment import Segment
from lakehouse.core.spec import VERIFY, Verify
from lakehouse.engine import Engine
from lakehouse.storage.verify import Verifying, raised
from lakehouse.storage.warehouse import Warehouse


def at_least(verify: Verify, least: Verify) -> Verify:
    """The one of two that compares more.

    >>> at_least("size", "pages"), at_least("content", "pages")
    ('pages', 'content')
    """
    return max(verify, least, key=VERIFY.index)


def verify_whole(engine: Engine, warehouse: Warehouse, segments: Sequence[Segment]) -> None:
    """Compare every byte of segments' files, in process or in Spark's tasks, before something is made of them.

    Raises `SegmentUnreadable` naming one that is not what was written.
    """
    for _ in raised(engine.each(Verifying(warehouse), list(segments))):
        pass
