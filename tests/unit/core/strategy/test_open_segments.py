import pytest

from lakehouse.core.policy import Policy
from lakehouse.core.strategy import open_segments, small_files
from lakehouse.core.strategy.open_segments import next_end
from lakehouse.errors import InvalidProperty
from tests.unit.core.strategy.tables import NEW, segment, state


def ids(candidates) -> list[list[int]]:
    return sorted(one.segments.tolist() for one in candidates)


YOUNG = [segment(number, ordinal=NEW) for number in range(9)]  # 1,000 rows and 20 kB each


@pytest.mark.parametrize(("full", "short"), [("segment_rows", 9_000), ("segment_bytes", 180_000)])
def test_batches_become_a_segment_when_together_they_are_enough(full: str, short: int) -> None:
    def found(limit: int, **more: str) -> list[list[int]]:
        return ids(open_segments(state(YOUNG, properties={full: str(limit), **more})))

    assert found(short) == [list(range(9))]
    assert found(short + 1) == []
    assert found(short // 9) == []  # each of them is one already


def test_batches_become_a_segment_when_the_oldest_is_old_enough() -> None:
    properties = {"segment_age": "5m"}
    assert ids(open_segments(state(YOUNG, properties=properties))) == []
    assert ids(open_segments(state([*YOUNG, segment(10)], properties=properties))) == [[*range(9), 10]]
    other_day = [segment(20, day=6), segment(21, day=7)]
    assert ids(open_segments(state([*YOUNG, *other_day], properties=properties))) == []
    assert next_end(state(YOUNG, properties=properties)) == 300.0
    assert next_end(state(other_day, properties=properties)) is None


def test_open_segments_are_left_alone_by_other_limits_and_ended_ones_are_not_joined_again() -> None:
    assert ids(small_files(state(YOUNG))) == [list(range(9))]
    assert ids(small_files(state(YOUNG, properties={"segment_rows": "100000"}))) == []
    ended = [segment(number, has_row_ids=True, ordinal=number) for number in range(8)]
    table = state(ended, properties={"segment_rows": "1001", "segment_age": "0s"})
    assert (ids(open_segments(table)), ids(small_files(table))) == ([], [list(range(8))])


def test_nothing_is_joined_unless_the_table_says_when() -> None:
    assert ids(open_segments(state(YOUNG))) == []
    with pytest.raises(InvalidProperty, match="segment_age: an age such as 30s"):
        Policy.of({"segment_age": "forever"})
