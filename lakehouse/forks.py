"""What a forked child must not take over from its parent: threads, locks, connections, leases, operations.

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
        """Drop everything of the parent's silently; no other thread runs."""


_watched: weakref.WeakSet[Inherited] = weakref.WeakSet()


def watch_forks(one: Inherited) -> None:
    """Notify an object of each fork in the child, for as long as it lives."""
    _watched.add(one)


class Stopped(Protocol):
    """Something that must be idle while its process forks."""

    def before_fork(self) -> None:
        """Become idle. Always followed by `after_fork` in the child and `go_on` in the parent."""

    def go_on(self) -> None:
        """Resume in the parent."""


_stopped: weakref.WeakSet[Stopped] = weakref.WeakSet()
_resting: list[Stopped] = []


def stop_for_forks(one: Stopped) -> None:
    """Make an object idle before each fork, for as long as it lives."""
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
