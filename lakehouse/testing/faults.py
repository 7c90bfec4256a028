"""Arm the fault points of `lakehouse.faults`: raise, kill the process, or hold a thread at a point.

Only one set of points is armed in a process at a time; `armed` restores the previous one.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from lakehouse import faults
from lakehouse.errors import InvalidInput

HOLD_SECONDS = 60.0
"""No thread is held longer than this, so that a wrong test ends."""


class Injected(RuntimeError):
    """Raised by a test at a fault point; no code of the library knows it."""


def fail(message: str = "injected") -> Callable[[], None]:
    """An action that raises `Injected`."""

    def action() -> None:
        raise Injected(message)

    return action


def kill() -> None:
    """End this process at once, as a power cut or the kernel's killer would: no clean-up, no flush."""
    os.kill(os.getpid(), signal.SIGKILL)


def on_count(number: int, action: Callable[[], None]) -> Callable[[], None]:
    """Run the action only the ``number``-th time that the point is reached, counted from 1.

    >>> seen = []
    >>> second = on_count(2, lambda: seen.append("ran"))
    >>> second(), second(), second(), seen
    (None, None, None, ['ran'])
    """
    lock = threading.Lock()
    reached = 0

    def counted() -> None:
        nonlocal reached
        with lock:
            reached += 1
            due = reached == number
        if due:
            action()

    return counted


@dataclass(frozen=True, slots=True)
class Gate:
    """Holds the threads that reach a point until it is opened.

    >>> gate = Gate()
    >>> with armed({"commit.before": gate.hold}):
    ...     thread = threading.Thread(target=faults.reach, args=("commit.before",))
    ...     thread.start()
    ...     gate.wait_reached()
    ...     gate.open()
    ...     thread.join()
    """

    _reached: threading.Event = field(default_factory=threading.Event)
    _opened: threading.Event = field(default_factory=threading.Event)

    def hold(self) -> None:
        """The action to arm: report that a thread is here and wait for `open`."""
        self._reached.set()
        if not self._opened.wait(HOLD_SECONDS):
            raise Injected("a gate was never opened")

    def wait_reached(self) -> None:
        """Return when a thread is held at the gate."""
        if not self._reached.wait(HOLD_SECONDS):
            raise Injected("no thread reached the gate")

    @property
    def reached(self) -> bool:
        """Whether a thread has reached the gate."""
        return self._reached.is_set()

    def open(self) -> None:
        """Let every held thread continue."""
        self._opened.set()


@contextmanager
def armed(actions: dict[str, Callable[[], None]]) -> Iterator[None]:
    """Arm points for the length of a ``with`` block. Raises `InvalidInput` for a point that does not exist.

    >>> with armed({"commit.before": fail("stop here")}):
    ...     faults.reach("commit.before")
    Traceback (most recent call last):
    lakehouse.testing.faults.Injected: stop here
    """
    unknown = sorted(actions.keys() - faults.POINTS.keys() - faults.HANDOFF_POINTS.keys())
    if unknown:
        raise InvalidInput("no such fault point; see lakehouse.faults.POINTS", unknown=unknown)
    before = faults.armed
    faults.armed = {**(before or {}), **actions}
    try:
        yield
    finally:
        faults.armed = before
