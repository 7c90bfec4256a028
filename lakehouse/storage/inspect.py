"""Looking at what is stored, to report it. Nothing is ever deleted because of a listing alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakehouse.errors import SegmentUnreadable
from lakehouse.storage.exports import EXPORTS
from lakehouse.storage.paths import Locator


def find_faults(warehouse: Path, files: Iterable[tuple[str, int]]) -> Iterator[tuple[str, str, str]]:
    """Of files and their bytes those that are not as they were committed: the path, a kind, and what is wrong.

    Kinds: *missing*, *short*, *long*, *unreadable*. Cost: an ``lstat`` a file.
    """
    locator = Locator(warehouse)
    for stored, size in files:
        try:
            path = locator.file(stored)
            status = os.lstat(path)
        except FileNotFoundError:
            yield stored, "missing", "the file is not there; restore it from a copy"
        except (OSError, SegmentUnreadable) as error:
            yield stored, "unreadable", f"the file cannot be reached: {error}"
        else:
            if status.st_mode & 0o170000 != 0o100000:
                yield stored, "unreadable", "not a plain file; restore it from a copy"
            elif status.st_size != size:
                kind = "short" if status.st_size < size else "long"
                yield stored, kind, f"the size is another one: expected={size} found={status.st_size}"


def read_through(warehouse: Path, stored: str, time: str) -> tuple[int, tuple[datetime, datetime] | None]:
    """Decode every page of a file: its rows, and the least and greatest time where it has that column by this name.

    Raises `SegmentUnreadable`. Cost: the file, a row group in memory.
    """
    path = Locator(warehouse).file(stored)
    rows = 0
    bounds: list[Any] = []
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches():
                batch.validate(full=True)
                rows += batch.num_rows
                if time in batch.schema.names and batch.num_rows:
                    bounds.extend(pc.min_max(batch.column(time)).as_py().values())
    except (pa.ArrowException, OSError) as error:
        raise SegmentUnreadable("data file is malformed; restore it from a copy", path=stored, cause=error) from error
    return rows, (min(bounds), max(bounds)) if bounds else None


def list_files(warehouse: Path) -> dict[str, float]:
    """Every data file below a warehouse, as stored paths, and when it was last changed (seconds since 1970).

    What `lakehouse.storage.exports` keeps there is no data.
    """
    root = os.path.realpath(warehouse)
    found: dict[str, float] = {}
    for folder, folders, names in os.walk(root):
        if folder == root and EXPORTS in folders:
            folders.remove(EXPORTS)
        for name in names:
            path = Path(folder, name)
            try:
                found[path.relative_to(root).as_posix()] = path.lstat().st_mtime
            except FileNotFoundError:
                continue
    return found
