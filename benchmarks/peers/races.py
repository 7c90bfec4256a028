"""A compaction beside appends, deletes of rows and the overwrite of a day: who fails, and whether rows are lost.

Three ways: ``together`` (a thread each for appends, deletes and the overwrite, begun just after the compaction),
``in turn`` (one operation at a time while the compaction runs) and ``before`` (one operation that begins before the
compaction and commits after it). Afterwards the rows have to be those that the operations which succeeded leave.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.peers.bench import Bench, named_error
from benchmarks.peers.data import Source, Totals, make_source, rows, value_sum
from benchmarks.peers.systems.base import System

ROWS, DAYS, FILES = 2_000_000, 10, 20
WAYS = ("together", "in turn", "before")
TIMES = 5
OVERWRITTEN_DAY, OVERWRITTEN_ROWS = 9, 5_000
APPENDED_ROWS = 1_000
HEAD_START_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Done:
    """How one operation went. Seconds since the race began; ``error`` is None if it succeeded."""

    kind: str
    number: int
    start: float
    end: float
    error: str | None

    def overlaps(self, other: Done) -> bool:
        """Whether the two ran beside each other for a while."""
        return self.start < other.end and other.start < self.end


@dataclass
class Race:
    """One table, one compaction, and what runs beside it."""

    system: System
    table: str
    way: str
    turn: int
    appended: list[pa.Table] = field(init=False)
    overwrite: pa.Table = field(init=False)
    done: list[Done] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    began: float = 0.0

    def __post_init__(self) -> None:
        first = 20_000_000 + self.turn * 100_000
        self.appended = [
            rows(first + number * APPENDED_ROWS, APPENDED_ROWS, days=8, clients_from=1_000_000)
            for number in range(TIMES)
        ]
        self.overwrite = rows(first + 50_000, OVERWRITTEN_ROWS, days=1, day=OVERWRITTEN_DAY, clients_from=2_000_000)
        self.given = [self.system.batch(one) for one in self.appended]
        self.given_day = self.system.batch(self.overwrite)

    def client(self, number: int) -> int:
        """Whose rows the delete of that number takes."""
        return 1 + self.turn * 500 + number * 97

    def days(self) -> tuple[int, int]:
        """On which days it does: few where it is made to take long."""
        return (0, 4) if self.way == "before" else (0, OVERWRITTEN_DAY)

    def argument(self, kind: str, number: int) -> Any:
        """What `System.begin` takes."""
        if kind == "append":
            return self.given[number]
        return ([self.client(number)], self.days()) if kind == "delete" else (OVERWRITTEN_DAY, self.given_day)

    def once(self, kind: str, number: int) -> None:
        """One operation from begin to end."""
        match kind:
            case "append":
                self.attempt(kind, number, lambda: self.system.append(self.table, self.given[number]))
            case "delete":
                clients = [self.client(number)]
                self.attempt(kind, number, lambda: self.system.delete(self.table, clients, self.days()))
            case "overwrite":
                self.attempt(kind, number, lambda: self.system.overwrite(self.table, OVERWRITTEN_DAY, self.given_day))
            case _:
                self.attempt(kind, number, lambda: self.system.compact(self.table))

    def attempt(self, kind: str, number: int, run: Callable[[], None], start: float | None = None) -> None:
        """Run, and keep how it went."""
        begins = time.perf_counter() - self.began if start is None else start
        problem = None
        try:
            run()
        except Exception as error:  # noqa: BLE001 - a failure is a figure here
            problem = named_error(error)
        with self.lock:
            self.done.append(Done(kind, number, begins, time.perf_counter() - self.began, problem))

    def run(self) -> None:
        """The race."""
        self.began = time.perf_counter()
        {"together": self._together, "in turn": self._in_turn, "before": self._before}[self.way]()

    def _together(self) -> None:
        def several(kind: str) -> None:
            for number in range(TIMES):
                self.once(kind, number)

        compaction = threading.Thread(target=self.once, args=("compaction", 0))
        others = [threading.Thread(target=several, args=(kind,)) for kind in ("append", "delete")]
        others.append(threading.Thread(target=self.once, args=("overwrite", 0)))
        compaction.start()
        time.sleep(HEAD_START_SECONDS)
        for thread in others:
            thread.start()
        for thread in (*others, compaction):
            thread.join()

    def _in_turn(self) -> None:
        first = [("delete", 0), ("overwrite", 0), ("append", 0)]
        order = first[self.turn % 3 :] + first[: self.turn % 3]
        order += [(kind, number) for number in range(1, TIMES) for kind in ("delete", "append")]
        compaction = threading.Thread(target=self.once, args=("compaction", 0))
        compaction.start()
        time.sleep(HEAD_START_SECONDS)
        for kind, number in order:
            self.once(kind, number)
        compaction.join()

    def _before(self) -> None:
        kind = ("delete", "overwrite", "append")[self.turn % 3]
        finish = self.system.begin(self.table, kind, self.argument(kind, 0))
        self.once("compaction", 0)
        self.attempt(kind, 0, finish, start=0.0)

    def expected(self, source: Source) -> Totals:
        """What the operations that succeeded leave."""
        succeeded = {(one.kind, one.number) for one in self.done if one.error is None}
        keep = np.ones(source.rows, bool)
        first, last = self.days()
        for number in range(TIMES):
            if ("delete", number) in succeeded:
                keep &= ~((source.client == self.client(number)) & (source.day >= first) & (source.day < last))
        added = [self.appended[number] for number in range(TIMES) if ("append", number) in succeeded]
        if ("overwrite", 0) in succeeded:
            keep &= source.day != OVERWRITTEN_DAY
            added.append(self.overwrite)
        left = source.totals(keep)
        count = left.rows + sum(one.num_rows for one in added)
        return Totals(count, left.total + sum(map(value_sum, added)), count)


def race(bench: Bench) -> None:
    """W7: each way once a repeat."""
    if bench.repeat >= bench.size.races:
        return
    wanted = min(ROWS, bench.size.rows)
    source = make_source(bench.shared / f"scattered_{wanted}", wanted, DAYS, FILES, is_ordered=False)
    for way in WAYS:
        name = f"race_{WAYS.index(way)}_{bench.repeat}"
        bench.system.create(name)
        bench.system.load(name, source.files, scatter=FILES)
        run = Race(bench.system, name, way, bench.repeat)
        run.run()
        compaction = next(one for one in run.done if one.kind == "compaction")
        problems: dict[str, int] = {}
        for one in run.done:
            beside = one is compaction or one.overlaps(compaction)
            if beside:
                _count(bench, f"{way}: {one.kind} failed", one.error is not None)
                _count(bench, f"{way}: {one.kind} tried", True)
            if one.error is not None:
                problem = f"{one.kind}{'' if beside else ' (not beside it)'}: {one.error}"
                problems[problem] = problems.get(problem, 0) + 1
        found, expected = bench.system.totals(name, keys=True), run.expected(source)
        _count(bench, f"{way}: rounds", True)
        _count(bench, f"{way}: right", found == expected)
        bench.check(f"rows of a race {way}", found, expected)
        bench.facts[way] = {"compaction_s": round(compaction.end - compaction.start, 3), "errors": problems}
        bench.system.drop(name)


def _count(bench: Bench, figure: str, happened: bool) -> None:
    bench.figures[figure] = bench.figures.get(figure, 0) + int(happened)
