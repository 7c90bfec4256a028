"""Processes killed at every named fault point, and before and after every statement that they send to the catalog."""

from __future__ import annotations

from lakehouse.faults import POINTS
from lakehouse.testing import crash
from lakehouse.testing.campaign.outcome import Outcome
from lakehouse.testing.victim import Nursery

ENOUGH = 65
"""So many kills reach every named point."""


def run(count: int, seed: int) -> Outcome:
    """Kill so many victims, spread over all points; ``refused`` counts those that lived, for no kill can be missed."""
    with Nursery() as nursery:
        report = crash.run(nursery, count, seed)
    wrong = list(report.wrong)
    missed = POINTS.keys() - {kill.at for kill in report.deaths}
    if count >= ENOUGH and missed:
        wrong.append(f"kills --seed {seed}: nobody died at {', '.join(sorted(missed))}")
    return Outcome("kills", len(report.deaths), report.survived, wrong)
