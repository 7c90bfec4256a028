"""Building indexes and sketches of segments: which lack one, and an operation that builds them.

No row or version changes.
"""

from __future__ import annotations

from collections.abc import Iterable

from lakehouse import progress
from lakehouse.core.operation import Kind
from lakehouse.core.segments import Segments
from lakehouse.core.spec import TableSpec
from lakehouse.core.summary import Summary, SummaryKind, columns_of
from lakehouse.errors import SegmentUnreadable, writing_to
from lakehouse.operations.operation import Operation
from lakehouse.session.session import Session
from lakehouse.storage.summaries import Summarizing

_SEGMENTS = 256
"""How many segments one operation takes, which is what a crash loses."""


def missing_indexes(session: Session, spec: TableSpec, segments: Segments) -> list[int]:
    """Ids of those segments that lack an index of a column that the table's property ``index`` names.

    None for a table without that property, at no cost; otherwise one catalog look-up for each segment and column.
    """
    return session.catalog.summaries.missing(spec, SummaryKind.INDEX, segments.ids.tolist()) if segments else []


def build_indexes(session: Session, spec: TableSpec, segments: Iterable[int], engine: str | None = None) -> int:
    """Build the indexes of live segments, by id, and return how many (one for each segment and column) are new.

    Reads only the indexed columns, in process or, with ``engine="spark"``, in Spark's tasks. Segments that are gone, or
    already indexed by others, are left out. Raises `SegmentUnreadable`, naming the first unreadable file, once all
    others are done; `StorageUnavailable`; `LockLost` if an operation was ended while it ran.
    """
    return _build(session, spec, segments, SummaryKind.INDEX, engine)


def missing_statistics(session: Session, spec: TableSpec, segments: Segments) -> list[int]:
    """Ids of those segments that lack a sketch of a column. Cost: one catalog look-up for each."""
    return session.catalog.summaries.missing(spec, SummaryKind.SKETCH, segments.ids.tolist()) if segments else []


def build_statistics(session: Session, spec: TableSpec, segments: Iterable[int], engine: str | None = None) -> int:
    """Build sketches of distinct values of live segments, one for each column, as `build_indexes` does.

    Reads every column that is not nested.
    """
    return _build(session, spec, segments, SummaryKind.SKETCH, engine)


def _build(session: Session, spec: TableSpec, segments: Iterable[int], kind: SummaryKind, engine: str | None) -> int:
    ids = sorted(set(segments))
    if not columns_of(spec, kind):
        return 0
    stored = 0
    unreadable: list[SegmentUnreadable] = []
    with progress.step(f"{kind.value} {spec.name}", "files", len(ids)) as step:
        for first in range(0, len(ids), _SEGMENTS):
            with Summarize(session, session.writing().begin(spec, Kind.SUMMARIZE)) as op:
                unreadable += op.run(ids[first : first + _SEGMENTS], kind, engine)
                stored += op.register()
            step.done = min(len(ids), first + _SEGMENTS)  # with those that are gone
    if unreadable:
        raise unreadable[0]
    return stored


class Summarize(Operation):
    """Builds indexes or sketches. It takes no lock, never conflicts, and makes no version."""

    kind = Kind.SUMMARIZE

    def run(self, segments: Iterable[int], kind: SummaryKind, engine: str | None) -> list[SegmentUnreadable]:
        """Build the summaries of segments; return errors for those that cannot be read."""
        self._require_running()
        spec = self._begun.table
        self._kind = kind
        self._made: list[Summary] = []
        unreadable: list[SegmentUnreadable] = []
        work = Summarizing(spec, self._session.planning_warehouse(), f"{spec.folder}/{self.id}", kind)
        live = self._session.catalog.summaries.live(spec, segments)
        with writing_to(work.folder, then="make the index again"):
            for found in self._session.engine(engine).each(work, live):
                if isinstance(found, SegmentUnreadable):
                    unreadable.append(found)
                else:
                    self._made += found
        return unreadable

    def register(self) -> int:
        """Store the summaries in the catalog and end the operation; return how many are new."""
        stored = self._session.catalog.summaries.register(self._begun, self._kind, self._made)
        self._state = "committed"
        self._session.heartbeat.forget(self._begun)
        return stored
