"""Cancelling work of another thread: it stops what it waits for, and commits nothing more.

A thread that `runs` something can be asked to stop. Whatever it then waits for and can be interrupted (a query of an
engine, an answer of another process) is `watched`; loops call `check`, and so does a commit, for the last time just
before it ends. While the work undoes what it has done, it is `shielded`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lakehouse.errors import CommitUnknown, StatementCancelled
from lakehouse.forks import watch_forks

_AGAIN_SECONDS = 0.05
_here = threading.local()


class _Work:
    """What one thread does, and how it is stopped."""

    def __init__(self) -> None:
        self.thread = threading.current_thread()
        self.is_cancelled = False
        self.ended = threading.Event()
        self._guard = threading.Lock()
        self._stops: list[Callable[[], object]] = []
        self._shields = 0

    def add(self, stop: Callable[[], object]) -> None:
        with self._guard:
            self._stops.append(stop)
        self.check()

    def remove(self, stop: Callable[[], object]) -> None:
        with self._guard:
            self._stops.remove(stop)

    def check(self) -> None:
        if self.is_cancelled and not self._shields:
            raise StatementCancelled("the statement was cancelled; nothing was changed")

    def stop(self) -> None:
        with self._guard:  # nothing that is stopped here becomes something else meanwhile
            for one in () if self._shields else self._stops:
                one()

    def shield(self, by: int) -> None:
        with self._guard:
            self._shields += by

    def stop_until_ended(self) -> None:
        """Stop what it waits for, again and again: what it waits for next may have begun just after the last time."""
        while not self.ended.wait(_AGAIN_SECONDS):
            self.stop()


class Works:
    """What the threads of this process do and can be cancelled. Thread-safe."""

    def __init__(self) -> None:
        self.after_fork()
        watch_forks(self)

    def after_fork(self) -> None:
        """The threads of a parent did not come along."""
        self._guard = threading.Lock()
        self._running: set[_Work] = set()

    @contextmanager
    def runs(self) -> Iterator[None]:
        """Around what this thread does: raises `StatementCancelled` if it was cancelled and failed by that."""
        if getattr(_here, "work", None) is not None:  # a part of what runs already
            yield
            return
        work = _here.work = _Work()
        with self._guard:
            self._running.add(work)
        try:
            yield
        except (CommitUnknown, StatementCancelled):
            raise
        except Exception as error:
            if not work.is_cancelled:
                raise
            # Whatever the interrupt became on its way here.
            raise StatementCancelled("the statement was cancelled; nothing was changed") from error
        finally:
            work.ended.set()
            _here.work = None
            with self._guard:
                self._running.discard(work)

    def cancel(self, thread: threading.Thread | None) -> None:
        """Cancel what a thread does, or what all do. Returns at once."""
        with self._guard:
            found = [one for one in self._running if thread in (None, one.thread)]
        for one in found:
            one.is_cancelled = True
            one.stop()
            threading.Thread(target=one.stop_until_ended, name="lakehouse-cancel", daemon=True).start()


def check() -> None:
    """Raise `StatementCancelled` if this thread's work was cancelled."""
    work = getattr(_here, "work", None)
    if work is not None:
        work.check()


def watch(stop: Callable[[], object]) -> None:
    """Call ``stop`` when this thread's work is cancelled, until it ends. Raises if it was already."""
    work = getattr(_here, "work", None)
    if work is not None:
        work.add(stop)


@contextmanager
def watched(stop: Callable[[], object]) -> Iterator[None]:
    """The same for as long as the context lasts."""
    work = getattr(_here, "work", None)
    if work is None:
        yield
        return
    work.add(stop)
    try:
        yield
    finally:
        work.remove(stop)


@contextmanager
def shielded() -> Iterator[None]:
    """Around what undoes or ends something: a cancelled work still does this."""
    work = getattr(_here, "work", None)
    if work is None:
        yield
        return
    work.shield(1)
    try:
        yield
    finally:
        work.shield(-1)
