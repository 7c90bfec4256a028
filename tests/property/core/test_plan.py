"""A read plan loses no visible row, shows no hidden one, and opens no file for nothing."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from lakehouse.core import Interval, Segment, Tombstone
from lakehouse.core.group import group_by_mask
from lakehouse.core.plan import ReadPlan, plan_read
from lakehouse.core.predicate import And, Compare, In, IsNull, Or, Predicate, Unknown
from lakehouse.core.skyline import bounds
from tests.property.core.histories import Row, State, instants, seen, segments, spans, states, tombstones

WINDOWS = st.one_of(st.none(), spans())
FEW = st.sampled_from([1, 2, 3, 24])
"""Groups above which groups are joined: so few that joining is tried."""

PREDICATES: st.SearchStrategy[Predicate] = st.recursive(
    st.one_of(
        st.builds(
            Compare,
            st.just("client"),
            st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
            st.sampled_from(["", "a", "b", "bb", "d"]),
        ),
        st.builds(In, st.just("client"), st.lists(st.sampled_from(["a", "b", "d"]), max_size=2).map(tuple)),
        st.builds(IsNull, st.just("client"), st.booleans()),
        st.just(Unknown()),
    ),
    lambda parts: st.one_of(
        st.builds(And, st.lists(parts, max_size=3).map(tuple)), st.builds(Or, st.lists(parts, max_size=3).map(tuple))
    ),
    max_leaves=5,
)


def executed(plan: ReadPlan, state: State) -> list[Row]:
    """What an engine reads: all rows of a group that lie in the interval and that none of its tombstones matches.

    Those of keys and rows hide rows of older segments only; planning leaves these rows to the engine.
    """
    return [
        row
        for group in plan.groups
        for segment in group.segments
        for row in state.rows[segment.id]
        if (plan.interval is None or plan.interval.contains(row.time))
        and seen(row, -1, _covers(group.tombstones))
        and seen(row, segment.ordinal, group.tombstones)
    ]


def _covers(tombstones: Iterable[Tombstone]) -> list[Tombstone]:
    return [one for one in tombstones if one.kind == "interval"]


def passes(predicate: Predicate, client: str | None) -> bool:
    """Whether a row passes, as SQL says: null passes no comparison."""
    match predicate:
        case Compare(_, operator, value):
            if client is None:
                return False
            return {
                "=": client == value,
                "<>": client != value,
                "<": client < value,
                "<=": client <= value,
                ">": client > value,
                ">=": client >= value,
            }[operator]
        case In(_, values):
            return client in values
        case IsNull(_, negated):
            return (client is None) != negated
        case And(parts):
            return all(passes(part, client) for part in parts)
        case Or(parts):
            return any(passes(part, client) for part in parts)
        case Unknown():
            return True


@given(states(), WINDOWS, FEW)
def test_a_plan_gives_exactly_the_visible_rows_once_each(state: State, window: Interval | None, few: int) -> None:
    plan = plan_read(state.segments, state.tombstones, version=1, interval=window, max_groups=few)
    found = executed(plan, state)
    assert len(found) == len(set(found))
    assert set(found) == state.visible(within=window)


@given(states(), WINDOWS, PREDICATES, FEW)
def test_a_predicate_prunes_no_row_that_passes(
    state: State, window: Interval | None, predicate: Predicate, few: int
) -> None:
    plan = plan_read(state.segments, state.tombstones, version=1, interval=window, predicate=predicate, max_groups=few)
    found = {row for row in executed(plan, state) if passes(predicate, row.client)}
    assert found == {row for row in state.visible(within=window) if passes(predicate, row.client)}


@given(states(with_rows=False), WINDOWS)
def test_a_plan_opens_no_segment_that_cannot_be_seen(state: State, window: Interval | None) -> None:
    hiding = [one for one in state.tombstones if one.hides_interval]
    plan = plan_read(state.segments, state.tombstones, version=1, interval=window)
    for segment in plan.segments:
        assert any(
            segment.start <= instant < segment.end
            and (window is None or window.contains(instant))
            and not any(one.start <= instant < one.end and one.ordinal > segment.ordinal for one in hiding)
            for instant in [*instants(state), *([window.start] if window else [])]
        )


@given(states(), WINDOWS)
def test_a_small_plan_masks_a_segment_only_by_younger_tombstones_that_overlap_it(
    state: State, window: Interval | None
) -> None:
    plan = plan_read(state.segments, state.tombstones, version=1, interval=window)
    masks = [frozenset(one.id for one in group.tombstones) for group in plan.groups]
    assert len(masks) == len(set(masks))
    assert frozenset() not in masks[1:], "unmasked segments come first"
    for group in plan.groups:
        for segment in group.segments:
            for one in _covers(group.tombstones):
                assert one.ordinal > segment.ordinal
                assert one.interval.overlaps(segment.interval)


@given(st.data(), FEW)
def test_a_plan_of_many_tombstones_masks_like_the_rule(data: st.DataObject, few: int) -> None:
    found = [data.draw(segments(number)) for number in range(data.draw(st.integers(8, 16)))]
    masks: list[Tombstone] = [data.draw(tombstones(1000 + number)) for number in range(data.draw(st.integers(8, 40)))]
    listed: list[Segment] = [one for one, _ in found]
    state = State(tuple(listed), tuple(masks), {one.id: rows for one, rows in found})
    plan = plan_read(listed, masks, version=1, max_groups=few)
    assert set(executed(plan, state)) == state.visible()


@given(states(), WINDOWS, FEW)
def test_a_groups_joined_masks_hide_the_same_rows_as_its_tombstones(
    state: State, window: Interval | None, few: int
) -> None:
    plan = plan_read(state.segments, state.tombstones, version=1, interval=window, max_groups=few)
    for group in plan.groups:
        assert len(group.masks()) <= len(group.tombstones)
        for row in {row for segment in group.segments for row in state.rows[segment.id]}:
            assert seen(row, -1, group.masks()) == seen(row, -1, _covers(group.tombstones))


BARS = st.tuples(st.integers(0, 12), st.integers(1, 6), st.integers(0, 12))
"""Start, length and ordinal."""


@given(
    st.lists(BARS, min_size=3, max_size=14),
    st.lists(st.tuples(BARS, st.sampled_from(["narrow", "narrow", "wide"])), min_size=3, max_size=14),
    st.integers(1, 4),
)
def test_joined_groups_mask_every_segment_by_all_that_it_needs_and_nothing_that_it_must_not(
    bars: list[tuple[int, int, int]], masks: list[tuple[tuple[int, int, int], str]], few: int
) -> None:
    listed = [Segment(place, start, start + length, ordinal) for place, (start, length, ordinal) in enumerate(bars)]  # type: ignore[arg-type]
    laid = sorted(
        (
            Tombstone(100 + place, ordinal=ordinal, keys={"client": ("a",)})
            if kind == "wide"
            else Tombstone(100 + place, "interval", start, start + length, ordinal=ordinal)  # type: ignore[arg-type]
            for place, ((start, length, ordinal), kind) in enumerate(masks)
        ),
        key=lambda one: (one.ordinal, one.id),
    )
    groups = group_by_mask(listed, bounds(listed), laid, few)
    assert sorted(one.id for group in groups for one in group.segments) == list(range(len(bars)))
    for group in groups:
        assert list(group.tombstones) == [one for one in laid if one in group.tombstones]
        for segment in group.segments:
            about = {one for one in laid if one.interval.overlaps(segment.interval)}
            assert about & set(group.tombstones) == {one for one in about if one.ordinal > segment.ordinal}
