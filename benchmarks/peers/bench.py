"""What a work has at hand, and what it says."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.data import Source, Totals, make_source
from benchmarks.peers.systems.base import System, Unsupported

DAYS = 30
_FOLDERS = re.compile(r"(?<![\w.])/(?:[\w.=-]+/)+")
ORDERED_FILES = 8


@dataclass(frozen=True, slots=True)
class Size:
    """How much is done: rows of the large tables, repeats, and which sizes of metadata."""

    rows: int
    repeats: int
    metadata_files: tuple[int, ...]
    races: int


@dataclass
class Bench:
    """One system at work. ``figures`` and ``wrong`` are what the work says when it has ended."""

    system: System
    shared: Path
    size: Size
    repeat: int = 0
    figures: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    kept: dict[str, Any] = field(default_factory=dict)
    """What a work keeps for its next repeat, or for other works."""

    @cached_property
    def source(self) -> Source:
        """The rows of bulk ingest, in order of time."""
        folder = self.shared / f"events_{self.size.rows}"
        return make_source(folder, self.size.rows, DAYS, ORDERED_FILES, is_ordered=True)

    def begin(self, repeat: int) -> None:
        """Forget what the last work said."""
        self.repeat = repeat
        self.figures, self.facts, self.wrong = {}, {}, []

    def check(self, what: str, found: Any, expected: Any) -> None:
        """Keep a wrong result, to be shown as such."""
        if found != expected:
            self.wrong.append(f"{what}: expected {shown(expected)}, found {shown(found)}")

    def loaded(self, name: str) -> str:
        """A table of all the rows, loaded and checked on first use."""
        if self.kept.get(name) is None:
            self.system.create(name)
            self.system.load(name, self.source.files)
            self.check(f"rows of {name}", self.system.totals(name), without_keys(self.source.totals()))
            self.kept[name] = name
        return name

    def drop(self, name: str) -> None:
        """Take a table away that was loaded."""
        if self.kept.pop(name, None) is not None:
            self.system.drop(name)

    def metadata_before(self) -> int:
        """Bytes of a catalog that all tables share, before one more is made."""
        return self.system.metadata_bytes("") if self.system.shares_catalog else 0

    def keep_metadata(self, figure: str, table: str, before: int, things: int) -> None:
        """KiB of metadata for each commit or file, if the catalog grew enough to measure."""
        try:
            grown = self.system.metadata_bytes(table) - before
        except Unsupported:
            return
        if grown > 0:
            self.figures[figure] = grown / 1024 / things


def without_keys(totals: Totals) -> Totals:
    """The totals of a system that was not asked for keys."""
    return Totals(totals.rows, totals.total)


def shown(value: Any) -> str:
    """A value in a message, not too long."""
    text = str(value)
    return text if len(text) < 200 else f"{text[:197]}..."


def timed(run: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def median_of(run: Callable[[], object], times: int) -> float:
    """The median seconds of some calls."""
    return statistics.median(timed(run) for _ in range(times))


def percentile_ms(seconds: list[float], percent: float) -> float:
    """A percentile in milliseconds."""
    return float(np.percentile(seconds, percent)) * 1000


def named_error(error: BaseException) -> str:
    """An error's class and the begin of its message; Java's own where it is Java's."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    name, text = type(error).__name__, str(error)
    if java is not None and hasattr(java, "getClass"):
        name, text = java.getClass().getName().rpartition(".")[2], str(java.getMessage())
    return f"{name}: {without_folders(text)[:160]}"


def without_folders(text: str) -> str:
    r"""One line, in which paths have no folders.

    >>> without_folders("no file:/a/b.c/d=1/e.txt \n here")
    'no file:e.txt here'
    """
    return " ".join(_FOLDERS.sub("", text).split())
