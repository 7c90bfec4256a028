"""Progress: work that takes long says how much of it is done, to whoever listens. Free where nobody does.

A piece of work is a `step`: what it is, in which unit it is counted, and its total as far as that is known. Steps are
nested, as a compaction in a round of maintenance. Code that does a part of some step need not know which one: it calls
`advance` with its unit. A listener is called when steps begin and end, and reads their counts whenever it likes, so
counting is one addition. It belongs to the thread (or task) that calls `listening`, and hears of what runs there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar

Unit = Literal["rows", "bytes", "files", "folders", "batches", "chunks", "tables", "tasks", "tombstones", "percent"]
Item = TypeVar("Item")


@dataclass(slots=True, eq=False)
class Step:
    """A piece of work: ``done`` of ``total`` (None: unknown), counted in a unit, since ``began`` of a monotonic clock.

    ``asked`` says how much is done where nobody counts, as a database does of a statement; negative if it cannot say.

    >>> step = Step("append trips", "rows", total=4)
    >>> step.advance(3)
    >>> step.described(seconds=2.0)
    'append trips: 3 of 4 rows (75 %), 1.5 rows/s'
    """

    what: str
    unit: Unit
    total: int | None = None
    done: int = 0
    began: float = field(default_factory=time.monotonic)
    asked: Callable[[], float] | None = None

    def look(self) -> None:
        """Ask how much is done, if that is not counted. A listener does before it reads ``done``."""
        asked = self.asked
        if asked is not None:
            self.done = max(self.done, int(asked()))

    def advance(self, count: int = 1) -> None:
        """Count more as done."""
        self.done += count

    def expect(self, count: int) -> None:
        """Add to the total what has turned out to be there."""
        self.total = (self.total or 0) + count

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return time.monotonic() - self.began

    @property
    def rate(self) -> str:
        """What was done in a second so far; empty where that is nothing."""
        return rate_of(self, self.seconds)

    @property
    def counts(self) -> str:
        """What is done of the total."""
        self.look()
        if self.unit == "percent":
            return f"{self.done} %"
        if self.unit == "bytes":
            done, total = show_bytes(self.done), "" if self.total is None else show_bytes(self.total)
            return f"{done} of {total}" if total else done
        of = "" if self.total is None else f" of {self.total:,}"
        return f"{self.done:,}{of} {self.unit}"

    def described(self, seconds: float | None = None) -> str:
        """One line: what it is, what is done of the total, and how fast."""
        counts = self.counts
        share = f" ({min(100, 100 * self.done // self.total)} %)" if self.total and self.unit != "percent" else ""
        rate = self.rate if seconds is None else rate_of(self, seconds)
        return f"{self.what}: {counts}{share}{', ' if rate else ''}{rate}"


def rate_of(step: Step, seconds: float) -> str:
    """What a step did in a second; empty if that is nothing.

    >>> rate_of(Step("read", "bytes", done=3_000_000), 2.0), rate_of(Step("check", "files"), 2.0)
    ('1.5 MB/s', '')
    """
    if not step.done or seconds <= 0 or step.unit == "percent":
        return ""
    rate = step.done / seconds
    if step.unit == "bytes":
        return f"{show_bytes(int(rate))}/s"
    return f"{rate:,.0f} {step.unit}/s" if rate >= 10 else f"{rate:.1f} {step.unit}/s"


def show_bytes(count: int) -> str:
    """A size in the unit that fits.

    >>> show_bytes(999), show_bytes(1_234_567)
    ('999 B', '1.2 MB')
    """
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


class Listener(Protocol):
    """Who wants to know; called in the thread that works, which waits for it."""

    def step_began(self, step: Step) -> None:
        """A step began, inside those that have begun and not ended."""

    def step_ended(self, step: Step) -> None:
        """A step ended, well or by an error."""


_heard: ContextVar[tuple[Listener, tuple[Step, ...]] | None] = ContextVar("lakehouse_progress", default=None)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Tell a listener, in place of any other, what this thread does in the block; None: tell nobody.

    Examples
    --------
    >>> class Printed:
    ...     def step_began(self, step): ...
    ...     def step_ended(self, step): print(step.what, step.counts)
    >>> with listening(Printed()):
    ...     commit = flights.append(late)
    append flights 2 of 2 rows
    """
    before = _heard.get()
    _heard.set(None if listener is None else (listener, ()))
    try:
        yield
    finally:
        _heard.set(before)


def listener() -> Listener | None:
    """Who listens to this thread, if anybody does: only then is a total worth a look-up."""
    heard = _heard.get()
    return None if heard is None else heard[0]


def ignore() -> None:
    """Tell nobody any more, until the end of the block of `listening`."""
    _heard.set(None)


@contextmanager
def step(what: str, unit: Unit, total: int | None = None) -> Iterator[Step]:
    """A step for as long as the block lasts."""
    made = Step(what, unit, total)
    heard = _heard.get()
    if heard is None:
        yield made
        return
    told, outer = heard
    _heard.set((told, (*outer, made)))
    told.step_began(made)
    try:
        yield made
    finally:
        told.step_ended(made)
        _heard.set(heard)


def advance(unit: Unit, count: int = 1) -> None:
    """Count more as done of the innermost step with this unit, if there is one."""
    found = _innermost(unit)
    if found is not None:
        found.advance(count)


def remain(unit: Unit, count: int) -> None:
    """Say what is left to do of the innermost step with this unit, if there is one."""
    found = _innermost(unit)
    if found is not None:
        found.total = found.done + count


def counted(items: Iterable[Item], of: Step) -> Iterator[Item]:
    """The items; each counts as done when the next one is taken."""
    for one in items:
        yield one
        of.advance()


def _innermost(unit: Unit) -> Step | None:
    heard = _heard.get()
    if heard is None:
        return None
    return next((one for one in reversed(heard[1]) if one.unit == unit), None)
