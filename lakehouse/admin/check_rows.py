"""Checks every row: whether files still hold what was committed, and whether maintenance changed any."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import partial

from lakehouse import progress
from lakehouse.core.check import Finding
from lakehouse.core.operation import REWRITES, Kind
from lakehouse.core.segment import Segment
from lakehouse.core.segments import Segments
from lakehouse.core.spec import TableSpec, field_id_of
from lakehouse.core.summary import Summary, SummaryKind
from lakehouse.errors import InternalError, SegmentUnreadable, VersionNotFound
from lakehouse.reading.again import again_if_forgotten
from lakehouse.reading.changes import Changes
from lakehouse.session.session import Session
from lakehouse.storage.examine import examine
from lakehouse.storage.footer import DAMAGE
from lakehouse.storage.sets import read_set
from lakehouse.storage.summaries import Summarizing

_MAINTENANCE = {kind.value for kind in (*REWRITES, Kind.RESOLVE)}
_SEGMENTS = 256
"""How many segments' summaries are in memory at once."""


def check_rows(session: Session, damaged: Collection[str]) -> Iterator[Finding]:
    """Problems with the rows of every table; files that are known to be damaged are not opened.

    Cost: every live file is read once, and the inputs of each maintenance commit that can still be read.
    """
    catalog = session.catalog
    for name in catalog.table_names():
        spec, created = catalog.table(name)
        live = again_if_forgotten(partial(_live, session, spec, created))
        segments = [one for one in live if one.path not in damaged]
        with progress.step(f"check rows of {name}", "files", len(segments)) as step:
            found = list(_files(session, spec, progress.counted(segments, step)))
        yield from found
        yield from _summaries(session, spec, segments, damaged)
        for commit in catalog.commits(spec.id):
            if commit.operation in _MAINTENANCE:
                yield from _changed(session, spec, created, commit.version)


def _live(session: Session, spec: TableSpec, created_version: int) -> Segments:
    return session.catalog.live(spec, session.catalog.newest_version(spec.id, created_version))[0]


def _files(session: Session, spec: TableSpec, segments: Iterable[Segment]) -> Iterator[Finding]:
    for segment in segments:
        try:
            found = examine(session.warehouse, segment, spec)
        except SegmentUnreadable as error:
            yield Finding("unreadable", segment.path, str(error))
            continue
        yield from (Finding(kind, segment.path, problem) for kind, problem in dict.fromkeys(found))


def _summaries(
    session: Session, spec: TableSpec, segments: list[Segment], damaged: Collection[str]
) -> Iterator[Finding]:
    """Indexes and sketches that differ from newly built ones of their segments."""
    for kind in SummaryKind:
        work = Summarizing(spec, session.warehouse, "", kind)
        for first in range(0, len(segments), _SEGMENTS):
            by_id = {one.id: one for one in segments[first : first + _SEGMENTS]}
            stored: dict[int, list[Summary]] = {}
            for one in session.catalog.summaries.read(kind, by_id):
                stored.setdefault(one.segment, []).append(one)
            for entry, held in stored.items():
                try:
                    made = work.contents(by_id[entry])
                except SegmentUnreadable:
                    continue  # reported for its file
                changed = _widened_since(spec, by_id[entry])
                for one in held:
                    if one.path in damaged or one.field_id not in made or one.field_id in changed:
                        continue
                    content = one.content
                    if one.path:
                        content = read_set(session.warehouse, one.path, one.bytes, one.checksum)
                    if content != made[one.field_id]:
                        what = f"the {kind.value} of field {one.field_id} is not that of the rows; drop it"
                        yield Finding("summary", by_id[entry].path, what)


def _widened_since(spec: TableSpec, segment: Segment) -> set[int]:
    """Columns, by field id, that have another type than in a segment's file: a summary may be of either."""
    held = zip(spec.schema, spec.layout(segment.schema_number), strict=True)
    return {field_id_of(column) for column, one in held if one.type != one.wanted}


def _changed(session: Session, spec: TableSpec, created: int, version: int) -> Iterator[Finding]:
    """A finding if a commit that must not change rows did."""
    place = f"{spec.name} at version {version}"
    then = session.catalog.resolve_as_of(spec, created, version).spec
    try:
        rows = Changes(session, then, version - 1, version, verify="content").of(version)
    except VersionNotFound:
        return  # the version before it has expired
    except (SegmentUnreadable, InternalError, *DAMAGE) as error:
        yield Finding("unreadable", place, f"{type(error).__name__}: {error}")
        return
    if rows:
        yield Finding("maintenance", place, f"it changed rows: found={rows}")
