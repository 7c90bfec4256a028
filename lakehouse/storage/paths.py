"""The warehouse's location, and the only way from a stored path to a file, which can never leave the warehouse."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from lakehouse.errors import InvalidAddress, SegmentUnreadable


def warehouse_path(location: str | os.PathLike[str]) -> Path:
    """Read a warehouse's location, a path or a ``file://`` URI, as one absolute path without symbolic links.

    Spellings of one folder (``//``, a trailing ``/``, a link, ``%20`` in a URI) give one path. A path is taken
    literally: only a URI is decoded. Nothing is created. Raises `InvalidInput` for other schemes and for a file.

    >>> warehouse_path("file:///data//my%20lake/").as_posix(), warehouse_path("/data/my lake").as_posix()
    ('/data/my lake', '/data/my lake')
    """
    text = os.fspath(location)
    if not text or "\x00" in text:
        raise InvalidAddress("a warehouse needs a path or a file:// URI", warehouse=repr(text))
    parts = urlsplit(text)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
            raise InvalidAddress("a file:// URI names a local folder, as in file:///data/warehouse", warehouse=text)
        text = unquote(parts.path)
    elif "://" in text:
        raise InvalidAddress(
            "warehouses of this kind are unknown; use a path, a file:// URI, or s3://, gs:// or az:// and a bucket",
            warehouse=text,
        )
    found = Path(os.path.realpath(Path(text).expanduser()))
    try:
        nearest = next(folder for folder in (found, *found.parents) if folder.exists())
    except OSError as error:
        raise InvalidAddress(
            "the warehouse cannot be reached; check permissions", warehouse=str(found), cause=error
        ) from error
    if not nearest.is_dir():
        raise InvalidAddress("the warehouse is, or lies below, a file; name a folder", warehouse=str(found))
    return found


class Locator:
    """Turns stored paths into files of one warehouse. It caches facts about folders, so make one for each call.

    >>> Locator(Path("/data")).file("flights/0af1/00000-0.parquet").as_posix()
    '/data/flights/0af1/00000-0.parquet'
    """

    def __init__(self, warehouse: Path) -> None:
        self._root = os.path.realpath(warehouse)
        self._folders: dict[str, str] = {}

    def file(self, stored: str) -> Path:
        """The file of a stored path. Raises `SegmentUnreadable` if the path, or a link in it, leaves the warehouse."""
        folder, _, name = stored.rpartition("/")
        real = self._folders.get(folder)
        if real is None:
            real = self._folders[folder] = self._folder(folder, stored)
        if name in ("", ".", "..") or "\x00" in name or "\\" in name:
            raise _outside(stored)
        return Path(real, name)

    def _folder(self, folder: str, stored: str) -> str:
        parts = PurePosixPath(folder).parts
        if folder.startswith("/") or ".." in parts or "\x00" in folder or "\\" in folder:
            raise _outside(stored)
        real = os.path.realpath(Path(self._root, *parts))
        if real != self._root and not real.startswith(self._root.rstrip("/") + "/"):
            raise _outside(stored)
        return real


def _outside(stored: str) -> SegmentUnreadable:
    return SegmentUnreadable("stored path leaves the warehouse; the catalog was tampered with", path=stored)
