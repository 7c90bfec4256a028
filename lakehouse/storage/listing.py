"""Lists the files in a warehouse: only for recovery, when there is no catalog."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from lakehouse.errors import SegmentUnreadable
from lakehouse.storage.footer import DAMAGE

_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file named like a data file: its table's and operation's folders, its name, its length."""

    folder: str
    operation: str
    name: str
    bytes: int

    @property
    def path(self) -> str:
        """The path as a catalog stores it."""
        return f"{self.folder}/{self.operation}/{self.name}"


@dataclass(frozen=True, slots=True)
class Origin:
    """A data file's origin, from its footer. ``definition`` is that of its table; older files have none."""

    folder: str
    operation: str
    schema: str
    definition: str | None


def data_files(warehouse: Path) -> Iterator[DataFile]:
    """Every data file, in order of tables and operations. Links are not followed; other folders are left alone."""
    for folder in _folders(warehouse):
        for operation in _folders(warehouse / folder):
            root = warehouse / folder / operation
            found = sorted(_parquet(root, ""))
            yield from (DataFile(folder, operation, name, size) for name, size in found)


def read_origin(warehouse: Path, file: DataFile) -> Origin:
    """A file's origin. Raises `SegmentUnreadable` for a file that is cut short, or is not where it was written."""
    path = warehouse / file.path
    try:
        held = pq.read_metadata(path).metadata or {}
    except DAMAGE as error:
        raise SegmentUnreadable("data file is cut short or malformed", path=str(path), cause=error) from error
    texts = {name: _text(held.get(f"lakehouse.{name}".encode())) for name in ("table", "operation", "schema")}
    if texts["table"] != file.folder or texts["operation"] != file.operation or texts["schema"] is None:
        raise SegmentUnreadable(
            "the footer names another table or operation than the folder does", path=str(path), table=texts["table"]
        )
    definition = _text(held.get(b"lakehouse.definition"))
    return Origin(file.folder, file.operation, texts["schema"], definition)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def _folders(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        return sorted(one.name for one in entries if _ID.fullmatch(one.name) and one.is_dir(follow_symlinks=False))


def _parquet(folder: Path, prefix: str) -> Iterator[tuple[str, int]]:
    with os.scandir(folder) as entries:
        for one in entries:
            if one.is_dir(follow_symlinks=False):
                yield from _parquet(Path(one.path), f"{prefix}{one.name}/")
            elif one.name.endswith(".parquet") and one.is_file(follow_symlinks=False):
                yield prefix + one.name, one.stat(follow_symlinks=False).st_size
