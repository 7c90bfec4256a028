"""Follows a table in process: batches of its rows or changes, and waiting for the next commit."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from lakehouse import interrupts
from lakehouse.catalog.state.feed import Look
from lakehouse.catalog.store.clock import steady_seconds
from lakehouse.catalog.versions.consumers import EXPIRED, lost
from lakehouse.core.consumer import Given
from lakehouse.core.feed import CommitDelta, Piece, Position, between, grouped
from lakehouse.core.spec import TableSpec
from lakehouse.errors import ConsumerExpired, TableNotFound, VersionNotFound
from lakehouse.reading.feed import GROUP_BYTES
from lakehouse.reading.feed_window import Feed
from lakehouse.session.session import Session

BATCH_ROWS = 1 << 17
"""How many rows a batch has at most, but for rows of one file that an update or a delete changed."""
_PAUSES = (0.005, 0.25)
"""The shortest and the longest time between two looks for a commit of another process, in seconds."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one version; a large commit comes in several batches.

    ``txn`` identifies a consumer's batch: one that comes again, because it was not read, has the same, and no other
    batch of any consumer has it. None without a consumer.
    """

    version: int
    rows: pa.Table
    txn: tuple[str, int] | None = None


class Place:
    """Where a reader is, which protects what it has yet to read: by a pin and, for a consumer, in the catalog."""

    def __init__(self, session: Session, spec: TableSpec, consumer: str | None, lease_seconds: float) -> None:
        self._session, self._spec = session, spec
        self.consumer = consumer
        self._lease_seconds = lease_seconds
        self._token = secrets.token_hex(16)
        self._release: Callable[[], object] | None = None
        self._renew_at = 0.0
        self.acknowledged: Position | None = None
        self._last = Given("")

    def begin(self, start: Position, given: Position | None) -> Position:
        """Begin at a position, or where a known consumer is. Raises `VersionNotFound`, `ConsumerExpired`."""
        if self.consumer is not None:
            begun = steady_seconds()
            start, self._last = self._session.catalog.attach(
                self.consumer,
                self._spec,
                start,
                given=given,
                token=self._token,
                lease_seconds=self._lease_seconds,
            )
            self._renewed(begun)
        self.acknowledged = start
        self._hold(start)
        return start

    @property
    def unread(self) -> Position | None:
        """Where the batch ends that was given last, if it has not been read."""
        return self._last.end

    def give(self, position: Position, end: Position) -> tuple[str, int] | None:
        """Record that all up to a position has been read, and a batch from there to ``end`` is given; return its mark.

        Raises `ConsumerLost`.
        """
        if self.consumer is None:
            self.acknowledge(position)
            return None
        if self._last.end != end:
            self._last = self._last.next(end)
            self._move(position)
        return f"{self.consumer}:{self._last.name}", self._last.number

    def acknowledge(self, position: Position) -> None:
        """Record that everything up to a position has been dealt with. Raises `ConsumerLost`."""
        if position == self.acknowledged and self._last.end is None and steady_seconds() < self._renew_at:
            return
        self._last = replace(self._last, end=None)
        self._move(position)

    def _move(self, position: Position) -> None:
        if self.consumer is not None:
            begun = steady_seconds()
            self._session.catalog.move(self.consumer, self._token, position, self._last)
            self._renewed(begun)
        if position != self.acknowledged:
            self._hold(position)
        self.acknowledged = position

    def look(self) -> Look:
        """A look for the table's next commit. Raises `ConsumerLost` if another reader has taken over."""
        found = self._session.catalog.look(self._spec, self.consumer)
        if self.consumer is not None and found.token != self._token:
            raise lost(self.consumer)
        return found

    def explained(self, error: VersionNotFound) -> VersionNotFound:
        """What it means for this reader that a version has expired."""
        if self.consumer is None or isinstance(error, ConsumerExpired):
            return error
        return ConsumerExpired(EXPIRED, consumer=self.consumer, **error.facts)

    def _renewed(self, begun: float) -> None:
        self._renew_at = begun + self._lease_seconds / 3

    def _hold(self, position: Position) -> None:
        """Pin the version for as long as this process reads on from it."""
        former = self._release
        try:
            self._release = self._session.pins.hold(self, self._spec, position.version)
        except VersionNotFound:
            if self.consumer is None:
                raise
            # The state has expired, and no change since then: the consumer's own lease keeps those.
            self._release = None
        if former is not None:
            former()

    def close(self) -> None:
        """Protect nothing more by a pin; a consumer keeps its place."""
        if self._release is not None:
            self._release()
            self._release = None


class Follower:
    """Batches that follow a position, one after the other.

    ``wait_seconds``: how long it waits for the next commit before it ends; None for ever. A batch is acknowledged when
    the one after it is asked for.
    """

    def __init__(self, feed: Feed, place: Place, start: Position, *, changes: bool, wait_seconds: float | None) -> None:
        self._feed, self._place, self._position = feed, place, start
        self._changes = changes
        self._wait_seconds = wait_seconds
        self._erased: int | None = None
        """The newest erasure by the last look before rows were read."""

    def batches(self) -> Iterator[Batch]:
        """The batches. Raises `TableNotFound` after the last one of a table that was dropped."""
        try:
            while True:
                look = self._next()
                if look is None:
                    return
                if look.schema_number != self._feed.spec.schema_number:
                    self._feed.refresh()
                self._erased = look.erased
                yield from self._until(look.newest or 0)
        except VersionNotFound as error:
            raise self._place.explained(error) from error
        finally:
            self._place.close()

    def _next(self) -> Look | None:
        """A look that found something to read; None if nothing came in time."""
        waiting = self._feed.session.catalog.waiting
        deadline = None if self._wait_seconds is None else time.monotonic() + self._wait_seconds
        pause_seconds = _PAUSES[0]
        while True:
            seen = waiting.releases
            look = self._place.look()
            if self._position.is_snapshot or (look.newest or 0) > self._position.version:
                return look
            self._place.acknowledge(self._position)
            if look.schema_number is None or look.dropped is not None:
                raise TableNotFound("the table was dropped", table=self._feed.spec.name, dropped=look.dropped)
            left = pause_seconds if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return None
            waiting.until_released(seen, min(pause_seconds, left))
            interrupts.check()
            pause_seconds = min(pause_seconds * 2, _PAUSES[1])

    def _until(self, newest: int) -> Iterator[Batch]:
        deltas, reached = self._feed.following(self._position, newest)
        for delta in deltas:
            while not (yield from self._of(delta)):
                pass
        self._position = max(self._position, Position(reached))

    def _of(self, delta: CommitDelta) -> Generator[Batch, None, bool]:
        """Batches of a commit, from where the reader is; returns whether that was all.

        It is not if the table was altered, or rows erased, since what a batch would have given was read.
        """
        for rows, end in self._batches(delta):
            look = self._place.look()
            if look.schema_number not in (None, self._feed.spec.schema_number) and look.dropped is None:
                self._feed.refresh()
                return False
            if look.erased != self._erased:
                self._erased = look.erased
                return False
            yield Batch(delta.version, rows, self._place.give(self._position, end))
            self._position = end
        self._position = max(self._position, delta.end)
        return True

    def _batches(self, delta: CommitDelta) -> Iterator[tuple[pa.Table, Position]]:
        """Rows of a commit, from where the reader is, and where each batch ends; first what was given and not read."""
        pieces, unread = delta.pieces(changes=self._changes), self._place.unread
        some = [] if unread is None else between(pieces, self._position, unread)
        if unread is not None and some and self._position < unread:
            yield from self._unread(delta, some, unread)
        pieces = between(pieces, self._position)
        if pieces and self._position.row is not None:  # the rest of a piece
            yield from self._cut(delta, pieces.pop(0))
        for group in grouped(pieces, BATCH_ROWS, GROUP_BYTES):
            one = group[0]
            if one.rows > BATCH_ROWS and self._feed.is_by_id(delta, one, changes=self._changes):
                yield from self._cut(delta, one)
            else:
                yield from _whole(self._feed.rows(delta, group, changes=self._changes), group[-1].end)

    def _unread(self, delta: CommitDelta, pieces: list[Piece], end: Position) -> Iterator[tuple[pa.Table, Position]]:
        """What was given before and not read, as one batch again, whatever was erased of it."""
        held: list[pa.RecordBatch] = []
        after = self._position.row
        if end.row is not None:
            last = pieces.pop()
            if pieces:
                held += self._feed.rows(delta, pieces, changes=self._changes, after=after)
                after = None
            for rows, ids in self._feed.by_id(delta, last, after, changes=self._changes):
                held.append(rows.filter(pa.array(ids <= end.row)))
                if ids[-1] >= end.row:
                    break
        else:
            held += self._feed.rows(delta, pieces, changes=self._changes, after=after)
        yield from _whole(held, end)

    def _cut(self, delta: CommitDelta, piece: Piece) -> Iterator[tuple[pa.Table, Position]]:
        """The rows of a large piece from where the reader is, in several batches."""
        held: list[pa.RecordBatch] = []
        count = 0
        after = self._position.row if self._position.piece_end == piece.position else None
        for rows, ids in self._feed.by_id(delta, piece, after, changes=self._changes):
            begin = 0
            while len(rows) - begin >= (more := BATCH_ROWS - count):
                held.append(rows.slice(begin, more))
                begin += more
                yield pa.Table.from_batches(held), replace(piece.position, row=int(ids[begin - 1]))
                held, count = [], 0
            held.append(rows.slice(begin))
            count += len(rows) - begin
        yield from _whole(held, piece.end)


def _whole(rows: Iterable[pa.RecordBatch], end: Position) -> Iterator[tuple[pa.Table, Position]]:
    """Rows as one batch; none without any."""
    held = [one for one in rows if len(one)]
    if held:
        yield pa.Table.from_batches(held), end
