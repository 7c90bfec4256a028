"""A timeline shows what the rule shows at every instant."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.core import Interval, Segment, Slice, overshadowed_mask, timeline
from tests.property.core.histories import State, instants, segments, spans, states, tombstones


def visible_at(state: State, instant: object) -> set[object]:
    """Ids of the segments over an instant that no tombstone of the whole interval hides there."""
    hiding = [one for one in state.tombstones if one.kind == "interval" and one.keys is None]
    return {
        segment.id
        for segment in state.segments
        if segment.start <= instant < segment.end
        and not any(one.start <= instant < one.end and one.ordinal > segment.ordinal for one in hiding)
    }


def slices_at(slices: tuple[Slice, ...], instant: object) -> list[Slice]:
    return [one for one in slices if one.start <= instant < one.end]


@given(states(with_rows=False))
def test_a_timeline_shows_at_every_instant_the_segments_that_no_tombstone_hides_there(state: State) -> None:
    slices = timeline(state.segments, state.tombstones).slices
    for instant in instants(state):
        found = slices_at(slices, instant)
        assert len(found) <= 1
        assert {one.id for each in found for one in each.segments} == visible_at(state, instant)


@given(states(with_rows=False))
def test_slices_are_in_order_and_neighbours_differ(state: State) -> None:
    slices = timeline(state.segments, state.tombstones).slices
    for one in slices:
        assert one.start < one.end
        assert one.segments
        assert list(one.segments) == sorted(one.segments, key=lambda each: (each.ordinal, each.id))
    for one, following in pairwise(slices):
        assert one.end <= following.start
        assert one.end < following.start or one.segments != following.segments


@given(states(with_rows=False))
def test_a_segment_is_overshadowed_if_it_is_visible_at_no_instant(state: State) -> None:
    seen = {found for instant in instants(state) for found in visible_at(state, instant)}
    found = timeline(state.segments, state.tombstones)
    assert {one.id for one in found.overshadowed} == {one.id for one in state.segments} - seen
    assert {one.id for each in found.slices for one in each.segments} == seen


@given(states(with_rows=False))
def test_the_mask_of_many_segments_agrees_with_the_timeline(state: State) -> None:
    hiding = [one for one in state.tombstones if one.hides_interval]
    mask = overshadowed_mask(
        [one.interval.start_us for one in state.segments],
        [one.interval.end_us for one in state.segments],
        [one.ordinal for one in state.segments],
        [one.interval.start_us for one in hiding],
        [one.interval.end_us for one in hiding],
        [one.ordinal for one in hiding],
    )
    overshadowed = set(timeline(state.segments, state.tombstones).overshadowed)
    assert mask.tolist() == [one in overshadowed for one in state.segments]


@given(states(with_rows=False))
def test_a_slice_lists_what_masks_its_rows_without_hiding_it(state: State) -> None:
    for one in timeline(state.segments, state.tombstones).slices:
        assert list(one.tombstones) == sorted(
            (
                mask
                for mask in state.tombstones
                if (mask.kind != "interval" or mask.keys is not None)
                and mask.interval.overlaps(one.interval)
                and any(mask.ordinal > segment.ordinal for segment in one.segments)
            ),
            key=lambda mask: (mask.ordinal, mask.id),
        )


@given(states(with_rows=False), spans())
def test_a_timeline_within_a_window_is_the_whole_one_cut_to_it(state: State, window: Interval) -> None:
    cut = timeline(state.segments, state.tombstones, within=window)
    whole = timeline(state.segments, state.tombstones)
    for instant in instants(state):
        found = slices_at(cut.slices, instant) if window.contains(instant) else []
        wanted = slices_at(whole.slices, instant) if window.contains(instant) else []
        assert [one.segments for one in found] == [one.segments for one in wanted]
    assert all(window.contains(one.interval) for one in cut.slices)
    assert set(cut.overshadowed) == {one for one in whole.overshadowed if one.interval.overlaps(window)}


@given(states(with_rows=False), st.randoms(use_true_random=False))
def test_a_timeline_does_not_depend_on_the_order_of_what_it_is_given(state: State, random: object) -> None:
    shuffled, masks = list(state.segments), list(state.tombstones)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    random.shuffle(masks)  # type: ignore[attr-defined]
    assert timeline(shuffled, masks) == timeline(state.segments, state.tombstones)


@given(
    st.lists(segments(0, with_rows=False), max_size=40).map(
        lambda found: [
            Segment(id=place, start=one.start, end=one.end, ordinal=one.ordinal) for place, (one, _) in enumerate(found)
        ]
    ),
    st.lists(tombstones(0, kinds=("hiding",)), max_size=40),
)
def test_a_crowd_of_segments_is_seen_like_each_of_them_alone(found: list[Segment], masks: list[object]) -> None:
    together = timeline(found, masks)  # type: ignore[arg-type]
    alone = {one.id for one in found if timeline([one], masks).overshadowed}  # type: ignore[arg-type]
    assert {one.id for one in together.overshadowed} == alone
    ordinals = np.array([one.ordinal for one in together.overshadowed])
    assert (np.diff(ordinals) >= 0).all()
