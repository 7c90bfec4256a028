"""Follows a table in process: batches of its rows or changes, and waiting for the next commit."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from lakehouse import interrupts
from lakehouse.catalog.state.feed import Look
from lakehouse.catalog.store.clock import steady_seconds
from lakehouse.catalog.versions.consumers import EXPIRED, lost
from lakehouse.core.feed import CommitDelta, Piece, Position, between, grouped
from lakehouse.core.spec import TableSpec
from lakehouse.errors import ConsumerExpired, TableNotFound, VersionNotFound
from lakehouse.reading.feed import GROUP_BYTES, GROUP_ROWS
from lakehouse.reading.feed_window import Feed
from lakehouse.session.session import Session

BATCH_ROWS = 1 << 17
"""How many rows a batch has, or a few more."""
_PAUSES = (0.005, 0.25)
"""The shortest and the longest time between two looks for a commit of another process, in seconds."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one version; a large commit comes in several batches."""

    version: int
    rows: pa.Table


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

    def begin(self, start: Position, given: Position | None) -> Position:
        """Begin at a position, or where a known consumer is. Raises `VersionNotFound`, `ConsumerExpired`."""
        if self.consumer is not None:
            begun = steady_seconds()
            start = self._session.catalog.attach(
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

    def acknowledge(self, position: Position) -> None:
        """Record that everything up to a position has been dealt with. Raises `ConsumerLost`."""
        if position == self.acknowledged and steady_seconds() < self._renew_at:
            return
        if self.consumer is not None:
            begun = steady_seconds()
            self._session.catalog.move(self.consumer, self._token, position)
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

    ``wait_seconds``: how long it waits for the next commit before it ends; None for ever. A position is acknowledged
    when the batch after it is asked for.
    """

    def __init__(self, feed: Feed, place: Place, start: Position, *, changes: bool, wait_seconds: float | None) -> None:
        self._feed, self._place, self._position = feed, place, start
        self._changes = changes
        self._wait_seconds = wait_seconds

    def batches(self) -> Iterator[Batch]:
        """The batches. Raises `TableNotFound` after the last one of a table that was dropped."""
        try:
            while True:
                look = self._next()
                if look is None:
                    return
                if look.schema_number != self._feed.spec.schema_number:
                    self._feed.refresh()
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
            yield from self._of(delta)
        self._position = max(self._position, Position(reached))

    def _of(self, delta: CommitDelta) -> Iterator[Batch]:
        pieces = between(delta.pieces(changes=self._changes), self._position)
        for group in grouped(pieces, GROUP_ROWS, GROUP_BYTES):
            for table in self._tables(delta, group):
                self._place.acknowledge(self._position)
                yield Batch(delta.version, table)
            self._position = group[-1].end
        self._position = max(self._position, delta.end)

    def _tables(self, delta: CommitDelta, group: list[Piece]) -> Iterator[pa.Table]:
        """Rows of some pieces in tables of about `BATCH_ROWS`."""
        held: list[pa.RecordBatch] = []
        rows = 0
        for batch in self._feed.rows(delta, group, changes=self._changes):
            held.append(batch)
            rows += len(batch)
            if rows >= BATCH_ROWS:
                yield pa.Table.from_batches(held)
                held, rows = [], 0
        if held:
            yield pa.Table.from_batches(held)
