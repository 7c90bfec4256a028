"""Expire: versions are forgotten, and nothing that is retained changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakehouse.catalog.store.models import operation
from lakehouse.core.operation import Kind
from lakehouse.errors import InvalidInput, LockLost, TableNotFound, VersionNotFound
from lakehouse.lake import Lake
from lakehouse.operations.restore import Restore
from lakehouse.testing import behind, faults
from lakehouse.testing.rows import SCHEMA, arrow, values, visible
from tests.contract.test_key_frames import FIRST, run


@pytest.fixture
def history(table):
    """Five versions of one day, each replacing the one before; by version what it holds."""
    return {table.replace(arrow([("2013-01-05", "a", n)]), "2013-01-05").version: [n] for n in range(5)}


def test_versions_before_the_horizon_are_forgotten_and_later_ones_are_what_they_were(lake, table, history):
    versions = list(history)
    expired = lake.expire(keep_last=2)
    assert (expired.horizon, expired.segments, expired.tombstones) == (versions[-2], 3, 0)
    assert expired.bytes > 0
    assert {version: values(table, as_of=version) for version in versions[-2:]} == {
        version: history[version] for version in versions[-2:]
    }
    for version in versions[:-2]:
        for ask in (table.scan, table.segments, table.timeline, table.chunks, table.tombstones):
            with pytest.raises(VersionNotFound, match=f"expired.*oldest={versions[-2]}"):
                ask(as_of=version)
        with pytest.raises(VersionNotFound, match="expired"):
            table.restore(version)
        with pytest.raises(VersionNotFound, match="expired"):
            table.diff(version, versions[-1])
        with pytest.raises(VersionNotFound, match="expired"):
            lake.tag("late", version)
    assert [commit.version for commit in table.log()] == versions[:-3:-1]
    assert [commit.version for commit in lake.log()] == versions[:-3:-1]


def test_a_second_expiry_finds_nothing(lake, table, history):
    assert lake.expire(keep_last=2).segments == 3
    again = lake.expire(keep_last=2)
    assert (again.versions, again.segments) == (0, 0)
    assert again.horizon == list(history)[-2]


def test_the_horizon_never_goes_back(lake, table, history):
    horizon = lake.expire(keep_last=1).horizon
    assert lake.expire(keep_last=5).horizon == horizon
    assert lake.expire(older_than="30d").horizon == horizon
    assert values(table) == [4]


def test_a_dry_run_shows_the_same_and_changes_nothing(lake, table, history):
    before = [commit.version for commit in lake.log()]
    foreseen = lake.expire(keep_last=2, dry_run=True)
    assert [commit.version for commit in lake.log()] == before
    assert {version: values(table, as_of=version) for version in history} == history
    assert lake.expire(keep_last=2) == foreseen


def test_an_age_keeps_what_was_the_newest_then(lake, table, history):
    versions = list(history)
    middle = table.log()[2]
    moment = middle.committed_at
    assert lake.expire(older_than=moment, dry_run=True).horizon == middle.version
    assert lake.expire(older_than=moment.isoformat(), dry_run=True).horizon == middle.version
    age = datetime.now(UTC) - moment
    assert lake.expire(older_than=age + timedelta(hours=1), dry_run=True).horizon == 0
    assert lake.expire(older_than=3600, dry_run=True).horizon == 0
    assert lake.expire(older_than=0, keep_last=4, dry_run=True).horizon == versions[-4]
    assert lake.expire(older_than="1h", keep_last=1, dry_run=True).horizon == 0
    assert lake.expire(older_than=moment).horizon == middle.version
    assert values(table, as_of=moment) == history[middle.version]
    with pytest.raises(VersionNotFound, match="expired"):
        table.scan(as_of=moment - timedelta(microseconds=1))


@pytest.mark.parametrize("age", ["5", "0", "1.5", "20240101"])
def test_an_age_without_a_unit_forgets_nothing(lake, table, age):
    table.append(arrow([(FIRST, "a", 1)]))
    with pytest.raises(InvalidInput, match=f"say what the number counts.*older_than={age}"):
        lake.expire(older_than=age)
    with pytest.raises(InvalidInput, match=f"an age such as 30d.*found={age}"):
        table.set_properties({"retention": age})
    assert lake.expire(dry_run=True, keep_last=100).horizon == 0


@pytest.mark.parametrize(
    "wish",
    [{}, {"keep_last": 0}, {"keep_last": True}, {"keep_last": "3"}, {"older_than": -1}, {"older_than": "soon"},
     {"older_than": b"soon"}, {"older_than": float("nan")}],
    ids=str,
)  # fmt: skip
def test_a_wish_that_cannot_be_is_refused(lake, table, wish):
    with pytest.raises(InvalidInput):
        lake.expire(**wish)


def test_a_tag_holds_its_version_until_it_goes(lake, table, history):
    first = next(iter(history))
    lake.tag("opening", first)
    expired = lake.expire(keep_last=1)
    assert (expired.versions, expired.segments) == (4, 3)  # versions: with the table's creation
    assert values(table, as_of="opening") == values(table, as_of=first) == history[first]
    assert first in [commit.version for commit in lake.log()]
    lake.tag("again", first)
    lake.untag("opening")
    assert lake.expire(keep_last=1).segments == 0
    lake.untag("again")
    assert lake.expire(keep_last=1).segments == 1
    with pytest.raises(VersionNotFound, match="expired"):
        table.scan(as_of=first)


def test_a_dropped_table_is_forgotten_a_part_at_a_time(lake, table):
    table.append(arrow([(f"2013-01-05T{hour:02d}:30", "a", hour) for hour in range(24)]))
    lake.tag("early")
    for hour in range(20):
        table.delete(f"value = {hour}")
        table.append(arrow([(f"2013-01-05T{hour:02d}:45", "b", 100 + hour)]))
    held = values(table)
    lake.tag("late")
    lake.drop_table("flights")
    lake.create_table("other", SCHEMA, time="time")
    lake.expire(keep_last=1)
    assert lake.check().is_sound
    assert values(table, as_of="late") == held
    lake.untag("late")
    assert lake.expire(keep_last=1).tombstones == 20
    assert values(table, as_of="early") == list(range(24))
    assert lake.check().is_sound
    lake.untag("early")
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    assert lake.check().is_sound


def test_each_table_keeps_its_newest_version_at_the_horizon_and_at_tags(lake, table):
    other = lake.create_table("other", SCHEMA, time="time")
    empty = lake.create_table("empty", SCHEMA, time="time")
    old = [other.replace(arrow([("2013-01-05", "a", n)]), "2013-01-05").version for n in range(3)]
    table.append(arrow([("2013-01-05", "a", 1)]))
    lake.tag("between")
    newer = other.replace(arrow([("2013-01-05", "a", 9)]), "2013-01-05").version
    for n in range(3):
        table.append(arrow([("2013-01-05", "a", n)]))
    lake.expire(keep_last=1)
    assert values(other) == values(other, as_of=newer) == [9]
    assert values(other, as_of="between") == values(other, as_of=old[-1]) == [2]
    assert [commit.version for commit in other.log()] == [newer, old[-1]]
    assert (other.version, values(empty), values(empty, as_of=empty.version)) == (newer, [], [])
    with pytest.raises(VersionNotFound):
        values(other, as_of=old[0])
    other.restore(old[-1])
    assert values(other) == [2]


def test_an_append_that_is_open_during_expiry_is_visible(lake, table, history):
    append = table.begin_append()
    append.write(arrow([("2013-01-05", "b", 50)]))
    table.replace(arrow([("2013-01-05", "a", 60)]), "2013-01-05")
    expired = lake.expire(keep_last=1)
    assert expired.horizon <= append.base_version
    lake.collect(grace_seconds=0)
    append.commit()
    assert values(table) == [50, 60]


def test_a_replace_and_a_compaction_that_are_open_during_expiry_do_their_work(lake, table):
    for n in range(4):
        table.append(arrow([("2013-01-05", "a", n), ("2013-01-06", "b", 10 + n)]))
    compaction = table.begin_compaction("2013-01-05")
    replace = table.begin_replace("2013-01-06")
    table.append(arrow([("2013-01-06", "b", 20)]))
    for _ in range(2):
        lake.expire(keep_last=1)
        lake.collect(grace_seconds=0)
        compaction.run()
        replace.write(arrow([("2013-01-06", "c", 30)]))
        break
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    compaction.commit()
    replace.commit()
    assert values(table) == [0, 1, 2, 3, 20, 30]
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    assert values(table) == [0, 1, 2, 3, 20, 30]


def test_a_compaction_past_its_lease_is_ended_when_what_it_read_is_forgotten(connect, table):
    for n in range(4):
        table.append(arrow([("2013-01-05", "a", n)]))
    late = connect(lease_seconds=0.2).table("flights")
    compaction = late.begin_compaction()
    late.session.heartbeat.close()
    compaction.run()
    table.append(arrow([("2013-01-05", "a", 4)]))
    while Lake(table.session).expire(keep_last=1).horizon <= compaction.base_version:
        pass  # until its lease has run out
    with pytest.raises(LockLost):
        compaction.commit()
    assert values(table) == [0, 1, 2, 3, 4]


def test_a_transaction_mark_outlives_its_version(lake, table):
    first = table.append(arrow([("2013-01-05", "a", 1)]), txn=("feed", 1))
    for n in range(3):
        table.replace(arrow([("2013-01-05", "a", n)]), "2013-01-05")
    lake.expire(keep_last=1)
    again = table.append(arrow([("2013-01-05", "a", 1)]), txn=("feed", 1))
    assert (again.version, again.committed_at, again.txn) == (first.version, first.committed_at, ("feed", 1))
    assert values(table) == [2]


def test_a_dropped_table_is_forgotten_with_its_last_version(lake, table):
    other = lake.create_table("other", SCHEMA, time="time")
    other.append(arrow([("2013-01-05", "a", 1)]))
    lake.tag("kept")
    lake.drop_table("other")
    assert lake.expire(keep_last=1).segments == 0
    lake.untag("kept")
    assert lake.expire(keep_last=1).segments == 1
    with pytest.raises(TableNotFound, match="expired"):
        other.scan()
    again = lake.create_table("other", SCHEMA, time="time")
    assert values(again) == []


def test_a_reader_that_remembers_old_states_reads_right_after_an_expiry(connect, lake, table):
    """It holds the state in which a segment lives that is forgotten together with the delta that drops it."""
    day, early, late = "2013-01-05", ("2013-01-05T00:00", "2013-01-05T06:00"), ("2013-01-05T06:00", "2013-01-06")
    there = connect().table("flights")
    table.append(arrow([("2013-01-05T01:00", "a", 1)]))
    first = table.append(arrow([("2013-01-05T07:00", "a", 2)])).version
    assert values(there, as_of=first) == values(table, as_of=first) == [1, 2]
    table.replace(None, early)
    point = table.append(arrow([("2013-01-07", "b", 3)])).version
    newest = table.append(arrow([("2013-01-05T08:00", "a", 4)])).version
    lake.expire(keep_last=2)
    for reader in (table, there, connect().table("flights")):
        assert values(reader, as_of=point, interval=day) == [2]
        assert values(reader, as_of=newest, interval=day) == [2, 4]
    table.replace(None, late)
    assert values(there, interval=day) == []


def test_chains_stay_bounded(lake, table):
    for n in range(150):
        table.replace(arrow([("2013-01-05T01:00", "a", n)]), ("2013-01-05T00:00", "2013-01-05T06:00"))
    table.append(arrow([("2013-01-05T07:00", "b", 500)]))
    lake.tag("kept", table.log()[100].version)
    expected = values(table, as_of="kept")
    assert len(table.key_frames()) > 2
    lake.expire(keep_last=1)
    assert values(table) == [149, 500]
    assert values(table, as_of="kept") == expected
    assert len(table.key_frames()) <= 2


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["append", "replace", "part", "keys", "compact"]), st.integers(0, 2)),
        st.tuples(st.sampled_from(["restore", "tag", "untag", "expire"]), st.integers(0, 30)),
    ),
    max_size=25,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_every_retained_version_is_what_it_was(lake, connect, steps):
    for name in lake.tags():
        lake.untag(name)
    if "flights" in lake.tables():
        lake.drop_table("flights")
    table = lake.create_table(
        "flights", "time TIMESTAMP, client STRING, value BIGINT", time="time", cluster_by="client"
    )
    other = connect().table("flights")
    seen = {table.version: []}
    for made, (step, number) in enumerate(steps):
        readable = [version for version in seen if is_readable(table, version)]
        match step:
            case "restore":
                table.restore(readable[number % len(readable)])
            case "tag":
                tagged = readable[number % len(readable)]
                try:
                    lake.tag(f"tag{made}", tagged)
                except VersionNotFound:
                    assert tagged < lake.log()[-1].version or tagged == table.log()[-1].version
            case "untag":
                for name in list(lake.tags())[:1]:
                    lake.untag(name)
            case "expire":
                lake.expire(keep_last=1 + number % 6)
            case _:
                run(table, step, number)
        seen[table.version] = visible(table)
        for version in [version for version in seen if is_readable(table, version)]:
            assert visible(table, as_of=version) == visible(other, as_of=version) == seen[version]
        assert is_readable(table, table.version)
        assert all(version in lake.tags().values() or is_readable(table, version) for version in list(seen)[-1:])
        for name, version in lake.tags().items():
            assert visible(other, as_of=name) == seen[max(one for one in seen if one <= version)]
    assert FIRST


def is_readable(table, version):
    try:
        table.segments(as_of=version)
    except VersionNotFound:
        return False
    return True


def test_a_restore_of_what_is_forgotten_before_its_commit_fails(lake, table, history):
    begun = lake.catalog.begin(table.spec, Kind.RESTORE)
    restore = Restore(lake.session, begun, target=next(iter(history)), then=table.spec)
    assert lake.expire(keep_last=1).versions
    with pytest.raises(VersionNotFound, match="expired"):
        restore.commit()
    restore.abort()
    assert values(table) == [4]


def test_a_chain_shows_what_a_version_is_built_of(table):
    for n in range(20):
        table.append(arrow([("2013-01-05", "a", n)]))
    table.replace(None, "2013-01-05")
    version = table.log()[1].version
    links = table.chain("2013-01-05", as_of=version)
    assert links[0].is_key_frame
    assert [link.is_key_frame for link in links[1:]] == [False] * (len(links) - 1)
    assert links[-1].version == version
    assert links[-1].entries == len(table.segments(as_of=version)) == 20
    dropped = table.chain()[-1]
    assert (dropped.version, dropped.added, dropped.dropped, dropped.entries) == (table.version, 0, 20, 0)
    assert table.chain("2014") == []
    assert links.to_arrow().num_rows == len(links)


def test_a_key_frame_that_an_expiry_overtook_is_not_written(lake, table, connect):
    """Its page holds what has been forgotten since it was made."""
    there = connect()
    overtaken = []

    def overtake():
        if not overtaken:
            overtaken.append(True)
            there.table("flights").replace(arrow([("2013-01-05", "b", 99)]), "2013-01-05")
            assert there.expire(keep_last=1).segments > 0

    with faults.armed({"commit.frames": overtake}):
        for n in range(80):
            table.append(arrow([("2013-01-05", "a", n)]))
            if overtaken:
                break
    assert overtaken
    assert lake.check().findings == []
    table.append(arrow([("2013-01-05", "a", 100)]))
    assert values(table) == values(there.table("flights")) == [99, 100]


def test_operations_that_ended_long_ago_are_forgotten_with_their_versions(lake, table, history):
    behind.change(lake.catalog, operation.update().values(begun_us=1))
    lake.expire(keep_last=1)
    left = behind.rows_of(lake.catalog, operation.select())
    assert [one.version for one in left] == [table.version]
    assert values(table) == [4]
    assert lake.check().is_sound
