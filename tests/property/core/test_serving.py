"""What query nodes do, on plain values: every schedule of a small group, placement, load rules, certificates."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse.core.interval import Interval, from_us
from lakehouse.core.segment import Segment
from lakehouse.core.segments import Segments
from lakehouse.core.serving import handoff
from lakehouse.core.serving.coverage import Coverage, coverage_of, merged
from lakehouse.core.serving.handoff import Flip, Follow, Load, NodeState, Rest, Unload, next_step
from lakehouse.core.serving.placement import held_by
from lakehouse.core.serving.rules import hot, read_rules, rules_from_json, rules_to_json
from lakehouse.errors import InvalidInput
from lakehouse.testing.handoffs import World, explore

DAY_US = 86_400_000_000
SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5)), max_size=12)


def segments(spans: list[tuple[int, int]]) -> Segments:
    return Segments.of(
        Segment(number, from_us(start * DAY_US), from_us((start + days) * DAY_US), number, rows=1, path=str(number))
        for number, (start, days) in enumerate(spans)
    )


def test_no_schedule_of_a_group_mixes_or_retreats_and_every_handoff_ends() -> None:
    assert explore(World(versions=2, faults=2)) > 10_000


def _eager(*given: Any) -> Any:
    """Answers at the target before it is live."""
    group, me, _, _ = given
    if group.target is not None and group.target in me.loaded and me.live < group.target:
        return Follow(group.target)
    return next_step(*given)


def _forgetful(*given: Any) -> Any:
    """Lets go of everything but the target."""
    group, me, _, _ = given
    if group.target is not None and me.loaded > {group.target}:
        return Unload(me.loaded - {group.target})
    return next_step(*given)


def _lazy(*given: Any) -> Any:
    """Never loads what is to be next."""
    step = next_step(*given)
    return Rest() if isinstance(step, Load) else step


@pytest.mark.parametrize("wrong", [_eager, _forgetful, _lazy])
def test_a_wrong_step_is_found(wrong: Any) -> None:
    with pytest.raises(AssertionError):
        explore(World(versions=2, faults=1, step=wrong))


def test_a_flip_waits_for_all_that_count_and_for_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handoff, "lacking", lambda *_: ())
    group, here = handoff.GroupState(1, 2), NodeState("a", 1, frozenset({1}), has_joined=True)
    assert next_step(group, here, [], 2) == Flip(2)
    monkeypatch.undo()
    late = replace(here, id="b")
    ready = replace(here, loaded=frozenset({1, 2}))
    assert next_step(group, ready, [late], 2) == Rest(("b",))
    for gone in ({"is_leased": False}, {"has_joined": False}, {"is_leaving": True}):
        assert next_step(group, ready, [replace(late, **gone)], 2) == Flip(2)


def test_a_version_that_cannot_be_loaded_gives_way_to_a_newer_one_only() -> None:
    broken = NodeState("a", 1, frozenset({1}), failed=frozenset({2}), has_joined=True)
    assert next_step(handoff.GroupState(1, 2), broken, [], 2) == Rest(("a",))
    assert next_step(handoff.GroupState(1, 2), broken, [], 3) == handoff.Aim(3)


@given(st.sets(st.text(min_size=1, max_size=8), min_size=1, max_size=6), st.integers(1, 7), st.integers(0, 500))
@settings(max_examples=60, deadline=None)
def test_each_segment_is_held_by_as_many_nodes_and_few_move(nodes: set[str], replicas: int, first: int) -> None:
    ids = np.arange(first, first + 200)
    held = {one: held_by(one, nodes, ids, replicas) for one in nodes}
    assert (np.sum(list(held.values()), axis=0) == min(replicas, len(nodes))).all()
    gone = min(nodes)
    rest = nodes - {gone}
    for one in rest:
        after = held_by(one, rest, ids, replicas)
        assert not (held[one] & ~after).any(), "a node that stays gives nothing up"
        assert not (after & ~held[one] & ~held[gone]).any() or replicas >= len(nodes)


@given(SPANS, st.data())
@settings(deadline=None)
def test_a_certificate_names_every_instant_of_every_segment_and_nothing_else(
    spans: list[tuple[int, int]], data: Any
) -> None:
    held = segments(spans)
    cached = np.array(data.draw(st.lists(st.booleans(), min_size=len(spans), max_size=len(spans))), np.bool_)
    missing = np.array(data.draw(st.lists(st.booleans(), min_size=len(spans), max_size=len(spans))), np.bool_)
    found = coverage_of("t", 1, held, cached, missing)
    for chosen, intervals in (
        (cached & ~missing, found.cache), (~cached & ~missing, found.warehouse), (missing, found.missing),
    ):  # fmt: skip
        days = {start + day for (start, length), one in zip(spans, chosen, strict=True) if one for day in range(length)}
        assert {day for one in intervals for day in range(one.start_us // DAY_US, one.end_us // DAY_US)} == days
        assert all(one.end < other.start for one, other in pairwise(intervals))
    assert found.is_complete is not missing.any()
    assert Coverage.from_json(found.to_json()) == found
    assert merged([found, found]) == (found,)


RULES = st.lists(
    st.one_of(
        st.builds(lambda days, cold: {"interval": f"last {days}d", "cold": cold}, st.integers(0, 20), st.booleans()),
        st.builds(
            lambda start, cold: {"interval": (from_us(start * DAY_US), from_us((start + 3) * DAY_US)), "cold": cold},
            st.integers(0, 30), st.booleans(),
        ),
        st.just({"cold": True}), st.just({"cold": False}),
    ),
    max_size=4,
)  # fmt: skip


@given(SPANS, RULES, st.integers(0, 40))
@settings(deadline=None)
def test_the_first_rule_that_matches_a_segment_decides(
    spans: list[tuple[int, int]], written: list[dict[str, Any]], today: int
) -> None:
    rules = read_rules(written)
    assert rules_from_json(rules_to_json(rules)) == rules
    found = hot(rules, segments(spans), today * DAY_US)
    for (start, days), is_hot in zip(spans, found.tolist(), strict=True):
        assert is_hot is _by_hand(written, start, start + days, today)


def _by_hand(written: list[dict[str, Any]], start: int, end: int, today: int) -> bool:
    for rule in written:
        interval = rule.get("interval")
        if isinstance(interval, str):
            matches = end > today - int(interval.removeprefix("last ").removesuffix("d"))
        elif interval is not None:
            held = Interval.of(interval)
            matches = start < held.end_us // DAY_US and end > held.start_us // DAY_US
        else:
            matches = True
        if matches:
            return not rule.get("cold", False)
    return not written


@pytest.mark.parametrize(
    "written",
    ["last 30d", {"cold": True}, [{}], [{"hot": True}], [{"interval": "last year"}], [{"cold": 1}], [7],
     [{"interval": "2013-13"}], [{"keys": []}], [{"keys": {}}], [{"keys": {"client": [b"x"]}}]],
)  # fmt: skip
def test_what_is_no_load_rule_is_refused(written: Any) -> None:
    with pytest.raises(InvalidInput):
        read_rules(written)


def test_rules_by_key_keep_what_may_hold_it() -> None:
    both = Segments.of(
        Segment(one, "2013-01-04", "2013-01-05", 1, rows=1, min={"client": one}, max={"client": one}) for one in (1, 2)
    )
    assert hot(read_rules([{"keys": {"client": 2}}]), both, 0).tolist() == [False, True]
