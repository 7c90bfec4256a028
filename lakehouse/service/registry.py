"""Strategies: the library's own, and those that other packages register."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points

from lakehouse.core.strategy import BUILT_IN, Strategy
from lakehouse.errors import InvalidCandidate

GROUP = "lakehouse.strategies"
"""The entry point group for strategies of packages; one with a built-in strategy's name replaces it."""


@cache
def strategies() -> Mapping[str, Strategy]:
    """Every strategy by its name. Raises `InvalidInput` for an entry point that is not a function."""
    found = dict(BUILT_IN)
    for point in entry_points(group=GROUP):
        strategy = point.load()
        if not callable(strategy):
            raise InvalidCandidate("a strategy is a function of a table's state", entry_point=point.value)
        found[point.name] = strategy
    return found
