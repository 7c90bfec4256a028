from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lakehouse.core.interval import Interval
from lakehouse.core.strategy import TableState, checked, combine
from lakehouse.core.task import Candidate, Gain, TaskKind
from lakehouse.errors import InvalidInput
from tests.unit.core.strategy.tables import MIB, segment, state

DAY_5 = Interval.of("2013-01-05")


def table(*days: int, size: int = MIB, **properties: str) -> TableState:
    """Segments 0, 1, ... of a megabyte on the given days."""
    return state([segment(number, day=day, size=size) for number, day in enumerate(days)], properties=properties)


def wish(
    *ids: int, kind: TaskKind = TaskKind.COMPACT, strategy: str = "a", files: int = 1, size: int = MIB
) -> Candidate:
    segments = np.array(ids, dtype=np.int64)
    return Candidate(kind, strategy, f"because of {strategy}", DAY_5, segments, bytes=size * len(ids), gain=Gain(files))


def ids(tasks: list[Candidate]) -> list[list[int]]:
    return [one.segments.tolist() for one in tasks]


def test_strategies_that_want_the_same_segments_get_one_task_that_gives_both_causes() -> None:
    (task,) = combine(table(5, 6, 7), [wish(0, 1, strategy="a"), wish(1, 2, strategy="b", files=3)])
    assert task.segments.tolist() == [0, 1, 2]
    assert sorted(task.strategy.split("+")) == ["a", "b"]
    assert "because of a" in task.cause
    assert "because of b" in task.cause
    assert (task.bytes, str(task.interval)) == (3 * MIB, "2013-01-05/2013-01-08")


def test_what_two_strategies_gain_by_the_same_segments_counts_once() -> None:
    (task,) = combine(table(5, 5), [wish(0, 1, strategy="a", files=5), wish(0, 1, strategy="b", files=4)])
    assert task.gain.files == 5


def test_segments_of_one_chunk_become_one_task_so_that_it_is_locked_once() -> None:
    assert ids(combine(table(5, 5, 5, 5), [wish(0, 1), wish(2, 3)])) == [[0, 1, 2, 3]]
    assert sorted(ids(combine(table(5, 5, 6, 6), [wish(0, 1), wish(2, 3)]))) == [[0, 1], [2, 3]]


def test_what_together_is_more_than_a_task_reads_waits_where_it_shares_segments() -> None:
    found = combine(table(5, 5, 5, task_bytes="2MiB"), [wish(0, 1, files=9), wish(1, 2, files=2)])
    assert ids(found) == [[0, 1]]
    # Tasks of one chunk stay apart where they are too large to be one.
    assert sorted(ids(combine(table(5, 5, 5, 5, task_bytes="2MiB"), [wish(0, 1), wish(2, 3)]))) == [[0, 1], [2, 3]]


def test_a_wish_for_too_much_is_cut_by_time_and_one_segment_may_be_too_large() -> None:
    found = combine(table(*range(1, 9), task_bytes="3MiB"), [wish(*range(8))])
    taken = sorted(number for one in ids(found) for number in one)
    assert all(2 <= len(one) <= 3 for one in ids(found))
    assert len(taken) == len(set(taken)) >= 7
    assert ids(combine(table(5, task_bytes="1kB"), [wish(0)])) == [[0]]


def test_the_best_come_first_and_no_more_is_rewritten_than_may_be() -> None:
    wishes = [wish(0, 1, files=1), wish(2, 3, files=9), wish(4, 5, files=5)]
    held = table(1, 1, 2, 2, 3, 3)
    assert ids(combine(held, wishes)) == [[2, 3], [4, 5], [0, 1]]
    assert ids(combine(held, wishes, rewritable_bytes=4 * MIB)) == [[2, 3], [4, 5]]
    assert ids(combine(held, wishes, rewritable_bytes=0)) == []


def test_what_is_too_large_for_now_stands_in_nobodys_way() -> None:
    wishes = [wish(0, 1, 2, files=90), wish(3, 4, files=1)]
    assert ids(combine(table(1, 1, 1, 2, 2), wishes, rewritable_bytes=2 * MIB)) == [[3, 4]]


def test_other_tasks_do_not_ask_for_what_is_merged_and_rewrite_nothing() -> None:
    wishes = [wish(0, 1, files=9), wish(0, 1, 2, kind=TaskKind.INDEX, strategy="b"), wish(0, kind=TaskKind.STATS)]
    found = combine(table(5, 5, 6), wishes, rewritable_bytes=2 * MIB)
    assert [(one.kind, one.segments.tolist()) for one in found] == [(TaskKind.COMPACT, [0, 1]), (TaskKind.INDEX, [2])]


def test_what_may_not_be_merged_yet_is_indexed_meanwhile() -> None:
    wishes = [wish(0, 1, files=9), wish(0, 1, kind=TaskKind.INDEX)]
    assert [one.kind for one in combine(table(5, 5), wishes, rewritable_bytes=0)] == [TaskKind.INDEX]


@pytest.mark.parametrize(
    "wrong",
    [
        wish(0, 7),
        replace(wish(0, 1), segments=np.array([1, 0])),
        replace(wish(0, 1), segments=np.array([0, 0])),
        replace(wish(0, 1), segments=np.array([0.0])),
        replace(wish(0, 1), tombstones=np.array([3])),
        wish(),
        wish(0, kind=TaskKind.COLLECT),
    ],
)
def test_a_wish_that_cannot_be_a_task_is_refused_by_the_name_of_its_strategy(wrong: Candidate) -> None:
    with pytest.raises(InvalidInput, match=r"strategy='?a"):
        checked(table(5, 5), [wrong])
