"""What a table shows about itself: segments, tombstones, timeline, chunks, key frames, diff; and all their forms."""

from __future__ import annotations

import pytest

from lakehouse.core import timeline as core_timeline
from lakehouse.testing.rows import SCHEMA, arrow, many, row, values


@pytest.fixture
def history(table):
    """Three days, one of them replaced in part and one by key."""
    table.append(
        arrow([(f"2013-01-{day:02d}T{hour:02d}:00", "ab"[hour % 2], hour) for day in (4, 5, 6) for hour in (0, 6, 12)])
    )
    table.replace(arrow([("2013-01-05T07:00", "a", 70)]), ("2013-01-05T06:00", "2013-01-05T09:00"))
    table.replace(None, "2013-01-06", keys={"client": "a"})
    return table


def test_segments_say_what_their_rows_cover(history, warehouse):
    segments = history.segments()
    assert sum(segment.rows for segment in segments) == 10
    for segment in segments:
        path = warehouse / segment.path
        assert path.is_file()
        assert path.stat().st_size == segment.bytes
        assert segment.start == segment.min["time"]
        assert (segment.end - segment.max["time"]).microseconds == 1
        assert segment.ordinal <= history.version
    assert len({segment.id for segment in segments}) == len(segments)


def test_segments_and_tombstones_are_limited_to_an_interval(history):
    assert {segment.start.day for segment in history.segments(interval="2013-01-05")} == {5}
    assert [tombstone.start.day for tombstone in history.tombstones(interval="2013-01-05")] == [5]
    assert history.tombstones(interval="2013-01-04") == []


def test_a_timeline_shows_what_is_seen_from_left_to_right(history):
    timeline = history.timeline(("2013-01-05", "2013-01-06"))
    slices = [(str(one.start.time()), str(one.end.time()), len(one.segments)) for one in timeline.slices]
    assert slices == [
        ("00:00:00", "06:00:00", 1),
        ("07:00:00", "07:00:00.000001", 1),
        ("09:00:00", "12:00:00.000001", 1),
    ]


def test_a_timeline_is_that_of_the_pure_core(history):
    expected = core_timeline(history.segments(), history.tombstones())
    found = history.timeline()
    assert [(one.start, one.end, list(one.segments)) for one in found.slices] == [
        (one.start, one.end, list(one.segments)) for one in expected.slices
    ]
    assert list(found.overshadowed) == list(expected.overshadowed)


def test_a_timeline_of_an_old_version_is_what_it_was(history):
    first = history.log()[-1].version
    timeline = history.timeline(as_of=first)
    assert [one.start.day for one in timeline.slices] == [4, 5, 6]
    assert not timeline.overshadowed


def test_key_scoped_tombstones_are_listed_but_hide_no_slice(history):
    (slice_,) = history.timeline("2013-01-06").slices
    assert [dict(tombstone.keys) for tombstone in slice_.tombstones] == [{"client": ("a",)}]


def test_a_diff_leads_from_one_version_to_another(history):
    versions = sorted(commit.version for commit in history.log())
    for a in versions:
        for b in versions:
            diff = history.diff(a, b)
            before = {
                (type(one).__name__, one.id) for one in (*history.segments(as_of=a), *history.tombstones(as_of=a))
            }
            after = {(type(one).__name__, one.id) for one in (*history.segments(as_of=b), *history.tombstones(as_of=b))}
            assert {(type(one).__name__, one.id) for one in diff.added} == after - before
            assert {(type(one).__name__, one.id) for one in diff.dropped} == before - after


def test_a_diff_names_only_the_chunks_that_changed(history):
    versions = sorted(commit.version for commit in history.log())
    assert [chunk.start.day for chunk in history.diff(versions[-2], versions[-1]).chunks] == [6]


def test_unchanged_chunks_share_their_key_frames(lake, table):
    table.append(many(48, start="2013-01-05", step_us=3_600_000_000))
    for value in range(40):
        table.append(arrow([("2013-01-06T12:00", "a", value)]))
    frames = table.key_frames()
    assert frames, "forty commits to a chunk leave a key frame"
    by_day = {day: [frame.version for frame in frames if frame.chunk.start.day == day] for day in (5, 6)}
    assert len(by_day[5]) <= 1
    assert len(by_day[6]) >= 1
    assert all(frame.entries >= 1 and frame.bytes >= 1 for frame in frames)
    for version in [commit.version for commit in table.log()][:-1:7]:
        assert table.scan(interval="2013-01-05", as_of=version).count() == 24


def test_every_version_reads_the_same_with_key_frames_between(table):
    versions = {}
    for value in range(60):
        version = table.append(arrow([("2013-01-05T12:00", "a", value)])).version
        versions[version] = list(range(value + 1))
    assert {version: values(table, as_of=version) for version in versions} == versions


def test_everything_has_an_arrow_form_and_a_readable_repr(lake, history):
    lock = history.begin_replace("2013-01-04")
    versions = [commit.version for commit in history.log()]
    listings = [
        history.log(),
        lake.log(),
        history.segments(),
        history.tombstones(),
        history.timeline(),
        history.chunks(),
        history.diff(versions[-1], versions[0]),
        history.locks(),
        history.log(1)[0],
    ]
    for listing in listings:
        found = listing.to_arrow()
        assert found.num_rows >= 1
        assert found.num_columns >= 2
        assert " object at 0x" not in repr(listing)
    for shown in (lake, history, history.scan(), history.scan().plan(), lock, history.timeline()):
        assert " object at 0x" not in repr(shown)
    assert "flights" in repr(history)
    assert history.key_frames().to_arrow().num_rows == len(history.key_frames())
    lock.abort()


def test_an_empty_table_has_nothing_to_show(table):
    assert table.segments() == table.tombstones() == table.chunks() == table.key_frames() == table.locks() == []
    assert list(table.timeline().slices) == []
    assert table.scan().plan().files == 0 or list(table.scan().plan().files) == []


def test_segments_of_hash_clustered_tables_still_hold_every_row(lake):
    table = lake.create_table("hashed", SCHEMA, time="time", cluster_by={"client": 4})
    table.append(
        arrow([("2013-01-05", client, index) for index, client in enumerate([None, "", "a", "ü", "b c", "100%"])])
    )
    assert values(table) == [0, 1, 2, 3, 4, 5]
    for index, client in enumerate(["''", "'a'", "'ü'", "'b c'", "'100%'"], start=1):
        assert values(table, where=f"client = {client}") == [index]
    assert values(table, where="client IS NULL") == [0]
    table.replace(arrow([row("2013-01-05", "ü", 9)]), "2013-01-05", keys={"client": "ü"})
    assert values(table) == [0, 1, 2, 4, 5, 9]


def test_the_log_is_limited_by_time_operation_and_version(history):
    appended, replaced, keyed = (commit.version for commit in reversed(history.log()))
    assert [commit.version for commit in history.log(interval="2013-01-04")] == [appended]
    assert [commit.version for commit in history.log(interval="2013-01-05")] == [replaced, appended]
    assert [commit.version for commit in history.log(interval="2013-01", operation="append")] == [appended]
    assert [commit.version for commit in history.log(before=keyed)] == [replaced, appended]
    assert [commit.version for commit in history.log(1, before=keyed)] == [replaced]
    assert history.log(operation="merge") == []


def test_history_shows_what_each_version_did_to_an_interval_newest_first(history):
    appended, replaced, keyed = (commit.version for commit in reversed(history.log()))
    found = history.history("2013-01-05")
    assert [(one.version, one.segments_added, one.rows_added, one.tombstones_added) for one in found] == [
        (replaced, 1, 1, 1),
        (appended, 1, 3, 0),
    ]
    assert [one.version for one in history.history("2013-01")] == [keyed, replaced, appended]
    assert [one.version for one in history.history("2013-01", 1)] == [keyed]
    dropped = history.replace(None, "2013-01-04").version
    newest = history.history("2013-01-04")[0]
    assert (newest.version, newest.segments_dropped, newest.rows_dropped) == (dropped, 1, 3)


def test_what_spans_many_chunks_is_listed_once_in_a_history(lake):
    table = lake.create_table("wide", SCHEMA, time="time", properties={"ragged": "true"})
    appended = table.append(arrow([("2012-01-01", "a", 1), ("2014-01-01", "a", 2)]))
    for interval in ("2013", "2013-01-05", "2012-06"):
        assert [(one.version, one.segments_added) for one in table.history(interval)] == [(appended.version, 1)]
    assert table.history("2015") == []


def test_a_chunk_history_shows_every_change_of_a_chunk_and_its_key_frames(history):
    for number in range(20):
        history.append(arrow([("2013-01-05T12:00", "a", number)]))
    chunk_history = history.chunk_history("2013-01-05")
    assert [one.version for one in chunk_history if not one.is_key_frame] == [
        commit.version for commit in reversed(history.log(interval="2013-01-05"))
    ]
    frames = [one for one in chunk_history if one.is_key_frame]
    assert frames
    assert all(one.bytes > 0 for one in frames)
    entries = 0
    for one in chunk_history:
        entries += one.added - one.dropped
        assert one.entries == entries
    assert chunk_history[-1].entries == len(history.segments(interval="2013-01-05")) + len(
        history.tombstones(interval="2013-01-05")
    )
    assert list(history.chunk_history("2013-01-05", 3)) == list(chunk_history[-3:])
    with pytest.warns(DeprecationWarning, match="chunk_history"):
        assert list(history.film("2013-01-05")) == list(chunk_history)


def test_a_state_made_anew_is_the_one_that_is_remembered(history, lake):
    remembered = lake.catalog.states(history.spec, history.version)
    anew = lake.catalog.replayed(history.spec, history.version)
    assert {number: sorted(one.ids.tolist()) for number, one in anew.items()} == {
        number: sorted(one.ids.tolist()) for number, one in remembered.items()
    }


def test_a_lake_at_a_glance_agrees_with_its_tables(history, lake):
    lake.create_table("empty", "at timestamp", time="at")
    history.replace(None, "2013-01-04")
    glance = {one.name: one for one in lake.catalog.overview(days=3)}
    assert sorted(glance) == lake.tables()
    found, live = glance[history.name], history.segments()
    assert (found.version, found.versions) == (history.version, len(history.log()))
    assert (found.segments, found.tombstones) == (len(live), len(history.tombstones()))
    assert (found.rows, found.bytes) == (sum(one.rows for one in live), sum(one.bytes for one in live))
    assert (found.start, found.end) == (min(one.start for one in live), max(one.end for one in live))
    assert len(found.rows_added) == 3
    assert sum(found.rows_added) == sum(one.rows_added - one.rows_deleted for one in history.log())
    nothing = glance["empty"]
    assert (nothing.versions, nothing.segments, nothing.rows, nothing.start) == (0, 0, 0, None)


def test_every_entry_knows_the_versions_that_added_and_dropped_it(history, lake):
    first = {one.id for one in history.segments(as_of=history.log()[-1].version, interval="2013-01-04")}
    dropped = history.replace(None, "2013-01-04")
    entries = [*first, *(one.id for one in history.tombstones())]
    origins = lake.catalog.origins(history.spec, entries)
    assert origins.keys() == set(entries)
    operations = {one.version: one.operation for one in history.log()}
    for origin in origins.values():
        assert origins[origin.entry].operation == operations[origin.version]
        assert origin.dropped_version == (dropped.version if origin.entry in first else None)
    assert lake.catalog.origins(history.spec, [-1]) == {}


def test_versions_are_numbered_and_report_the_bytes_that_they_wrote(history, lake):
    numbers = lake.catalog.version_numbers(history.spec.id)
    assert numbers == [one.version for one in reversed(history.log())]
    written = lake.catalog.bytes_written(numbers)
    assert written[numbers[0]] == sum(one.bytes for one in history.segments(as_of=numbers[0]))
    assert written.keys() == {one.version for one in history.log() if one.added}
    assert lake.catalog.bytes_written(numbers, history.spec.id) == written
    assert lake.catalog.bytes_written(numbers, history.spec.id + 1) == {}


def test_a_difference_in_columns_is_the_one_by_chunk(history, lake):
    versions = [one.version for one in history.log()]
    for a in versions:
        for b in versions:
            by_chunk, columns = history.diff(a, b), lake.catalog.entry_diff(history.spec, a, b)
            added = {one.id for one in (*columns.added_segments, *columns.added_tombstones)}
            dropped = {one.id for one in (*columns.dropped_segments, *columns.dropped_tombstones)}
            assert added == {one.id for one in by_chunk.added}
            assert dropped == {one.id for one in by_chunk.dropped}


def test_chains_are_reported_with_those_first_that_changed_last(history, lake):
    newest = history.append(arrow([("2013-01-06T12:00", "a", 1)]))
    chains = lake.catalog.chain_lengths(history.spec, None, 100)
    assert [one.version for one in chains] == sorted((one.version for one in chains), reverse=True)
    assert chains[0].version == newest.version
    assert len(lake.catalog.chain_lengths(history.spec, None, 1)) == 1
    for one in chains:
        links = [link for link in history.chain(one.chunk) if link.chunk == one.chunk]
        frames = [link for link in links if link.is_key_frame]
        assert one.frame_version == (frames[0].version if frames else None)
        assert one.chain == len(links) - len(frames)
