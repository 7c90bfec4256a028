"""Key frames: derived data written after commits, so that no read replays a long chain of deltas."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from sqlalchemy import Connection, and_, bindparam, func, select, update

from lakehouse.catalog.state.bins import BinState, StateReader
from lakehouse.catalog.store import statements
from lakehouse.catalog.store.database import Database
from lakehouse.catalog.store.models import bin, delta, key_frame  # noqa: A004 - the word of the scheme
from lakehouse.catalog.store.prepared import pipelined
from lakehouse.catalog.store.rows import encode_page
from lakehouse.catalog.versions.horizon import keep_horizon, read_erased
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.errors import LakehouseError, coded
from lakehouse.faults import reach
from lakehouse.forks import watch_forks

logger = logging.getLogger(__name__)


class FrameWriter:
    """Writes the key frames that a commit made due, one thread at a time for each bin."""

    def __init__(self, database: Database, states: StateReader) -> None:
        self._database = database
        self._states = states
        self._busy: set[tuple[TableId, int]] = set()
        self._guard = threading.Lock()
        watch_forks(self)

    def after_fork(self) -> None:
        """A forked child has no thread that would release the lock or finish what is in progress."""
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
            logger.warning("key frames of version %s were not written; a later commit will: %s", version, coded(error))
        finally:
            with self._guard:
                self._busy.difference_update((spec.id, one) for one in mine)

    def write(self, spec: TableSpec, bins: Sequence[int], version: int) -> None:
        """Write a frame of each bin at ``version``."""
        states = self._database.read(
            lambda connection: self._states.read(connection, spec, version, [(one, one) for one in bins])
        )
        pages = {one.bin: frame_of(one, spec) for one in states.values()}
        erased = max((one.erased for one in states.values()), default=0)
        reach("commit.frames")
        self._database.run(lambda connection: self._record(connection, spec.id, version, pages, erased))

    def _record(
        self, connection: Connection, table: TableId, version: int, pages: dict[int, tuple[int, bytes]], erased: int
    ) -> None:
        if version < keep_horizon(connection) or read_erased(connection, table) != erased:
            return  # an expiry or erasure came in between: entries of these pages may be gone
        rows: list[dict[str, Any]] = [
            {"table_id": table, "bin": one, "version": version, "entries": entries, "page": page}
            for one, (entries, page) in pages.items()
        ]
        with pipelined(connection):
            statements.FRAME_BIN.run_many(connection, rows)
            statements.INSERT_FRAME.run_many(connection, rows)


def frame_of(state: BinState, spec: TableSpec) -> tuple[int, bytes]:
    """The number of live entries of a state, and the page that holds them."""
    order = np.argsort(state.segments.ids)
    tombstones = [state.tombstones[one] for one in sorted(state.tombstones)]
    return len(order) + len(tombstones), encode_page(state.body.take(pa.array(order)), tombstones, spec.stored_names)


def note_frames(connection: Connection, table: TableId, bins: Sequence[int]) -> None:
    """Record in bins, under the head, their newest key frame from `key_frame`, and the versions since."""
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
