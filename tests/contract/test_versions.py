"""Versions: one number sequence of the lake, deltas per chunk, and reads as of any of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import lakehouse
from lakehouse.errors import InvalidInput, VersionNotFound
from lakehouse.testing.rows import SCHEMA, arrow, row, values, visible


def test_a_new_table_is_empty_and_readable(lake, table):
    assert visible(table) == []
    assert table.version == lake.head


def test_a_commit_is_the_next_version_of_the_lake_and_of_the_table_alone(lake, table):
    other = lake.create_table("other", SCHEMA, time="time")
    before = other.version
    commit = table.append(arrow([("2013-01-05", "a", 1)]))
    assert commit.version == lake.head == table.version
    assert commit.version > before == other.version


def test_a_commit_says_what_it_did(table):
    started = datetime.now(UTC)
    commit = table.append(
        arrow([("2013-01-05", "a", 1), ("2013-01-06", "a", 2)]), message="two days", properties={"source": "gate"}
    )
    assert commit.operation == "append"
    assert list(commit.tables) == ["flights"]
    assert (commit.rows_added, commit.rows_deleted, commit.dropped) == (2, 0, 0)
    assert commit.added == len(table.segments())
    assert commit.message == "two days"
    assert dict(commit.properties) == {"source": "gate"}
    assert abs(commit.committed_at - started) < timedelta(minutes=1)
    assert table.log(1)[0] == commit


def test_every_version_reads_as_it_was_after_any_later_operation(table):
    seen = {}

    def note() -> None:
        seen[table.version] = visible(table)

    table.append(arrow([("2013-01-05T10:00", "a", 1), ("2013-01-06T10:00", "b", 2)]))
    note()
    table.append(arrow([("2013-01-05T11:00", None, 3)]))
    note()
    table.replace(arrow([("2013-01-05T11:30", "a", 4)]), ("2013-01-05T11:00", "2013-01-05T12:00"))
    note()
    table.replace(None, "2013-01-06")
    note()
    table.append(arrow([("2013-01-06T10:00", "b", 5)]))
    note()
    table.replace(arrow([]), "2013-01", keys={"client": ["a"]})
    note()
    table.restore(min(seen))
    note()
    table.compact()
    note()
    assert [sorted(value for _, _, value in rows) for rows in seen.values()][:6] == [
        [1, 2],
        [1, 2, 3],
        [1, 2, 4],
        [1, 4],
        [1, 4, 5],
        [5],
    ]
    for version, rows in seen.items():
        assert visible(table, as_of=version) == rows, version


def test_as_of_reads_the_newest_version_of_the_table_that_is_not_later(lake, table):
    first = table.append(arrow([("2013-01-05", "a", 1)])).version
    other = lake.create_table("other", SCHEMA, time="time")
    between = other.append(arrow([("2013-01-05", "a", 9)])).version
    table.append(arrow([("2013-01-05", "a", 2)]))
    assert first < between
    assert values(table, as_of=between) == [1]


def test_a_version_before_the_table_or_after_the_head_is_not_found(lake, table):
    lake.create_table("younger", SCHEMA, time="time")
    with pytest.raises(VersionNotFound):
        lake.table("younger").scan(as_of=table.version).to_arrow()
    with pytest.raises(VersionNotFound):
        table.scan(as_of=lake.head + 1).to_arrow()
    with pytest.raises(VersionNotFound):
        table.scan(as_of=-1).to_arrow()


def test_a_time_names_the_newest_version_committed_by_then(table):
    first = table.append(arrow([("2013-01-05", "a", 1)]))
    second = table.append(arrow([("2013-01-05", "a", 2)]))
    assert first.committed_at < second.committed_at
    assert values(table, as_of=first.committed_at) == [1]
    assert values(table, as_of=second.committed_at - timedelta(microseconds=1)) == [1]
    assert values(table, as_of=second.committed_at) == [1, 2]
    assert values(table, as_of=second.committed_at + timedelta(days=1)) == [1, 2]


def test_a_time_may_be_iso_text_in_any_offset(table):
    first = table.append(arrow([("2013-01-05", "a", 1)]))
    table.append(arrow([("2013-01-05", "a", 2)]))
    there = first.committed_at.astimezone(datetime.strptime("+0530", "%z").tzinfo)
    assert values(table, as_of=first.committed_at.isoformat()) == [1]
    assert values(table, as_of=there.isoformat()) == [1]
    assert values(table, as_of=there) == [1]


def test_a_time_before_the_table_is_not_found(table):
    table.append(arrow([("2013-01-05", "a", 1)]))
    with pytest.raises(VersionNotFound):
        table.scan(as_of="2001-01-01T00:00:00").to_arrow()


@pytest.mark.parametrize("as_of", ["²", "9" * 30, "9" * 5000, "nul\0", "\ud800", "x" * 1_000_000, "<img src=x>", "-1"])
def test_any_text_that_names_no_version_fails_in_a_short_line(table, as_of):
    with pytest.raises(VersionNotFound) as refused:
        table.scan(as_of=as_of)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("as_of", ["no such tag", True, 1.5, ...])
def test_what_names_no_version_is_refused(table, as_of):
    with pytest.raises((VersionNotFound, InvalidInput)):
        table.scan(as_of=as_of).to_arrow()


def test_a_scan_keeps_the_version_that_it_was_made_at(table):
    table.append(arrow([("2013-01-05", "a", 1)]))
    scan = table.scan()
    version = scan.plan().version
    table.append(arrow([("2013-01-05", "a", 2)]))
    table.replace(None, "2013-01-05")
    assert scan.plan().version == version
    assert scan.to_arrow().column("value").to_pylist() == [1]
    assert scan.count() == 1


def test_logs_are_newest_first_and_limited(lake, table):
    for value in range(5):
        table.append(arrow([("2013-01-05", "a", value)]))
    versions = [commit.version for commit in table.log()]
    assert versions == sorted(versions, reverse=True)
    assert len(versions) == len(set(versions))
    assert [commit.version for commit in table.log(2)] == versions[:2]
    assert [commit.version for commit in lake.log(2)] == versions[:2]
    assert table.version == versions[0]


def test_the_log_of_the_lake_holds_every_version_of_every_table(lake, table):
    other = lake.create_table("other", SCHEMA, time="time")
    made = [
        table.append(arrow([("2013-01-05", "a", 1)])).version,
        other.append(arrow([("2013-01-05", "a", 1)])).version,
    ]
    logged = {commit.version: list(commit.tables) for commit in lake.log()}
    assert [logged[version] for version in made] == [["flights"], ["other"]]


def test_an_append_of_no_rows_is_harmless(table):
    table.append(arrow([("2013-01-05", "a", 1)]))
    table.append(arrow([]))
    assert values(table) == [1]
    assert len(table.segments()) == 1


def test_another_handle_reads_the_same_versions(connect, table):
    version = table.append(arrow([("2013-01-05", "a", 1)])).version
    table.append(arrow([("2013-01-05", "a", 2)]))
    there = connect().table("flights")
    assert values(there) == [1, 2]
    assert values(there, as_of=version) == [1]
    assert there.log() == table.log()
    assert there.segments() == table.segments()


def test_chunks_keep_the_version_that_last_changed_them(table):
    first = table.append(arrow([("2013-01-05", "a", 1), ("2013-01-06", "a", 2)])).version
    second = table.append(arrow([("2013-01-06T23:59", "a", 3)])).version
    assert [(one.start.day, one.version, one.segments, one.rows) for one in table.chunks()] == [
        (5, first, 1, 1),
        (6, second, 2, 2),
    ]
    assert [one.version for one in table.chunks(as_of=first)] == [first, first]


def test_rows_of_every_time_are_kept_to_the_microsecond(table):
    rows = sorted(
        row(time, "a", index)
        for index, time in enumerate(
            [
                "0001-01-01T00:00:00",
                "1582-10-04T12:00:00",
                "1969-12-31T23:59:59.999999",
                "1970-01-01T00:00:00",
                "2012-02-29T23:59:59.999999",
                "2016-12-31T23:59:59.999999",
                "9999-12-30T23:59:59.999999",
            ]
        )
    )
    table.append(arrow(rows))
    assert visible(table) == rows
    leap = lakehouse.Interval.of("2012-02-29")
    assert visible(table, interval=leap) == [rows[4]]


def test_the_last_instant_of_time_is_kept_or_refused_clearly(table):
    last = row("9999-12-31T23:59:59.999999", "a", 1)
    try:
        table.append(arrow([last]))
    except InvalidInput:
        assert visible(table) == []
    else:
        assert visible(table) == [last]
