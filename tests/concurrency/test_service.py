"""A service that never stops, beside users who append, upsert, delete, update and replace: they do not notice it."""

from __future__ import annotations

import random
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

import lakehouse
from lakehouse.core.task import TaskKind, TaskState
from lakehouse.service import Limits, Service
from lakehouse.testing.rows import KEYED, tabled, visible

FIRST = datetime(2013, 1, 5, tzinfo=UTC)
DAYS = 3
WAIT_SECONDS = 0.1
"""A replace that waits for longer fails, and the test with it."""
STEPS = 120


class Users:
    """One table that several threads write to, each the keys and days of its own, so that the rows after all are known.

    With keys and intervals of its own, a user never conflicts with another, so that what fails was maintenance's fault.
    """

    def __init__(self, table, seed, place, places):
        self.table, self.place = table, place
        self.chance = random.Random(f"{seed}:{place}")
        self.rows: dict[int, tuple[datetime, str, int]] = {}
        self.day = FIRST + timedelta(days=DAYS * place)
        self.next_key = place
        self.places = places
        self.waits: list[float] = []

    def row(self, key):
        return (self.day + timedelta(minutes=self.chance.randrange(DAYS * 24 * 60)), f"u{self.place}", key)

    def new_rows(self, count):
        found = []
        for _ in range(count):
            found.append(self.row(self.next_key))
            self.next_key += self.places
        return found

    def step(self):
        kind = self.chance.choice(["append"] * 4 + ["upsert", "upsert", "delete", "update", "replace", "delete_keys"])
        getattr(self, kind)()

    def append(self):
        rows = self.new_rows(self.chance.randrange(1, 4))
        self.table.append(tabled(rows, KEYED))
        self.rows.update({row[2]: row for row in rows})

    def upsert(self):
        known = self.chance.sample(sorted(self.rows), min(2, len(self.rows)))
        rows = [self.row(key) for key in known] + self.new_rows(1)
        self.table.upsert(tabled(rows, KEYED))
        self.rows.update({row[2]: row for row in rows})

    def delete(self):
        digit = self.chance.randrange(7)
        self.table.delete(f"client = 'u{self.place}' AND value % 7 = {digit}")
        self.rows = {
            key: row for key, row in self.rows.items() if not (row[1] == f"u{self.place}" and key % 7 == digit)
        }

    def delete_keys(self):
        gone = self.chance.sample(sorted(self.rows), min(3, len(self.rows)))
        if gone:
            self.table.delete_keys(tabled([(key,) for key in gone], KEYED.remove(0).remove(0)))
            self.rows = {key: row for key, row in self.rows.items() if key not in gone}

    def update(self):
        digit = self.chance.randrange(5)
        self.table.update({"client": f"'w{self.place}'"}, f"client = 'u{self.place}' AND value % 5 = {digit}")
        self.rows = {
            key: (row[0], f"w{self.place}", key) if row[1] == f"u{self.place}" and key % 5 == digit else row
            for key, row in self.rows.items()
        }

    def replace(self):
        start = self.day + timedelta(days=self.chance.randrange(DAYS))
        end = start + timedelta(days=1)
        rows = [row for row in self.new_rows(3) if start <= row[0] < end]
        began = time.monotonic()
        self.table.replace(tabled(rows, KEYED), (start, end), wait_seconds=WAIT_SECONDS)
        self.waits.append(time.monotonic() - began)
        self.rows = {key: row for key, row in self.rows.items() if not start <= row[0] < end}
        self.rows.update({row[2]: row for row in rows})


@pytest.mark.parametrize("seed", range(3))
def test_users_neither_fail_nor_wait_beside_a_service_and_no_row_is_lost(connect, lake, seed):
    table = lake.create_table(
        "events", KEYED, time="time", primary_key=("value",), cluster_by=("client",),
        properties={"small_files": "3", "deleted_rows": "0.05", "tombstone_debt": "0", "target_rows": 1000},
    )  # fmt: skip
    users = [Users(connect().table("events"), seed, place, 3) for place in range(3)]
    failures: list[Exception] = []
    stop, merged = threading.Event(), threading.Event()
    ended = []

    def on_end(task):
        ended.append(task)
        if task.kind is TaskKind.COMPACT and task.state is TaskState.DONE:
            merged.set()

    def live(user):
        steps = STEPS // len(users)
        try:
            for step in range(10 * steps):
                if step < steps or not merged.is_set():
                    user.step()
        except Exception as error:  # noqa: BLE001 - whatever it is, the test reports it
            failures.append(error)

    services = [Service(connect().session, Limits(), every_seconds=0.01, on_end=on_end) for _ in range(2)]
    working = [threading.Thread(target=one.run, args=(stop,)) for one in services]
    living = [threading.Thread(target=live, args=(user,)) for user in users]
    for thread in (*working, *living):
        thread.start()
    for thread in living:
        thread.join()
    stop.set()
    for thread in working:
        thread.join()
    assert failures == []
    expected = sorted((row for user in users for row in user.rows.values()), key=lambda row: row[2])
    assert sorted(visible(table), key=lambda row: row[2]) == expected
    assert merged.is_set(), "the service worked beside them"
    assert {one.state for one in ended} <= {TaskState.DONE, TaskState.WAITING, TaskState.CANCELLED}
    lake.maintain()
    assert sorted(visible(table), key=lambda row: row[2]) == expected
    assert max((chunk.segments for chunk in table.chunks()), default=0) <= 4
    assert lake.check(deep=True).findings == []


def test_a_lake_of_services_alone_comes_to_rest(lake, connect):
    table = lake.create_table("events", KEYED, time="time", primary_key=("value",))
    for n in range(30):
        table.upsert(tabled([(FIRST + timedelta(hours=n), "a", n % 7)], KEYED))
    others = [connect() for _ in range(2)]
    threads = [threading.Thread(target=one.maintain) for one in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lake.maintain()
    assert [one for one in lake.maintain().tasks if one.kind is not TaskKind.PLAN] == []
    assert len(visible(table)) == 7
    assert isinstance(lake, lakehouse.Lake)
