"""Kill a writing process at every point of its work, reopen the lake, and check that nothing is lost or half done.

A lake survives many deaths: each victim continues with the lake that the one before left, and reports each acknowledged
step before it continues. After its death a new handle has to find exactly these steps, and the step in flight wholly or
not at all; every version unchanged; no lock that blocks for longer than its lease; and it can write at once.

``python -m lakehouse.testing.crash --kills 5000 --seed 7`` runs more than the test suite does; ``--catalog postgresql``
starts a server for it.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import lakehouse
from lakehouse.engine.duckdb import DuckDBEngine
from lakehouse.errors import LakehouseError
from lakehouse.faults import POINTS
from lakehouse.lake import Lake
from lakehouse.testing.expected import Expected, Wrong
from lakehouse.testing.history import KINDS, Author, Step, create_tables
from lakehouse.testing.postgres import PostgresServer
from lakehouse.testing.reopened import RECOVERY_SECONDS, check, check_all, recover
from lakehouse.testing.victim import Death, Kill, Nursery, Task, Victim

DEATHS_OF_A_LAKE = 25
_MOST_STEPS = 90
_MOST_MISSES = 3
"""How often a point that was not reached is retried."""
_PROBES, _MOST_PROBES = 3, 12


@dataclass(slots=True)
class Report:
    """The result of a run of kills."""

    deaths: list[Kill] = field(default_factory=list)
    survived: int = 0
    wrong: list[str] = field(default_factory=list)
    slowest_seconds: float = 0.0
    """The longest time from a death to a new append and replace."""
    landed: int = 0
    """Deaths after which the step in flight was committed."""

    def __str__(self) -> str:
        places = Counter(one.at for one in self.deaths)
        listed = " ".join(f"{at}={count}" for at, count in sorted(places.items()))
        return (
            f"kills={len(self.deaths)} survived={self.survived} landed={self.landed} "
            f"slowest_recovery={self.slowest_seconds:.2f}s wrong={len(self.wrong)}\n{listed}"
        )


class Life(Expected):
    """One lake that survives deaths, and its expected contents."""

    def __init__(self, nursery: Nursery, catalog: str, warehouse: str, seed: int) -> None:
        super().__init__(seed)
        self.catalog, self.warehouse = catalog, warehouse
        self._nursery = nursery
        with lakehouse.connect(catalog, warehouse) as lake:
            create_tables(lake)
            self.versions[lake.head] = self.world

    def steps(self, author: Author, kill: Kill) -> tuple[int, list[Step]]:
        """Steps for a victim and the number of the first deadly one. More follow, in case the point is not reached."""
        first = self.chance.randrange(3)
        steps = [author.step() for _ in range(first)]
        most = _MOST_STEPS if kill.at in POINTS else first + 12
        while len(steps) < most:
            steps.append(author.step(kill.kind if (len(steps) - first) % 3 == 0 else None))
        return first, steps

    def die(self, kill: Kill, report: Report, mutate: Callable[[Victim], None] | None = None) -> bool:
        """Let a victim continue with this lake and die; check what it left, and write.

        False if it lived. Raises `Wrong`.
        """
        author = self.author()
        first, steps = self.steps(author, kill)
        self.made = author.made
        task = Task(self.catalog, self.warehouse, tuple(steps), first, kill, mutate)
        death = self._nursery.run(task)
        died = time.monotonic()
        if death.failure:
            raise Wrong(f"the victim failed: {death.failure}")
        self._remember(steps, death)
        if death.status == 0:
            report.survived += 1
        else:
            report.deaths.append(kill)
        with self._opened() as lake:
            step = steps[len(death.done)] if len(death.done) < len(steps) else None
            landed = check(self, lake, step)
            recover(self, lake, step, died, landed=landed)
        report.landed += landed
        report.slowest_seconds = max(report.slowest_seconds, time.monotonic() - died)
        return death.status != 0

    def trace(self, kinds: Sequence[str]) -> Death:
        """Let a victim do a step of each kind, and record the points that it passes."""
        author = self.author()
        steps = tuple(author.step(kind) for kind in kinds)
        self.made = author.made
        death = self._nursery.run(Task(self.catalog, self.warehouse, steps))
        if death.failure:
            raise Wrong(f"the victim failed: {death.failure}")
        self._remember(steps, death)
        with self._opened() as lake:
            check(self, lake, None)
        return death

    def end(self) -> None:
        """Check every version once more, with and without key frames. Raises `Wrong`."""
        with self._opened() as lake:
            check_all(self, lake)

    @contextmanager
    def _opened(self) -> Iterator[Lake]:
        """A new handle; only the old engine is kept, which knows nothing of the catalog."""
        lake = lakehouse.connect(self.catalog, self.warehouse, wait_seconds=RECOVERY_SECONDS)
        lake.session.local_engine = self._nursery.engine
        try:
            yield lake
        finally:
            lake.session.local_engine = DuckDBEngine()
            lake.close()

    def _remember(self, steps: Sequence[Step], death: Death) -> None:
        for step, made in zip(steps, death.done, strict=False):
            self.stepped(step, made)


def kill_points(life: Life) -> list[Kill]:
    """Every point of every kind of step, as passed by a victim that is not killed.

    Raises `Wrong` if there is a named point that no kind of step reaches.
    """
    found: dict[Kill, None] = {}
    reached: set[str] = set()
    for turn in range(_MOST_PROBES):
        if turn >= _PROBES and not POINTS.keys() - reached:
            break
        for kind, way in zip(KINDS, life.trace(list(KINDS)).ways, strict=True):
            points = Counter(one for one in way if one in POINTS)
            reached.update(points)
            found.update(dict.fromkeys(Kill(kind, at, n + 1) for at, count in points.items() for n in range(count)))
            statements = sum(one.startswith("statement") for one in way)
            found.update(dict.fromkeys(Kill(kind, "statement", n + 1) for n in range(statements)))
    if POINTS.keys() - reached:
        raise Wrong(f"no step of lakehouse.testing.history reaches {sorted(POINTS.keys() - reached)}; add one")
    return list(found)


def choose(points: Sequence[Kill], count: int, chance: random.Random) -> list[Kill]:
    """``count`` kills: a third at named points, most between statements, some at any time, spread evenly."""
    named = [one for one in points if one.at in POINTS]
    between = [one for one in points if one.at == "statement"]
    names, anywhere = max(count // 3, len({one.at for one in named})), count // 10
    kills = [*_evenly(named, names, chance), *_evenly(between, count - names - anywhere, chance)]
    kills += [Kill(chance.choice(list(KINDS)), "microsecond", chance.randrange(1, 60_000)) for _ in range(anywhere)]
    chance.shuffle(kills)
    return kills


def _evenly(points: Sequence[Kill], count: int, chance: random.Random) -> Iterator[Kill]:
    """``count`` points: none twice before all were taken, and every name once before any twice."""
    by_name: dict[str, list[Kill]] = {}
    for one in points:
        by_name.setdefault(one.at, []).append(one)
    while count > 0:
        rounds = [chance.sample(listed, len(listed)) for listed in by_name.values()]
        for turn in range(max(map(len, rounds))):
            for listed in rounds:
                if turn < len(listed) and count > 0:
                    count -= 1
                    yield listed[turn]


@contextmanager
def _warehouse() -> Iterator[str]:
    """A folder in memory, if there is one: flushing files to it costs nothing."""
    memory = Path("/dev/shm")  # noqa: S108
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None, ignore_cleanup_errors=True) as folder:
        yield folder


def run(
    nursery: Nursery,
    kills: int | Sequence[Kill],
    seed: int,
    *,
    server: PostgresServer | None = None,
    mutate: Callable[[Victim], None] | None = None,
) -> Report:
    """Kill ``count`` victims, or at these points, on as many lakes as needed, on SQLite or a PostgreSQL server.

    A mutant changes each victim, and the run ends at the first error.
    """
    chance = random.Random(seed)  # noqa: S311 - a repeatable choice
    report = Report()
    left: list[Kill] = []
    misses: Counter[str] = Counter()
    lives = 0
    while not lives or left:
        lives += 1
        here, left = left[:DEATHS_OF_A_LAKE], left[DEATHS_OF_A_LAKE:]
        with _warehouse() as folder:
            database = None if server is None else server.create_database()
            catalog = f"sqlite:///{folder}/catalog.db" if server is None else server.url(str(database))
            label = f"seed={seed} lake={lives}"
            try:
                life = Life(nursery, catalog, f"{folder}/warehouse", chance.randrange(2**32))
                if lives == 1:
                    left = choose(kill_points(life), kills, chance) if isinstance(kills, int) else list(kills)
                    here, left = left[:DEATHS_OF_A_LAKE], left[DEATHS_OF_A_LAKE:]
                for kill in here:
                    label = f"seed={seed} lake={lives} kill={kill}"
                    if not life.die(kill, report, mutate) and misses[kill.at] < _MOST_MISSES:
                        misses[kill.at] += 1
                        left.append(replace(kill, number=1))
                label = f"seed={seed} lake={lives} at its end"
                life.end()
            except (Wrong, LakehouseError, AssertionError) as error:
                report.wrong.append(f"{label}: {type(error).__name__}: {error}")
            finally:
                if server is not None and database is not None:
                    server.drop_database(database)
        if mutate is not None and report.wrong:
            break
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill from the command line; 0 if nothing was lost."""
    parser = argparse.ArgumentParser(description="Kill a writing process at every point and check what it leaves.")
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--catalog", choices=("sqlite", "postgresql"), default="sqlite")
    chosen = parser.parse_args(arguments)
    with Nursery() as nursery:
        if chosen.catalog == "sqlite":
            report = run(nursery, chosen.kills, chosen.seed)
        else:
            with PostgresServer() as server:
                report = run(nursery, chosen.kills, chosen.seed, server=server)
    sys.stdout.write("".join(f"{text}\n" for text in report.wrong))
    sys.stdout.write(f"catalog={chosen.catalog} seed={chosen.seed} {report}\n")
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
