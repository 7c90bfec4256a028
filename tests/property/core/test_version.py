"""Replay of deltas gives what a plain set gives, from any key frame."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lakehouse.core.version import ADD, DROP, LONGEST_CHAIN, diff, frame_due, replay

IDS = st.integers(-(2**40), 2**40) | st.integers(0, 6)
CHANGES = st.lists(st.tuples(st.integers(1, 9), st.sampled_from([ADD, DROP]), st.integers(0, 6)), max_size=40)


def plain(frame: set[int], changes: list[tuple[int, int, int]]) -> list[int]:
    live = set(frame)
    for _, action, one in sorted(changes, key=lambda change: change[0]):
        (live.add if action == ADD else live.discard)(one)
    return sorted(live)


def replayed(frame: set[int], changes: list[tuple[int, int, int]]) -> list[int]:
    columns = list(zip(*changes, strict=True)) or [(), (), ()]
    found: list[int] = replay(sorted(frame), *columns).tolist()
    return found


@given(st.sets(st.integers(0, 6)), CHANGES)
def test_replay_equals_adding_and_dropping_one_by_one(frame: set[int], changes: list[tuple[int, int, int]]) -> None:
    assert replayed(frame, changes) == plain(frame, changes)


@given(st.sets(st.integers(0, 6)), CHANGES, st.integers(0, 9))
def test_a_key_frame_at_any_version_gives_the_same_state(
    frame: set[int], changes: list[tuple[int, int, int]], version: int
) -> None:
    middle = set(replayed(frame, [change for change in changes if change[0] <= version]))
    assert replayed(middle, [change for change in changes if change[0] > version]) == replayed(frame, changes)


@given(st.sets(IDS), st.sets(IDS))
def test_a_diff_leads_from_one_state_to_the_other(a: set[int], b: set[int]) -> None:
    found = diff(list(a), list(b))
    assert found.added.tolist() == sorted(b - a)
    assert found.dropped.tolist() == sorted(a - b)
    changes = [(1, ADD, one) for one in found.added.tolist()] + [(1, DROP, one) for one in found.dropped.tolist()]
    assert replayed(a, changes) == sorted(b)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=400))
def test_chains_stay_short_and_frames_of_a_growing_chunk_cost_no_more_than_its_versions(sizes: list[int]) -> None:
    entries = chain = written = 0
    is_framed = False
    for grown in sizes:
        entries += grown
        chain += 1
        if frame_due(chain, is_framed=is_framed):
            is_framed, chain = True, 0
            written += entries
        assert chain < LONGEST_CHAIN
    assert written <= sum(sizes) * (1 + len(sizes) / LONGEST_CHAIN)
