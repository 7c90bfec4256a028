"""The handoff of a group of query nodes from one version of the lake to the next, as plain values.

A group answers at its live version. When the lake has a newer one, that becomes the group's target: each node loads
what it lacks of it while it answers at the live one; when all have, the live version flips, in one row of the catalog;
each node answers at the new one from its next query on, which confirms it; and when all do, they unload what no version
in use needs. Any node may take any step of the group's: each is a compare-and-set, of which one succeeds.

No answer depends on what is loaded: a node that lacks a segment reads it from the warehouse. So a node that joins, or
was away, answers at once, and what goes wrong in a handoff costs time and never a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group's row: its live version, that it is to have next (None: none), and how often the live one flipped."""

    live: int
    target: int | None = None
    flips: int = 0
    replicas: int | None = None


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node as it reported itself last.

    ``live``: the version that it answers at. ``loaded``: versions of which it holds every segment that it is to hold.
    ``used``: versions that queries, or clients that came back to them, use. ``failed``: versions that it could not
    load. ``is_leased``: whether it has renewed its lease. It has ``joined`` once it has loaded the version of its
    group: until then no flip waits for it. One that is ``leaving`` answers what it has begun.
    """

    id: str
    live: int
    loaded: frozenset[int] = frozenset()
    used: frozenset[int] = frozenset()
    failed: frozenset[int] = frozenset()
    is_leased: bool = True
    has_joined: bool = False
    is_leaving: bool = False

    @property
    def counts(self) -> bool:
        """Whether a flip waits for it."""
        return self.is_leased and self.has_joined and not self.is_leaving


@dataclass(frozen=True, slots=True)
class Follow:
    """Answer at the group's live version from now on."""

    version: int


@dataclass(frozen=True, slots=True)
class Aim:
    """Make a version the group's target."""

    version: int


@dataclass(frozen=True, slots=True)
class Load:
    """Load what is lacking of a version."""

    version: int


@dataclass(frozen=True, slots=True)
class Flip:
    """Make the target live."""

    version: int


@dataclass(frozen=True, slots=True)
class Unload:
    """Let go of versions; segments that others do not share go."""

    versions: frozenset[int]


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing is to be done. ``waits_for`` names nodes that have yet to load the target."""

    waits_for: tuple[str, ...] = ()


Step = Follow | Aim | Load | Flip | Unload | Rest


def next_step(group: GroupState, me: NodeState, others: Iterable[NodeState], head: int) -> Step:
    """What a node does next, of what it knows of its group and the lake's head.

    >>> group = GroupState(live=3, target=5)
    >>> here, there = NodeState("a", 3, frozenset({3}), has_joined=True), NodeState("b", 3, frozenset({3, 5}),
    ...     has_joined=True)
    >>> next_step(group, here, [there], head=5), next_step(group, there, [here], head=5)
    (Load(version=5), Rest(waits_for=('a',)))
    """
    nodes = [me, *(one for one in others if one.id != me.id)]
    if me.live < group.live:
        return Follow(group.live)
    aimed = _aim(group, nodes, head)
    if aimed is not None:
        return Aim(aimed)
    wanted = group.live if group.target is None else group.target
    if group.target is not None:
        late = lacking(group.target, nodes)
        if not late:
            return Flip(group.target)
        if group.target in me.loaded:
            return _rest(group, me, nodes) or Rest(late)
    if wanted not in me.loaded and wanted not in me.failed:
        return Load(wanted)
    return _rest(group, me, nodes) or Rest(() if group.target is None else lacking(group.target, nodes))


def lacking(version: int, nodes: Iterable[NodeState]) -> tuple[str, ...]:
    """Nodes that a flip to a version waits for, by id."""
    return tuple(sorted(one.id for one in nodes if one.counts and version not in one.loaded))


def _aim(group: GroupState, nodes: list[NodeState], head: int) -> int | None:
    """The version that is to be the group's next one: a newer head, once there is no target, or it cannot be loaded."""
    if group.target is None:
        return head if head > group.live else None
    is_stuck = any(one.counts and group.target in one.failed for one in nodes)
    return head if is_stuck and head > group.target else None


def _rest(group: GroupState, me: NodeState, nodes: list[NodeState]) -> Unload | None:
    """What may go, once every node that counts answers at the live version."""
    if any(one.counts and one.live < group.live for one in nodes):
        return None
    kept = {group.live, me.live, group.target, *me.used}
    gone = (me.loaded | me.failed) - kept
    return Unload(frozenset(gone)) if gone else None
