"""A table's change feed as a reader walks it: the commits that follow a position, and rows of their pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa

from lakehouse.core.feed import CommitDelta, Piece, Position
from lakehouse.core.interval import to_us
from lakehouse.core.skyline import IntArray
from lakehouse.core.spec import TableSpec, Verify
from lakehouse.errors import SegmentUnreadable
from lakehouse.reading.feed import CommitReader
from lakehouse.reading.scan import is_replaced
from lakehouse.schema import seen_at
from lakehouse.session.session import Session

T = TypeVar("T")
_LOOKS = 5
"""How often pieces are looked up again whose files an erasure replaced."""


@dataclass(frozen=True, slots=True)
class _Held:
    """The reader of a commit that was given, as it was when an erasure was the newest."""

    given: CommitDelta
    erasure: int | None
    changes: bool
    reader: CommitReader

    def is_of(self, delta: CommitDelta, erasure: int | None, *, changes: bool) -> bool:
        return self.given is delta and self.erasure == erasure and self.changes == changes


class Feed:
    """Commits of one table and their rows. ``spec`` has the columns that rows are given with: those of today.

    ``created`` is the version that created the table; None reads every version with the columns as they are.
    """

    def __init__(
        self, session: Session, spec: TableSpec, created: int | None = None, *, verify: Verify | None = None
    ) -> None:
        self.session = session
        self.spec = spec
        self._created = created
        self._verify = verify
        self._definitions: list[tuple[int, TableSpec]] | None = None
        self._held: _Held | None = None

    def following(self, position: Position, until: int) -> tuple[list[CommitDelta], int]:
        """What follows a position, the first few commits; and the version that they lead to.

        Raises `VersionNotFound` if some of it may have expired.
        """
        erasure = self.erasure()
        if position.is_snapshot:
            return [replace(self._snapshot(position), erasure=erasure)], position.version
        deltas, reached = self.session.catalog.feed(self.spec, position.version, until)
        return [replace(one, erasure=erasure) for one in deltas], reached

    def _snapshot(self, position: Position) -> CommitDelta:
        """All that there is at a version, as one commit that added it."""
        catalog = self.session.catalog
        version = catalog.newest_by(self.spec, position.version)
        segments, tombstones = catalog.live(self.spec, version)
        made = catalog.commits(before=version + 1, limit=1)
        committed_us = to_us(made[0].committed_at) if made and made[0].version == version else None
        return CommitDelta(version, committed_us, segments, after=tuple(tombstones), snapshot_at=position.version)

    def erasure(self) -> int:
        """The newest erasure, of the lake or of the table; copies of what it replaced are dropped."""
        newest = self.session.drop_erased()
        return self.session.catalog.look(self.spec).erased or 0 if newest is None else newest

    def is_by_id(self, delta: CommitDelta, piece: Piece, *, changes: bool) -> bool:
        """Whether `by_id` can read a piece."""
        return self._reader(delta, changes=changes, is_outdated=False).is_by_id(piece)

    def by_id(
        self, delta: CommitDelta, piece: Piece, after: int | None, *, changes: bool
    ) -> Iterator[tuple[pa.RecordBatch, IntArray]]:
        """Rows of one piece after one of them, and their ids, in the order of these; looked up again as `rows`."""
        return self._looked_up(delta, lambda reader: reader.by_id(piece, after), changes=changes)

    def rows(
        self, delta: CommitDelta, pieces: Sequence[Piece], *, changes: bool, after: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Rows of some pieces of a commit, of the first those after one by id.

        They are looked up again if an erasure replaced files before the first was read.
        """
        return self._looked_up(delta, lambda reader: reader.read(pieces, after), changes=changes)

    def _looked_up(
        self, delta: CommitDelta, read: Callable[[CommitReader], Iterator[T]], *, changes: bool
    ) -> Iterator[T]:
        is_outdated = False
        for _ in range(_LOOKS):
            rows = read(self._reader(delta, changes=changes, is_outdated=is_outdated))
            try:
                first = next(rows, None)
            except SegmentUnreadable as error:
                if self.session.warehouse.heal(str(error.facts.get("path", ""))):
                    continue
                if not is_replaced(self.session, error):
                    raise
                is_outdated = True
                continue
            if first is not None:
                yield first
                yield from rows
            return
        yield from read(self._reader(delta, changes=changes, is_outdated=is_outdated))

    def _again(self, delta: CommitDelta) -> CommitDelta:
        if delta.snapshot_at is not None:
            return self._snapshot(Position(delta.snapshot_at, is_snapshot=True))
        found, _ = self.session.catalog.feed(self.spec, delta.version - 1, delta.version, every=True)
        return found[0] if found else CommitDelta(delta.version, delta.committed_us, delta.added[:0])

    def _reader(self, delta: CommitDelta, *, changes: bool, is_outdated: bool) -> CommitReader:
        """The reader of a commit, kept for its next pieces; of the commit as it is now if an erasure came after it.

        A warehouse may still have what that replaced, so a read that succeeds says nothing.
        """
        erasure = self.erasure()
        held = self._held
        if not is_outdated and held is not None and held.is_of(delta, erasure, changes=changes):
            return held.reader
        current = delta
        if is_outdated or delta.erasure != erasure:
            current = replace(self._again(delta), erasure=erasure)
        spec = self.spec_at(delta.version)
        reader = CommitReader(self.session, spec, current, changes=changes, verify=self._verify)
        self._held = _Held(delta, erasure, changes, reader)
        return reader

    def spec_at(self, version: int) -> TableSpec:
        """Today's columns of rows of a version."""
        if self._created is None or not self.spec.schema_number:
            return self.spec
        if self._definitions is None:
            self._definitions = self.session.catalog.definitions(self.spec, self._created)
        then = [one for since, one in self._definitions if since <= version] or [self._definitions[0][1]]
        return self.spec if then[-1].schema_number == self.spec.schema_number else seen_at(self.spec, then[-1])

    def refresh(self) -> None:
        """Read rows with the columns that the table has now. Raises `TableNotFound`."""
        self.spec = self.session.catalog.redefined(self.spec)
        self._definitions = self._held = None
