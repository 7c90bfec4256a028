"""Every schedule of a small group of query nodes: handoffs by `lakehouse.core.serving.handoff`, and what may go wrong.

Nodes look and act at different moments, crash, start again, pause beyond their lease and go on, and are cut off from
the catalog, while versions are committed and a client asks whichever node answers. Checked is what
`lakehouse.core.serving.handoff` promises: in each state that can be reached, and that every one leads to the end of the
handoff once nothing else goes wrong.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from lakehouse.core.serving.handoff import (
    Aim,
    Flip,
    Follow,
    GroupState,
    Load,
    NodeState,
    Step,
    Unload,
    lacking,
    next_step,
)

NextStep = Callable[[GroupState, NodeState, list[NodeState], int], Step]
_UP, _DOWN, _PAUSED = "up", "down", "paused"
_MOST_ROUNDS = 40


@dataclass(frozen=True, slots=True)
class Member:
    """A node: how it is in the catalog, what its process does, and what it has seen and not acted upon."""

    state: NodeState
    process: str = _UP
    is_cut: bool = False
    pending: Step | None = None
    seen: GroupState | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """The whole world: the lake's head, versions that were once live, a group, its nodes, what the client has seen."""

    head: int
    group: GroupState
    lived: frozenset[int]
    members: tuple[Member, ...]
    client: int = 0
    faults: int = 0


@dataclass(frozen=True, slots=True)
class World:
    """How large the world is: versions and faults that there may be."""

    nodes: int = 2
    versions: int = 3
    faults: int = 2
    step: NextStep = next_step

    def first(self) -> Moment:
        """Two nodes that have joined, at the first version."""
        members = tuple(Member(_node(str(place), 1)) for place in range(self.nodes))
        return Moment(1, GroupState(1), frozenset({1}), members)

    def following(self, now: Moment) -> Iterator[tuple[str, Moment]]:
        """Each moment that may come next, and what happens."""
        if now.head < self.versions:
            yield "commit", replace(now, head=now.head + 1)
        for place, one in enumerate(now.members):
            for what, then in self._of_node(now, place, one):
                yield f"{what} {one.state.id}", then

    def _of_node(self, now: Moment, place: int, one: Member) -> Iterator[tuple[str, Moment]]:
        may_fail = now.faults < self.faults
        if one.process == _UP:
            if not one.is_cut:
                yield "look", _put(now, place, self._looked(now, place))
                if one.pending is not None:
                    yield "act", self.acted(now, place)
                if isinstance(one.pending, Load) and may_fail:
                    broken = replace(one.state, failed=one.state.failed | {one.pending.version})
                    failed = replace(now, faults=now.faults + 1)
                    yield "fail to load at", _put(failed, place, replace(one, state=broken, pending=None, seen=None))
                if one.state.failed:
                    yield "try again at", _put(now, place, replace(one, state=replace(one.state, failed=frozenset())))
            yield "ask", self._asked(now, place)
            if may_fail:
                gone = replace(one, state=replace(one.state, is_leased=False), pending=None)
                failed = replace(now, faults=now.faults + 1)
                yield "crash", _put(failed, place, replace(gone, process=_DOWN, is_cut=False))
                yield "pause", _put(failed, place, replace(one, process=_PAUSED))
                if not one.is_cut:
                    yield "cut off", _put(failed, place, replace(one, is_cut=True))
        if one.process == _PAUSED or one.is_cut:
            if one.state.is_leased:
                yield "end lease of", _put(now, place, replace(one, state=replace(one.state, is_leased=False)))
            back = replace(one, process=_UP, is_cut=False, state=replace(one.state, is_leased=True))
            yield "bring back", _put(now, place, back)
        if one.process == _DOWN:
            yield "start", self._started(now, place)

    def _looked(self, now: Moment, place: int) -> Member:
        one = now.members[place]
        others = [member.state for member in now.members]
        step = self.step(now.group, one.state, others, now.head)
        return replace(one, pending=step, seen=now.group)

    def acted(self, now: Moment, place: int) -> Moment:
        """What comes of the step that a node has chosen, of what it saw then."""
        one = now.members[place]
        seen, state = one.seen, one.state
        assert seen is not None
        done = replace(one, pending=None, seen=None)
        is_same = (seen.flips, seen.target) == (now.group.flips, now.group.target)
        match one.pending:
            case Follow(version):
                return _put(now, place, replace(done, state=replace(state, live=max(version, state.live))))
            case Aim(_) if is_same and now.head > now.group.live:
                return _put(replace(now, group=replace(now.group, target=now.head)), place, done)
            case Load(version):
                loaded = replace(state, loaded=state.loaded | {version}, has_joined=True)
                return _put(now, place, replace(done, state=loaded))
            case Flip(version) if is_same:
                late = lacking(version, [member.state for member in now.members])
                if late:
                    return _put(now, place, done)
                group = GroupState(version, None, now.group.flips + 1)
                flipped = replace(now, group=group, lived=now.lived | {version})
                return _put(flipped, place, replace(done, state=replace(state, live=max(version, state.live))))
            case Unload(versions):
                assert state.live not in versions, "a node lets go of what it answers at"
                return _put(now, place, replace(done, state=replace(state, loaded=state.loaded - versions)))
        return _put(now, place, done)

    def _started(self, now: Moment, place: int) -> Moment:
        one = now.members[place]
        if not any(member.state.counts for member in now.members) and now.head > now.group.live:
            group = GroupState(now.head, None, now.group.flips + 1)
            now = replace(now, group=group, lived=now.lived | {now.head})
        fresh = NodeState(one.state.id, now.group.live)
        return _put(now, place, Member(fresh))

    def _asked(self, now: Moment, place: int) -> Moment:
        """A query of the client: a node that reaches the catalog looks first; one that is behind refuses."""
        one = now.members[place]
        state = one.state if one.is_cut else replace(one.state, live=max(one.state.live, now.group.live))
        then = _put(now, place, replace(one, state=state))
        if state.live < now.client:
            return then
        assert state.live in now.lived, "an answer at a version that was never live"
        return replace(then, client=state.live)

    def ends(self, now: Moment) -> bool:
        """Whether the handoff comes to its end, once all nodes are up and nothing else goes wrong."""
        for place, one in enumerate(now.members):
            if one.process == _DOWN:
                now = self._started(now, place)
            else:
                sound = replace(one.state, is_leased=True, failed=frozenset())
                back = replace(one, process=_UP, is_cut=False, state=sound)
                now = _put(now, place, replace(back, pending=None))
        for _ in range(_MOST_ROUNDS):
            for place in range(len(now.members)):
                now = _put(now, place, self._looked(now, place))
                now = self.acted(now, place)
            if all(_is_done(now, one) for one in now.members):
                return True
        return False


def explore(world: World) -> int:
    """Check every moment that can be reached; how many there are. Raises `AssertionError` with the way to it."""
    first = world.first()
    ways: dict[Moment, tuple[Moment, str] | None] = {first: None}
    waiting = deque([first])
    while waiting:
        now = waiting.popleft()
        try:
            assert world.ends(now), "the handoff never ends"
            for what, then in world.following(now):
                if then not in ways:
                    ways[then] = now, what
                    _check(now, then)
                    waiting.append(then)
        except AssertionError as error:
            raise AssertionError(f"{error}: {', '.join(_way(ways, now))}") from error
    return len(ways)


def _check(before: Moment, now: Moment) -> None:
    assert now.client >= before.client, "a client's versions went back"
    assert now.group.live >= before.group.live, "the live version went back"
    assert now.group.target is None or now.group.target > now.group.live, "the target is no newer one"
    for old, new in zip(before.members, now.members, strict=True):
        assert new.state.live >= old.state.live or old.process == _DOWN, "a node went back"
        assert new.state.live <= now.group.live, "a node is ahead of its group"
    if now.group.flips > before.group.flips and before.group.target == now.group.live:
        late = lacking(now.group.live, [one.state for one in before.members])
        assert not late, "a flip before all had loaded it"


def _way(ways: dict[Moment, tuple[Moment, str] | None], now: Moment) -> list[str]:
    found = []
    while (step := ways[now]) is not None:
        now = step[0]
        found.append(step[1])
    return found[::-1]


def _is_done(now: Moment, one: Member) -> bool:
    return now.group.live == now.head == one.state.live and one.state.loaded == {now.head}


def _put(now: Moment, place: int, one: Member) -> Moment:
    members = list(now.members)
    members[place] = one
    return replace(now, members=tuple(members))


def _node(name: str, live: int) -> NodeState:
    return NodeState(name, live, frozenset({live}), has_joined=True)
