"""Ctrl-C and SIGTERM on the command line: nothing is written, or the command says what was.

Python raises `KeyboardInterrupt` wherever it happens to be. DuckDB and Arrow's C streams turn that into errors of their
own, and shells start background commands with SIGINT ignored. So an interrupt is also recorded, and a commit that has
not been sent yet checks for it. While a commit is being sent an interrupt waits; what is committed is reported as done.
This applies only to a process that is `listening`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from lakehouse import cancelling

NOTHING = "interrupted: nothing was written"
IN_STEPS = "interrupted: what was done until then stays; run it again for the rest"
TOO_LATE = "interrupted too late: it was committed already, and is done"


class Interrupted(BaseException):
    """The process was asked to end.

    Not an `Exception`, so that neither handlers nor the command-line framework catch it.
    """


class _State:
    """The state of interrupts in this process; signals arrive in its main thread."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.is_committing = False
        self.is_done = False
        self.in_steps = False
        self.is_undoing = False

    def message(self) -> str:
        """The message about an interrupt's outcome."""
        return IN_STEPS if self.in_steps else NOTHING


@contextmanager
def listening(*, ends: bool = False) -> Iterator[None]:
    """Around a command: turns an interrupt into one correct line on standard error, and an exit code.

    The code is 130 for Ctrl-C and 143 for SIGTERM, as in shells, or 0 if it came after the commit. ``ends``: the
    process ends next; after a commit no interrupt may change its exit code to that of a command that did nothing.
    """
    global _state  # noqa: PLW0603 - signals belong to the process
    before, _state = _state, _State()
    replaced = {}
    if threading.current_thread() is threading.main_thread():
        replaced = {number: signal.signal(number, _noted) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except BaseException as error:
        is_interrupt = isinstance(error, (Interrupted, KeyboardInterrupt)) or _state.signal is not None
        if not is_interrupt or (_state.is_done and not _state.in_steps):
            raise
        print(f"lakehouse: {_state.message()}", file=sys.stderr)
        raise SystemExit(128 + (_state.signal or signal.SIGINT)) from error  # whatever it became on the way here
    finally:
        is_over = _state.is_done and not _state.in_steps
        for number, handler in replaced.items():
            signal.signal(number, signal.SIG_IGN if ends and is_over else handler)
        if _state.signal is not None and is_over:
            print(f"lakehouse: {TOO_LATE}", file=sys.stderr)
        before.is_done, before.in_steps = before.is_done or _state.is_done, before.in_steps or _state.in_steps
        _state = before


def in_steps() -> None:
    """Declare that the command has many steps, each of which stays done when a later one is interrupted."""
    _state.in_steps = True


def check() -> None:
    """Raise if the process was asked to end, even if the signal's exception was lost, or this thread's work to stop.

    Raises `Interrupted`, `StatementCancelled`.
    """
    if _state.signal is not None and not _state.is_undoing:
        raise Interrupted
    cancelling.check()


@contextmanager
def undoing() -> Iterator[None]:
    """Around what undoes all that was committed.

    Whoever was asked to end still does this, and has then done nothing.
    """
    _state.is_undoing = True
    try:
        with cancelling.shielded():
            yield
        _state.is_done = False
    finally:
        _state.is_undoing = False


@contextmanager
def committing() -> Iterator[None]:
    """Around a commit: an interrupt waits, or the outcome would be unknown.

    `check`, before the transaction ends, ends it without a commit.
    """
    check()
    _state.is_committing = True
    try:
        yield
        _state.is_done = True
    finally:
        _state.is_committing = False
    if _state.in_steps:
        check()


def before_raising(action: Callable[[], None]) -> None:
    """Have an action done in the main thread each time an interrupt is about to be raised there."""
    _actions.append(action)


def _noted(number: int, _: FrameType | None) -> None:
    is_second, _state.signal = _state.signal is not None, number
    if _state.is_committing or (_state.is_done and not _state.in_steps):
        return
    if is_second:  # a second signal skips the clean-up: leases expire by themselves
        os.write(2, f"lakehouse: {_state.message()}\n".encode())
        os._exit(128 + number)
    for action in _actions:
        action()
    raise Interrupted


_state = _State()
_actions: list[Callable[[], None]] = []
