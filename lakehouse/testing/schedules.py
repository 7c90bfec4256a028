"""Run operations in every order of their begin, write and commit, and compare with the model and with serial orders.

Each schedule is run twice, through the library and through the reference model: which operations fail and the rows and
row ids at every version must be equal. The rows at the end must be those of a serial order of the operations that
succeeded, in which what ended before another began stays before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakehouse.testing.cases import Case
from lakehouse.testing.planned import UNSEEN, Planned, Stage, after
from lakehouse.testing.targets import LibraryTarget, ModelTarget, Result, Seen, Target

MAINTENANCE = ("compact", "resolve")
"""Kinds whose results may differ: what they lock and gain is up to the library, and changes no row."""
UNGUARDED = frozenset({"misses_what_was_moved_to_it", "saw_what_comes_after_an_append"})
"""Conflicts that the library does not see, by name in `lakehouse.testing.model_conflict`."""
Rows = Sequence[tuple[Any, ...]]


@dataclass(slots=True)
class Run:
    """The outcome of a schedule.

    ``results`` are those of the operations by index; ``again`` lists those that conflicted and were retried at the end,
    in order; ``newest`` is the table's version after each step, ``rows`` what was visible at the end.
    """

    results: dict[int, Result] = field(default_factory=dict)
    again: list[int] = field(default_factory=list)
    newest: list[int] = field(default_factory=list)
    begun: dict[int, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        results = ", ".join(f"{place} {result}" for place, result in sorted(self.results.items()))
        return f"{results}, again {self.again}"


def drive(target: Target, planned: Sequence[Planned], schedule: Sequence[int], follows: Run | None = None) -> Run:
    """Run a schedule; then retry conflicting operations alone. ``follows`` is a run whose choices are followed."""
    run = Run()
    mentions = dict.fromkeys(range(len(planned)), 0)
    for place in schedule:
        mentions[place] += 1
        if place not in run.results:
            _step(target, planned[place], run, place, mentions[place], follows)
        run.newest.append(target.version())
    for place in [one for one in run.results if run.results[one] == "conflict"]:
        run.again.append(place)
        for turn in (1, 2, 3):
            _step(target, planned[place], run, place, turn, None)
        run.newest.append(target.version())
    return run


def _step(target: Target, planned: Planned, run: Run, place: int, turn: int, follows: Run | None) -> None:
    match turn:
        case 1:
            if follows is not None and _gives_way(target, planned, follows.results[place]):
                run.results[place] = "locked"
                return
            begun = target.begin(planned)
            if isinstance(begun, str):
                run.results[place] = begun  # type: ignore[assignment]
            else:
                run.begun[place] = begun
        case 2:
            target.write(run.begun[place], planned)
        case _:
            begun = run.begun[place]
            if follows is not None and place in follows.again and _may_conflict(target, begun):
                target.abort(begun)
                run.results[place] = "conflict"
                return
            if follows is not None and place not in follows.again:
                begun.forced = True
            run.results[place] = target.commit(begun)


def _gives_way(target: Target, planned: Planned, result: Result) -> bool:
    """Whether the model allows a restore to wait, as the library did, for a replace that might conflict."""
    assert isinstance(target, ModelTarget)
    replaces = any(one.kind == "replace" for one in target.lake.tables["t"].holders)
    return planned.kind == "restore" and result == "locked" and replaces


def _may_conflict(target: Target, begun: Any) -> bool:
    """Whether the library may be more cautious than the model, because something was committed since or is running."""
    assert isinstance(target, ModelTarget)
    table = target.lake.tables["t"]
    return begun.kind in ("delete", "update", "merge", "erase") and (
        max(table.versions) > begun.base or any(one.kind == "replace" for one in table.holders)
    )


def spans(run: Run, schedule: Sequence[int]) -> dict[int, tuple[int, int]]:
    """When each successful operation began and ended; retried ones ran after all others."""
    ends = len(schedule)
    found = {}
    for place, result in run.results.items():
        if result != "ok":
            continue
        if place in run.again:
            turn = ends + run.again.index(place)
            found[place] = (turn, turn)
        else:
            found[place] = (schedule.index(place), ends - 1 - schedule[::-1].index(place))
    return found


def serial_orders(spans_: dict[int, tuple[int, int]]) -> Iterator[list[int]]:
    """Every order in which none comes before another that ended before it began; the order of their ends is first."""
    if not spans_:
        yield []
    for place in sorted(spans_, key=lambda one: spans_[one][1]):
        begins = spans_[place][0]
        if all(end >= begins for other, (_, end) in spans_.items() if other != place):
            for rest in serial_orders({other: span for other, span in spans_.items() if other != place}):
                yield [place, *rest]


def is_serial(rows: Rows, start: Rows, case: Case, spans_: dict[int, tuple[int, int]]) -> bool:
    """Whether a serial order of the operations that respects real time leads from the first rows to these."""
    planned = case.planned
    seen = {place: span for place, span in spans_.items() if planned[place].kind not in UNSEEN}
    for order in serial_orders(seen):
        now, first = start, start
        for place in order:
            now = first if planned[place].kind == "restore" else after(now, planned[place], case.stage)
            if planned[place].kind == "erase":  # from every version
                first = after(first, planned[place], case.stage)
        if sorted(now) == list(rows):
            return True
    return False


@dataclass(slots=True)
class Renaming:
    """The mapping of the library's row ids to the model's, one to one throughout a schedule."""

    forth: dict[int, int] = field(default_factory=dict)
    back: dict[int, int] = field(default_factory=dict)

    def fits(self, found: Seen, expected: Seen) -> bool:
        """Whether the rows are equal and their row ids may be: no id stands for two."""
        return [row for row, _ in found] == [row for row, _ in expected] and all(
            self.forth.setdefault(one, other) == other and self.back.setdefault(other, one) == one
            for (_, one), (_, other) in zip(found, expected, strict=True)
        )


def model_differences(case: Case) -> list[str]:
    """Errors in the model's own run of a schedule: none, if its rules are right."""
    target = ModelTarget(case.stage)
    start = [row for row, _ in target.seen(target.start)]
    run = drive(target, case.planned, case.schedule)
    return _serial_differences(case, run, start, [row for row, _ in target.seen(run.newest[-1])])


def _serial_differences(case: Case, run: Run, start: Rows, rows: Rows) -> list[str]:
    if any(run.results[place] == "conflict" for place in run.again):
        return [f"operation {run.again} conflicts when it runs alone"]
    found = spans(run, case.schedule)
    if is_serial(rows, start, case, found):
        return []
    strictly = "" if is_serial(rows, start, case, dict.fromkeys(found, (0, 0))) else " not even against real time"
    return [f"no serial order of {sorted(found)} gives {short(rows)}{strictly}"]


def differences(target: LibraryTarget, case: Case) -> list[str]:
    """Errors in the library's run of a schedule: none, if it is right."""
    planned = case.planned
    target.reset()
    first = target.version()
    run = drive(target, planned, case.schedule)
    model = ModelTarget(case.stage)
    start = model.seen(model.start)  # before an erasure changes it
    expected = drive(model, planned, case.schedule, follows=run)
    wrong = []
    if run.again != expected.again or any(
        run.results[place] != expected.results[place]
        for place, one in enumerate(planned)
        if one.kind not in MAINTENANCE
    ):
        wrong.append(f"{run} expected {expected}")
    seen = target.read(run.newest[-1])
    found = _serial_differences(case, run, [row for row, _ in start], [row for row, _ in seen])
    if found and not is_excused(case, expected):
        wrong += found
    if not wrong:
        wrong += _version_differences(target, run, model, expected, first, seen)
    return wrong


def is_excused(case: Case, run: Run) -> bool:
    """Whether a schedule need not end serially: for a conflict that the library does not see, or the model neither."""
    passed = {name for begun in run.begun.values() for name in begun.passed}
    return not passed.isdisjoint(UNGUARDED) or (not passed and bool(model_differences(case)))


def _version_differences(
    target: LibraryTarget, run: Run, model: ModelTarget, expected: Run, first: int, at_end: Seen
) -> Iterator[str]:
    """Errors, after a schedule, at each version that it made after the first.

    The last was read already.
    """
    renaming = Renaming()
    versions = dict(zip(run.newest, expected.newest, strict=True))  # the model's last, where a compaction made another
    for version, number in versions.items():
        if version == first or target.is_forgotten(version):
            continue
        found, wanted = at_end if version == run.newest[-1] else target.seen(version), model.seen(number)
        if not renaming.fits(found, wanted):
            yield f"at version {version} {short_seen(found)} expected {short_seen(wanted)}"


def short(rows: Rows) -> list[tuple[Any, ...]]:
    """Rows with readable times."""
    return [(f"{row[0]:%d-%H:%M}", *row[1:]) for row in rows]


def short_seen(seen: Seen) -> list[tuple[Any, ...]]:
    """The same with row ids."""
    return [(*row, f"#{found}") for row, (_, found) in zip(short([row for row, _ in seen]), seen, strict=True)]


@dataclass(slots=True)
class Explorer:
    """Runs cases on the tables of one lake: one for each kind of table, made when it is first needed."""

    lake: Any
    targets: dict[Stage, LibraryTarget] = field(default_factory=dict)
    made: int = 0

    def target(self, stage: Stage) -> LibraryTarget:
        """The table for a kind."""
        if stage not in self.targets:
            self.made += 1
            self.targets[stage] = LibraryTarget.new(self.lake, f"schedules_{self.made}", stage)
        return self.targets[stage]

    def check(self, case: Case) -> list[str]:
        """What is wrong with a case. A table on which something was wrong, or erased, is not used again."""
        try:
            wrong = differences(self.target(case.stage), case)
        except Exception as error:  # noqa: BLE001 - whatever the library raises is what is wrong
            wrong = [f"{type(error).__name__}: {error}"]
        if wrong or any(one.kind == "erase" for one in case.planned):
            self.target(case.stage).end()
            del self.targets[case.stage]
        return wrong

    def explore(self, cases: Iterable[Case]) -> tuple[int, list[str]]:
        """Run cases; how many ran, and what was wrong."""
        ran = 0
        wrong: list[str] = []
        for case in cases:
            ran += 1
            wrong.extend(f"{case} {text}" for text in self.check(case))
        return ran, wrong

    def shortest(self, case: Case) -> Case:
        """A wrong case, reduced to the operations it needs."""
        for place in range(len(case.menu)):
            smaller = case.without(place)
            if len(smaller.menu) > 1 and self.check(smaller):
                return self.shortest(smaller)
        return case
