"""Run operations in every order of their begin, write and commit, and compare with serial orders.

Each schedule is run twice, through the library and through the reference model: which operations fail and the rows at
every version must be equal, and the rows at the end must be those of some serial order of the operations that
succeeded. ``python -m lakehouse.testing.schedules --operations 3 --limit 2000`` runs more than the test suite does.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol

import lakehouse
from lakehouse.core.interval import Interval
from lakehouse.errors import LockLost, LockTimeout
from lakehouse.testing.model import ModelLake, ModelOperation
from lakehouse.testing.rows import COLUMNS, SCHEMA, Row, arrow, visible

Result = Literal["ok", "locked", "fenced", "nothing"]
Schedule = tuple[int, ...]

STEPS = 3
"""Begin, write, commit."""
_UNIT = timedelta(hours=12)
_FIRST_DAY = datetime(2013, 1, 1, tzinfo=UTC)


def at(unit: int) -> datetime:
    """The instant ``unit`` half days after the first; two lie in each chunk."""
    return _FIRST_DAY + unit * _UNIT


@dataclass(frozen=True, slots=True)
class Planned:
    """An operation to be run: times are in half days."""

    kind: Literal["append", "replace", "compact", "restore"]
    rows: tuple[tuple[int, str, int], ...] = ()
    span: tuple[int, int] | None = None
    keys: tuple[str, ...] | None = None

    @property
    def interval(self) -> Interval | None:
        """What a replace or compaction covers."""
        return None if self.span is None else Interval(at(self.span[0]), at(self.span[1]))

    @property
    def scope(self) -> dict[str, Any] | None:
        """The keys that a replace covers."""
        return None if self.keys is None else {"client": list(self.keys)}

    @property
    def written(self) -> list[Row]:
        """The rows that it writes."""
        return [(at(unit), client, value) for unit, client, value in self.rows]

    def __str__(self) -> str:
        parts = (self.kind, self.span, self.keys, self.rows)
        return " ".join(str(part) for part in parts if part)


MENU = (
    Planned("append", ((0, "x", 5),)),
    Planned("append", ((3, "y", 5), (1, "a", 5))),
    Planned("replace", ((1, "b", 9),), (0, 2)),
    Planned("replace", (), (0, 2)),
    Planned("replace", (), (1, 3)),
    Planned("replace", ((2, "c", 7),), (1, 4)),
    Planned("replace", ((0, "a", 8),), (0, 4), ("a",)),
    Planned("replace", ((1, "b", 4),), (0, 2), ("b",)),
    Planned("replace", (), (1, 3), ("b", "c")),
    Planned("compact"),
    Planned("compact", (), (0, 2)),
    Planned("restore"),
)
"""Appends, replaces that are whole, partial, empty and keyed, compactions of all and of one chunk, a restore."""

START: tuple[tuple[tuple[int, str, int], ...], ...] = (
    ((0, "a", 1), (1, "b", 1), (2, "c", 1)),
    ((0, "b", 2), (3, "a", 2)),
)
"""What is appended before: two segments a chunk, or two that span both chunks where the table is ragged."""


class Running(Protocol):
    """A begun operation of the library or the model, as the driver sees it."""

    def write(self) -> None:
        """Stage its rows, or do its work."""

    def commit(self) -> Result:
        """End it."""

    def abort(self) -> None:
        """Give it up."""


class Target(Protocol):
    """A table of the library or the model, as the driver sees it."""

    def begin(self, planned: Planned) -> Running | Result:
        """Begin an operation; its result instead, if that is known at once."""

    def rows(self) -> list[Row]:
        """What a reader sees now."""


@dataclass(slots=True)
class _Begun:
    operation: Any
    planned: Planned
    remember: Callable[[int], None]

    def write(self) -> None:
        match self.planned.kind:
            case "append" | "replace" if isinstance(self.operation, ModelOperation):
                self.operation.write(self.planned.written)
            case "append" | "replace":
                self.operation.write(arrow(self.planned.written))
            case "compact" if not isinstance(self.operation, ModelOperation):
                self.operation.run()

    def commit(self) -> Result:
        try:
            done = self.operation.commit()
        except LockLost:
            return "fenced"
        if done is None:
            return "nothing"
        self.remember(done if isinstance(done, int) else done.version)
        return "ok"

    def abort(self) -> None:
        self.operation.abort()


@dataclass(slots=True)
class LibraryTarget:
    """A table of a real lake; ``seen`` holds the rows that were visible at each version when it was new."""

    table: Any
    start: int
    seen: dict[int, list[Row]] = field(default_factory=dict)

    def begin(self, planned: Planned) -> Running | Result:
        """Begin it without waiting for locks."""
        try:
            match planned.kind:
                case "append":
                    begun = self.table.begin_append()
                case "replace":
                    begun = self.table.begin_replace(planned.interval, keys=planned.scope, wait_seconds=0)
                case "compact":
                    begun = self.table.begin_compaction(planned.interval)
                case "restore":
                    self.remember(self.table.restore(self.start).version)
                    return "ok"
        except LockTimeout:
            return "locked"
        return _Begun(begun, planned, self.remember)

    def remember(self, version: int) -> None:
        """Note what is visible at a version that has just been made."""
        self.seen[version] = self.rows()

    def rows(self) -> list[Row]:
        """What a reader sees now."""
        return visible(self.table)


@dataclass(slots=True)
class ModelTarget:
    """The reference model's table."""

    lake: ModelLake
    start: int

    def begin(self, planned: Planned) -> Running | Result:
        """Begin it."""
        try:
            match planned.kind:
                case "append":
                    begun = self.lake.begin_append("t")
                case "replace":
                    begun = self.lake.begin_replace("t", planned.interval, planned.scope)
                case "compact":
                    begun = self.lake.begin_compaction("t", planned.interval)
                case "restore":
                    self.lake.restore("t", self.start)
                    return "ok"
        except LockTimeout:
            return "locked"
        return _Begun(begun, planned, lambda version: None)

    def rows(self) -> list[Row]:
        """What a reader sees now."""
        return self.lake.rows("t")


def new_model() -> ModelTarget:
    """A model table with the rows of `START`."""
    lake = ModelLake()
    lake.create_table("t", COLUMNS, time="time")
    for rows in START:
        lake.append("t", Planned("append", rows).written)
    return ModelTarget(lake, lake.newest)


def new_table(lake: Any, name: str, *, ragged: bool) -> LibraryTarget:
    """A table of a real lake with the rows of `START`."""
    properties = {"ragged": "true"} if ragged else None
    table = lake.create_table(name, SCHEMA, time="time", cluster_by=("client",), properties=properties)
    version = 0
    for rows in START:
        version = table.append(arrow(Planned("append", rows).written)).version
    return LibraryTarget(table, version)


def drive(target: Target, planned: Sequence[Planned], schedule: Schedule) -> tuple[list[Result], list[Row]]:
    """Run a schedule: its n-th mention of an operation is that operation's n-th step. Returns results and rows."""
    begun: dict[int, Running] = {}
    results: dict[int, Result] = {}
    mentions = dict.fromkeys(range(len(planned)), 0)
    for index in schedule:
        mentions[index] += 1
        if index in results:
            continue
        match mentions[index]:
            case 1:
                found = target.begin(planned[index])
                if isinstance(found, str):
                    results[index] = found
                else:
                    begun[index] = found
            case 2:
                begun[index].write()
            case _:
                results[index] = begun[index].commit()
    return [results[index] for index in range(len(planned))], target.rows()


def serial_outcomes(planned: Iterable[Planned]) -> list[list[Row]]:
    """The rows that each serial order of the operations leaves, by the model."""
    outcomes = []
    for order in itertools.permutations(planned):
        schedule = tuple(index for index in range(len(order)) for _ in range(STEPS))
        results, rows = drive(new_model(), order, schedule)
        assert set(results) <= {"ok"}, results
        outcomes.append(rows)
    return outcomes


def schedules(planned: Sequence[Planned]) -> Iterator[Schedule]:
    """Every order of the operations' steps; a restore is one step, so its three stay together."""
    for schedule in _merges((STEPS,) * len(planned)):
        if _possible(planned, schedule):
            yield schedule


def _merges(left: tuple[int, ...]) -> Iterator[Schedule]:
    """Every order in which operations take the steps that each has left."""
    if not any(left):
        yield ()
    for index, steps in enumerate(left):
        if steps:
            for rest in _merges((*left[:index], steps - 1, *left[index + 1 :])):
                yield (index, *rest)


def _possible(planned: Sequence[Planned], schedule: Schedule) -> bool:
    return all(_together(schedule, index) for index, one in enumerate(planned) if one.kind == "restore")


def _together(schedule: Schedule, index: int) -> bool:
    first = schedule.index(index)
    return schedule[first : first + STEPS] == (index,) * STEPS


def differences(target: LibraryTarget, planned: Sequence[Planned], schedule: Schedule) -> list[str]:
    """What is wrong with the library's run of a schedule: nothing, if it is right."""
    results, rows = drive(target, planned, schedule)
    expected, model_rows = drive(new_model(), planned, schedule)
    wrong = []
    if any(not _agree(*pair) for pair in zip(planned, results, expected, strict=True)):
        wrong.append(f"results={results} expected={expected}")
    done = [one for one, result in zip(planned, results, strict=True) if result in ("ok", "nothing")]
    if rows not in serial_outcomes(done):
        wrong.append(f"no serial order of {[str(one) for one in done]} gives {rows}")
    elif rows != model_rows:
        wrong.append(f"rows={rows} model={model_rows}")
    for version, then in target.seen.items():
        now = visible(target.table, as_of=version)
        if now != then:
            wrong.append(f"version {version} was {then} and is {now}")
    return wrong


def _agree(planned: Planned, result: Result, expected: Result) -> bool:
    """Whether results are equal; a compaction may find nothing to gain, or leave out chunks that are held."""
    return result == expected or (planned.kind == "compact" and (result == "nothing" or expected == "locked"))


def cases(count: int) -> Iterator[tuple[tuple[Planned, ...], Schedule]]:
    """Every schedule of every combination of ``count`` operations."""
    for planned in itertools.combinations_with_replacement(MENU, count):
        for schedule in schedules(planned):
            yield planned, schedule


def sample(count: int, limit: int, seed: int) -> list[tuple[tuple[Planned, ...], Schedule]]:
    """As many cases, drawn at random: each choice of operations is equally likely."""
    chosen = random.Random(seed)  # noqa: S311 - a repeatable choice of tests
    drawn: list[tuple[tuple[Planned, ...], Schedule]] = []
    while len(drawn) < limit:
        planned = tuple(chosen.choices(MENU, k=count))
        mentions = [index for index in range(count) for _ in range(STEPS)]
        chosen.shuffle(mentions)
        if _possible(planned, tuple(mentions)):
            drawn.append((planned, tuple(mentions)))
    return drawn


def explore(lake: Any, listed: Iterable[tuple[Sequence[Planned], Schedule]]) -> tuple[int, list[str]]:
    """Run cases on a lake, every other one on a ragged table. Returns how many ran and what was wrong."""
    wrong: list[str] = []
    ran = 0
    for ran, (planned, schedule) in enumerate(listed, start=1):
        target = new_table(lake, f"schedule_{ran}", ragged=ran % 2 == 0)
        found = differences(target, planned, schedule)
        names = [str(one) for one in planned]
        wrong.extend(f"{names} schedule={schedule} ragged={ran % 2 == 0}: {text}" for text in found)
        lake.drop_table(f"schedule_{ran}")
    return ran, wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Explore from the command line; 0 if every schedule was right."""
    parser = argparse.ArgumentParser(description="Run operations in many orders and compare with serial ones.")
    parser.add_argument("--operations", type=int, default=2)
    parser.add_argument("--limit", type=int, default=500, help="0: every schedule there is")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--catalog", help="catalog URL; a new SQLite file by default")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        catalog = chosen.catalog or f"sqlite:///{folder}/catalog.db"
        with lakehouse.connect(catalog, f"{folder}/warehouse") as lake:
            drawn = sample(chosen.operations, chosen.limit, chosen.seed) if chosen.limit else cases(chosen.operations)
            ran, wrong = explore(lake, drawn)
    sys.stdout.write("".join(f"{text}\n" for text in wrong))
    sys.stdout.write(f"operations={chosen.operations} schedules={ran} wrong={len(wrong)}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
