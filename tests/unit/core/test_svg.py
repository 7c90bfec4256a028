"""The small picture of a timeline: what its axes, labels and legend say, and that it stays small."""

import base64
import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from lakehouse.core import Grain, Interval, Segment, Tombstone
from lakehouse.core.bars import bars
from lakehouse.core.chunk_rows import chunk_rows
from lakehouse.core.svg import svg, ticks

START = datetime(2013, 1, 1, tzinfo=UTC)


def segment(number: int, first: int, last: int, ordinal: int, rows: int = 10) -> Segment:
    start, end = (START + timedelta(days=day) for day in (first, last))
    return Segment(id=number, start=start, end=end, ordinal=ordinal, rows=rows)


def texts(picture: str) -> list[str]:
    return [one.text or "" for one in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]


def test_lines_are_labelled_with_versions_newest_on_top_and_words_say_what_colours_mean() -> None:
    old, new = segment(1, 0, 4, 2), segment(2, 1, 2, 5)
    hole = Tombstone(id=3, start="2013-01-02", end="2013-01-03", ordinal=5)
    some = Tombstone(id=4, start="2013-01-01", end="2013-01-02", ordinal=7, kind="row", rows=1)
    drawn = bars([old, new], [hole, some])
    said = texts(svg(drawn, versions={1: 2, 2: 6, 3: 6, 4: 7}))
    assert said[:4] == ["versions, newest on top", "7", "6", "2"]
    assert said[-4:] == ["visible", "hidden by a newer version", "deleted", "some rows deleted"]
    assert "2013-01-03" in said
    assert texts(svg(bars([old], [])))[-1] == "visible"
    assert texts(svg(drawn))[:4] == ["write order, newest on top", "7", "5", "2"]


def test_older_lines_that_are_left_out_are_counted() -> None:
    drawn = bars([segment(number, number, number + 1, number) for number in range(1, 20)], [])
    assert texts(svg(drawn))[0] == "write order, newest on top; 7 older ones are not shown"


def test_rows_of_a_chunk_are_those_of_what_is_visible_in_it() -> None:
    hole = Tombstone(id=9, start="2013-01-02", end="2013-01-03", ordinal=5)
    drawn = bars([segment(1, 0, 4, 2, rows=400), segment(2, 0, 1, 3, rows=20), segment(3, 1, 2, 6, rows=7)], [hole])
    found = chunk_rows(drawn, Grain.DAY)
    assert found.counts == (120, 7, 100, 100)
    said = texts(svg(drawn, rows=found))
    assert said[said.index("rows a day") :][:3] == ["rows a day", "0", "120"]
    assert chunk_rows(bars([segment(1, 0, 31, 1, rows=5)], []), Grain.MONTH).counts == (5,)


def test_a_year_of_days_in_many_versions_stays_small() -> None:
    days = [segment(day, day, day + 1, 1, rows=900 + day * 37 % 300) for day in range(365)]
    later = [segment(1000 + day, day, day + 1, 2 + day, rows=50) for day in range(0, 365, 9)]
    drawn = bars(days + later, [])
    picture = svg(drawn, versions={one.id: one.ordinal for one in days + later}, rows=chunk_rows(drawn, Grain.DAY))
    assert len(base64.b64encode(picture.encode())) < 5_000


def test_a_table_without_a_time_has_no_axis() -> None:
    everything = Segment(id=1, start=Interval(None, None).start, end=Interval(None, None).end, ordinal=1, rows=3)
    said = texts(svg(bars([everything], [])))
    assert "all rows: the table has no time" in said
    assert not [one for one in said if re.match(r"\d{4}", one)]


@pytest.mark.parametrize(
    "text",
    [
        "2013-01-01T07:00:00/2013-01-01T07:00:01", "2013-01-01T07:10/2013-01-01T08:00", "2013-01-05",
        "2013-01-05T05:30/2013-01-07", "2013-W02", "2013-02", "2013-01-15/2013-06-20", "2013", "2009-03-04/2013-02-01",
        "1970-01-01/4700-09-01", "0001-01-02/9999-12-30",
    ],
)  # fmt: skip
def test_ticks_are_round_few_and_inside(text: str) -> None:
    span = Interval.of(text)
    found = ticks(span.start, span.end)
    assert 1 <= len(found) <= 8
    assert all(span.start <= at <= span.end for at, _ in found)
    assert all(one < other for (one, _), (other, _) in pairwise(found))
    assert len({label for _, label in found}) == len(found)
