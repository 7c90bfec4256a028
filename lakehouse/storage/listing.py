"""Lists the files in a warehouse: only for recovery, when there is no catalog."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow.parquet as pq

from lakehouse.core.checksum import Checksum
from lakehouse.errors import SegmentUnreadable
from lakehouse.storage.footer import DAMAGE
from lakehouse.storage.warehouse import Warehouse

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

    @property
    def checksum(self) -> Checksum:
        """Not known."""
        return b""


@dataclass(frozen=True, slots=True)
class Origin:
    """A data file's origin, from its footer. ``definition`` is that of its table; older files have none."""

    folder: str
    operation: str
    schema: str
    definition: str | None


def data_files(warehouse: Warehouse) -> Iterator[DataFile]:
    """Every data file, in order of tables and operations. Other folders are left alone."""
    found = []
    for one in warehouse.listed():
        folder, operation, *rest = [*one.path.split("/", 2), ""]
        if _ID.fullmatch(folder) and _ID.fullmatch(operation) and rest[0].endswith(".parquet"):
            found.append(DataFile(folder, operation, rest[0], one.bytes))
    yield from sorted(found, key=lambda file: (file.folder, file.operation, file.name))


def read_origin(warehouse: Warehouse, file: DataFile) -> Origin:
    """A file's origin. Raises `SegmentUnreadable` for a file that is cut short, or is not where it was written."""
    with warehouse.fresh(file) as path:
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
