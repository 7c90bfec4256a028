"""Random orders of the steps of two to six operations, beside the reference model and serial orders."""

from __future__ import annotations

from lakehouse.testing.campaign.outcome import Outcome
from lakehouse.testing.explore import explore, lakes


def run(count: int, seed: int) -> Outcome:
    """Run so many schedules; each that is wrong is printed as short as it can be."""
    ran, wrong = explore(lakes(count, seed))
    again = "python -m lakehouse.testing.explore --case"
    return Outcome("schedules", ran, 0, [f"{again} '{case}': {'; '.join(found)}" for case, found in wrong])
