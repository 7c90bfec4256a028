"""What a child process must not take over from its parent by a fork: threads, locks, connections, leases, operations.

Whatever holds such a thing registers with `watch_forks`, and then becomes the child's own: nothing of the
parent's is renewed, released, closed or ended by a child.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Inherited(Protocol):
    """Something to notify in a child process that it was copied there."""

    def after_fork(self) -> None:
        """Let go of everything of the parent's, without a word to anybody; no other thread runs."""


_watched: weakref.WeakSet[Inherited] = weakref.WeakSet()


def watch_forks(one: Inherited) -> None:
    """Tell something of each fork in the child, for as long as it lives."""
    _watched.add(one)


class Stopped(Protocol):
    """Something that must be at rest while its process forks."""

    def before_fork(self) -> None:
        """Come to rest. Always followed by `after_fork`, in the parent by `go_on`."""

    def go_on(self) -> None:
        """The parent goes on."""


_stopped: weakref.WeakSet[Stopped] = weakref.WeakSet()
_resting: list[Stopped] = []


def stop_for_forks(one: Stopped) -> None:
    """Bring something to rest before each fork, for as long as it lives."""
    _stopped.add(one)


def _before() -> None:
    _resting[:] = list(_stopped)
    for one in _resting:
        one.before_fork()


def _go_on() -> None:
    for one in _resting:
        one.go_on()
    _resting.clear()


def _tell() -> None:
    _resting.clear()
    for one in list(_watched):
        one.after_fork()


os.register_at_fork(before=_before, after_in_parent=_go_on, after_in_child=_tell)
