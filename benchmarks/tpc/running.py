"""Each query by two sides in turn, and what came of it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.environments import ROOT
from benchmarks.processes import Process, WorkerGone
from benchmarks.tpc.comparing import difference
from benchmarks.tpc.side import Place
from benchmarks.tpc.texts import for_spark, ordered_by, without_limit

SIDES = ("ours", "plain")
SLOW_SECONDS = 10.0
"""What takes longer is not repeated more than once."""
_WANT_OF_MEMORY = ("OutOfMemoryException", "MemoryError")


class Side(Process):
    """One side's process, which lives over the run, or for one query."""

    def __init__(self, engine: str, side: str, place: Place, folder: Path) -> None:
        super().__init__(folder / f"{engine}-{side}.log")
        self.engine = engine
        self.side = side
        self.place = place
        self.result = folder / f"{engine}-{side}.arrow"

    def command(self) -> tuple[Sequence[str], Mapping[str, str]]:
        """The process in this tree's environment."""
        arguments = ["-m", "benchmarks.tpc.side", self.engine, self.side, json.dumps(asdict(self.place))]
        return [sys.executable, *arguments], {**os.environ, "PYTHONPATH": str(ROOT)}

    def said(self, text: str, limit_seconds: float, *, keep: bool = False) -> dict[str, Any]:
        """What a statement came to; with ``keep`` its rows can be read."""
        try:
            said = self.ask({"text": text, "out": str(self.result) if keep else None}, limit_seconds)
        except WorkerGone as error:
            return {"error": str(error)}
        if said.get("error", "").startswith(_WANT_OF_MEMORY):
            self.kill()  # what it holds after that would be the next one's failure
        return said

    def rows(self) -> pa.Table:
        """The rows of the last statement whose rows were kept."""
        with pa.memory_map(str(self.result)) as source:
            return pa.ipc.open_file(source).read_all()


@dataclass(slots=True)
class Outcome:
    """What came of one query by one engine. Seconds are the least of all repeats, memory is bytes added at most."""

    engine: str
    suite: str
    number: int
    rows: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    begin_seconds: dict[str, float] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    wrong: str | None = None
    note: str | None = None

    @property
    def ratio(self) -> float | None:
        """Our seconds over plain ones."""
        return self.seconds["ours"] / self.seconds["plain"] if len(self.seconds) == 2 else None

    @property
    def cpu_ratio(self) -> float | None:
        """Our seconds of processors over plain ones; None where they are too few for the clock, which has ticks."""
        has_ticked = len(self.cpu_seconds) == 2 and self.cpu_seconds["plain"] > 0
        return self.cpu_seconds["ours"] / self.cpu_seconds["plain"] if has_ticked else None


@dataclass(frozen=True, slots=True)
class Effort:
    """How a query is run: repeats after the first time, most seconds, and for ``memory`` in a process of its own."""

    repeats: int
    limit_seconds: float
    memory: bool = False


def run_query(sides: Sequence[Side], suite: str, number: int, text: str, effort: Effort) -> Outcome:
    """One query: its rows compared, then repeated in turn."""
    outcome = Outcome(sides[0].engine, suite, number)
    texts = {one.side: text if (one.engine, one.side) == ("duckdb", "plain") else for_spark(text) for one in sides}
    for one in sides:
        if effort.memory:
            one.kill()
        _take(outcome, one, one.said(texts[one.side], effort.limit_seconds, keep=True), first=True)
        if effort.memory:
            one.close()
    if not outcome.errors:
        outcome.wrong = _compared(sides, text, outcome, effort)
    if effort.memory:
        return outcome
    slowest = max(outcome.seconds.values(), default=0.0)
    outcome.seconds.clear()
    outcome.cpu_seconds.clear()
    outcome.begin_seconds.clear()
    for turn in range(1 if slowest > SLOW_SECONDS else effort.repeats):
        for one in sides if turn % 2 else reversed(sides):
            if one.side not in outcome.errors:
                _take(outcome, one, one.said(texts[one.side], effort.limit_seconds), first=False)
    return outcome


def _take(outcome: Outcome, side: Side, said: dict[str, Any], *, first: bool) -> None:
    if first and "memory" in said:
        outcome.memory[side.side] = said["memory"]
    if "error" in said:
        outcome.errors[side.side] = said["error"]
        return
    if said["seconds"] <= outcome.seconds.get(side.side, said["seconds"]):
        outcome.seconds[side.side] = said["seconds"]
        outcome.begin_seconds[side.side] = said["begin_seconds"]
    outcome.cpu_seconds[side.side] = min(said["cpu"], outcome.cpu_seconds.get(side.side, said["cpu"]))
    outcome.rows = said["rows"]


def _compared(sides: Sequence[Side], text: str, outcome: Outcome, effort: Effort) -> str | None:
    """What differs, if anything. Where a LIMIT cuts among rows that tie, all of them are compared."""
    ours, plain = (one.rows() for one in sides)
    found = difference(ours, plain, ordered_by(text))
    whole = without_limit(text)
    if found is None or whole is None:
        return found
    written = {one.side: whole if (one.engine, one.side) == ("duckdb", "plain") else for_spark(whole) for one in sides}
    for one in sides:
        said = one.said(written[one.side], effort.limit_seconds, keep=True)
        if "error" in said:
            return f"{found}; without LIMIT {one.side} says {said['error']}"
    again = difference(sides[0].rows(), sides[1].rows(), ordered_by(text))
    if again is None:
        outcome.note = "ties at the limit"
    return again
