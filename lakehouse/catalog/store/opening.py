"""The address of a catalog's database, and SQLite's settings: a commit is on the disk before anybody sees it.

A SQLite catalog has one name, that of its real file, whatever link or spelling is used: its log, its shared memory and
the queue of its writers lie beside that.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from lakehouse.durable import make_folder
from lakehouse.errors import CatalogUnavailable, InvalidAddress

try:
    from pysqlite3 import dbapi2 as sqlite
except ImportError:  # no wheel for this platform: Python's own, checked by version below
    import sqlite3 as sqlite

WAL_IS_SAFE_FROM = (3, 51, 3)
"""Older releases of SQLite can corrupt a database when the write-ahead log is reset."""
WRITES_AHEAD = sqlite.sqlite_version_info >= WAL_IS_SAFE_FROM
BUSY_TIMEOUT_MS = 1_000
"""How long SQLite waits at a time for a lock of another program; the caller then retries."""
_CACHE_KIBIBYTES = 64 << 10
_FULL, _EXTRA = 2, 3
__all__ = ["WAL_IS_SAFE_FROM", "WRITES_AHEAD", "configure", "is_missing", "prepare_file", "read_url", "sqlite"]


def read_url(url: str) -> URL:
    """A catalog's address, that of a SQLite file by its real name. Raises `InvalidInput`."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise InvalidAddress(
            "not a catalog address; write sqlite:///path or postgresql+psycopg://user@host/database", catalog=url
        ) from error
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername not in ("sqlite", "postgresql+psycopg"):
        raise InvalidAddress(
            "no such kind of catalog; write sqlite:///path or postgresql+psycopg://user@host/database",
            kind=parsed.drivername,
        )
    return parsed if parsed.drivername != "sqlite" else _real(parsed)


def is_missing(url: str) -> bool:
    """Whether a catalog is a SQLite file that is not there, which opening it would make. Raises `InvalidInput`."""
    address = read_url(url)
    return address.drivername == "sqlite" and not Path(str(address.database)).exists()


def _real(url: URL) -> URL:
    if url.database in (None, "", ":memory:"):
        raise InvalidAddress("a catalog must outlive its process; write sqlite:///path", catalog=str(url))
    if url.query:
        raise InvalidAddress(
            "the address of a SQLite catalog is a path alone; leave out what follows the question mark",
            catalog=str(url),
        )
    return url.set(database=os.path.realpath(str(url.database)))


def prepare_file(path: Path) -> None:
    """Make the folder of a SQLite catalog, durably. Raises `CatalogUnavailable`."""
    try:
        make_folder(path.parent)
        names = path.stat().st_nlink if path.exists() else 1
    except OSError as error:
        raise CatalogUnavailable(
            "cannot make the folder of the catalog; check the path and its permissions", path=path.parent, cause=error
        ) from error
    if names > 1:
        # Each name would have its own log, without the other's content.
        raise CatalogUnavailable(
            "the catalog's file has several names (hard links), which SQLite cannot keep apart; leave it one",
            path=path,
            names=names,
        )


def configure(connection: Any) -> None:
    """Set up a connection, and verify each setting. Raises `CatalogUnavailable` if one does not hold.

    With a write-ahead log, ``FULL`` syncs it before others see the commit. With a rollback journal the commit is the
    end of the journal, and only ``EXTRA`` makes that durable.
    """
    journal, synchronous = ("wal", _FULL) if WRITES_AHEAD else ("delete", _EXTRA)
    _set(connection, "busy_timeout", BUSY_TIMEOUT_MS, BUSY_TIMEOUT_MS)
    _set(connection, "synchronous", synchronous, synchronous)
    connection.execute("PRAGMA fullfsync=ON").close()  # macOS: fsync alone leaves bytes in the drive's cache
    _set(connection, "journal_mode", journal, journal)
    _set(connection, "foreign_keys", "ON", 1)
    connection.execute(f"PRAGMA cache_size=-{_CACHE_KIBIBYTES}").close()


def _set(connection: Any, name: str, value: object, expected: object) -> None:
    answer = connection.execute(f"PRAGMA {name}={value}").fetchone()
    found = connection.execute(f"PRAGMA {name}").fetchone() if answer is None else answer
    if found is None or found[0] != expected:
        raise CatalogUnavailable(
            "SQLite cannot keep the catalog safe where it is; put it on a local disk, or use PostgreSQL",
            setting=name,
            expected=expected,
            found=None if found is None else found[0],
        )
