"""Key frames: written beside commits, derived, so that no read replays a long chain of deltas."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, select

from lakehouse.catalog import statements
from lakehouse.catalog.database import Database
from lakehouse.catalog.models import key_frame
from lakehouse.catalog.prepared import pipelined
from lakehouse.catalog.rows import encode_page
from lakehouse.catalog.state import StateReader
from lakehouse.core.bins import bin_interval
from lakehouse.core.commit import KeyFrame
from lakehouse.core.listing import Listing
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.errors import LakehouseError
from lakehouse.faults import reach

logger = logging.getLogger(__name__)


class FrameWriter:
    """Writes the key frames that a commit made due. One thread at a time writes those of a bin."""

    def __init__(self, database: Database, states: StateReader) -> None:
        self._database = database
        self._states = states
        self._busy: set[tuple[TableId, int]] = set()
        self._guard = threading.Lock()

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
        pages = self._database.read(lambda connection: self._pages(connection, spec, bins, version))
        reach("commit.frames")
        self._database.run(lambda connection: self._record(connection, spec.id, version, pages))

    def _pages(
        self, connection: Connection, spec: TableSpec, bins: Sequence[int], version: int
    ) -> dict[int, tuple[int, bytes]]:
        """By bin the number of its live entries and its page."""
        pages: dict[int, tuple[int, bytes]] = {}
        for state in self._states.read(connection, spec, version, [(one, one) for one in bins]).values():
            order = np.argsort(state.segments.ids)
            tombstones = [state.tombstones[one] for one in sorted(state.tombstones)]
            page = encode_page(state.segments.take(order), tombstones)
            pages[state.bin] = (len(order) + len(tombstones), page)
        return pages

    def _record(
        self, connection: Connection, table: TableId, version: int, pages: dict[int, tuple[int, bytes]]
    ) -> None:
        rows: list[dict[str, Any]] = [
            {"table_id": table, "bin": one, "version": version, "entries": entries, "page": page}
            for one, (entries, page) in pages.items()
        ]
        with pipelined(connection):
            statements.FRAME_BIN.run_many(connection, rows)
            statements.INSERT_FRAME.run_many(connection, rows)


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
