"""What the Timeline page asks, on tables larger and odder than its page tests have."""

import json
from datetime import timedelta
from itertools import product

import altair as alt
import numpy as np

import picture
from lakehouse.core import Interval, Segment, Tombstone
from lakehouse.core.interval import MAX_TIME, to_utc
from lakehouse.core.segments import Segments
from lakehouse.core.skyline import Skyline, bounds
from queries import timeline

START = Interval.of("2013-01-01").start
HOUR = timedelta(hours=1)


def hourly(count: int, ordinal: int = 1) -> list[Segment]:
    return [
        Segment(
            id=ordinal * 1_000_000 + n, start=START + n * HOUR, end=START + (n + 1) * HOUR, ordinal=ordinal, rows=10
        )
        for n in range(count)
    ]


def test_what_overlaps_lies_above_what_is_older_and_the_rest_stays_low() -> None:
    old, new = hourly(5), hourly(2, ordinal=3)
    tombstone = Tombstone(id=-1, start=START, end=START + 2 * HOUR, ordinal=3)
    window = Interval(START, START + 5 * HOUR)
    level = timeline.levels([*new, tombstone, *old], window, HOUR / 100)
    assert [level[one.id] for one in old] == [0] * 5
    assert level[-1] == 1
    assert [level[one.id] for one in new] == [2, 2]


def test_a_segment_of_one_moment_is_wide_enough_to_be_seen_and_pushes_its_neighbour_up() -> None:
    moment = Segment(id=1, start=START, end=START + timedelta(microseconds=1), ordinal=1)
    next_moment = Segment(id=2, start=START + timedelta(seconds=1), end=START + timedelta(seconds=2), ordinal=2)
    year = Segment(id=3, start=START, end=START + timedelta(days=365), ordinal=3)
    window = Interval(START, START + timedelta(days=365))
    drawn, _ = timeline.drawn_bars(Segments.of([moment, next_moment, year]), [], window)
    drawn = drawn.set_index("id")
    assert drawn.loc["1", "end"] - drawn.loc["1", "start"] > timedelta(hours=12)
    assert drawn.loc["1", "until"] == "2013-01-01 00:00:00.000001"
    assert list(drawn.loc[["1", "2", "3"], "level"]) == [0, 1, 2]


def test_counts_say_of_every_column_what_the_bars_say() -> None:
    segments = Segments.of([*hourly(240), *hourly(60, ordinal=3)])
    hiding = [
        Tombstone(id=-1, start=START, end=START + 30 * HOUR, ordinal=2),
        Tombstone(id=-2, start=START + 100 * HOUR, end=START + 101 * HOUR + HOUR / 2, ordinal=2),
    ]
    window = Interval(START, START + 240 * HOUR)
    counts, covered = timeline.counted(segments, hiding, window, Skyline.of(*bounds(hiding)))
    total = counts.groupby("kind")["count"].sum()
    assert total["overshadowed"] == 31
    assert total["visible"] == 240 - 31 + 60
    assert covered["count"].sum() == 32
    first = counts[counts["start"] == counts["start"].min()].set_index("kind")["count"]
    assert dict(first) == {"overshadowed": 1, "visible": 1}


def test_columns_get_fewer_where_segments_are_long() -> None:
    window = Interval(START, START + timedelta(days=1000))
    starts = np.full(100_000, window.start_us)
    edges = timeline.column_edges(starts, np.full(100_000, window.end_us), window)
    assert len(edges) - 1 == 24
    assert (edges[0], edges[-1]) == (window.start_us, window.end_us)


def test_times_of_any_year_are_drawn_where_they_are() -> None:
    ancient = Segment(id=1, start="0001-01-01", end="9999-01-01", ordinal=1)
    drawn, _ = timeline.drawn_bars(Segments.of([ancient]), [], ancient.interval)
    assert drawn["from"][0] == "0001-01-01"
    assert (drawn["start"][0].year, drawn["end"][0].year) == (1, 9999)


def test_at_the_ends_of_the_calendar_bars_are_as_wide_as_elsewhere_and_hatched() -> None:
    last = Segment(id=1, start="9999-12-31T23:59:59", end=None, ordinal=1)
    first = Segment(id=2, start=None, end="0001-01-01T00:00:01", ordinal=1)
    never = Tombstone(id=-1, start="9999-12-31T23:59:58", end=None, ordinal=2)
    window = Interval(None, None)
    drawn, hatched = timeline.drawn_bars(Segments.of([last, first]), [never], window)
    for bar in drawn.itertuples():
        assert window.start <= bar.start < bar.end <= window.end
        assert bar.end - bar.start > timedelta(days=365 * 20)
    assert len(hatched) == 1


def test_a_picture_of_a_microsecond_is_drawn_and_hatched() -> None:
    moment = Interval(START, START + timedelta(microseconds=1))
    over = Tombstone(id=-1, start=moment.start, end=moment.end, ordinal=2)
    for window in (moment, timeline.zoomed(moment, 1)):
        drawn, hatched = timeline.drawn_bars(Segments.of([]), [over], window)
        assert (len(drawn), len(hatched) > 0) == (1, True)
    assert window.contains(moment)
    assert window.end - window.start >= timeline.NARROWEST


def test_no_zoom_leaves_the_calendar_or_comes_to_nothing() -> None:
    starts = ["0001-01-01", "0001-01-01T00:00:00.000001", "2013-01-01T00:00:00.7", "9999-12-31T23:59:59.999998"]
    for start in map(to_utc, starts):
        for width in (timedelta(microseconds=1), timedelta(seconds=3), timedelta(days=366)):
            window = Interval(start, MAX_TIME if MAX_TIME - start < width else start + width)
            for factor, shift in product((1, 0.25, 4, 10_000_000_000), (0, -0.5, 0.5)):
                found = timeline.zoomed(window, factor, shift)
                assert found.end - found.start >= timedelta(seconds=0.9)
                if factor >= 1 and not shift:
                    assert found.contains(window)


def test_a_tombstone_of_all_time_is_drawn_and_hatched_within_the_window() -> None:
    window = Interval(START, START + 10 * HOUR)
    drawn, hatched = timeline.drawn_bars(
        Segments.of(hourly(10)), [Tombstone(id=-1, kind="row", ordinal=2, rows=3)], window
    )
    assert set(drawn["kind"]) == {"visible", "tombstone of some rows"}
    assert 100 <= len(hatched) <= 140
    assert hatched["start"].min() == drawn["start"].min()
    assert hatched["end"].max() == drawn["end"].max()


def test_zooming_keeps_the_middle_and_ends_at_a_second() -> None:
    window = Interval("2013-01-01", "2013-01-11")
    assert str(timeline.zoomed(window, 0.5)) == "2013-01-03T12:00:00/2013-01-08T12:00:00"
    assert str(timeline.zoomed(window, 1, 0.5)) == "2013-01-06/2013-01-16"
    narrow = Interval("2013-01-01", "2013-01-01T00:00:01")
    assert timeline.zoomed(narrow, 0.25).end - timeline.zoomed(narrow, 0.25).start >= timedelta(seconds=1)
    assert timeline.zoomed(Interval(None, None), 4).start.year == 1


def test_a_slider_stops_at_every_version_or_at_some_of_all_history_and_all_near_the_one_looked_at() -> None:
    assert timeline.stops([2, 3, 5], 4, 10) == [2, 3, 4, 5]
    numbers = list(range(1, 10_001))
    found = timeline.stops(numbers, 5_000, 400)
    assert len(found) <= 401
    assert {1, 10_000, *range(4_950, 5_050)} <= set(found)
    assert found == sorted(found)


def test_the_pictures_know_every_kind() -> None:
    segments = Segments.of(hourly(3))
    window = Interval(START, START + 3 * HOUR)
    drawn, hatched = timeline.drawn_bars(segments, [], window)
    spec = picture.bars_chart(drawn, hatched, window.start, window.end, START + HOUR)
    assert set(timeline.KINDS.values()) == set(picture.COLOURS)
    assert spec["layer"][0]["encoding"]["x"]["scale"]["type"] == "utc"
    assert spec["layer"][-1]["mark"]["color"] == picture.LASER
    assert list(spec["datasets"]["laser"]["start"]) == [START + HOUR]
    params = {one["name"]: one.get("value") for one in spec["params"]}
    assert params["until"] - params["from"] == 3 * HOUR / timedelta(milliseconds=1)
    assert params["levels"] == 3
    counts, covered = timeline.counted(segments, [], window, Skyline.of([], [], []))
    counted = picture.counted_chart(counts, covered, window.start, window.end, None)
    assert counted["datasets"]["laser"].empty
    for one in (spec, counted):
        used = {layer["data"]["name"] for layer in one["layer"]}
        assert used == set(one["datasets"])
        rows = {name: frame.to_dict("records") for name, frame in one["datasets"].items()}
        alt.LayerChart.from_dict({**one, "datasets": json.loads(json.dumps(rows, default=str))})
