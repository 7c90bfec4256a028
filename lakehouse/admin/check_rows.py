"""A look at every row: whether files still hold what was committed, and whether maintenance changed none."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from lakehouse.core.check import Finding
from lakehouse.core.operation import REWRITES, Kind
from lakehouse.core.segment import Segment
from lakehouse.core.spec import TableSpec
from lakehouse.core.summary import Summary, SummaryKind
from lakehouse.errors import InternalError, SegmentUnreadable, VersionNotFound
from lakehouse.reading.changes import Changes
from lakehouse.storage.checksums import read_content
from lakehouse.storage.examine import examine
from lakehouse.storage.footer import DAMAGE
from lakehouse.storage.paths import Locator
from lakehouse.storage.summaries import Summarizing

if TYPE_CHECKING:
    from lakehouse.lake import Lake
    from lakehouse.table.table import Table

_MAINTENANCE = {kind.value for kind in (*REWRITES, Kind.RESOLVE)}
_SEGMENTS = 256
"""Segments whose summaries are in memory together."""


def check_rows(lake: Lake, damaged: Collection[str]) -> Iterator[Finding]:
    """What is wrong with the rows of every table, but for files that are known to be damaged: those are not opened.

    Cost: every live file is read once, and of each commit of maintenance that can still be read the rows that it took.
    """
    for name in lake.tables():
        table = lake.table(name)
        segments = [one for one in table.segments() if one.path not in damaged]
        yield from _files(lake, table.spec, segments)
        yield from _summaries(lake, table.spec, segments, damaged)
        for commit in table.log():
            if commit.operation in _MAINTENANCE:
                yield from _changed(lake, table, commit.version)


def _files(lake: Lake, spec: TableSpec, segments: list[Segment]) -> Iterator[Finding]:
    for segment in segments:
        try:
            found = examine(lake.warehouse, segment, spec)
        except SegmentUnreadable as error:
            yield Finding("unreadable", segment.path, str(error))
            continue
        yield from (Finding(kind, segment.path, problem) for kind, problem in dict.fromkeys(found))


def _summaries(lake: Lake, spec: TableSpec, segments: list[Segment], damaged: Collection[str]) -> Iterator[Finding]:
    """Indexes and sketches that are not those of their segments: they are made again, and compared."""
    locator = Locator(lake.warehouse)
    for kind in SummaryKind:
        work = Summarizing(spec, lake.warehouse, "", kind)
        for first in range(0, len(segments), _SEGMENTS):
            by_id = {one.id: one for one in segments[first : first + _SEGMENTS]}
            stored: dict[int, list[Summary]] = {}
            for one in lake.catalog.summaries.read(kind, by_id):
                stored.setdefault(one.segment, []).append(one)
            for entry, held in stored.items():
                try:
                    made = work.contents(by_id[entry])
                except SegmentUnreadable:
                    continue  # told of its file
                for one in held:
                    if one.path in damaged or one.field_id not in made:
                        continue
                    content = read_content(locator.file(one.path), one.bytes) if one.path else one.content
                    if content != made[one.field_id]:
                        what = f"the {kind.value} of field {one.field_id} is not that of the rows; drop it"
                        yield Finding("summary", by_id[entry].path, what)


def _changed(lake: Lake, table: Table, version: int) -> Iterator[Finding]:
    """A finding if a commit that may change no row did."""
    place = f"{table.name} at version {version}"
    try:
        rows = Changes(lake, table.spec, version - 1, version, verify="content").of(version)
    except VersionNotFound:
        return  # what was there before it is forgotten
    except (SegmentUnreadable, InternalError, *DAMAGE) as error:
        yield Finding("unreadable", place, f"{type(error).__name__}: {error}")
        return
    if rows:
        yield Finding("maintenance", place, f"it changed rows: found={rows}")
