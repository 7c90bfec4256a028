"""The parts of the campaign, each cut into shares that processes take one after the other."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import import_module

from lakehouse.testing.campaign.outcome import Outcome

_SHARES = 10
"""Number of shares for each process, so that a part can be stopped in between."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part: the module with its function, the name of its cases, and their number."""

    module: str
    option: str
    count: int
    least: int = 1
    """The fewest cases of a share."""
    function: str = "run"
    most: int = 1_000_000
    """The most cases of a share: a share's tables grow with its cases, and a query over them may multiply them."""


PARTS = (
    Part("filters", "filters", 100_000, 500),
    Part("statements", "statements", 10_000, 100, most=1_000),
    Part("constructs", "constructs", 10_000, 100),
    Part("histories", "steps", 5_000, 100),
    Part("schedules", "schedules", 10_000, 100),
    Part("kills", "kills", 500, 65),
    Part("copies", "copies", 100, 20),
    Part("year", "days", 365, 365),
    Part("flips", "flips", 1_000, 100),
    Part("refusals", "hostile", 20_000, 500),
    Part("refusals", "commands", 2_000, 100, "run_commands"),
)


def run_share(part: Part, count: int, seed: int) -> Outcome:
    """Run a share of a part, in its own process."""
    module = import_module(f"lakehouse.testing.campaign.{part.module}")
    outcome: Outcome = getattr(module, part.function)(count, seed)
    return outcome


def shares(part: Part, count: int, processes: int) -> list[int]:
    """How many cases each share has: equal, none too small to be worth its start, and none above the part's most.

    >>> shares(Part("kills", "kills", 500, 65), 500, 2)
    [72, 72, 72, 71, 71, 71, 71]
    >>> shares(Part("kills", "kills", 500, 65), 0, 2)
    []
    >>> len(shares(Part("statements", "statements", 500, most=10), 500, 2))
    50
    """
    if count <= 0:
        return []
    number = max(min(processes * _SHARES, count // part.least), -(-count // part.most), 1)
    return [count // number + (turn < count % number) for turn in range(number)]


def run_part(part: Part, count: int, seed: int, *, processes: int, end: float) -> Outcome:
    """Run a part on several processes, which take no new share once the time is over."""
    tried = refused = 0
    wrong: list[str] = []
    for outcome in _outcomes(part, shares(part, count, processes), seed, processes, end):
        tried, refused = tried + outcome.tried, refused + outcome.refused
        wrong += outcome.wrong
    return Outcome(part.option, tried, refused, wrong)


def _outcomes(part: Part, sizes: Sequence[int], seed: int, processes: int, end: float) -> Iterator[Outcome]:
    left = [(part, size, seed * 1_000 + turn) for turn, size in enumerate(sizes)]
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        while left and time.monotonic() < end:
            now, left = left[:processes], left[processes:]
            yield from pool.map(run_share, *zip(*now, strict=True))
