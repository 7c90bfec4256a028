"""Replay, diff, and when a key frame is due."""

from __future__ import annotations

import numpy as np

from lakehouse.core.version import ADD, DROP, LONGEST_CHAIN, diff, frame_due, replay


def test_an_empty_history_is_an_empty_state() -> None:
    assert replay([], [], [], []).tolist() == []
    assert replay([3, 1], [], [], []).tolist() == [1, 3]


def test_an_id_that_was_dropped_and_added_again_is_live() -> None:
    assert replay([], [1, 2, 3], [ADD, DROP, ADD], [7, 7, 7]).tolist() == [7]
    assert replay([7], [2, 3, 4], [DROP, ADD, DROP], [7, 7, 7]).tolist() == []


def test_versions_may_come_in_any_order() -> None:
    assert replay([], [3, 1, 2], [DROP, ADD, ADD], [7, 7, 8]).tolist() == [8]


def test_a_change_named_in_the_delta_of_every_chunk_counts_once() -> None:
    assert replay([], [1, 1, 2], [ADD, ADD, ADD], [7, 7, 8]).tolist() == [7, 8]


def test_changes_of_one_version_apply_in_the_order_given() -> None:
    assert replay([], [1, 1], [DROP, ADD], [7, 7]).tolist() == [7]
    assert replay([], [1, 1], [ADD, DROP], [7, 7]).tolist() == []


def test_a_state_of_a_million_entries_is_replayed_exactly() -> None:
    ids = np.arange(1_000_000, dtype=np.int64)
    changed = np.arange(0, 1_000_000, 3, dtype=np.int64)
    found = replay(ids, np.full(len(changed), 5), np.full(len(changed), DROP), changed)
    assert np.array_equal(found, ids[ids % 3 != 0])
    assert diff(ids, found).dropped.tolist() == changed.tolist()


def test_a_diff_of_equal_states_is_empty() -> None:
    assert [found.tolist() for found in diff([2, 1], [1, 2])] == [[], []]


def test_a_frame_is_due_where_there_is_none_and_behind_the_longest_chain() -> None:
    assert frame_due(1, is_framed=False)
    assert [frame_due(chain, is_framed=True) for chain in (0, LONGEST_CHAIN - 1, LONGEST_CHAIN)] == [False, False, True]
