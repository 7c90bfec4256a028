"""Random writes to a lake in an object store whose requests fail: ``python -m`` this module for thousands of faults.

What the table holds is kept in a dictionary beside it. After each operation, whether it was acknowledged or refused,
the rows are compared with that; at the end the whole lake is, on another machine too, and every object in the store has
to be one that the catalog names.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import lakehouse
from lakehouse.errors import StorageUnavailable
from lakehouse.storage.exports import EXPORTS
from lakehouse.testing.object_stores import SERVERS, Store, Unavailable
from lakehouse.testing.store_faults import PASSING, Fault, Schedule
from lakehouse.testing.store_proxy import StoreProxy

DAY = datetime(2024, 1, 1, tzinfo=UTC)
COLUMNS = "at TIMESTAMP, id BIGINT, label STRING"
REFUSING = (Fault.EXPIRED, Fault.FORBIDDEN, Fault.SKEWED)
"""Faults that a client cannot get over by trying again."""
_RATE = 0.35
_SCHEMA = pa.schema([("at", pa.timestamp("us", "UTC")), ("id", pa.int64()), ("label", pa.string())])
_DAYS = 3


def events(ids: Sequence[int], label: str) -> pa.Table:
    """Rows of some ids, whose days are theirs for ever."""
    columns = [[DAY + timedelta(days=one % _DAYS) for one in ids], list(ids), [label] * len(ids)]
    return pa.table(dict(zip(_SCHEMA.names, columns, strict=True)), _SCHEMA)


class StoreTrial:
    """One table in a store behind a proxy, and what it should hold.

    ``refused`` counts operations that raised `StorageUnavailable`, ``done`` those that were acknowledged, by name.
    """

    def __init__(self, place: Store, proxy: StoreProxy, folder: Path, seed: int) -> None:
        self._place, self._proxy, self._folder = place.through(proxy.port), proxy, folder
        self._choose = random.Random(seed)  # noqa: S311
        self._next = 0
        self.rows: dict[int, str] = {}
        self.done: dict[str, int] = {}
        self.refused = 0

    def opened(self, machine: str) -> lakehouse.Lake:
        """The lake, as a process of a machine opens it that shares nothing but catalog and store with the others."""
        return lakehouse.connect(
            f"sqlite:///{self._folder}/catalog.db",
            self._place.url,
            storage_options=dict(self._place.options),
            cache_dir=self._folder / machine,
        )

    def run(self, faults: int) -> None:
        """Go on until so many requests have failed. Raises `AssertionError` for the first row that is wrong."""
        with self.opened("one") as lake, self.opened("two") as other:
            table = lake.create_table("events", COLUMNS, time="at", primary_key="id", if_not_exists=True)
            there = other.table("events")
            while sum(self._proxy.faults().values()) < faults:
                self._step(lake, table)
                self._compare(table if self._choose.random() < 0.7 else there)
            lake.expire(keep_last=1)
            lake.collect(grace_seconds=0)
            self._compare_whole(lake)
            self._compare(there)
        with self.opened("three") as fresh:
            self._compare(fresh.table("events"))

    def _step(self, lake: lakehouse.Lake, table: lakehouse.Table) -> None:
        name = self._choose.choices(list(_STEPS), [weight for weight, _ in _STEPS.values()])[0]
        faults = PASSING if self._choose.random() < 0.75 else (*PASSING, *REFUSING)
        self._proxy.schedule = Schedule(self._choose.getrandbits(32), _RATE, faults=faults)
        before = dict(self.rows)
        try:
            _STEPS[name][1](self, lake, table)
            self.done[name] = self.done.get(name, 0) + 1
        except StorageUnavailable:
            self.refused += 1
            self.rows = before
        finally:
            self._proxy.clear()

    def _compare(self, table: lakehouse.Table) -> None:
        found = table.scan().to_arrow()
        held = dict(zip(found["id"].to_pylist(), found["label"].to_pylist(), strict=True))
        if found.num_rows != len(held) or held != self.rows:
            wrong = sorted(held.items() ^ self.rows.items())[:5]
            raise AssertionError(f"{found.num_rows} rows, not {len(self.rows)}, after {self.done}: {wrong}")

    def _compare_whole(self, lake: lakehouse.Lake) -> None:
        if findings := lake.check(deep=True).findings:
            raise AssertionError(f"the lake is not sound: {findings[:3]}")
        named = {one.path for one in lake.catalog.checks().files()}
        stored = {one.path for one in lake.session.warehouse.listed() if not one.path.startswith(f"{EXPORTS}/")}
        if stored != named:
            raise AssertionError(f"objects that nobody needs, or that are lost: {sorted(stored ^ named)[:3]}")

    def append(self, lake: lakehouse.Lake, table: lakehouse.Table) -> None:
        """New rows on several days: several objects."""
        ids = range(self._next, self._next + self._choose.randrange(1, 6))
        self._next = ids.stop
        self.rows |= dict.fromkeys(ids, "new")
        table.append(events(ids, "new"))

    def upsert(self, lake: lakehouse.Lake, table: lakehouse.Table) -> None:
        """Rows some of which are there."""
        first = max(0, self._next - self._choose.randrange(10))
        ids, label = range(first, first + 6), f"upsert {self._next}"
        self._next = max(self._next, ids.stop)
        self.rows |= dict.fromkeys(ids, label)
        table.upsert(events(ids, label))

    def delete(self, lake: lakehouse.Lake, table: lakehouse.Table) -> None:
        """Rows here and there."""
        first = self._choose.randrange(self._next + 1)
        self.rows = {one: label for one, label in self.rows.items() if not first <= one < first + 3}
        table.delete(f"id >= {first} AND id < {first + 3}")

    def update(self, lake: lakehouse.Lake, table: lakehouse.Table) -> None:
        """Rows by a filter that reads them."""
        rest, label = self._choose.randrange(17), f"update {self._next}"
        self.rows = {one: label if one % 17 == rest else old for one, old in self.rows.items()}
        table.update({"label": f"'{label}'"}, f"id % 17 = {rest}")

    def replace(self, lake: lakehouse.Lake, table: lakehouse.Table) -> None:
        """All of a day."""
        day = self._choose.randrange(_DAYS)
        ids = [one for one in range(self._next, self._next + 6) if one % _DAYS == day]
        self._next += 6
        self.rows = {one: label for one, label in self.rows.items() if one % _DAYS != day} | dict.fromkeys(ids, "day")
        table.replace(events(ids, "day"), (DAY + timedelta(days=day)).date().isoformat())

    def erase(self, lake: lakehouse.Lake, table: lakehouse.Table) -> None:
        """Rows of every version; a reader on another machine has copies of them."""
        first = self._choose.randrange(self._next + 1)
        self.rows = {one: label for one, label in self.rows.items() if not first <= one < first + 2}
        table.erase(f"id >= {first} AND id < {first + 2}")

    def compact(self, lake: lakehouse.Lake, table: lakehouse.Table) -> None:
        """What is there by other files."""
        table.compact()

    def tidy(self, lake: lakehouse.Lake, table: lakehouse.Table) -> None:
        """Versions, objects and copies go, and an export comes."""
        lake.cache.clear()
        lake.expire(keep_last=3)
        lake.collect(grace_seconds=0)
        lake.export()


_STEPS: Mapping[str, tuple[int, Callable[[StoreTrial, Any, Any], None]]] = {
    "append": (8, StoreTrial.append),
    "upsert": (4, StoreTrial.upsert),
    "delete": (3, StoreTrial.delete),
    "update": (2, StoreTrial.update),
    "replace": (1, StoreTrial.replace),
    "erase": (1, StoreTrial.erase),
    "compact": (2, StoreTrial.compact),
    "tidy": (2, StoreTrial.tidy),
}
"""Every operation, and how often it comes among others."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a trial, and print what failed and what was done in spite of it."""
    parser = argparse.ArgumentParser(prog="python -m lakehouse.testing.store_trial", description=__doc__)
    parser.add_argument("--faults", type=int, default=500, help="requests to fail (500)")
    parser.add_argument("--seed", type=int, default=0, help="what is drawn follows from it (0)")
    parser.add_argument("--multipart-bytes", help="the size above which a file is put in parts in S3")
    parser.add_argument("--server", choices=sorted(SERVERS), default="moto")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="lakehouse-store-trial-") as home:
        folder = Path(home)
        try:
            with SERVERS[asked.server](folder / "server") as store, StoreProxy(store.port) as proxy:
                own = {"multipart_bytes": asked.multipart_bytes} if asked.multipart_bytes else {}
                place = replace(store, options={**store.options, **own})
                trial = StoreTrial(place, proxy, folder, asked.seed)
                trial.run(asked.faults)
                failed = ", ".join(f"{count} {fault}" for fault, count in sorted(proxy.faults().items()))
        except Unavailable as reason:
            sys.stdout.write(f"{reason}\n")
            return 69
    done = ", ".join(f"{count} {name}" for name, count in sorted(trial.done.items()))
    sys.stdout.write(f"requests that failed: {failed}\nacknowledged: {done}; refused: {trial.refused}\n")
    sys.stdout.write(f"{len(trial.rows)} rows as they should be, and no object too many or too few\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
