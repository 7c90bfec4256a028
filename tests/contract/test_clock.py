"""The catalog's clock on a host whose own clock jumps: leases, graces and ages last as long as they say."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakehouse
from lakehouse.catalog.store import clock
from lakehouse.catalog.store.database import Database
from lakehouse.catalog.store.migration import ensure_migrated
from lakehouse.catalog.store.models import lake as lake_row
from lakehouse.errors import LockTimeout
from lakehouse.testing.rows import SCHEMA, many

SECOND = 1_000_000
HOUR = 3600 * SECOND


@dataclass
class Host:
    """A host's clocks, set by hand, in microseconds."""

    boot: str | None = "one"
    ticks_us: int = 50 * HOUR
    wall_us: int = 1_800_000_000 * SECOND

    def wait(self, us: int) -> None:
        self.ticks_us += us
        self.wall_us += us


@pytest.fixture
def host(monkeypatch) -> Host:
    host = Host()
    monkeypatch.setattr(clock, "boot", lambda: host.boot)
    monkeypatch.setattr(time, "time_ns", lambda: host.wall_us * 1000)
    monkeypatch.setattr(time, "clock_gettime_ns", lambda _: host.ticks_us * 1000)
    monkeypatch.setattr(time, "clock_gettime", lambda _: host.ticks_us / SECOND)
    return host


@pytest.fixture
def open_lake(tmp_path):
    """Open the test's lake; nothing renews leases."""
    opened = []

    def one_more(**options):
        lake = lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse", **options)
        lake.session.heartbeat.close()
        lake.session.heartbeat.start = lambda: None
        opened.append(lake)
        return lake

    yield one_more
    for lake in opened:
        lake.close()


@pytest.fixture
def lake(host, open_lake):
    return open_lake()


@pytest.fixture
def table(lake):
    table = lake.create_table("flights", SCHEMA, time="time")
    table.append(many(3))
    return table


JUMPS = [HOUR, -HOUR, 24 * 365 * HOUR, -24 * 365 * HOUR]


@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("is_set_right", [True, False])
def test_a_lease_lasts_as_long_as_it_says_whatever_the_wall_clock_does(lake, table, host, jump, is_set_right):
    host.wall_us += jump
    table.append(many(3))
    if is_set_right:
        host.wall_us -= jump
    table.begin_replace("2013-01-05")
    host.wait(40 * SECOND)
    with pytest.raises(LockTimeout):
        table.begin_replace("2013-01-05", wait_seconds=0)
    host.wall_us += jump
    with pytest.raises(LockTimeout):
        table.begin_replace("2013-01-05", wait_seconds=0)
    host.wait(25 * SECOND)
    table.begin_replace("2013-01-05", wait_seconds=0).commit()


@pytest.mark.parametrize("jump", JUMPS)
def test_versions_expire_and_files_go_by_their_age(lake, table, host, jump):
    first = table.version
    host.wait(HOUR)
    table.replace(many(3), "2013-01-05")
    host.wall_us += jump
    assert lake.expire(older_than="2h").versions == 0
    assert table.scan(as_of=first).count() == 3
    host.wait(HOUR + HOUR // 10)
    assert lake.expire(older_than="2h").segments == 0  # a version is as old as the next one is
    assert table.scan(as_of=first).count() == 3
    host.wait(HOUR)
    assert lake.expire(older_than="2h").segments == 1
    host.wall_us -= jump
    assert lake.collect(grace_seconds=3600).files == 0
    host.wait(HOUR + HOUR // 10)
    assert lake.collect(grace_seconds=3600).files == 1


@pytest.mark.parametrize("jump", JUMPS)
def test_a_reader_keeps_its_pin_for_as_long_as_its_lease(lake, table, host, open_lake, jump):
    held = table.scan()
    host.wall_us += jump
    other = open_lake()
    other.table("flights").replace(None, "2013-01-05")
    assert other.expire(keep_last=1).segments == 0
    assert held.count() == 3
    host.wait(70 * SECOND)
    assert other.expire(keep_last=1).segments == 1


@pytest.mark.parametrize("jump", JUMPS)
def test_a_task_is_due_and_its_claim_ends_when_they_say(lake, table, host, jump):
    tasks = lake.catalog.tasks()
    host.wall_us += jump
    table.append(many(3))
    host.wall_us -= jump
    tasks.ask_for_plans(whatever=True)
    claim = tasks.claim()
    assert claim is not None
    assert tasks.claim() is None
    host.wait(70 * SECOND)
    again = tasks.claim()
    assert again is not None
    assert again.task.id == claim.task.id


@pytest.mark.parametrize("jump", JUMPS)
def test_commit_times_grow_and_are_right_again_when_the_clock_is(lake, table, host, jump):
    host.wait(60 * SECOND)
    host.wall_us += jump
    table.append(many(1))
    host.wall_us -= jump
    host.wait(60 * SECOND)
    table.append(many(1))
    times = [commit.committed_at.timestamp() * SECOND for commit in reversed(lake.log())]
    assert times == sorted(set(times))
    assert abs(times[-1] - host.wall_us) < 10 * SECOND


def test_a_catalog_begun_by_a_wrong_clock_comes_round(lake, table, host):
    host.wall_us -= HOUR
    for _ in range(800):
        host.wait(200 * SECOND)
        table.append(many(1))
        if abs(lake.catalog.now().timestamp() * SECOND - host.wall_us) < SECOND:
            return
    pytest.fail("it never does")


@pytest.mark.parametrize("boot", ["two", None])
def test_leases_of_before_a_boot_are_over_soon_after_it(table, host, open_lake, boot):
    host.wall_us += HOUR
    table.append(many(1))
    table.begin_replace("2013-01-05")
    host.wall_us -= HOUR
    host.boot, host.ticks_us = boot, 10 * SECOND
    after = open_lake().table("flights")
    with pytest.raises(LockTimeout):
        after.begin_replace("2013-01-05", wait_seconds=0)
    after.append(many(1))
    host.wait(70 * SECOND)
    after.begin_replace("2013-01-05", wait_seconds=0).commit()


def clock_of(state: tuple[int, str, int], host: Host) -> int:
    """The clock's rule in plain words: what was remembered is a time, a boot and its ticks."""
    clock_us, boot, ticks_us = state
    passed = host.ticks_us - ticks_us
    if boot != host.boot or passed < 0:
        return max(clock_us, host.wall_us)
    steady, room = clock_us + passed, min(passed // 20, 5 * SECOND)
    return min(max(host.wall_us, steady - room), steady + room)


steps = st.lists(
    st.tuples(
        st.sampled_from(["wait", "jump", "boot", "write", "read"]), st.integers(-3 * HOUR, 3 * HOUR), st.booleans()
    ),
    max_size=12,
)


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    made = Database(f"sqlite:///{tmp_path_factory.mktemp('clock')}/catalog.db")
    ensure_migrated(made)
    yield made
    made.close()


@settings(deadline=None, max_examples=50)
@given(steps=steps)
def test_the_clock_follows_its_rule_over_any_history(database, steps):
    host, state = Host(), (0, "", 0)
    forgotten = lake_row.update().values(clock_us=0, clock_boot="", clock_ticks_us=0)
    database.run(lambda connection: connection.execute(forgotten))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "host_clocks", lambda: vars(host))
        for step, amount, _ in steps:
            if step == "wait":
                host.wait(abs(amount))
            elif step == "jump":
                host.wall_us += amount
            elif step == "boot":
                host.boot, host.ticks_us = host.boot + "+", abs(amount)
            else:
                expected = clock_of(state, host)
                ask = database.run if step == "write" else database.read
                assert ask(database.now_us) == expected
                assert expected >= state[0]
                if step == "write" and (state[1] != host.boot or host.ticks_us < state[2]):
                    state = expected, host.boot, host.ticks_us


def test_steady_seconds_and_the_boot_are_reported_by_this_host():
    assert clock.steady_seconds() > 0
    assert clock.host_clocks()["boot"]
    assert timedelta(seconds=clock.steady_seconds()) < timedelta(days=10_000)
