"""Key frames: written beside commits, derived, so that no read replays a long chain of deltas."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, and_, bindparam, case, func, or_, select, update

from lakehouse.catalog import statements
from lakehouse.catalog.database import Database
from lakehouse.catalog.horizon import keep_horizon, read_erased
from lakehouse.catalog.models import bin, delta, key_frame  # noqa: A004 - the word of the scheme
from lakehouse.catalog.prepared import pipelined
from lakehouse.catalog.rows import encode_page
from lakehouse.catalog.state import BinState, StateReader
from lakehouse.core.bins import bin_interval
from lakehouse.core.commit import ChainLength, ChainLink, KeyFrame
from lakehouse.core.listing import Listing
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.errors import LakehouseError
from lakehouse.faults import reach
from lakehouse.forks import watch_forks

logger = logging.getLogger(__name__)


class FrameWriter:
    """Writes the key frames that a commit made due. One thread at a time writes those of a bin."""

    def __init__(self, database: Database, states: StateReader) -> None:
        self._database = database
        self._states = states
        self._busy: set[tuple[TableId, int]] = set()
        self._guard = threading.Lock()
        watch_forks(self)

    def after_fork(self) -> None:
        """A child has no thread that would give the guard back, or end what is busy."""
        self._guard = threading.Lock()
        self._busy.clear()

    def write_due(self, spec: TableSpec, bins: Sequence[int], version: int) -> None:
        """Write a frame of each bin at ``version``. A failure is logged: the commit stands and loses nothing."""
        with self._guard:
            mine = [one for one in bins if (spec.id, one) not in self._busy]
            self._busy.update((spec.id, one) for one in mine)
        try:
            if mine:
                self.write(spec, mine, version)
        except LakehouseError as error:
            logger.warning("key frames of version %s were not written; a later commit will: %s", version, error)
        finally:
            with self._guard:
                self._busy.difference_update((spec.id, one) for one in mine)

    def write(self, spec: TableSpec, bins: Sequence[int], version: int) -> None:
        """Write a frame of each bin at ``version``."""
        states = self._database.read(
            lambda connection: self._states.read(connection, spec, version, [(one, one) for one in bins])
        )
        pages = {one.bin: frame_of(one) for one in states.values()}
        erased = max((one.erased for one in states.values()), default=0)
        reach("commit.frames")
        self._database.run(lambda connection: self._record(connection, spec.id, version, pages, erased))

    def _record(
        self, connection: Connection, table: TableId, version: int, pages: dict[int, tuple[int, bytes]], erased: int
    ) -> None:
        if version < keep_horizon(connection) or read_erased(connection, table) != erased:
            return  # an expiry or erasure came between: what these pages hold may be gone
        rows: list[dict[str, Any]] = [
            {"table_id": table, "bin": one, "version": version, "entries": entries, "page": page}
            for one, (entries, page) in pages.items()
        ]
        with pipelined(connection):
            statements.FRAME_BIN.run_many(connection, rows)
            statements.INSERT_FRAME.run_many(connection, rows)


def read_chain_lengths(
    connection: Connection, spec: TableSpec, ranges: Sequence[tuple[int, int]], limit: int
) -> Listing[ChainLength]:
    """How long the chains of some bins are, those first that were changed last."""
    wanted = or_(*(bin.c.bin.between(first, last) for first, last in ranges))
    newest = select(bin).where(bin.c.table_id == spec.id, wanted).order_by(bin.c.version.desc(), bin.c.bin.desc())
    return Listing(
        ChainLength(bin_interval(spec.grain, row.bin), row.version, row.frame_version, row.frame_entries, row.chain)
        for row in connection.execute(newest.limit(limit))
    )


def read_film(
    connection: Connection, spec: TableSpec, ranges: Sequence[tuple[int, int]], limit: int
) -> Listing[ChainLink]:
    """Every key frame and delta of some bins, oldest first; of each bin the newest ``limit``.

    Where a version has both, the delta comes first. Cost: the deltas of these bins.
    """
    wanted = or_(*(delta.c.bin.between(first, last) for first, last in ranges))
    counted = select(
        delta.c.bin, delta.c.version, *(func.sum(case((delta.c.action == one, 1), else_=0)) for one in (1, -1))
    )
    changes = counted.where(delta.c.table_id == spec.id, wanted).group_by(delta.c.bin, delta.c.version)
    by_bin: dict[int, list[ChainLink]] = {}
    for one, version, added, dropped in connection.execute(changes.order_by(delta.c.bin, delta.c.version)):
        before = by_bin.setdefault(one, [])
        entries = (before[-1].entries if before else 0) + int(added) - int(dropped)
        before.append(ChainLink(bin_interval(spec.grain, one), version, False, int(added), int(dropped), entries))
    wanted = or_(*(key_frame.c.bin.between(first, last) for first, last in ranges))
    frames = select(key_frame.c.bin, key_frame.c.version, key_frame.c.entries, func.length(key_frame.c.page))
    for one, version, entries, size in connection.execute(frames.where(key_frame.c.table_id == spec.id, wanted)):
        span = bin_interval(spec.grain, one)
        by_bin.setdefault(one, []).append(ChainLink(span, version, True, 0, 0, entries, size))
    return Listing(
        link
        for one in sorted(by_bin)
        for link in sorted(by_bin[one], key=lambda link: (link.version, link.is_key_frame))[-limit:]
    )


def read_chain(
    connection: Connection, spec: TableSpec, ranges: Sequence[tuple[int, int]], version: int
) -> Listing[ChainLink]:
    """What the states of some bins at a version are built of: of each its key frame and the deltas after it."""
    wanted = or_(*(bin.c.bin.between(first, last) for first, last in ranges))
    bins = select(bin.c.bin).where(bin.c.table_id == spec.id, wanted).order_by(bin.c.bin)
    links: list[ChainLink] = []
    for one in connection.execute(bins).scalars().all():
        span = bin_interval(spec.grain, one)
        of_frame = (key_frame.c.table_id == spec.id, key_frame.c.bin == one, key_frame.c.version <= version)
        newest = select(key_frame.c.version, key_frame.c.entries, func.length(key_frame.c.page)).where(*of_frame)
        frame = connection.execute(newest.order_by(key_frame.c.version.desc()).limit(1)).first()
        entries = 0 if frame is None else frame.entries
        if frame is not None:
            links.append(ChainLink(span, frame.version, True, 0, 0, entries, frame[2]))
        counted = select(
            delta.c.version, *(func.sum(case((delta.c.action == action, 1), else_=0)) for action in (1, -1))
        )
        after = (delta.c.version > (-1 if frame is None else frame.version), delta.c.version <= version)
        changes = counted.where(delta.c.table_id == spec.id, delta.c.bin == one, *after)
        for number, added, dropped in connection.execute(changes.group_by(delta.c.version).order_by(delta.c.version)):
            entries += int(added) - int(dropped)
            links.append(ChainLink(span, number, False, int(added), int(dropped), entries))
    return Listing(links)


def frame_of(state: BinState) -> tuple[int, bytes]:
    """The number of live entries of a state, and the page that holds them."""
    order = np.argsort(state.segments.ids)
    tombstones = [state.tombstones[one] for one in sorted(state.tombstones)]
    return len(order) + len(tombstones), encode_page(state.segments.take(order), tombstones)


def note_frames(connection: Connection, table: TableId, bins: Sequence[int]) -> None:
    """Tell bins, under the head, which key frame is their newest, as `key_frame` has it, and what lies behind it."""
    of_bin = and_(key_frame.c.table_id == bin.c.table_id, key_frame.c.bin == bin.c.bin)
    newest = select(func.max(key_frame.c.version)).where(of_bin).correlate(bin).scalar_subquery()
    entries = select(key_frame.c.entries).where(of_bin).order_by(key_frame.c.version.desc()).limit(1)
    changes = and_(delta.c.table_id == bin.c.table_id, delta.c.bin == bin.c.bin)
    behind = select(func.count(delta.c.version.distinct())).where(changes, delta.c.version > func.coalesce(newest, -1))
    noted = update(bin).where(bin.c.table_id == table, bin.c.bin == bindparam("framed"))
    connection.execute(
        noted.values(
            frame_version=newest,
            frame_entries=func.coalesce(entries.correlate(bin).scalar_subquery(), 0),
            chain=behind.correlate(bin).scalar_subquery(),
        ),
        [{"framed": one} for one in bins],
    )


def read_key_frames(connection: Connection, spec: TableSpec) -> Listing[KeyFrame]:
    """Every key frame of a table, by time and version."""
    query = (
        select(key_frame.c.bin, key_frame.c.version, key_frame.c.entries, func.length(key_frame.c.page))
        .where(key_frame.c.table_id == spec.id)
        .order_by(key_frame.c.bin, key_frame.c.version)
    )
    return Listing(
        KeyFrame(bin_interval(spec.grain, one), version, entries, size)
        for one, version, entries, size in connection.execute(query)
    )
