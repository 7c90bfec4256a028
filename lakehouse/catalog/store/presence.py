"""A process's presence at a SQLite file, which ensures that nobody reads a log that was not synced.

SQLite shows no commit before it is synced. But a process that opens a file that nobody else has open takes over the
log's content, including a commit whose process was killed before its sync ended, or whose sync the disk refused. Nobody
would sync that, and a later sync may succeed without it. So a process that finds itself alone first moves the log into
the database, which writes and syncs it again. Every process keeps a connection open until the end, so that no other
takes over a log.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path
from typing import Any

from lakehouse.catalog.store.opening import configure, sqlite
from lakehouse.catalog.store.writer_queue import holds
from lakehouse.durable import sync
from lakehouse.errors import CatalogHeld, CatalogUnavailable

_HELD = "another program holds the catalog's database; end it, or try again when it is done"
WAIT_SECONDS = 30.0
_PAUSE_SECONDS = 0.01


class Presence:
    """Holds one connection, and a shared lock on the file ``<path>-open``, which shows whether anybody has one.

    Raises the driver's errors if the log cannot be moved.
    """

    def __init__(self, path: Path) -> None:
        self._connection: Any = None
        self._handle = _opened(Path(f"{path}-open"))
        try:
            self._come(path)
        except BaseException:
            self.end()
            raise

    def _come(self, path: Path) -> None:
        is_alone = self._handle >= 0 and holds(self._handle, fcntl.LOCK_EX)
        if not is_alone:
            self._wait_for_whole(path)
        self._connection = sqlite.connect(path, check_same_thread=False)
        configure(self._connection)
        if is_alone:
            is_busy, *_ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if is_busy:
                raise CatalogHeld(_HELD, catalog=path)
            sync(path.parent)  # so that a deleted journal stays deleted
            holds(self._handle, fcntl.LOCK_SH)
        self._connection.execute("SELECT 1 FROM sqlite_master").fetchone()

    def _wait_for_whole(self, path: Path) -> None:
        """Wait for the process that came alone; this is short, so polling is enough."""
        until = time.monotonic() + WAIT_SECONDS
        while self._handle >= 0 and not holds(self._handle, fcntl.LOCK_SH):
            if time.monotonic() > until:
                raise CatalogHeld(_HELD, catalog=path)
            time.sleep(_PAUSE_SECONDS)

    def end(self) -> None:
        """Go."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1


def _opened(path: Path) -> int:
    """A file descriptor, or -1 in a read-only folder, where nobody can change the catalog."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return -1
        raise CatalogUnavailable(
            "the catalog's folder cannot be written; check its disk and permissions", path=path, cause=error
        ) from error
