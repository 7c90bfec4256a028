"""``python -m lakehouse.testing.campaign``: every part in turn, on all cores; exit code 1 if anything was wrong."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Sequence

from lakehouse.testing.campaign.outcome import Outcome
from lakehouse.testing.campaign.parts import PARTS, run_part

_MOST_SHOWN = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign from the command line; 0 if nothing was wrong."""
    parser = argparse.ArgumentParser(prog="python -m lakehouse.testing.campaign", description=__doc__)
    for part in PARTS:
        text = f"cases of {part.module}, {part.count:,} by default; 0 leaves them out"
        parser.add_argument(f"--{part.option}", type=int, default=part.count, metavar="N", help=text)
    parser.add_argument("--seed", type=int, help="a random one by default; the same gives the same cases")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin nothing more after so long")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(10**6) if chosen.seed is None else chosen.seed
    end = time.monotonic() + 60 * chosen.minutes
    sys.stdout.write(f"seed={seed} processes={chosen.processes}\n")
    is_wrong = False
    for part in PARTS:
        count: int = getattr(chosen, part.option)
        if count > 0:
            began = time.monotonic()
            outcome = run_part(part, count, seed, processes=chosen.processes, end=end)
            is_wrong = is_wrong or bool(outcome.wrong)
            _tell(outcome, count, time.monotonic() - began)
    return 1 if is_wrong else 0


def _tell(outcome: Outcome, count: int, seconds: float) -> None:
    stopped = "" if outcome.tried >= count else f" (of {count}: the time was over)"
    sys.stdout.write(
        f"{outcome.name}: tried={outcome.tried}{stopped} refused={outcome.refused} wrong={len(outcome.wrong)} "
        f"seconds={seconds:.0f}\n"
    )
    sys.stdout.write("".join(f"    {one}\n" for one in outcome.wrong[:_MOST_SHOWN]))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
