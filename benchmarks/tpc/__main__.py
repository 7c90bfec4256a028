"""TPC-H and TPC-DS over a lake and over plain files of the same rows, in turn: ``make bench-tpc``, or

    python -m benchmarks.tpc [--engine duckdb|spark|both] [--suite tpch|tpcds|both] [--scale 0.1] [--queries 1,9]
        [--repeats 3] [--memory] [--deleted 0.001] [--appends [200]] [--out FILE]

Every query's rows are compared. Each side runs in a process of its own with a limit of memory and of time, so that a
query that takes too much is a line of the result. ``--memory`` runs each query once in a new process and tells what
the process grew by; times are then those of a first run.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks.environments import CannotInstall
from benchmarks.tpc.environment import Suite, generated
from benchmarks.tpc.loading import Layout, load
from benchmarks.tpc.report import line, summary
from benchmarks.tpc.running import SIDES, Effort, Outcome, Side, run_query
from benchmarks.tpc.side import Place

SUITES = ("tpch", "tpcds")
ENGINES = ("duckdb", "spark")


def arguments() -> argparse.ArgumentParser:
    """What the command takes."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.tpc", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=(*ENGINES, "both"), default="duckdb")
    parser.add_argument("--suite", choices=(*SUITES, "both"), default="both")
    parser.add_argument("--scale", type=float, default=0.1, help="1 is a gigabyte")
    parser.add_argument("--queries", default="", help="numbers with commas, of each suite; default: all")
    parser.add_argument("--repeats", type=int, default=3, help="after the first time; the least counts")
    parser.add_argument("--memory", action="store_true", help="a process for each query, and what it grew by")
    parser.add_argument("--deleted", type=float, default=0.0, help="the share of rows deleted at random beforehand")
    parser.add_argument("--appends", type=int, nargs="?", const=200, default=1, help="in which dated rows arrive")
    parser.add_argument("--grain", default="year", help="of the lake's time chunks")
    parser.add_argument("--limit-seconds", type=float, default=120.0, help="for one statement")
    parser.add_argument("--limit-gib", type=float, default=6.0, help="of memory for one process")
    parser.add_argument("--out", type=Path, help="where to keep what was found as JSON")
    return parser


def outcomes(asked: argparse.Namespace, engine: str, suite: Suite, folder: Path) -> Iterator[Outcome]:
    """Load the rows, run what was asked for."""
    folder.mkdir()
    plain = load(suite, folder, Layout(asked.grain, asked.deleted, asked.appends))
    place = Place(str(folder), {name: str(path) for name, path in plain.items()}, int(asked.limit_gib * (1 << 30)))
    sides = [Side(engine, side, place, folder) for side in SIDES]
    effort = Effort(asked.repeats, asked.limit_seconds, asked.memory)
    chosen = {int(one) for one in asked.queries.split(",") if one} or set(suite.texts)
    try:
        for number in sorted(chosen & set(suite.texts)):
            yield run_query(sides, suite.name, number, suite.texts[number], effort)
    finally:
        for side in sides:
            side.kill()


def main() -> int:
    """Make what is needed, run, print. The status is 1 if a result is wrong."""
    asked = arguments().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the sides are ended on the way out
    try:
        suites = [generated(one, asked.scale) for one in SUITES if asked.suite in (one, "both")]
    except CannotInstall as error:
        print(f"tpc: {error}", file=sys.stderr)
        return 1
    found: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="tpc-") as folder:
        for engine in (one for one in ENGINES if asked.engine in (one, "both")):
            for suite in suites:
                for outcome in outcomes(asked, engine, suite, Path(folder, f"{engine}-{suite.name}")):
                    print(line(outcome, with_memory=asked.memory), flush=True)
                    found.append(outcome)
                    if asked.out:
                        asked.out.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")
    print("\n".join(summary(found, with_memory=asked.memory)))
    return int(any(one.wrong for one in found))


if __name__ == "__main__":
    sys.exit(main())
