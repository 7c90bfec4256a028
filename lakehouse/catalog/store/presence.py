"""A process's presence at a SQLite file: while it lasts, nobody finds a log that was not synced.

SQLite shows no commit before it synced it. But whoever opens a file that nobody has open takes over what the log holds:
a commit whose process was killed before its sync ended, or whose sync the disk refused. Nobody would sync that, and a
later sync may succeed without it. So whoever comes alone brings the log into the database first, which writes and syncs
it anew, and everybody keeps a connection open until the end, so that no other takes over anything.
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
    """Holds one connection, and a shared hold on the file ``<path>-open`` that tells whether anybody has one.

    Raises the driver's errors where the log cannot be brought in.
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
            sync(path.parent)  # so that a journal that was deleted stays so
            holds(self._handle, fcntl.LOCK_SH)
        self._connection.execute("SELECT 1 FROM sqlite_master").fetchone()

    def _wait_for_whole(self, path: Path) -> None:
        """Wait for whoever came alone; nobody else waits for long, so that asking again will do."""
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
    """A handle, or -1 in a folder that may only be read: nobody who opens the catalog there can change anything."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return -1
        raise CatalogUnavailable(
            "the catalog's folder cannot be written; check its disk and permissions", path=path, cause=error
        ) from error
