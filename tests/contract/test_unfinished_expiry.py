"""Which versions can be read is what the horizon, the tags and the tables say, whatever an expiry has left to do.

An expiry is stopped at each of its points, on the way and for good; nobody may see how far it came.
"""

from __future__ import annotations

import pytest

from lakehouse.catalog.forget import entries, expiry
from lakehouse.errors import VersionNotFound
from lakehouse.testing import faults
from lakehouse.testing.faults import Injected
from lakehouse.testing.rows import SCHEMA, arrow, values

DAY = "2013-01-05"
STOPS = [("expire.recorded", 1), *(("expire.forgotten", number) for number in (1, 2, 3))]


class Known:
    """What every version of a lake of two tables held before anything was forgotten."""

    def __init__(self, lake):
        self.lake = lake
        self.tables = [lake.table(name) for name in ("flights", "other")]
        self.held = {table.name: {table.version: []} for table in self.tables}
        self.times = {}

    @property
    def horizon(self):
        """Where an expiry that keeps three versions moves it."""
        return sorted(self.times)[-3]

    @property
    def asked(self):
        """Every version of either table, and some numbers between that are none."""
        return sorted({*self.times, *(one for held in self.held.values() for one in held), 5, self.horizon - 1})

    def replace(self, place, value):
        table = self.tables[place]
        commit = table.replace(arrow([(DAY, "a", value)]), DAY)
        self.held[table.name][commit.version] = [value]
        self.times[commit.version] = commit.committed_at

    def newest(self, name, point):
        return max((one for one in self.held[name] if one <= point), default=None)

    def retained(self, name, horizon, tags):
        """By number what a reader of a table may see: nothing else is to be read."""
        points = {horizon, *tags}
        below = {one for one in (self.newest(name, point) for point in points) if one is not None}
        numbers = {*range(horizon, self.lake.head + 1), *below, *tags}
        first = min(self.held[name])
        return {one: self.held[name][self.newest(name, one)] for one in numbers if one >= first}


@pytest.fixture
def known(lake, table, monkeypatch):
    """Versions in turn of two tables, one of which rests for long; one of the first is tagged."""
    lake.create_table("other", SCHEMA, time="time")
    monkeypatch.setattr(expiry, "MOST_ENTRIES", 1)
    monkeypatch.setattr(entries, "MOST_COMMITS", 2)
    found = Known(lake)
    for number in range(2):
        found.replace(1, 100 + number)
        found.replace(0, number)
    lake.tag("kept", found.newest("flights", lake.head - 2))
    for number in range(2, 6):
        found.replace(0, number)
    return found


def refused(ask):
    with pytest.raises(VersionNotFound):
        ask()


def ways_to_look(lake, table, version):
    """Each way that there is to ask for a version."""
    name = table.name
    return {
        "scan": lambda: values(table, as_of=version),
        "count": lambda: table.scan(as_of=version).count(),
        "text": lambda: values(table, as_of=str(version)),
        "sql": lambda: lake.sql(f"SELECT value FROM {name} VERSION AS OF {version}", engine="duckdb").fetchall(),
        "query": lambda: lake.query(f"SELECT value FROM {name}", as_of=version).rows,
        "segments": lambda: table.segments(as_of=version),
        "tombstones": lambda: table.tombstones(as_of=version),
        "timeline": lambda: table.timeline(as_of=version),
        "chunks": lambda: table.chunks(as_of=version),
        "chain": lambda: table.chain(as_of=version),
        "statistics": lambda: table.statistics(as_of=version),
        "version_at": lambda: table.version_at(version),
        "diff": lambda: table.diff(version, table.version),
        "changes": lambda: table.changes(version, version).to_arrow(),
    }


def assert_only_retained_can_be_read(lake, known, horizon, tags, *, every_way=False):
    """Look at every version that there was: the retained are what they were, and no other can be read."""
    for name in known.held:
        table, retained = lake.table(name), known.retained(name, horizon, tags)
        for version in known.asked:
            ways = ways_to_look(lake, table, version)
            if version in retained:
                assert ways["scan"]() == retained[version], (name, version)
                assert len(ways["segments"]()) == ways["count"]() == len(retained[version])
                for way in ways.values() if every_way else ():
                    way()
            elif version >= min(known.held[name]):
                for way in ways.values() if every_way else (ways["scan"], ways["segments"]):
                    refused(way)
                refused(lambda of=table, at=version: of.restore(at))
            if version < horizon and version not in tags:
                refused(lambda at=version: lake.tag("late", at))
        listed = {commit.version for commit in table.log()}
        assert listed == {one for one in known.held[name] if one in retained and one in known.times}
        for version, moment in known.times.items():
            if version < horizon:
                refused(lambda of=table, at=moment: of.scan(as_of=at))
            else:
                assert values(table, as_of=moment) == known.held[name][known.newest(name, version)]
    assert {commit.version for commit in lake.log()} == {one for one in known.times if one >= horizon} | tags
    assert set(lake.tags().values()) == tags


def assert_states_ask_the_horizon(lake, known, horizon, tags):
    """What plans are made of, asked for a number that nobody resolved, while no reader holds an older version."""
    for name in known.held:
        table = lake.table(name)
        for version in set(range(min(known.held[name]), horizon)) - known.retained(name, horizon, tags).keys():
            refused(lambda of=table.spec, at=version: lake.catalog.states(of, at))
            refused(lambda of=table.spec, at=version: lake.catalog.replayed(of, at))


def assert_a_feed_has_no_gap(lake, known, horizon):
    """Changes from a version on are all of them, or none."""
    for name, held in known.held.items():
        table = lake.table(name)
        for since in held:
            if since < horizon and since != known.newest(name, horizon):
                refused(lambda of=table, at=since: of.changes(at).to_arrow())
            else:
                listed = set(table.changes(since).to_arrow()["_commit_version"].to_pylist())
                assert listed == {one for one in held if one > since}


@pytest.mark.parametrize(("point", "number"), STOPS)
def test_an_expiry_that_was_killed_leaves_no_version_that_reads_wrong(connect, lake, known, point, number):
    tags = set(lake.tags().values())
    with faults.armed({point: faults.on_count(number, faults.fail())}), pytest.raises(Injected):
        lake.expire(keep_last=3)
    horizon, left = known.horizon, lake.check()
    assert left.is_sound
    assert left.forgotten > 0
    assert "the next expiry" in repr(left)
    assert_states_ask_the_horizon(lake, known, horizon, tags)
    every_way = number == 1
    assert_only_retained_can_be_read(connect(), known, horizon, tags, every_way=every_way)
    assert_a_feed_has_no_gap(lake, known, horizon)
    lake.expire(keep_last=3)
    assert lake.check().forgotten == 0
    assert_only_retained_can_be_read(lake, known, horizon, tags)
    assert lake.check().is_sound


def test_nobody_beside_an_expiry_sees_how_far_it_came(connect, lake, known):
    tags, reader = set(lake.tags().values()), connect()
    horizon = known.horizon
    looks = []

    def look():
        assert_only_retained_can_be_read(reader, known, horizon, tags)
        assert_a_feed_has_no_gap(reader, known, horizon)
        looks.append(True)

    with faults.armed({"expire.recorded": look, "expire.forgotten": look}):
        lake.expire(keep_last=3)
    assert len(looks) >= 4
    look()


@pytest.mark.parametrize(("point", "number"), STOPS)
def test_a_tag_that_goes_takes_its_version_with_it_at_once(lake, known, point, number):
    with faults.armed({point: faults.on_count(number, faults.fail())}), pytest.raises(Injected):
        lake.expire(keep_last=3)
    version = lake.tags()["kept"]
    lake.untag("kept")
    assert_only_retained_can_be_read(lake, known, known.horizon, set())
    refused(lambda: lake.tag("again", version))
    assert lake.check().is_sound


def test_a_history_does_not_show_what_is_forgotten(lake, known):
    table = lake.table("flights")
    with faults.armed({"expire.recorded": faults.fail()}), pytest.raises(Injected):
        lake.expire(keep_last=3)
    left = [touch.version for touch in table.history(DAY)]
    listed = [commit.version for commit in table.log(interval=DAY)]
    lake.expire(keep_last=3)
    assert [touch.version for touch in table.history(DAY)] == left
    assert [commit.version for commit in table.log(interval=DAY)] == listed


def test_a_feed_from_a_tag_does_not_leave_out_what_a_compaction_hides(lake, table):
    """The versions between are forgotten, and the oldest that is kept is one that changes no row."""
    table.append(arrow([(DAY, "a", 1)]))
    lake.tag("kept")
    for value in (2, 3):
        table.append(arrow([(DAY, "a", value)]))
    table.compact()
    lake.expire(keep_last=1)
    refused(lambda: table.changes("kept").to_arrow())
    assert table.changes(lake.head).count() == 0
