"""Sets of tombstones, read when a plan needs them and cached, because they never change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sqlalchemy import Connection

from lakehouse.catalog.state.bins import IDS, prepared_over, rows_by_id, rows_of_ids
from lakehouse.core.checksum import Checksum, shown
from lakehouse.core.sets import MatchSet, decode_set
from lakehouse.core.tombstone import Tombstone
from lakehouse.errors import InternalError, VersionNotFound
from lakehouse.remembered import Remembered

ReadFile = Callable[[str, int, Checksum], bytes]
"""Content of a stored path of a size and checksum."""


def no_files(path: str, size: int, checksum: Checksum) -> bytes:
    """The file reader of a catalog opened without its warehouse."""
    raise InternalError(
        "the catalog was opened without a warehouse to read from", path=path, bytes=size, checksum=shown(checksum)
    )


_REMEMBERED_BYTES = 256 << 20
_CONTENTS = prepared_over(
    IDS,
    "SELECT tombstone_set.id, tombstone_set.content FROM {wanted} tombstone_set WHERE tombstone_set.id = wanted.value",
)


class FilesNeeded(Exception):
    """Sets of these tombstones are in files, which no transaction may read; it changed nothing."""

    def __init__(self, tombstones: list[Tombstone]) -> None:
        super().__init__(tombstones)
        self.tombstones = tombstones


class Sets:
    """Sets by tombstone: the least recently used are evicted above a size."""

    def __init__(self, read_file: ReadFile, size: int = _REMEMBERED_BYTES) -> None:
        self._read_file = read_file
        self._held: Remembered[int, MatchSet] = Remembered(size)

    def forget(self) -> None:
        """Drop the cache."""
        self._held.clear()

    def under_head(self, connection: Connection, tombstones: Iterable[Tombstone]) -> dict[int, MatchSet]:
        """Sets, read inside a transaction. Raises `FilesNeeded` for those that `load` has to read first."""
        found, missing = self._known(tombstones)
        files = [one for one in missing if one.path]
        if files:
            raise FilesNeeded(files)
        return found | self._inline(connection, missing)

    def load(self, tombstones: Iterable[Tombstone]) -> dict[int, MatchSet]:
        """Sets that are in files. Raises `SegmentUnreadable` for a file that is missing or damaged."""
        found, missing = self._known(tombstones)
        for one in missing:
            if one.path:
                content = self._read_file(one.path, one.bytes, one.checksum)
                found[one.id] = self._remember(one, content)
        return found

    def read(self, connection: Connection, tombstones: Iterable[Tombstone]) -> dict[int, MatchSet]:
        """Sets that are in the catalog. Raises `VersionNotFound` if one has expired since its tombstone was read."""
        found, missing = self._known(tombstones)
        wanted = [one for one in missing if not one.path]
        held = {row["id"] for row in rows_by_id(connection, "tombstone", [one.id for one in wanted])}
        if len(held) < len(wanted):
            raise VersionNotFound(
                "the version has expired since the read began; read a newer one",
                tombstone=min(one.id for one in wanted if one.id not in held),
            )
        return found | self._inline(connection, wanted)

    def _known(self, tombstones: Iterable[Tombstone]) -> tuple[dict[int, MatchSet], list[Tombstone]]:
        wanted = list(tombstones)
        found = self._held.known(one.id for one in wanted)
        return found, [one for one in wanted if one.id not in found]

    def _inline(self, connection: Connection, tombstones: list[Tombstone]) -> dict[int, MatchSet]:
        if not tombstones:
            return {}
        by_id: Mapping[int, Tombstone] = {one.id: one for one in tombstones}
        found = {
            entry: self._remember(by_id[entry], bytes(content))
            for entry, content in rows_of_ids(connection, _CONTENTS, by_id)
        }
        if len(found) < len(by_id):
            raise InternalError("a tombstone's set is not in the catalog", tombstone=min(by_id.keys() - found.keys()))
        return found

    def _remember(self, tombstone: Tombstone, content: bytes) -> MatchSet:
        matched = decode_set(tombstone.kind, content)
        self._held.put(tombstone.id, matched, cost=200 + 4 * len(content))
        return matched
