"""The port to where a lake's files lie. Files are written once, under names that nobody uses again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lakehouse.core.checksum import Checksum
from lakehouse.errors import SegmentUnreadable
from lakehouse.storage.cache import Cache
from lakehouse.storage.holds import Holder
from lakehouse.storage.uploads import UploadNotes


class Committed(Protocol):
    """What the catalog says of a file: its stored path, its length, and its checksum where that is known."""

    @property
    def path(self) -> str:
        """Relative to the warehouse."""

    @property
    def bytes(self) -> int:
        """Its length."""

    @property
    def checksum(self) -> Checksum:
        """Of all its bytes; empty if it is not known."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A file that a listing found: its stored path, its length, and when it was last written (seconds since 1970)."""

    path: str
    bytes: int
    modified: float

    @property
    def checksum(self) -> Checksum:
        """Not known of what is listed."""
        return b""


class Warehouse(Protocol):
    """Where a lake's files lie. It can be pickled, for tasks on other machines.

    Engines read and write files of this machine below ``root``, each under its stored path. In a folder these are the
    lake's own; of an object store they are copies, which `fetch` brings and `publish` takes away.
    """

    @property
    def root(self) -> Path:
        """The folder of this machine in which its files are found and written."""

    @property
    def address(self) -> str:
        """What `connect` takes to open it, without any credential."""

    @property
    def location(self) -> str:
        """The address, and of a store also its endpoint where one is named: one place has one, without credentials."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """What `connect` takes besides the address, to open it in another process. May hold credentials."""

    @property
    def cache(self) -> Cache | None:
        """The copies of a store's files on this machine; None where the root is the warehouse."""

    def as_of_erasure(self, erasure: int) -> Warehouse:
        """The same for files of plans that know an erasure, by its version, and none that is newer.

        Copies that are made by it are dropped when a newer one is noticed, even if it was noticed before.
        """

    def exists(self) -> bool:
        """Whether it is there, so that what is absent in it is gone."""

    def file(self, stored: str) -> Path:
        """The file of this machine at a stored path. Raises `SegmentUnreadable` for a path that leaves the root."""

    def noting(self, notes: UploadNotes) -> Warehouse:
        """The same in this process, which writes down ids of uploads of operations' files in ``notes``.

        The copy that another process unpickles notes them in the store.
        """

    def make_folder(self, folder: Path) -> None:
        """Make a folder below the root, and those that it lies in, for files that `publish` makes durable."""

    def publish(self, files: Iterable[Path]) -> None:
        """Make files below the root durable, for all to see. Raises `StorageUnavailable`, `OSError`."""

    def fetch(
        self, files: Sequence[Committed], columns: Collection[str] | None = None, holder: object = None
    ) -> Mapping[str, SegmentUnreadable]:
        """See to it that files can be read below the root, as far as some columns are asked for (None: whole).

        Returns an error for each that cannot, by stored path. They stay for as long as ``holder`` lives. Raises
        `StorageUnavailable` if the store does not answer.
        """

    def size(self, stored: str) -> int:
        """The length of a stored file. Raises `FileNotFoundError`, or `SegmentUnreadable` if it is not plain."""

    def fresh(self, file: Committed) -> AbstractContextManager[Path]:
        """A file as it is stored now, whatever was read of it before, until a block ends.

        Raises `SegmentUnreadable`.
        """

    def heal(self, path: str) -> bool:
        """Drop a copy that could not be read, so that it is fetched again; whether there was one."""

    def delete(self, stored: Iterable[str]) -> int:
        """Delete files, wherever there are copies; return how many there were. Lists nothing.

        A path that leaves the warehouse raises before anything is deleted.
        """

    def abandon(self, stored: str) -> None:
        """Delete what this machine wrote below an operation's folder, without asking what else there is.

        The rest is deleted by `delete_operation` when the operation is collected.
        """

    def delete_operation(self, stored: str) -> None:
        """Delete everything in one operation's own folder, ``<table folder>/<operation id>``; a missing one is fine.

        Raises `InternalError` for any other path, so that a mistake cannot delete a table.
        """

    def abort_uploads(self, uploads: Iterable[tuple[str, str]]) -> None:
        """Abort uploads that were never completed: of each file the stored path and the id. One that is over is fine.

        Raises `StorageUnavailable`.
        """

    def measure(self, stored: Iterable[str]) -> tuple[int, int]:
        """The number of files and bytes at stored paths of files, and below those of folders; missing ones are fine."""

    def listed(self, below: str = "") -> Iterator[Listed]:
        """Every file, or those below a stored folder: for `check`, `recover`, exports, and what looks for garbage."""


def fetch_all(
    warehouse: Warehouse, files: Sequence[Committed], columns: Collection[str] | None = None, holder: object = None
) -> None:
    """See to it that all files can be read, as `Warehouse.fetch` does. Raises the first one's `SegmentUnreadable`."""
    for error in warehouse.fetch(files, columns, holder).values():
        raise error


@contextmanager
def fetched(warehouse: Warehouse, files: Sequence[Committed], columns: Collection[str] | None = None) -> Iterator[None]:
    """Around what reads files, some columns or whole: they stay until it ends. Raises as `fetch_all` does."""
    holder = Holder()
    fetch_all(warehouse, files, columns, holder)
    yield
