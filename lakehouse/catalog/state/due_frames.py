"""Writes key frames where deltas have piled up, and keeps each bin's counters up to date; under the head."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, delete, exists, select

from lakehouse.catalog.state.bins import StateReader
from lakehouse.catalog.state.key_frames import frame_of, note_frames
from lakehouse.catalog.store.models import (
    bin,  # noqa: A004 - the word of the scheme
    delta,
    key_frame,
    plan_count,
)
from lakehouse.catalog.store.prepared import run_for_each
from lakehouse.core.expire import Numbers
from lakehouse.core.spec import TableSpec
from lakehouse.core.version import frame_due, replay
from lakehouse.errors import InternalError


def read_deltas(connection: Connection, spec: TableSpec, *where: ColumnElement[bool]) -> Numbers:
    """A table's deltas by bin and version: bin, version, entry, action, and 1 for those of tombstones."""
    columns = (delta.c.bin, delta.c.version, delta.c.entry, delta.c.action, delta.c.is_tombstone)
    query = select(*columns).where(delta.c.table_id == spec.id, *where).order_by(delta.c.bin, delta.c.version)
    rows = connection.execute(query).all()
    return np.array(list(map(tuple, rows)), dtype=np.int64).reshape(-1, len(columns))


def by_first(rows: Numbers) -> dict[int, Numbers]:
    """Sorted rows by their first column."""
    values, starts = np.unique(rows[:, 0], return_index=True)
    return dict(zip(values.tolist(), np.split(rows, starts[1:]), strict=True)) if len(rows) else {}


def frames_by_point(found: Numbers, points: Callable[[Numbers], Numbers]) -> dict[int, dict[int, int]]:
    """By point, the bins whose key frame is due, and its number of entries."""
    due: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for one, of_bin in by_first(found).items():
        for point, live in frames_due(of_bin, points(of_bin)):
            due[point][one] = live
    return due


def frames_due(kept: Numbers, points: Numbers) -> Iterable[tuple[int, int]]:
    """The points of one bin's deltas, in order of versions, at which a key frame is due, and its number of entries."""
    chain, start, is_framed = 0, 0, False
    for point in points.tolist():
        end = int(np.searchsorted(kept[:, 1], point, side="right"))
        chain += len(np.unique(kept[start:end, 1]))
        start = end
        if chain and frame_due(chain, is_framed=is_framed):
            chain, is_framed = 0, True
            yield point, len(replay([], kept[:end, 1], kept[:end, 3], kept[:end, 2]))


def insert_frames(connection: Connection, spec: TableSpec, point: int, lives: dict[int, int]) -> None:
    """Write key frames of bins at a point, each with a known number of entries."""
    run_for_each(connection, key_frame.insert(), pages_of(connection, spec, point, lives))


def pages_of(connection: Connection, spec: TableSpec, point: int, lives: dict[int, int]) -> list[dict[str, Any]]:
    """Key frames of bins at a point, made before anything is removed."""
    states = StateReader(0).read(connection, spec, point, [(one, one) for one in sorted(lives)])
    for number, live in lives.items():
        if len(states[number].ids) != live:
            raise InternalError(
                "an expiry would have changed a version that is kept; nothing was removed",
                table=spec.name,
                bin=number,
                version=point,
                expected=len(states[number].ids),
                found=live,
            )
    pages = []
    for state in states.values():
        entries, page = frame_of(state, spec)
        pages.append(
            {"table_id": spec.id, "bin": state.bin, "version": state.version, "entries": entries, "page": page}
        )
    return pages


def refresh_bins(connection: Connection, spec: TableSpec, bins: Sequence[int]) -> None:
    """Update the rows of bins; empty bins are removed."""
    mine = (bin.c.table_id == spec.id, bin.c.bin.in_(bins))
    remains = exists().where(delta.c.table_id == bin.c.table_id, delta.c.bin == bin.c.bin)
    gone = list(connection.execute(select(bin.c.bin).where(*mine, ~remains)).scalars())
    if gone:
        for of in (key_frame, plan_count, bin):
            connection.execute(delete(of).where(of.c.table_id == spec.id, of.c.bin.in_(gone)))
    note_frames(connection, spec.id, bins)
