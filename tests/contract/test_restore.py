"""Restore: a new version equal to an old one."""

from __future__ import annotations

import pytest

from lakehouse.errors import VersionNotFound
from lakehouse.reading.between import rows_between
from lakehouse.testing.rows import arrow, values, visible


def history(table):
    """Versions of a table whose rows differ at each."""
    versions = [table.append(arrow([("2013-01-05T01:00", "a", 1), ("2013-01-06T01:00", "b", 2)])).version]
    versions.append(table.append(arrow([("2013-01-05T02:00", "a", 3)])).version)
    versions.append(
        table.replace(arrow([("2013-01-05T01:00", "c", 4)]), ("2013-01-05T00:30", "2013-01-05T01:30")).version
    )
    versions.append(table.replace(None, "2013-01-05").version)
    versions.append(table.replace(None, "2013-01-06", keys={"client": "b"}).version)
    return versions


def test_a_restore_is_a_new_version_equal_to_the_old_one(table):
    versions = history(table)
    seen = {version: visible(table, as_of=version) for version in versions}
    for version in versions:
        commit = table.restore(version)
        assert commit.version == table.version > versions[-1]
        assert commit.operation == "restore"
        assert visible(table) == seen[version], version
    assert {version: visible(table, as_of=version) for version in versions} == seen


def test_a_restore_moves_no_file(table):
    versions = history(table)
    paths = {segment.path for segment in table.segments(as_of=versions[1])}
    table.restore(versions[1])
    assert {segment.path for segment in table.segments()} == paths


def test_a_restore_brings_tombstones_and_ordinals_back(table):
    versions = history(table)
    segments, tombstones = table.segments(as_of=versions[2]), table.tombstones(as_of=versions[2])
    table.restore(versions[2])
    assert table.segments() == segments
    assert table.tombstones() == tombstones
    table.append(arrow([("2013-01-05T01:00", "a", 9)]))
    assert 9 in values(table)


def test_what_follows_a_restore_builds_on_it(table):
    versions = history(table)
    table.restore(versions[1])
    table.replace(None, ("2013-01-05T01:30", "2013-01-05T03:00"))
    assert values(table) == [1, 2]
    table.restore(versions[-1])
    assert values(table) == []


def test_a_tag_may_be_restored(lake, table):
    versions = history(table)
    lake.tag("good", versions[0])
    table.restore("good")
    assert values(table) == [1, 2]


def test_the_empty_table_may_be_restored(table):
    created = table.version
    history(table)
    table.restore(created)
    assert visible(table) == []


def test_a_missing_version_is_not_restored(lake, table):
    history(table)
    head = lake.head
    for version in (lake.head + 1, -1, "no such tag"):
        with pytest.raises(VersionNotFound):
            table.restore(version)
    assert lake.head == head


def test_a_restore_undoes_a_compaction_too(table):
    for value in range(6):
        table.append(arrow([("2013-01-05T01:00", "a", value)]))
    version = table.version
    paths = {segment.path for segment in table.segments()}
    assert table.compact() is not None
    table.restore(version)
    assert {segment.path for segment in table.segments()} == paths
    assert values(table) == list(range(6))


def test_what_a_restore_does_to_rows_is_known_before(lake, table):
    """Against the change feed of the restore itself, and the rows of both versions."""
    versions = history(table)
    versions.append(table.append(arrow([("2013-01-05T05:00", "a", 5), ("2013-01-05T06:00", "b", 6)])).version)
    versions.append(table.update({"value": "value + 10"}, "value = 5").version)
    versions.append(table.delete("client = 'b'").version)
    table.compact()
    kept = ["client", "value", "_change_type"]
    for version in versions:
        head = table.version
        known = rows_between(lake.session, table.spec, head, version).read_all()
        table.restore(version)
        done = table.changes(head).to_arrow()
        assert sorted(map(str, known.select(kept).to_pylist())) == sorted(map(str, done.select(kept).to_pylist()))
        kinds = known["_change_type"].to_pylist()
        grown = kinds.count("insert") - kinds.count("delete")
        assert table.count() - table.count(as_of=head) == grown
    assert rows_between(lake.session, table.spec, table.version, table.version).read_all().num_rows == 0
