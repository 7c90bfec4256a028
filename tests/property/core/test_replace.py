"""A replace's plan leaves what an interval tombstone over everything would leave."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lakehouse.core import Grain, Interval, Tombstone
from lakehouse.core.clean import plan_clean
from lakehouse.core.replace import plan_replace
from lakehouse.testing.strategies import grains
from tests.property.core.histories import ORDINALS, State, client_scopes, spans, states

BOUNDED = spans().filter(lambda span: span.start.year > 1 and span.end.year < 9999)
KEYS = st.one_of(st.none(), client_scopes())


def after(state: State, drawn: int, span: Interval, keys: object, grain: Grain) -> tuple[set[object], list[Tombstone]]:
    """Visible rows and tombstones once a replace without data is carried out."""
    plan = plan_replace(
        state.segments,
        state.tombstones,
        interval=span,
        keys=keys,  # type: ignore[arg-type]
        ordinal=drawn,
        grain=grain,
    )
    left = [one for one in state.segments if one not in plan.drop_segments]
    masks = [one for one in state.tombstones if one not in plan.drop_tombstones]
    masks += [
        Tombstone(1000 + place, "interval", part.start, part.end, ordinal=drawn, keys=scope)
        for place, (part, scope) in enumerate(plan.tombstones)
    ]
    return set(state.visible(left, masks)), masks


@given(states(), spans(), KEYS, ORDINALS, grains())
def test_a_replace_hides_what_one_tombstone_over_its_whole_interval_would_hide(
    state: State, span: Interval, keys: object, drawn: int, grain: Grain
) -> None:
    cover = Tombstone(1000, "interval", span.start, span.end, ordinal=drawn, keys=keys)  # type: ignore[arg-type]
    assert after(state, drawn, span, keys, grain)[0] == state.visible(tombstones=[*state.tombstones, cover])


@given(states(), BOUNDED, KEYS, ORDINALS, grains())
def test_new_tombstones_are_parts_of_chunks_in_order_and_each_hides_an_older_segment(
    state: State, span: Interval, keys: object, drawn: int, grain: Grain
) -> None:
    plan = plan_replace(
        state.segments,
        state.tombstones,
        interval=span,
        keys=keys,  # type: ignore[arg-type]
        ordinal=drawn,
        grain=grain,
    )
    parts = [part for part, _ in plan.tombstones]
    assert all(scope == keys for _, scope in plan.tombstones)
    left = [one for one in state.segments if one not in plan.drop_segments]
    assert parts == sorted(set(parts))
    for part in parts:
        assert part == grain.chunk(part.start).intersect(span)
        assert any(one.ordinal < drawn and one.interval.overlaps(grain.chunk(part.start)) for one in left)


@given(states(), BOUNDED, ORDINALS, grains())
def test_a_replace_without_keys_drops_every_older_segment_inside_and_leaves_no_older_tombstone_there(
    state: State, span: Interval, drawn: int, grain: Grain
) -> None:
    plan = plan_replace(state.segments, state.tombstones, interval=span, ordinal=drawn, grain=grain)
    assert set(plan.drop_segments) == {
        one for one in state.segments if one.ordinal < drawn and span.contains(one.interval)
    }
    assert all(one.kind == "interval" and one.ordinal < drawn for one in plan.drop_tombstones)
    if all(span.contains(one.interval) for one in state.segments):
        assert not plan.tombstones


@given(states())
def test_clean_up_changes_no_row_and_leaves_nothing_to_clean(state: State) -> None:
    segments, tombstones = plan_clean(state.segments, state.tombstones)
    left = [one for one in state.segments if one not in segments]
    masks = [one for one in state.tombstones if one not in tombstones]
    assert state.visible(left, masks) == state.visible()
    assert plan_clean(left, masks) == ((), ())


@given(states(), spans(), ORDINALS, grains())
def test_a_clean_replace_of_everything_leaves_neither_older_segments_nor_tombstones(
    state: State, span: Interval, drawn: int, grain: Grain
) -> None:
    visible, masks = after(state, 8, Interval(None, None), None, grain)
    assert not visible
    assert not [one for one in masks if one.kind == "interval"]
