"""Query nodes under chaos: ``python -m lakehouse.testing.serving_trial --queries 10000 --seed 7``.

Nodes are processes that are killed, paused beyond their leases, and kept from writing a byte, while five versions a
second are committed by appends, replaces, deletes, compactions and transactions over two tables, with an erasure in
between. Clients ask all the while. Every answer has to equal the rows of the version that it names, and no client's
versions may go back. At the end every node has to hold the files of the head and nothing else.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import lakehouse
from lakehouse.errors import LakehouseError
from lakehouse.lake import Lake
from lakehouse.testing.processes import free_port
from lakehouse.testing.serving_nodes import NodeProcess

Row = tuple[int, int, str, int]
"""Number, day, client, value."""
Rows = frozenset[Row]
_FIRST = datetime(2013, 1, 1, tzinfo=UTC)
_CLIENTS = ("ann", "bob", "cyd", "dan", "eve", "gone")
_VICTIM = "gone"
_DAYS = 6
_MOST_ROWS = 400
_LEASE_SECONDS = 1.0
_SETTLE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Told:
    """An answer, as a client got it."""

    client: int
    asked_at: float
    version: int
    least: int
    count: int
    total: int
    mark: int
    is_whole: bool
    is_of_old: bool


@dataclass
class Report:
    """What a trial saw; nothing is ``wrong``."""

    answers: int = 0
    versions: int = 0
    commits: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        faults, refused = (", ".join(f"{name} {count}" for name, count in sorted(one.items())) or "none"
                           for one in (self.faults, self.refused))  # fmt: skip
        return (
            f"{self.answers} answers at {self.versions} of {self.commits} versions; faults: {faults}; refused: "
            f"{refused}; wrong: {len(self.wrong)}"
        )


class Model:
    """What each version holds: rows, and the mark that transactions write beside them. An erasure changes all."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._versions: dict[int, tuple[Rows, int]] = {}
        self._before: list[tuple[float, dict[int, tuple[Rows, int]]]] = []

    def put(self, version: int, rows: Rows, mark: int) -> None:
        """A version was committed."""
        with self._guard:
            self._versions[version] = rows, mark

    def erase(self, commit: Callable[[], int], client: str) -> None:
        """Erase a client's rows from every version; until then answers may still have them."""
        version = commit()
        with self._guard:
            self._before.append((time.monotonic(), dict(self._versions)))
            newest = self._versions[max(self._versions)]
            self._versions[version] = newest
            self._versions = {
                one: (frozenset(row for row in rows if row[2] != client), mark)
                for one, (rows, mark) in self._versions.items()
            }

    def __len__(self) -> int:
        return len(self._versions)

    def fits(self, told: Told) -> bool:
        """Whether an answer is what its version holds, or held when it was asked for."""
        states = [self._versions, *(before for until, before in self._before if told.asked_at <= until)]
        held = [one[told.version] for one in states if told.version in one]
        return any((told.count, told.total, told.mark) == expected(*one, told.least) for one in held)


def expected(rows: Rows, mark: int, least: int) -> tuple[int, int, int]:
    """What `STATEMENT` gives of a version."""
    values = [value for _, _, _, value in rows if value >= least]
    return len(values), sum(values), mark


STATEMENT = (
    "SELECT count(value) AS n, coalesce(sum(value), 0) AS total, (SELECT max(mark) FROM marks) AS mark "
    "FROM events WHERE value >= {least}"
)


class Writer:
    """Commits version after version, and tells the model."""

    def __init__(self, lake: Lake, model: Model, chance: random.Random) -> None:
        self._lake, self._model, self._chance = lake, model, chance
        self._events = lake.create_table(
            "events", "at TIMESTAMP, number BIGINT, client STRING, value BIGINT", time="at", cluster_by=["client"]
        )
        self._marks = lake.create_table("marks", "mark BIGINT")
        self._rows: Rows = frozenset()
        self._mark = self._number = 0
        self._marks.append(pa.table({"mark": [0]}))
        self.newest = self._append()

    def step(self) -> None:
        """One commit."""
        if len(self._rows) > _MOST_ROWS:
            self.newest = self._replace(self._chance.randrange(_DAYS))
            return
        step = self._chance.choice([self._append, self._append, self._both, self._delete, self._compact, self._update])
        self.newest = self._replace(self._chance.randrange(_DAYS)) if self._chance.random() < 0.2 else step()

    def erase(self) -> None:
        """Erase a client from every version."""
        self._rows = frozenset(row for row in self._rows if row[2] != _VICTIM)
        self._model.erase(lambda: self._events.erase(f"client = '{_VICTIM}'").version, _VICTIM)
        self.newest = self._lake.head

    def _new(self, count: int, day: int | None = None) -> Rows:
        found = set()
        for _ in range(count):
            self._number += 1
            on = self._chance.randrange(_DAYS) if day is None else day
            found.add((self._number, on, self._chance.choice(_CLIENTS), self._chance.randrange(100)))
        return frozenset(found)

    def _put(self, version: int, rows: Rows) -> int:
        self._rows = rows
        self._model.put(version, rows, self._mark)
        return version

    def _append(self) -> int:
        new = self._new(self._chance.randint(1, 20))
        return self._put(self._events.append(table_of(new)).version, self._rows | new)

    def _both(self) -> int:
        new = self._new(self._chance.randint(1, 10))
        with self._lake.transaction() as tx:
            tx.table("events").append(table_of(new))
            tx.table("marks").append(pa.table({"mark": [self._mark + 1]}))
        self._mark += 1
        return self._put(self._lake.head, self._rows | new)

    def _replace(self, day: int) -> int:
        new = self._new(self._chance.randint(0, 15), day)
        start = _FIRST + timedelta(days=day)
        commit = self._events.replace(table_of(new) if new else None, (start, start + timedelta(days=1)))
        return self._put(commit.version, frozenset(row for row in self._rows if row[1] != day) | new)

    def _delete(self) -> int:
        value = self._chance.randrange(100)
        commit = self._events.delete(f"value = {value}")
        return self._put(commit.version, frozenset(row for row in self._rows if row[3] != value))

    def _update(self) -> int:
        client = self._chance.choice(_CLIENTS)
        commit = self._events.update({"value": "value + 1"}, f"client = '{client}' AND value < 50")
        changed = ((n, day, who, value + (who == client and value < 50)) for n, day, who, value in self._rows)
        return self._put(commit.version, frozenset(changed))

    def _compact(self) -> int:
        commit = self._events.compact()
        return self._append() if commit is None else self._put(commit.version, self._rows)


def table_of(rows: Rows) -> pa.Table:
    """Rows as they are written."""
    listed = sorted(rows)
    at = [_FIRST + timedelta(days=day, seconds=number % 86_400) for number, day, _, _ in listed]
    return pa.table(
        {
            "at": pa.array(at, pa.timestamp("us", "UTC")),
            "number": pa.array([row[0] for row in listed], pa.int64()),
            "client": pa.array([row[2] for row in listed], pa.string()),
            "value": pa.array([row[3] for row in listed], pa.int64()),
        }
    )


class Nodes:
    """The nodes of the trial, each on a port and with a cache of its own."""

    def __init__(self, folder: Path, catalog: str, warehouse: str, count: int) -> None:
        self._folder, self._where = folder, (catalog, warehouse)
        self._ports = [free_port() for _ in range(count)]
        self._held: list[NodeProcess] = [self._started(place) for place in range(count)]

    @property
    def urls(self) -> list[str]:
        """Their addresses, which stay."""
        return [f"http://127.0.0.1:{port}" for port in self._ports]

    def cache(self, place: int) -> Path:
        """Where a node's copies lie."""
        return self._folder / f"copies-{place}"

    def _started(self, place: int) -> NodeProcess:
        return NodeProcess(
            *self._where, "--port", str(self._ports[place]), "--cache-dir", str(self.cache(place)),
            "--lease-seconds", str(_LEASE_SECONDS), log=self._folder / f"node-{place}.log",
        )  # fmt: skip

    def harm(self, chance: random.Random, pause: Callable[[float], object]) -> str:
        """Do something to one of them, and undo it."""
        place = chance.randrange(len(self._held))
        one = self._held[place]
        kind = chance.choice(["kill", "kill", "pause", "pause", "disk full", "stop"])
        match kind:
            case "kill":
                one.kill()
                pause(chance.uniform(0, 1))
                self._held[place] = self._started(place)
            case "stop":
                one.stop()
                self._held[place] = self._started(place)
            case "pause":
                one.signal(signal.SIGSTOP)
                pause(chance.uniform(0.2, 3 * _LEASE_SECONDS))
                one.signal(signal.SIGCONT)
            case _:
                before = resource.prlimit(one.process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
                pause(chance.uniform(0.5, 2))
                resource.prlimit(one.process.pid, resource.RLIMIT_FSIZE, before)
        return kind

    def close(self) -> None:
        """End them."""
        for one in self._held:
            one.kill()


class Trial:
    """One run."""

    def __init__(self, folder: Path, *, seed: int, nodes: int = 3, clients: int = 4) -> None:
        self._seed, self._clients = seed, clients
        catalog, warehouse = f"sqlite:///{folder}/catalog.db", str(folder / "warehouse")
        self._lake = lakehouse.connect(catalog, warehouse)
        self._model = Model()
        self._writer = Writer(self._lake, self._model, random.Random(seed))  # noqa: S311
        self._nodes = Nodes(folder, catalog, warehouse, nodes)
        self._over = threading.Event()
        self._guard = threading.Lock()
        self._told: list[Told] = []
        self._errors: list[BaseException] = []
        self.report = Report()

    def run(self, queries: int, seconds: float) -> Report:
        """Ask so many queries, or for so many seconds, and check all answers."""
        work = [self._write, *(lambda place=place: self._ask(place) for place in range(self._clients))]
        threads = [threading.Thread(target=self._kept, args=(one,), daemon=True) for one in work]
        for one in threads:
            one.start()
        until, chance = time.monotonic() + seconds, random.Random(self._seed + 1)  # noqa: S311
        while time.monotonic() < until and len(self._told) < queries and not self._errors:
            # In this thread: a process ends with the thread that started it.
            self.report.faults[self._nodes.harm(chance, self._over.wait)] += 1
            self._over.wait(chance.uniform(0.2, 1.0))
        self._over.set()
        for one in threads:
            one.join()
        if self._errors:
            raise self._errors[0]
        self._settle()
        self._check()
        return self.report

    def close(self) -> None:
        """End the nodes."""
        self._nodes.close()
        self._lake.close()

    def _kept(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again by `run`
            self._errors.append(error)

    def _write(self) -> None:
        steps = 0
        while not self._over.wait(0.2):
            self._writer.step()
            steps += 1
            if steps % 40 == 20:
                self._writer.erase()
            if steps % 25 == 0:
                self._lake.expire(keep_last=3)
                self._lake.collect(grace_seconds=0)

    def _ask(self, place: int) -> None:
        chance = random.Random(f"{self._seed} {place}")  # noqa: S311
        versions: Any = None
        with lakehouse.connect_serving(self._nodes.urls, wait_seconds=3.0, timeout_seconds=5.0) as client:
            while not self._over.wait(0.01):
                how: dict[str, Any] = {}
                kind = chance.random()
                if kind < 0.1:
                    how["at_least"] = self._writer.newest
                elif kind < 0.2 and versions is not None:
                    how["versions"] = versions
                least = chance.choice([0, 0, 10, 50, 90])
                asked_at = time.monotonic()
                try:
                    answer = client.sql(STATEMENT.format(least=least), **how)
                except LakehouseError as error:
                    with self._guard:
                        self.report.refused[error.code] += 1
                    continue
                row = answer.rows.to_pylist()[0]
                versions = answer.versions
                is_old = "versions" in how
                told = Told(place, asked_at, answer.version, least, row["n"], row["total"], row["mark"],
                            answer.is_complete, is_old)  # fmt: skip
                with self._guard:
                    self._told.append(told)
                    if how.get("at_least", 0) > answer.version:
                        self.report.wrong.append(f"older than what was waited for: {how} {told}")
                    if is_old and answer.versions != how["versions"]:
                        self.report.wrong.append(f"other versions than were asked for: {how} {answer.versions}")

    def _settle(self) -> None:
        """Wait until every node serves the head and nothing else is left of what it held."""
        head, give_up = self._lake.head, time.monotonic() + _SETTLE_SECONDS
        named = {Path(one.path).name for name in ("events", "marks") for one in self._lake.table(name).segments()}
        count = len(self._nodes.urls)
        while time.monotonic() < give_up:
            nodes = [one for one in self._lake.serving()[0].nodes if one.is_leased]
            is_over = len(nodes) == count and all(one.live == head and one.report.loaded == (head,) for one in nodes)
            held = [{path.name for path in self._nodes.cache(place).rglob("*.parquet")} for place in range(count)]
            if is_over and all(one == named for one in held):
                return
            threading.Event().wait(0.2)
        self.report.wrong.append(
            f"did not settle at {head}: {self._lake.serving()[0]}; left over: {[len(one - named) for one in held]}, "
            f"missing: {[len(named - one) for one in held]}"
        )

    def _check(self) -> None:
        report, newest = self.report, Counter[int]()
        report.answers, report.commits = len(self._told), len(self._model)
        report.versions = len({one.version for one in self._told})
        for one in self._told:
            if not one.is_whole:
                report.wrong.append(f"not whole: {one}")
            if not self._model.fits(one):
                report.wrong.append(f"not what the version holds: {one}")
            if not one.is_of_old:
                if one.version < newest[one.client]:
                    report.wrong.append(f"went back from {newest[one.client]}: {one}")
                newest[one.client] = max(newest[one.client], one.version)


def run_trial(queries: int, seconds: float, seed: int, folder: Path | None = None, *, nodes: int = 3) -> Report:
    """A trial in a folder, by default a new one that is removed afterwards."""
    place = Path(tempfile.mkdtemp()) if folder is None else folder
    trial = Trial(place, seed=seed, nodes=nodes)
    try:
        return trial.run(queries, seconds)
    finally:
        trial.close()
        if folder is None:
            shutil.rmtree(place, ignore_errors=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a trial from the command line; 0 if every answer was right."""
    parser = argparse.ArgumentParser(description="Ask query nodes while they are killed, paused and kept from writing.")
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where to leave lake and logs; a new one by default, removed")
    chosen = parser.parse_args(arguments)
    report = run_trial(chosen.queries, chosen.seconds, chosen.seed, chosen.folder)
    sys.stdout.write(f"seed={chosen.seed}: {report}\n" + "".join(f"{one}\n" for one in report.wrong[:20]))
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
