"""Waiting for chunk locks, first come first served."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from sqlalchemy import Connection

from lakehouse import interrupts
from lakehouse.catalog.locks import locks
from lakehouse.catalog.store.clock import steady_seconds
from lakehouse.catalog.store.database import Database
from lakehouse.core.interval import from_us
from lakehouse.core.operation import Begun, Kind
from lakehouse.core.spec import TableSpec
from lakehouse.errors import LockTimeout
from lakehouse.forks import watch_forks

T = TypeVar("T")
_LONGEST_PAUSE_SECONDS = 0.1
PLACE_SECONDS = 10
"""How long a place in the queue is kept for a process that stopped renewing it."""


class Waiting:
    """Waits until no lock conflicts: a release in this process ends the wait, one elsewhere is noticed by polling."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._released = threading.Condition()
        self.releases = 0
        """How often this process may have released locks."""
        watch_forks(self)

    def after_fork(self) -> None:
        """A forked child has no thread that would release the condition."""
        self._released = threading.Condition()

    def notify(self) -> None:
        """Notify that this process may have released locks."""
        with self._released:
            self.releases += 1
            self._released.notify_all()

    def until_released(self, seen: int, wait_seconds: float) -> None:
        """Wait until this process may have released locks, or committed, more often than it was seen to."""
        with self._released:
            self._released.wait_for(lambda: self.releases != seen, wait_seconds)

    def until_free(self, attempt: Callable[[], T], spec: TableSpec, wait_seconds: float) -> T:
        """Try until no lock conflicts. Raises `LockTimeout`, naming the holder."""
        deadline = time.monotonic() + wait_seconds
        pause_seconds = 0.005
        while True:
            try:
                return attempt()
            except locks.ChunkHeld as held:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise _timeout(spec, held.holder, wait_seconds) from held
            with self._released:
                self._released.wait(min(pause_seconds, left))
            interrupts.check()
            pause_seconds = min(pause_seconds * 2, _LONGEST_PAUSE_SECONDS)

    def in_turn(
        self,
        attempt: Callable[[int | None], Begun],
        wanted: locks.Wanted,
        operation_id: str,
        kind: Kind,
        wait_seconds: float,
    ) -> Begun:
        """Try once; if it has to wait, queue until it is first. Raises `LockTimeout`."""
        try:
            return attempt(None)
        except locks.ChunkHeld as held:
            if wait_seconds <= 0:
                raise _timeout(wanted.table, held.holder, wait_seconds) from held
        place = self._database.run(
            lambda connection: locks.queue_up(connection, wanted, operation_id, kind, self._until_us(connection)),
        )
        queued = replace(wanted, place=place)
        kept_until = steady_seconds() + PLACE_SECONDS / 2

        def look_and_try() -> Begun:
            nonlocal kept_until
            if steady_seconds() > kept_until:
                self._database.run(lambda connection: locks.stay(connection, place, self._until_us(connection)))
                kept_until = steady_seconds() + PLACE_SECONDS / 2
            self._database.read(
                lambda connection: locks.check_free(connection, queued, self._database.now_us(connection))
            )
            return attempt(place)

        try:
            return self.until_free(look_and_try, wanted.table, wait_seconds)
        except BaseException:
            self._database.run(lambda connection: locks.leave(connection, place))
            raise

    def _until_us(self, connection: Connection) -> int:
        return self._database.now_us(connection) + PLACE_SECONDS * 1_000_000


def _timeout(spec: TableSpec, holder: locks.Holder, wait_seconds: float) -> LockTimeout:
    return LockTimeout(
        f"{holder.kind} {holder.operation} holds the chunks; wait longer (wait_seconds) or try later",
        table=spec.name,
        operation=holder.operation,
        kind_held=holder.kind,
        interval=holder.interval,
        keys=holder.keys,
        expires_at=from_us(holder.expires_us).isoformat(),
        waited_seconds=wait_seconds,
    )
