"""Key frames: written beside commits, derived, so that no read replays a long chain of deltas."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, select, update

from lakehouse.catalog.database import Database
from lakehouse.catalog.models import chunk, delta, key_frame
from lakehouse.catalog.rows import encode_page
from lakehouse.catalog.state import StateReader, batches
from lakehouse.core.chunk import chunk_from_us
from lakehouse.core.commit import KeyFrame
from lakehouse.core.listing import Listing
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.errors import LakehouseError
from lakehouse.faults import reach

logger = logging.getLogger(__name__)


class FrameWriter:
    """Writes the key frames that a commit made due. One thread at a time writes those of a chunk."""

    def __init__(self, database: Database, states: StateReader) -> None:
        self._database = database
        self._states = states
        self._busy: set[tuple[TableId, int]] = set()
        self._guard = threading.Lock()

    def write_due(self, table: TableId, chunks: Sequence[int], version: int) -> None:
        """Write a frame of each chunk at ``version``. A failure is logged: the commit stands and loses nothing."""
        with self._guard:
            mine = [start for start in chunks if (table, start) not in self._busy]
            self._busy.update((table, start) for start in mine)
        try:
            if mine:
                self.write(table, mine, version)
        except LakehouseError as error:
            logger.warning("key frames of version %s were not written; a later commit will: %s", version, error)
        finally:
            with self._guard:
                self._busy.difference_update((table, start) for start in mine)

    def write(self, table: TableId, chunks: Sequence[int], version: int) -> None:
        """Write a frame of each chunk at ``version``."""
        pages = self._database.read(lambda connection: self._pages(connection, table, chunks, version))
        reach("commit.frames")
        self._database.run(lambda connection: self._record(connection, table, version, pages))

    def _pages(
        self, connection: Connection, table: TableId, chunks: Sequence[int], version: int
    ) -> dict[int, tuple[int, bytes]]:
        pages: dict[int, tuple[int, bytes]] = {}
        for batch in batches(chunks):
            for state in self._states.read(connection, table, version, chunk.c.start_us.in_(batch)).values():
                entries = [state.entries[entry] for entry in sorted(state.entries)]
                pages[state.start_us] = (len(entries), encode_page(entries))
        return pages

    def _record(
        self, connection: Connection, table: TableId, version: int, pages: dict[int, tuple[int, bytes]]
    ) -> None:
        held = select(key_frame.c.chunk_us, func.max(key_frame.c.version)).where(key_frame.c.table_id == table)
        newest: dict[int, int] = {}
        for batch in batches(pages):
            found = connection.execute(held.where(key_frame.c.chunk_us.in_(batch)).group_by(key_frame.c.chunk_us))
            newest.update((start, framed) for start, framed in found)
        due = {start: page for start, page in pages.items() if newest.get(start, -1) < version}
        if not due:
            return
        rows: list[dict[str, Any]] = [
            {"table_id": table, "chunk_us": start, "version": version, "entries": entries, "page": page}
            for start, (entries, page) in due.items()
        ]
        connection.execute(key_frame.insert(), rows)
        behind = (
            select(func.count(delta.c.version.distinct()))
            .where(delta.c.table_id == table, delta.c.chunk_us == chunk.c.start_us, delta.c.version > version)
            .correlate(chunk)
            .scalar_subquery()
        )
        framed = (
            update(chunk)
            .where(chunk.c.table_id == table, chunk.c.start_us == bindparam("framed_chunk"))
            .values(frame_entries=bindparam("entries"), chain=behind)
        )
        connection.execute(framed, [{"framed_chunk": start, "entries": entries} for start, (entries, _) in due.items()])


def read_key_frames(connection: Connection, spec: TableSpec) -> Listing[KeyFrame]:
    """Every key frame of a table, by chunk and version."""
    query = (
        select(key_frame.c.chunk_us, key_frame.c.version, key_frame.c.entries, func.length(key_frame.c.page))
        .where(key_frame.c.table_id == spec.id)
        .order_by(key_frame.c.chunk_us, key_frame.c.version)
    )
    return Listing(
        KeyFrame(chunk_from_us(spec.grain, start), version, entries, size)
        for start, version, entries, size in connection.execute(query)
    )
