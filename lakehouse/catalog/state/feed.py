"""What each commit did to a table's segments: its deltas, read for many commits at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, bindparam, func, select, text, true

from lakehouse.catalog.state.bins import Ranges, StateReader, live_in, rows_by_id, touching
from lakehouse.catalog.store.models import commit_log, commit_table, consumer, lake_table
from lakehouse.catalog.store.prepared import Prepared
from lakehouse.catalog.store.rows import SegmentsForm, segments_from_rows
from lakehouse.catalog.versions.consumers import changes_rows
from lakehouse.catalog.versions.horizon import check_complete, check_readable
from lakehouse.core.feed import CommitDelta, touched
from lakehouse.core.interval import Interval, from_us
from lakehouse.core.segments import Segments
from lakehouse.core.skyline import IntArray
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.core.tombstone import Tombstone
from lakehouse.core.version import ADD

MOST_COMMITS = 256
"""Of how many commits the deltas are read at once."""
_DELTAS = Prepared(
    lambda _: text(
        """
        SELECT delta.version, delta.entry, delta.action, delta.is_tombstone FROM bin
        JOIN delta ON delta.table_id = bin.table_id AND delta.bin = bin.bin
        WHERE bin.table_id = :table AND bin.version > :since AND delta.version > :since AND delta.version <= :until
        """
    )
)
_mine = (commit_table.c.table_id == bindparam("table"), changes_rows)
_LOOK = Prepared(
    lambda _: select(
        select(func.max(commit_table.c.version)).where(*_mine).scalar_subquery(),
        lake_table.c.dropped_version,
        lake_table.c.schema_number,
        select(consumer.c.token).where(consumer.c.name == bindparam("consumer")).scalar_subquery(),
        lake_table.c.erased_version,
    ).where(lake_table.c.id == bindparam("table"))
)


class Look(NamedTuple):
    """What a reader that waits for commits of a table looks at; all None for a table that has expired."""

    newest: int | None = None
    """The newest version that may have changed rows."""
    dropped: int | None = None
    schema_number: int | None = None
    token: str | None = None
    """Who reads for its consumer."""
    erased: int | None = None
    """The table's newest erasure."""


def look(connection: Connection, table: TableId, name: str | None) -> Look:
    """A glance at a table. Cost: one small statement."""
    row = _LOOK.run(connection, {"table": table, "consumer": name or ""}).fetchone()
    return Look() if row is None else Look(*row)


@dataclass(slots=True)
class _Changed:
    """Entries that one commit added and dropped."""

    added: list[int] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    tombstones: set[int] = field(default_factory=set)
    """Those of both that are tombstones."""


def read_feed(
    connection: Connection, states: StateReader, spec: TableSpec, since: int, until: int, *, every: bool = False
) -> tuple[list[CommitDelta], int]:
    """Deltas of the commits after ``since``, the first few up to ``until``; and the version that they lead to.

    Those that change no row are left out, unless ``every`` one is asked for. Raises `VersionNotFound` if one of them
    may have expired. Cost: a look-up for each of the table's bins, the deltas and added segments of these commits, and
    of those that did not only append what is live near to what they changed.
    """
    check_complete(connection, spec, since, until)
    query = (
        select(commit_table.c.version, commit_log.c.committed_us)
        .join(commit_log, commit_log.c.version == commit_table.c.version)
        .where(commit_table.c.table_id == spec.id, commit_table.c.version > since, commit_table.c.version <= until)
        .where(true() if every else changes_rows)
        .order_by(commit_table.c.version)
        .limit(MOST_COMMITS)
    )
    commits = {row.version: row.committed_us for row in connection.execute(query)}
    if not commits:
        return [], until
    last = max(commits)
    changed = _changed(connection, spec, since, last)
    wanted = {version: changed[version] for version in commits if version in changed}
    segments = _Segments(connection, spec, wanted.values())
    found = []
    for version, its in sorted(wanted.items()):
        added, dropped = segments.of(its.added, its), segments.of(its.dropped, its)
        appends = not its.tombstones and not len(dropped) and bool((added.ordinals >= version).all())
        if appends:  # nothing is newer, so that nothing hides any of it
            found.append(CommitDelta(version, commits[version], added))
        else:
            found.append(_masked(connection, states, spec, version, commits[version], its, added, dropped))
    return found, until if len(commits) < MOST_COMMITS else last


def _changed(connection: Connection, spec: TableSpec, since: int, until: int) -> dict[int, _Changed]:
    """Entries that each version added and dropped; one in several bins once."""
    found: defaultdict[int, _Changed] = defaultdict(_Changed)
    seen: set[tuple[int, int]] = set()
    for version, entry, action, is_tombstone in _DELTAS.run(
        connection, {"table": spec.id, "since": since, "until": until}
    ):
        if (version, entry) in seen:
            continue
        seen.add((version, entry))
        its = found[version]
        (its.added if action == ADD else its.dropped).append(entry)
        if is_tombstone:
            its.tombstones.add(entry)
    return found


class _Segments:
    """The segments of some commits, in columns."""

    def __init__(self, connection: Connection, spec: TableSpec, commits: Iterable[_Changed]) -> None:
        ids = {one for its in commits for one in (*its.added, *its.dropped) if one not in its.tombstones}
        rows = rows_by_id(connection, "segment", ids)
        self._all = Segments.in_columns(segments_from_rows(SegmentsForm.of(spec), rows))
        self._places = {row["id"]: place for place, row in enumerate(rows)}

    def of(self, entries: Iterable[int], its: _Changed) -> Segments:
        """Those among some entries, by id."""
        places = [self._places[one] for one in sorted(entries) if one not in its.tombstones]
        return self._all.take(np.array(places, dtype=np.int64))


def _masked(
    connection: Connection,
    states: StateReader,
    spec: TableSpec,
    version: int,
    committed_us: int,
    its: _Changed,
    added: Segments,
    dropped: Segments,
) -> CommitDelta:
    """The delta of a commit that may have changed what is visible of segments that were there."""
    check_readable(connection, spec, version - 1)
    bounds = [one.bounds[:2] for one in (added, dropped) if len(one)]
    if its.tombstones:
        rows = rows_by_id(connection, "tombstone", its.tombstones)
        bounds.append((_column(rows, "start_us"), _column(rows, "end_us")))
    ranges = _ranges(spec, bounds)
    old, old_tombstones = live_in(states.read(connection, spec, version - 1, ranges).values())
    new, new_tombstones = live_in(states.read(connection, spec, version, ranges).values())
    kept = new.where(np.isin(new.ids, old.ids))
    masked = kept.where(touched(kept, _others(new_tombstones, old_tombstones)))
    unmasked = kept.where(touched(kept, _others(old_tombstones, new_tombstones)))
    # A segment may reach beyond the bins of what changed, as one that was written under a coarser grain does: what
    # hides its other rows is found there only.
    reach = _ranges(spec, [one.bounds[:2] for one in (added, dropped, masked, unmasked) if len(one)])
    if not set(reach) <= set(ranges):
        _, old_tombstones = live_in(states.read(connection, spec, version - 1, reach).values())
        _, new_tombstones = live_in(states.read(connection, spec, version, reach).values())
    return CommitDelta(
        version,
        committed_us,
        added,
        dropped,
        masked=masked,
        unmasked=unmasked,
        before=tuple(old_tombstones.values()),
        after=tuple(new_tombstones.values()),
    )


def _column(rows: list[dict[str, Any]], name: str) -> IntArray:
    return np.array([row[name] for row in rows], dtype=np.int64)


def _others(tombstones: dict[int, Tombstone], known: dict[int, Tombstone]) -> list[Tombstone]:
    return [held for entry, held in tombstones.items() if entry not in known]


def _ranges(spec: TableSpec, bounds: list[tuple[IntArray, IntArray]]) -> Ranges:
    """The bins of what may touch some intervals, those that overlap taken together; none for no interval."""
    if not bounds:
        return []
    starts = np.concatenate([one for one, _ in bounds])
    ends = np.concatenate([one for _, one in bounds])
    found = {pair for interval in _joined(starts, ends) for pair in touching(spec, interval)}
    return sorted(found)


def _joined(starts: IntArray, ends: IntArray) -> Iterator[Interval]:
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    breaks = np.flatnonzero(starts[1:] > reach[:-1]) + 1
    for part in np.split(np.arange(len(starts)), breaks):
        yield Interval(from_us(int(starts[part[0]])), from_us(int(reach[part[-1]])))
