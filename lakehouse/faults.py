"""Named points in the code at which a test may stop, delay or break an operation.

``reach(point)`` does nothing unless a test armed that point (`lakehouse.testing.faults`), so it may be in a hot path:
unarmed it costs one comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

POINTS: Final[Mapping[str, str]] = {
    "begin.registered": "the operation and its folder are in the catalog, nothing is written",
    "write.before": "a batch of rows is about to be written",
    "write.after": "a batch's files are durable",
    "commit.before": "commit was called, its catalog transaction has not begun",
    "commit.head": "the catalog transaction holds the head",
    "commit.table": "one table's delta is recorded, in a commit of several once for each",
    "commit.frames": "the commit stands, key frames that it made due are about to be recorded",
    "commit.recorded": "everything is recorded, COMMIT is about to be sent",
    "commit.after": "COMMIT was answered, the caller does not know yet",
    "abort.before": "an operation is about to be marked as aborted",
    "erase.looked": "an erasure looked into everything, and its commit was not called",
    "erase.committed": "an erasure is committed, the key frames that it took out are not written again",
    "expire.recorded": "the horizon is where it will be, what that leaves unreachable is still there",
    "expire.forgotten": "one batch of what cannot be reached is out of the catalog",
    "collect.marked": "operations past their lease and the grace are ended, what is due is known, no file is touched",
    "collect.before_delete": "a batch of files was looked at again and is about to be deleted",
    "collect.after_delete": "a batch of files is deleted, the catalog still lists them",
    "export.written": "every part of an export is durable, its manifest is not written",
    "export.before_rename": "an export is complete and durable but for its name",
    "task.claimed": "a task of the table service is claimed, nothing is done for it",
    "task.done": "a task did its work and committed, the queue does not know",
    "summaries.written": "indexes or sketches of some segments are made, their files durable, none is in the catalog",
    "summaries.stored": "some small ones are in the catalog, the operation that made them runs",
    "summaries.registered": "all are in the catalog, their operation is ended",
    "read.planned": "a read's plan is made, no data file is open",
}
"""Every point of what writes and maintains, and what is true when it is reached."""

HANDOFF_POINTS: Final[Mapping[str, str]] = {
    "handoff.joined": "a query node's row is in the catalog, it has no version in memory",
    "handoff.look": "a node is about to look at its group",
    "handoff.aimed": "the lake's head is the group's target, nobody has begun to load it",
    "handoff.loading": "it is known what is to be loaded, some of it may be there",
    "handoff.loaded": "a node holds what it is to hold of a version, and has not reported it",
    "handoff.flip": "all nodes that count have loaded the target, which is about to become live",
    "handoff.flipped": "the target is live in the catalog, the node answers at the version before",
    "handoff.followed": "the node answers at a later version, and has not reported it",
    "handoff.unloaded": "versions are not in a node's memory any more, copies of their files are",
}
"""Every point of the handoff between versions, and what is true when it is reached."""

armed: Mapping[str, Callable[[], None]] | None = None
"""What to call at each point; None when no test is watching."""


def reach(point: str) -> None:
    """Run what a test armed at this point, if anything.

    >>> reach("commit.before")
    """
    if armed is not None:
        action = armed.get(point)
        if action is not None:
            action()
