"""What cancels a query of a node, wherever it waits: for a version, for its turn, or for its rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lakehouse.errors import StatementCancelled
from lakehouse.serving.sending import Held


class Asking:
    """One question while it is being answered, and the ``id`` that it was asked with. Thread-safe.

    It is cancelled for good: whatever it comes to next raises `StatementCancelled`.

    >>> asking = Asking("mine")
    >>> asking.cancel()
    >>> with asking.stopped_by(print):
    ...     pass
    Traceback (most recent call last):
    lakehouse.errors.StatementCancelled: the query was cancelled; nothing was answered
    """

    def __init__(self, id: str = "") -> None:
        self.id = id
        self._guard = threading.Lock()
        self._stop: Callable[[], object] | None = None
        self._is_cancelled = False
        self._held: Held | None = None

    @property
    def is_cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._is_cancelled

    def cancel(self) -> None:
        """Cancel it. Returns at once."""
        with self._guard:  # a block that ends now waits, so that nothing that follows it is stopped instead
            self._is_cancelled = True
            if self._stop is not None:
                self._stop()

    def check(self) -> None:
        """Raise `StatementCancelled` if it was cancelled."""
        if self._is_cancelled:
            raise StatementCancelled("the query was cancelled; nothing was answered")

    @contextmanager
    def stopped_by(self, stop: Callable[[], object]) -> Iterator[None]:
        """Around what waits: ``stop`` ends that, and is called once at most, never after the block.

        Raises `StatementCancelled` if it was cancelled before.
        """
        with self._guard:
            self.check()
            self._stop = stop
        try:
            yield
        finally:
            with self._guard:
                self._stop = None

    def holds(self, held: Held) -> None:
        """Its answer is in memory from now on, until it is `sent`."""
        self._held = held

    def resize(self, size: int) -> None:
        """Its answer is of so many bytes now."""
        if self._held is not None:
            self._held.resize(size)

    def sent(self) -> None:
        """Its answer is sent, or dropped, if there is any. More than once does no harm."""
        with self._guard:
            held, self._held = self._held, None
        if held is not None:
            held.release()


class Askings:
    """The questions that are being answered, by their ids, which several of them may share. Thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._listed: dict[str, list[Asking]] = {}

    @contextmanager
    def listed(self, asking: Asking) -> Iterator[None]:
        """Let it be cancelled by its id inside the block."""
        with self._guard:
            self._listed.setdefault(asking.id, []).append(asking)
        try:
            yield
        finally:
            with self._guard:
                left = self._listed[asking.id]
                left.remove(asking)
                if not left:
                    del self._listed[asking.id]

    @property
    def ids(self) -> list[str]:
        """Their ids, sorted."""
        with self._guard:
            return sorted(self._listed)

    def cancel(self, id: str) -> bool:
        """Cancel those of an id; whether there is any."""
        with self._guard:
            found = list(self._listed.get(id, ()))
        for one in found:
            one.cancel()
        return bool(found)
