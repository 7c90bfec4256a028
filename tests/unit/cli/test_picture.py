"""Timelines drawn with characters."""

from datetime import timedelta

from lakehouse.cli.picture import MAX_LINES, draw
from lakehouse.core import Interval, Segment, Tombstone
from lakehouse.core.bars import bars

START = Interval.of("2013-01-01").start


def day(number: int, ordinal: int, **more: object) -> Segment:
    start = START + timedelta(days=number)
    return Segment(id=ordinal * 1000 + number, start=start, end=start + timedelta(days=1), ordinal=ordinal, **more)  # type: ignore[arg-type]


def test_nothing_is_drawn_of_nothing() -> None:
    assert list(draw(bars([], []), width=40)) == []


def test_every_line_is_as_wide_as_asked() -> None:
    lines = list(draw(bars([day(0, 1), day(40, 2)], []), width=50))
    assert {len(line) for line in lines[:-1]} == {50}


def test_a_moment_is_at_least_one_character() -> None:
    moment = Segment(id=1, start=START, end=START + timedelta(microseconds=1), ordinal=2)
    year = Segment(id=2, start=START, end=START + timedelta(days=365), ordinal=1)
    top = next(draw(bars([moment, year], []), width=60))
    assert top.count("█") == 1


def test_the_newest_is_on_top_and_what_it_hides_is_faint() -> None:
    hidden, new = day(0, 1), day(0, 3)
    tombstone = Tombstone(id=9, start=START, end=START + timedelta(days=1), ordinal=2)
    lines = list(draw(bars([hidden, new], [tombstone]), width=30))
    assert ["█" in lines[0], "╳" in lines[1], "░" in lines[2]] == [True, True, True]


def test_many_ordinals_are_cut_and_the_cut_is_reported() -> None:
    lines = list(draw(bars([day(number, number + 1) for number in range(MAX_LINES + 5)], []), width=80))
    assert len(lines) == MAX_LINES + 2
    assert lines[-1].startswith("5 older ordinals")
