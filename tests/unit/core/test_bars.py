"""A timeline as bars: the parts of each segment that can be seen and that cannot."""

from lakehouse.core import Segment, Tombstone
from lakehouse.core.bars import bars


def seen(segments: list[Segment], tombstones: list[Tombstone], within: str | None = None) -> list[tuple[str, str, str]]:
    return [
        (bar.kind, f"{bar.start:%dT%H}", f"{bar.end:%dT%H}")
        for bar in bars(segments, tombstones, within)
        if isinstance(bar.of, Segment)
    ]


def segment(id: int, start: str, end: str, ordinal: int) -> Segment:
    return Segment(id=id, start=start, end=end, ordinal=ordinal)  # type: ignore[arg-type]


def tombstone(id: int, start: str, end: str, ordinal: int, **more: object) -> Tombstone:
    return Tombstone(id=id, start=start, end=end, ordinal=ordinal, **more)  # type: ignore[arg-type]


def test_a_segment_without_tombstones_is_one_bar_however_many_slices_it_lies_on() -> None:
    long, short = segment(1, "2013-01-01", "2013-01-10", 1), segment(2, "2013-01-03", "2013-01-04", 2)
    assert seen([long, short], []) == [("visible", "01T00", "10T00"), ("visible", "03T00", "04T00")]


def test_a_hole_splits_a_segment_in_three() -> None:
    hole = tombstone(2, "2013-01-03T12", "2013-01-05", 2)
    assert seen([segment(1, "2013-01-01", "2013-01-10", 1)], [hole]) == [
        ("visible", "01T00", "03T12"),
        ("overshadowed", "03T12", "05T00"),
        ("visible", "05T00", "10T00"),
    ]


def test_a_covered_segment_is_one_faint_bar() -> None:
    cover = tombstone(2, "2012-12-31", "2013-01-15", 2)
    assert seen([segment(1, "2013-01-01", "2013-01-10", 1)], [cover]) == [("overshadowed", "01T00", "10T00")]


def test_a_tombstone_hides_nothing_newer_and_nothing_by_keys_alone() -> None:
    older = tombstone(2, "2013-01-01", "2013-01-10", 1)
    keyed = tombstone(3, "2013-01-01", "2013-01-10", 9, keys={"client": 1})
    assert seen([segment(1, "2013-01-01", "2013-01-10", 1)], [older, keyed]) == [("visible", "01T00", "10T00")]


def test_a_tombstone_of_keys_is_a_mask() -> None:
    keyed = tombstone(3, "2013-01-02", "2013-01-04", 9, keys={"client": 1})
    assert [bar.kind for bar in bars([segment(1, "2013-01-01", "2013-01-10", 1)], [keyed])] == ["visible", "mask"]


def test_everything_is_cut_to_a_window() -> None:
    hole = tombstone(2, "2013-01-05", "2014-01-01", 2)
    drawn = bars([segment(1, "2013-01-01", "2013-01-10", 1)], [hole], "2013-01-04/2013-01-06")
    assert [(bar.kind, f"{bar.start:%d}", f"{bar.end:%d}") for bar in drawn] == [
        ("visible", "04", "05"),
        ("overshadowed", "05", "06"),
        ("tombstone", "05", "06"),
    ]


def test_tombstones_alone_are_not_drawn_without_a_window() -> None:
    assert bars([], [tombstone(2, "2013-01-05", "2014-01-01", 2)]) == ()
