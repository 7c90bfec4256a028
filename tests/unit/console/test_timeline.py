"""What the console asks, on lakes larger and odder than its page tests have."""

from datetime import timedelta

import picture
from lakehouse.core import Interval, Segment, Tombstone
from lakehouse.core.bars import bars
from queries import timeline as queries
from queries import words

START = Interval.of("2013-01-01").start
HOUR = timedelta(hours=1)


def hourly(count: int, ordinal: int = 1) -> list[Segment]:
    return [
        Segment(
            id=(ordinal - 1) * 10_000 + n, start=START + n * HOUR, end=START + (n + 1) * HOUR, ordinal=ordinal, rows=10
        )
        for n in range(count)
    ]


def test_neighbours_are_joined_and_nothing_of_them_is_lost() -> None:
    segments = [one for one in hourly(5_000) if one.id not in (2_000, 2_001, 2_002, 2_003, 2_004, 2_005)]
    drawn = bars(segments, [])
    groups = queries.joined(drawn)
    assert [len(group) for group in groups] == [2_000, 2_994]
    frame = queries.frame_of(groups)
    assert frame["rows"].sum() == 10 * len(segments)
    assert list(frame["what"]) == ["2000 together", "2994 together"]


def test_kinds_and_ordinals_are_never_joined() -> None:
    tombstone = Tombstone(id=-1, start=START, end=START + 100 * HOUR, ordinal=2)
    groups = queries.joined(bars(hourly(200) + hourly(1, ordinal=3), [tombstone]))
    assert sorted((group[0].ordinal, group[0].kind) for group in groups) == [
        (1, "overshadowed"),
        (1, "visible"),
        (2, "tombstone"),
        (3, "visible"),
    ]


def test_a_segment_of_one_moment_is_wide_enough_to_be_seen() -> None:
    moment = Segment(id=1, start=START, end=START + timedelta(microseconds=1), ordinal=1)
    year = Segment(id=2, start=START, end=START + timedelta(days=365), ordinal=2)
    frame = queries.frame_of([[bar] for bar in bars([moment, year], [])]).set_index("what")
    assert frame.loc["segment 1", "end"] - frame.loc["segment 1", "start"] > timedelta(hours=12)
    assert frame.loc["segment 1", "until"] == "2013-01-01 00:00:00.000001"


def test_times_that_a_browser_cannot_draw_are_cut_and_told_in_full() -> None:
    ancient = Segment(id=1, start="0001-01-01", end="9999-01-01", ordinal=1)
    frame = queries.frame_of([[bar] for bar in bars([ancient], [])])
    assert frame["from"][0] == "0001-01-01"
    assert frame["start"][0].year == 1700


def test_nothing_makes_an_empty_frame() -> None:
    assert queries.frame_of([]).empty


def test_the_chart_has_a_row_an_ordinal_and_a_colour_a_kind() -> None:
    frame = queries.frame_of([[bar] for bar in bars(hourly(3), [])])
    spec = picture.chart(frame).to_dict()
    assert set(queries.KINDS.values()) == set(picture.COLOURS)
    assert spec["layer"][0]["encoding"]["y"]["field"] == "ordinal"
    assert spec["layer"][0]["encoding"]["x"]["scale"]["type"] == "utc"


def test_sizes_read_well() -> None:
    sizes = [0, 999, 1_000, 12_345, 123_456, 5_000_000_000, 7_200_000_000_000_000]
    assert [words.size_text(size) for size in sizes] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "12.3 kB",
        "123 kB",
        "5.0 GB",
        "7,200 TB",
    ]
