"""Figures of the core at the sizes that it must hold: `python benchmarks/core.py [segments]`."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from time import perf_counter
from typing import TypeVar

import numpy as np
from figures import keep

from lakehouse.core import Grain, Interval, Segment, Tombstone, overshadowed_mask, timeline
from lakehouse.core.clean import plan_clean
from lakehouse.core.interval import to_us
from lakehouse.core.plan import plan_read
from lakehouse.core.predicate import Compare
from lakehouse.core.replace import plan_replace
from lakehouse.core.version import ADD, DROP, diff, replay

YEARS = Interval("2003-01-01", "2013-01-01")
HOUR_US = 3_600_000_000
T = TypeVar("T")
FIGURES: dict[str, float] = {}
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def main(segments: int = 1_000_000) -> None:
    random = np.random.default_rng(7)
    million, covers = bounds(random, segments, HOUR_US), bounds(random, segments // 100, 24 * HOUR_US)
    report(
        f"overshadowed_mask, {segments:,} segments, {len(covers[0]):,} tombstones",
        lambda: overshadowed_mask(*million, *covers),
    )

    ids = np.arange(segments, dtype=np.int64)
    versions = np.sort(random.integers(1, 64, segments))
    actions = np.where(random.random(segments) < 0.5, ADD, DROP)
    report(
        f"replay, frame of {segments:,}, {segments:,} changes",
        lambda: replay(ids, versions, actions, random.permutation(ids)),
    )
    report(f"diff, {segments:,} and {segments:,} ids", lambda: diff(ids, ids + segments // 10))
    report(f"floor_us to months, {segments:,} times", lambda: Grain.MONTH.floor_us(million[0]))

    few = segments // 10
    listed = [
        Segment(id=number, start=start, end=end, ordinal=ordinal, min={"x": number}, max={"x": number + 9})
        for number, (start, end, ordinal) in enumerate(rows(bounds(random, few, HOUR_US)))
    ]
    for masks in (0, 100, few // 10):
        tombstones = [
            Tombstone(id=number, start=start, end=end, ordinal=ordinal)
            for number, (start, end, ordinal) in enumerate(rows(bounds(random, masks, HOUR_US)))
        ]
        size = f"{few:,} segments, {masks:,} tombstones"
        print(size)
        measure(listed, tombstones, size)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")
    keep(__file__, FIGURES)


def measure(listed: list[Segment], tombstones: list[Tombstone], size: str) -> None:
    """Everything that looks at values one by one, on one state."""
    day, year, last = Interval.of("2007-07-07"), Interval.of("2007"), 1_000_000
    few = Compare("x", "<", 99)
    found = report("timeline", lambda: timeline(listed, tombstones), size)
    print(f"{'':>15}{len(found.slices):,} slices, {len(found.overshadowed):,} overshadowed")
    plan = report("plan_read", lambda: plan_read(listed, tombstones, version=1), size)
    print(f"{'':>15}{len(plan.segments):,} segments in {len(plan.groups)} groups")
    report("plan_read of one day", lambda: plan_read(listed, tombstones, version=1, interval=day), size)
    report("plan_read with a predicate", lambda: plan_read(listed, tombstones, version=1, predicate=few), size)
    report("plan_clean", lambda: plan_clean(listed, tombstones), size)
    report(
        "plan_replace of a year by day",
        lambda: plan_replace(listed, tombstones, interval=year, ordinal=last, grain=Grain.DAY),
        size,
    )


def bounds(random: np.random.Generator, count: int, length_us: int) -> Arrays:
    """Starts, ends and ordinals of intervals up to ``length_us`` long, anywhere in ten years."""
    starts = random.integers(to_us(YEARS.start), to_us(YEARS.end), count)
    return starts, starts + random.integers(1, length_us, count), random.integers(1, 1_000_000, count)


def rows(columns: Arrays) -> list[tuple[int, int, int]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


def report(what: str, run: Callable[[], T], size: str = "") -> T:
    """Run three times and print the best time."""
    best = float("inf")
    for _ in range(3):
        began = perf_counter()
        found = run()
        best = min(best, perf_counter() - began)
    print(f"{best * 1000:10,.1f} ms  {what}")
    FIGURES[f"{what}{size and f', {size}'}, ms"] = best * 1000
    return found


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
