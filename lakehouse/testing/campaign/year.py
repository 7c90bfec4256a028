"""A year of operation, one day a second: the catalog and the warehouse must not grow with it.

A day is an append with a ``txn``, a replace, an upsert, a delete, an update and a drop of a month-old chunk; a tag, a
table created and dropped, reads in two ways; then maintenance, expiry and collection. Now and then a process is killed
while it holds a lock, while another waits for it and while rows under it are updated. The catalog's clock is advanced
by a day each night. The oracle for rows is a list in plain Python; for growth it is every table that the catalog's
models define, so a new one cannot be forgotten.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import lakehouse
from lakehouse.catalog.store.opening import sqlite  # two copies of SQLite in one process would undo each other's locks
from lakehouse.catalog.store.tables import metadata
from lakehouse.errors import LakehouseError
from lakehouse.testing.campaign.outcome import Outcome

_START = datetime(2013, 1, 1, tzinfo=UTC)
_SCHEMA = pa.schema([
    pa.field("ts", pa.timestamp("us", "UTC"), nullable=False), pa.field("id", pa.int64(), nullable=False),
    pa.field("value", pa.int64()),
])  # fmt: skip
_KEPT_DAYS = 20
_WINDOW = 14
"""How many days a comparison covers."""
_SETTLED = 28
"""Days after which everything with a retention has begun to be removed."""
_KILLED_EVERY = 14
_GROWTH = 1.25
_ROOM = 12
"""Rows that a table may have in addition to a quarter more, for differences between weekdays."""
_VICTIM = """
import os, sys, threading, time
import lakehouse
from lakehouse.catalog.store.opening import sqlite
lake = lakehouse.connect(sys.argv[1], sys.argv[2])
table, day = lake.table("events"), sys.argv[4]
held = table.begin_replace(day)
held.write(table.scan(interval=day).to_arrow())
table.update({"value": "value + 0"}, where=sys.argv[5])
waits = threading.Thread(target=lambda: table.begin_replace(day, wait_seconds=600), daemon=True)
waits.start()
with sqlite.connect(sys.argv[3]) as catalog:
    while catalog.execute("SELECT count(*) FROM lock_wait").fetchone() == (0,):
        time.sleep(0.01)
os._exit(0)
"""


@dataclass(frozen=True, slots=True)
class Day:
    """The state at a day's end: rows of each catalog table, pages in use, files; and seconds of calls."""

    rows: Mapping[str, int]
    pages: int
    files: int
    seconds: Mapping[str, float]


def run(count: int, seed: int) -> Outcome:
    """Run ``count`` days, about a second each. Deterministic: ``seed`` is not used."""
    with tempfile.TemporaryDirectory(prefix="year-") as folder:
        try:
            days = list(simulate(count, Path(folder)))
        except (LakehouseError, AssertionError) as error:
            return Outcome("days", 0, 0, [f"{type(error).__name__}: {error}"])
    return Outcome("days", len(days), 0, grown(days))


def grown(days: list[Day]) -> list[str]:
    """What has grown from the first settled weeks to the last ones."""
    if len(days) < _SETTLED + 2 * _WINDOW:
        return []
    first, last = days[_SETTLED : _SETTLED + _WINDOW], days[-_WINDOW:]
    found = []
    for name in [*metadata.tables, "pages", "files"]:
        before, after = (max(_held(day, name) for day in some) for some in (first, last))
        if after > before * _GROWTH + _ROOM:
            found.append(f"{name} grew from {before} to {after} in {len(days)} days")
    return found


def _held(day: Day, name: str) -> int:
    return day.rows[name] if name in day.rows else int(getattr(day, name))


def simulate(days: int, folder: Path) -> Iterator[Day]:
    """Run days in a new lake. Raises `AssertionError` if rows differ from the oracle's."""
    catalog, warehouse = folder / "catalog.db", folder / "warehouse"
    url = f"sqlite:///{catalog}"
    events: dict[tuple[datetime, int], int] = {}
    clients: dict[int, int] = {}
    with lakehouse.connect(url, warehouse) as lake:
        properties = {"txn_retention": "14d", "small_files": "2", "retention": "7d"}
        lake.create_table("events", _SCHEMA, time="ts", properties=properties)
        lake.create_table("clients", _SCHEMA, time="ts", primary_key=("id",), properties=properties)
    for number in range(days):
        with lakehouse.connect(url, warehouse) as lake:  # none is open at night: its own clock would stand still
            seconds = _World(lake, events, clients).live(number)
        if number % _KILLED_EVERY == _KILLED_EVERY - 1:
            _kill(catalog, warehouse, number)
        _sleep(catalog)
        yield Day(_count_rows(catalog), _pages(catalog), sum(len(names) for *_, names in os.walk(warehouse)), seconds)


@dataclass(frozen=True, slots=True)
class _World:
    """A lake, and the expected contents of its two tables: values by day and id, and by id."""

    lake: Any
    events: dict[tuple[datetime, int], int]
    clients: dict[int, int]

    def live(self, number: int) -> dict[str, float]:
        """One day's work. Returns the seconds that some calls took."""
        lake, events, clients = self.lake, self.lake.table("events"), self.lake.table("clients")
        day = _START + timedelta(days=number)
        rows = {(day, one): number + one for one in range(20)}
        seconds: dict[str, float] = {}
        with _timed(seconds, "append"):
            events.append(_rows(rows), txn=("feed", number))
        events.append(_rows(rows), txn=("feed", number))  # again: it changes nothing
        self.events.update(rows)
        again = {(day, one): -one for one in range(5, 10)}
        events.replace(_rows({**{k: v for k, v in rows.items() if k[1] >= 10}, **again}), day.date().isoformat())
        self.events.update(again)
        for one in range(5):
            del self.events[day, one]
        events.delete(f"id = 11 AND ts = '{day:%Y-%m-%d}'")
        del self.events[day, 11]
        events.update({"value": "value * 2"}, where=f"id = 12 AND ts = '{day:%Y-%m-%d}'")
        self.events[day, 12] *= 2
        changed = dict.fromkeys(range(number % 7, 50, 7), number)
        clients.upsert(_rows({(_START, one): value for one, value in changed.items()}))
        self.clients.update(changed)
        if number >= _KEPT_DAYS:
            old = _START + timedelta(days=number - _KEPT_DAYS)
            events.replace(None, old.date().isoformat())
            for key in [key for key in self.events if key[0] == old]:
                del self.events[key]
        lake.tag(f"day-{number}")
        if number >= 14:
            lake.untag(f"day-{number - 14}")
        if number % 3 == 0:
            passing = lake.create_table(f"passing_{number}", _SCHEMA, time="ts")
            passing.append(_rows(rows), txn=("feed", number))
            passing.scan(interval=day.date().isoformat()).count()
            lake.drop_table(f"passing_{number}")
        self.check(day)
        lake.maintain()
        with _timed(seconds, "expire"):
            lake.expire(older_than="7d", keep_last=10)
        with _timed(seconds, "collect"):
            lake.collect()
        with _timed(seconds, "scan"):
            self.check(day)
        return seconds

    def check(self, day: datetime) -> None:
        """Compare all rows, and those of a day, with the expected ones."""
        for table, expected in (
            ("events", {(ts, one, value) for (ts, one), value in self.events.items()}),
            ("clients", {(_START, one, value) for one, value in self.clients.items()}),
        ):
            found = self.lake.table(table).scan().to_arrow()
            rows = list(zip(*(found.column(name).to_pylist() for name in _SCHEMA.names), strict=True))
            assert len(rows) == len(expected) and set(rows) == expected, f"{table} on {day:%Y-%m-%d} holds other rows"  # noqa: PT018
        todays = self.lake.table("events").scan(interval=day.date().isoformat()).count()
        assert todays == sum(key[0] == day for key in self.events), f"{todays} rows of {day:%Y-%m-%d}"


class _timed:  # noqa: N801 - used as a statement
    """Record how many seconds a block takes."""

    def __init__(self, seconds: dict[str, float], name: str) -> None:
        self._seconds, self._name = seconds, name

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._seconds[self._name] = time.perf_counter() - self._began


def _rows(values: Mapping[tuple[datetime, int], int]) -> pa.Table:
    columns = [[ts for ts, _ in values], [one for _, one in values], list(values.values())]
    return pa.table(dict(zip(_SCHEMA.names, columns, strict=True)), schema=_SCHEMA)


def _kill(catalog: Path, warehouse: Path, number: int) -> None:
    day = f"{_START + timedelta(days=number):%Y-%m-%d}"
    where = f"id = 13 AND ts = '{day}'"
    subprocess.run(
        [sys.executable, "-c", _VICTIM, f"sqlite:///{catalog}", str(warehouse), str(catalog), day, where],
        check=True,
        timeout=120,
    )


def _sleep(catalog: Path) -> None:
    """Advance the catalog's clock by a day."""
    with closing(sqlite.connect(catalog)) as connection, connection:
        connection.execute("UPDATE lake SET clock_us = clock_us + 86400000000")


def _count_rows(catalog: Path) -> dict[str, int]:
    with closing(sqlite.connect(catalog)) as connection:
        return {
            name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]  # noqa: S608 - names of the models
            for name in metadata.tables
        }


def _pages(catalog: Path) -> int:
    with closing(sqlite.connect(catalog)) as connection:
        (pages,), (free,) = (connection.execute(f"PRAGMA {one}").fetchone() for one in ("page_count", "freelist_count"))
    return int(pages) - int(free)


def main(arguments: list[str]) -> None:
    """Print a line of JSON for every tenth day."""
    with tempfile.TemporaryDirectory(prefix="year-") as folder:
        for number, day in enumerate(simulate(int(arguments[0]), Path(folder))):
            if number % 10 == 9:
                facts = {"day": number + 1, "pages": day.pages, "files": day.files, **day.rows}
                sys.stdout.write(json.dumps(facts | {name: round(one, 4) for name, one in day.seconds.items()}) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
