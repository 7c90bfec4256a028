from lakehouse.core.strategy import small_files
from tests.unit.core.strategy.tables import MIB, NEW, segment, state


def ids(candidates) -> list[list[int]]:
    return sorted(one.segments.tolist() for one in candidates)


def test_small_segments_of_one_chunk_are_merged_and_those_of_another_are_not() -> None:
    day_5 = [segment(number, day=5) for number in range(4)]
    assert ids(small_files(state([*day_5, segment(9, day=6)]))) == [[0, 1, 2, 3]]


def test_a_chunk_that_is_written_to_waits_for_more_segments() -> None:
    young = [segment(number, ordinal=NEW) for number in range(8)]
    assert ids(small_files(state(young[:7]))) == []
    assert ids(small_files(state(young))) == [list(range(8))]


def test_large_segments_are_not_taken_for_the_sake_of_small_ones_while_a_chunk_is_young() -> None:
    small = [segment(number, ordinal=NEW) for number in range(8)]
    assert ids(small_files(state([*small, segment(50, rows=100_000)]))) == [list(range(8))]


def test_what_reaches_half_the_target_in_rows_or_half_a_task_in_bytes_is_never_small() -> None:
    full = [segment(number, rows=2_500_000) for number in range(9)]
    heavy = [segment(number + 20, rows=1_000, size=600 * MIB) for number in range(9)]
    assert ids(small_files(state([*full, *heavy, segment(40)]))) == []


def test_two_of_very_different_size_stay_as_they_are() -> None:
    assert ids(small_files(state([segment(1, rows=2_000_000), segment(2, rows=100)]))) == []


def test_an_old_chunk_keeps_no_more_than_three_small_segments() -> None:
    unlike = [segment(number, rows=20**number, size=20**number * 100) for number in range(5)]
    found = small_files(state(unlike, properties={"target_rows": "1000000000"}))
    assert len(ids(found)[0]) >= 2


def test_what_one_rewrite_left_apart_is_not_put_together_by_another() -> None:
    apart = [segment(n, has_row_ids=True, ordinal=7) for n in range(2)]
    assert ids(small_files(state(apart))) == []
    assert ids(small_files(state([*apart, segment(9)]))) == [[0, 1, 9]]
    # An update may leave many, though.
    assert ids(small_files(state([segment(n, has_row_ids=True, ordinal=7) for n in range(9)]))) == [list(range(9))]


def test_one_task_reads_no_more_than_it_may() -> None:
    many = [segment(number, rows=10_000, size=MIB) for number in range(40)]
    found = list(small_files(state(many, properties={"task_bytes": "8MiB"})))
    assert all(1 < len(one.segments) <= 8 and one.bytes <= 8 * MIB for one in found)
    assert sum(len(one.segments) for one in found) >= 36


def test_a_candidate_says_what_it_takes_and_what_it_saves() -> None:
    (found,) = small_files(state([segment(number) for number in range(4)], scans=30.0))
    assert (found.rows, found.bytes, found.gain.files, found.scans) == (4_000, 80_000, 3, 30.0)
    assert str(found.interval) == "2013-01-05/2013-01-06"
    assert "4 small segments" in found.cause


def test_narrow_segments_of_a_ragged_table_are_not_merged_with_wide_ones() -> None:
    narrow = [segment(number, day=9) for number in range(4)]
    wide = [segment(number + 10, day=1, hours=(0, 24 * 60)) for number in range(4)]
    found = small_files(state([*narrow, *wide], properties={"ragged": "true"}))
    assert ids(found) == [[0, 1, 2, 3], [10, 11, 12, 13]]
