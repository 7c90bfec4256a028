"""Where the warehouse is, and the only way from a stored path to a file: it can never leave the warehouse."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from lakehouse.core.segment import Segment
from lakehouse.errors import InvalidInput, SegmentUnreadable


def warehouse_path(location: str | os.PathLike[str]) -> Path:
    """Read a warehouse's location, a path or a ``file://`` URI, as one absolute path without symbolic links.

    Spellings of one folder (``//``, a trailing ``/``, a link, ``%20`` in a URI) give one path. A path is taken
    literally: only a URI is decoded. Nothing is made. Raises `InvalidInput` for other schemes and for a file.

    >>> warehouse_path("file:///data//my%20lake/").as_posix(), warehouse_path("/data/my lake").as_posix()
    ('/data/my lake', '/data/my lake')
    """
    text = os.fspath(location)
    if not text or "\x00" in text:
        raise InvalidInput("a warehouse needs a path or a file:// URI", warehouse=repr(text))
    parts = urlsplit(text)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
            raise InvalidInput("a file:// URI names a local folder, as in file:///data/warehouse", warehouse=text)
        text = unquote(parts.path)
    elif "://" in text:
        raise InvalidInput(
            "warehouses of this kind are not supported; use a local path or a file:// URI", warehouse=text
        )
    found = Path(os.path.realpath(Path(text).expanduser()))
    try:
        nearest = next(folder for folder in (found, *found.parents) if folder.exists())
    except OSError as error:
        raise InvalidInput(
            "the warehouse cannot be reached; check permissions", warehouse=str(found), cause=error
        ) from error
    if not nearest.is_dir():
        raise InvalidInput("the warehouse is, or lies below, a file; name a folder", warehouse=str(found))
    return found


class Locator:
    """Turns stored paths into files of one warehouse. Keeps what it learned about folders, so make one a call.

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


def check_files(warehouse: Path, segments: Iterable[Segment]) -> tuple[dict[str, Path], list[SegmentUnreadable]]:
    """Look at each segment's file without opening it: cost one ``lstat`` a segment.

    Returns the files by stored path, and one error for each file that is missing or not of the size that was
    committed (``best_effort`` reads go on without them).
    """
    locator = Locator(warehouse)
    files: dict[str, Path] = {}
    errors: list[SegmentUnreadable] = []
    for segment in segments:
        try:
            path = locator.file(segment.path)
            _check_size(path, segment.bytes)
        except SegmentUnreadable as error:
            errors.append(error)
        else:
            files[segment.path] = path
    return files, errors


def verify(warehouse: Path, segments: Iterable[Segment]) -> dict[str, Path]:
    """The files of segments by stored path, each present and of the size that was committed.

    Raises `SegmentUnreadable` naming the first file that is not; ``others`` counts the rest.
    """
    files, errors = check_files(warehouse, segments)
    if errors:
        first = errors[0]
        if len(errors) > 1:
            raise SegmentUnreadable(first.args[0], path=first.facts["path"], others=len(errors) - 1)
        raise first
    return files


def _check_size(path: Path, expected_bytes: int) -> None:
    try:
        status = os.lstat(path)
    except FileNotFoundError as error:
        raise SegmentUnreadable("data file is missing; restore it from a copy", path=str(path)) from error
    except OSError as error:
        raise SegmentUnreadable("data file cannot be reached; restore it", path=str(path), cause=error) from error
    if status.st_mode & 0o170000 != 0o100000:
        raise SegmentUnreadable("data file is not a plain file; restore it from a copy", path=str(path))
    if expected_bytes and status.st_size != expected_bytes:
        what = "cut short" if status.st_size < expected_bytes else "longer than committed"
        raise SegmentUnreadable(
            f"data file is {what}; restore it from a copy",
            path=str(path),
            expected=expected_bytes,
            found=status.st_size,
        )
