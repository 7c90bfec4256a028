"""Random orders of the steps of two to six operations, compared with the reference model and serial orders."""

from __future__ import annotations

from lakehouse.testing.campaign.outcome import Outcome
from lakehouse.testing.explore import explore, lakes


def run(count: int, seed: int) -> Outcome:
    """Run ``count`` schedules; wrong ones are printed as short as possible."""
    ran, wrong = explore(lakes(count, seed))
    again = "python -m lakehouse.testing.explore --case"
    return Outcome("schedules", ran, 0, [f"{again} '{case}': {'; '.join(found)}" for case, found in wrong])
