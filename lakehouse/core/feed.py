"""The change feed: what each commit did to rows, in pieces that a reader takes in an order that never changes.

A *piece* is what one commit did to the rows of one segment: those that it took from there, or those that it put there.
A commit that only added segments is read without a look at anything else. Of the others, rows are known by their ids:
a row that was taken from one segment and put into another is an update, if a value differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import total_ordering
from typing import Any

import numpy as np
import numpy.typing as npt

from lakehouse.core.row_masks import reached
from lakehouse.core.segments import Segments
from lakehouse.core.tombstone import Tombstone
from lakehouse.errors import InvalidArgument

Mask = npt.NDArray[np.bool_]


@total_ordering
@dataclass(frozen=True, slots=True)
class Position:
    """How far a reader has come: it has read every version up to ``version``, and pieces of the next commit.

    ``file`` names the last of those pieces, 0 for none: it is the id of the segment that rows were put into, or its
    negative where rows were taken from one. All that a commit took comes before all that it put. With ``is_snapshot``
    the reader is within the rows that there were at ``version``, and has read no change. With ``row`` it is within that
    piece, whose rows come by row id, and has read those up to this one.

    >>> Position(7) < Position(7, -3) < Position(7, -5) < Position(7, 2) < Position(8)
    True
    >>> Position(7, 4, is_snapshot=True) < Position(7)
    True
    >>> Position(7, 3) < Position(7, 4, row=10) < Position(7, 4, row=11) < Position(7, 4)
    True
    """

    version: int
    file: int = 0
    is_snapshot: bool = False
    row: int | None = None

    @property
    def _place(self) -> tuple[int, bool, int, int, bool, int]:
        side = 0 if self.file == 0 else 1 if self.file < 0 else 2
        return self.version, not self.is_snapshot, side, abs(self.file), self.row is None, self.row or 0

    @property
    def piece_end(self) -> Position:
        """The end of the piece that it lies in."""
        return self if self.row is None else replace(self, row=None)

    def __lt__(self, other: Position) -> bool:
        return self._place < other._place

    def to_json(self) -> dict[str, Any]:
        """The position as Spark and the catalog keep it.

        >>> Position(7, 2).to_json(), Position.of_json({"version": 7, "file": 2}) == Position(7, 2)
        ({'version': 7, 'file': 2}, True)
        """
        found: dict[str, Any] = {"version": self.version, "file": self.file}
        found |= {"snapshot": True} if self.is_snapshot else {}
        return found if self.row is None else {**found, "row": self.row}

    @classmethod
    def of_json(cls, held: Mapping[str, Any]) -> Position:
        """The inverse of `to_json`. Raises `InvalidArgument` for anything else."""
        match held:
            case {"version": int(version), "file": int(file), **rest} if set(rest) <= {"snapshot", "row"}:
                return cls(version, file, bool(rest.get("snapshot", False)), rest.get("row"))
        raise InvalidArgument("not a position of this format; start with a new checkpoint", found=repr(held)[:100])


@dataclass(frozen=True, slots=True)
class Piece:
    """What one commit did to the rows of one segment, as far as the catalog can tell without a file.

    A reader that has read it is at ``end``: its own ``position``, or behind the commit whose last piece it is. ``rows``
    and ``bytes`` are the most that it can be.
    """

    version: int
    position: Position
    rows: int
    bytes: int
    end: Position


@dataclass(frozen=True, slots=True)
class CommitDelta:
    """What one commit did to a table's segments, with the tombstones that decide which of their rows are visible.

    ``added`` and ``dropped`` segments are those of its deltas. Of the segments that stayed, tombstones that it added
    may reach those in ``masked``, and tombstones that it dropped those in ``unmasked``. ``before`` and ``after`` are
    tombstones that were live before and after it, all that may hide rows of these segments. A snapshot is a delta that
    added all that is live.
    """

    version: int
    committed_us: int | None
    added: Segments
    dropped: Segments = field(default_factory=lambda: Segments.of([]))
    masked: Segments = field(default_factory=lambda: Segments.of([]))
    unmasked: Segments = field(default_factory=lambda: Segments.of([]))
    before: tuple[Tombstone, ...] = ()
    after: tuple[Tombstone, ...] = ()
    snapshot_at: int | None = None
    """Of a snapshot: the version at which it was taken; ``version`` is the table's newest by then."""
    erasure: int | None = None
    """The lake's newest erasure when it was looked up, whose files it names; None where nobody asked."""

    @property
    def only_appends(self) -> bool:
        """Whether it added segments that nothing hides, whose rows are new, and did nothing else."""
        others = len(self.dropped) + len(self.masked) + len(self.unmasked)
        is_bare = not others and not self.after and self.snapshot_at is None
        return is_bare and not self.added.flags("has_row_ids").any()

    @property
    def losses(self) -> Segments:
        """Segments from which rows may have been taken."""
        return Segments.joined([self.dropped, self.masked])

    @property
    def gains(self) -> Segments:
        """Segments into which rows may have been put."""
        return Segments.joined([self.added, self.unmasked])

    def pieces(self, *, changes: bool) -> list[Piece]:
        """Its pieces in order. Without ``changes`` only those that put rows.

        >>> from lakehouse.core.segment import Segment
        >>> old, new = (Segment(id=n, start="2013-01-05", end="2013-01-06", ordinal=n, rows=n) for n in (1, 2))
        >>> delta = CommitDelta(7, None, added=Segments.of([new]), dropped=Segments.of([old]))
        >>> [(one.position.file, one.rows, one.end.version) for one in delta.pieces(changes=True)]
        [(-1, 1, 6), (2, 2, 7)]
        """
        found: list[Piece] = []
        for sign, segments in ((-1, self.losses if changes else ()), (1, self.gains)):
            for one in sorted(segments, key=lambda segment: int(segment.id)):
                at = self._at(sign * one.id)
                found.append(Piece(self.version, at, one.rows, one.bytes, at))
        if found:
            found[-1] = replace(found[-1], end=self.end)
        return found

    @property
    def end(self) -> Position:
        """Where a reader is that has read all of it."""
        return Position(self.version if self.snapshot_at is None else self.snapshot_at)

    def _at(self, file: int) -> Position:
        if self.snapshot_at is not None:
            return Position(self.snapshot_at, int(file), is_snapshot=True)
        return Position(self.version - 1, int(file))

    def of(self, pieces: Iterable[Piece]) -> CommitDelta:
        """The delta without segments that have nothing to do with the rows of some of its pieces.

        What remains are the pieces' own segments, and those of the other side whose row ids may be among theirs.
        """
        files = {one.position.file for one in pieces}
        lost, put = (np.array([abs(one) for one in files if (one < 0) == is_lost]) for is_lost in (True, False))
        losses, gains = self.losses, self.gains
        from_here, to_here = np.isin(losses.ids, lost), np.isin(gains.ids, put)
        kept_losses = losses.where(from_here | overlapping(losses, gains.where(to_here))).ids
        kept_gains = gains.where(to_here | overlapping(gains, losses.where(from_here))).ids
        return CommitDelta(
            self.version,
            self.committed_us,
            added=among(self.added, kept_gains),
            dropped=among(self.dropped, kept_losses),
            masked=among(self.masked, kept_losses),
            unmasked=among(self.unmasked, kept_gains),
            before=self.before,
            after=self.after,
            snapshot_at=self.snapshot_at,
            erasure=self.erasure,
        )


def among(segments: Segments, ids: npt.NDArray[np.int64]) -> Segments:
    """The segments that have one of some ids."""
    return segments.where(np.isin(segments.ids, ids)) if len(segments) else segments


def overlapping(segments: Segments, others: Segments) -> Mask:
    """Segments whose row ids, by their bounds, may be among those of some others.

    Cost: a pass over both, and a sort of the others.
    """
    if not len(segments) or not len(others):
        return np.zeros(len(segments), dtype=np.bool_)
    least, greatest = segments.row_ids
    low, high = others.row_ids
    order = np.argsort(low, kind="stable")
    reach = np.maximum.accumulate(high[order])  # of the ranges that begin by then, the one that goes furthest
    before = np.searchsorted(low[order], greatest, side="right")
    found: Mask = (before > 0) & (reach[np.maximum(before - 1, 0)] >= least)
    return found


def touched(segments: Segments, tombstones: Sequence[Tombstone]) -> Mask:
    """Segments of which tombstones may hide a row, by bounds alone."""
    found = np.zeros(len(segments), dtype=np.bool_)
    if not len(segments):
        return found
    starts, ends, ordinals = segments.bounds
    for one in tombstones:
        if one.kind == "interval":
            found |= (starts < one.interval.end_us) & (ends > one.interval.start_us) & (ordinals < one.ordinal)
    for mask, _ in reached(segments, tombstones):
        found |= mask
    return found


def between(pieces: Iterable[Piece], start: Position, end: Position | None = None) -> list[Piece]:
    """The pieces that a reader at one position has to read to get to another (None: all that follow).

    If it is within a piece, this is the first of them.
    """
    last = None if end is None else end.piece_end
    return [one for one in pieces if start < one.position and (last is None or one.position <= last)]


def grouped(pieces: Iterable[Piece], most_rows: int, most_bytes: int) -> Iterator[list[Piece]]:
    """Pieces in order, in groups of one commit with at most so many rows and bytes, or of a single piece.

    >>> at = [(version, Position(version - 1, file)) for version, file in ((7, 1), (7, 2), (7, 3), (8, 4))]
    >>> pieces = [Piece(version, one, 10, 1, one) for version, one in at]
    >>> [[one.position.file for one in group] for group in grouped(pieces, 20, 100)]
    [[1, 2], [3], [4]]
    """
    held: list[Piece] = []
    rows = size = 0
    for one in pieces:
        is_full = rows + one.rows > most_rows or size + one.bytes > most_bytes
        if held and (is_full or held[0].version != one.version):
            yield held
            held, rows, size = [], 0, 0
        held.append(one)
        rows, size = rows + one.rows, size + one.bytes
    if held:
        yield held


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a reader takes at once, as the catalog counts it (None: no limit); at least one piece."""

    rows: int | None = None
    bytes: int | None = None
    versions: int | None = None

    def last(self, pieces: Iterable[Piece]) -> Piece | None:
        """The last piece to take, of all that follow; None if that is all of them. Looks at one more than it takes.

        >>> at = [(version, Position(version - 1, file)) for version, file in ((7, 1), (7, 2), (8, 3))]
        >>> pieces = [Piece(version, one, 10, 1, one) for version, one in at]
        >>> found = [one.last(pieces) for one in (Limits(), Limits(rows=25), Limits(rows=5), Limits(versions=1))]
        >>> [None if one is None else one.position.file for one in found]
        [None, 2, 1, 2]
        """
        taken: Piece | None = None
        rows = size = versions = 0
        for one in pieces:
            rows, size = rows + one.rows, size + one.bytes
            versions += taken is None or one.version != taken.version
            counted = ((rows, self.rows), (size, self.bytes), (versions, self.versions))
            if taken is not None and any(most is not None and found > most for found, most in counted):
                return taken
            taken = one
        return None
