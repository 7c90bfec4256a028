"""Processes killed at every named fault point, and before and after every statement that they send to the catalog."""

from __future__ import annotations

from lakehouse.faults import POINTS
from lakehouse.testing import crash
from lakehouse.testing.campaign.outcome import Outcome
from lakehouse.testing.victim import Nursery

ENOUGH = 65
"""With this many kills, every named point is reached."""


def run(count: int, seed: int) -> Outcome:
    """Kill ``count`` victims, spread over all points; ``refused`` counts those that lived."""
    with Nursery() as nursery:
        report = crash.run(nursery, count, seed)
    wrong = list(report.wrong)
    missed = POINTS.keys() - {kill.at for kill in report.deaths}
    if count >= ENOUGH and missed:
        wrong.append(f"kills --seed {seed}: nobody died at {', '.join(sorted(missed))}")
    return Outcome("kills", len(report.deaths), report.survived, wrong)
