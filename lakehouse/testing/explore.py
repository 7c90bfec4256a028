"""Run many random schedules on the library: ``python -m lakehouse.testing.explore --schedules 100000 --seed 1``.

Prints the seed, the rate, and the shortest schedule of each error, as a command that repeats it.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from lakehouse.testing.cases import STAGES, TIMELESS, Case, sample
from lakehouse.testing.schedules import Explorer
from lakehouse.testing.targets import connect

MEMORY = "/dev/shm"  # noqa: S108 - only a folder with a random name is made there
SCRATCH = MEMORY if os.access(MEMORY, os.W_OK) else None
"""Folder for lakes: syncing a file to memory costs nothing."""
A_LAKE = 500
"""How many schedules one lake is used for, with one kind of table, so that it stays small."""


@contextmanager
def explorer(catalog: str | None = None) -> Iterator[Explorer]:
    """An explorer on a new lake, which is removed afterwards."""
    folder = tempfile.mkdtemp(dir=SCRATCH)
    try:
        with connect(folder, catalog) as lake:
            yield Explorer(lake)
    finally:
        shutil.rmtree(folder)


def lakes(count: int, seed: int, first: int = 0) -> Iterator[Iterator[Case]]:
    """Random cases, one lake at a time, of each kind of table in turn."""
    stages = (*STAGES, *TIMELESS)
    size = min(A_LAKE, -(-count // len(stages)))
    for turn, done in enumerate(range(0, count, size)):
        stage = stages[turn % len(stages)]
        yield sample(min(size, count - done), seed, first=first + done, stages=[stage])


def explore(listed: Iterable[Iterable[Case]], catalog: str | None = None) -> tuple[int, list[tuple[Case, list[str]]]]:
    """Run cases, one lake at a time; returns how many ran, and the wrong ones, as short as possible."""
    ran = 0
    wrong: list[tuple[Case, list[str]]] = []
    for some in listed:
        with explorer(catalog) as found:
            for case in some:
                ran += 1
                if found.check(case):
                    shortest = found.shortest(case)
                    wrong.append((shortest, found.check(shortest)))
                    steps = "\n    ".join([f"{place}: {one}" for place, one in enumerate(shortest.planned)])
                    sys.stdout.write(f"wrong: {shortest}\n    {steps}\n")
                    sys.stdout.write("".join(f"    {text}\n" for text in wrong[-1][1]))
    return ran, wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Explore from the command line; 0 if every schedule was right."""
    parser = argparse.ArgumentParser(description="Run operations in many orders and compare with serial ones.")
    parser.add_argument("--schedules", type=int, default=1_000)
    parser.add_argument("--seed", type=int, help="a random one by default")
    parser.add_argument("--first", type=int, default=0, help="how many of the seed's schedules to leave out")
    parser.add_argument("--case", help="run one schedule, as printed where it is wrong")
    parser.add_argument("--catalog", help="URL of an empty catalog; a new SQLite file by default")
    chosen = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(10**6) if chosen.seed is None else chosen.seed
    listed = [[Case.read(chosen.case)]] if chosen.case else lakes(chosen.schedules, seed, chosen.first)
    sys.stdout.write(f"seed={seed}\n")
    began = time.monotonic()
    ran, wrong = explore(listed, chosen.catalog)
    for case, _ in sorted(wrong, key=lambda one: len(one[0].schedule))[:1]:
        sys.stdout.write(f"the shortest again: python -m lakehouse.testing.explore --case '{case}'\n")
    rate = ran / (time.monotonic() - began)
    sys.stdout.write(f"seed={seed} schedules={ran} wrong={len(wrong)} rate={rate:.1f}/s\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
