"""A look at every row: whether files still hold what was committed, and whether maintenance changed none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lakehouse.changes import Changes
from lakehouse.core.check import Finding
from lakehouse.core.operation import REWRITES, Kind
from lakehouse.core.segment import Segment
from lakehouse.errors import SegmentUnreadable, VersionNotFound
from lakehouse.storage.inspect import read_through

if TYPE_CHECKING:
    from lakehouse.lake import Lake
    from lakehouse.table import Table

_MAINTENANCE = {kind.value for kind in (*REWRITES, Kind.RESOLVE)}


def check_rows(lake: Lake) -> Iterator[Finding]:
    """What is wrong with the rows of every table.

    Cost: every live file is read once, and of each commit of maintenance that can still be read the rows that it took.
    """
    for name in lake.tables():
        table = lake.table(name)
        yield from _files(lake, table)
        for commit in table.log():
            if commit.operation in _MAINTENANCE:
                yield from _changed(lake, table, commit.version)


def _files(lake: Lake, table: Table) -> Iterator[Finding]:
    segments: list[Segment] = table.segments()
    for segment in segments:
        try:
            found = read_through(lake.warehouse, segment.path, table.spec.time)
        except SegmentUnreadable as error:
            yield Finding("unreadable", segment.path, str(error))
            continue
        rows, bounds = found
        if rows != segment.rows:
            yield Finding("rows", segment.path, f"the file holds another number: expected={segment.rows} found={rows}")
        elif bounds is not None and not (segment.start <= bounds[0] and bounds[1] < segment.end):
            yield Finding("rows", segment.path, f"rows lie outside {segment.interval}: found={bounds[0]}..{bounds[1]}")


def _changed(lake: Lake, table: Table, version: int) -> Iterator[Finding]:
    """A finding if a commit that may change no row did."""
    try:
        rows = Changes(lake, table.spec, version - 1, version).of(version)
    except VersionNotFound:
        return  # what was there before it is forgotten
    except SegmentUnreadable as error:
        yield Finding("unreadable", f"{table.name} at version {version}", str(error))
        return
    if rows:
        yield Finding("maintenance", f"{table.name} at version {version}", f"it changed rows: found={rows}")
