"""Strategies: plain functions from a table's state to what is worth doing with it."""

from collections.abc import Iterable

from lakehouse.core.strategy.state import Strategy, TableState
from lakehouse.core.task import Candidate

BUILT_IN: tuple[tuple[str, Strategy], ...] = ()
"""The library's own strategies, by name."""

__all__ = ["BUILT_IN", "Strategy", "TableState", "combine"]


def combine(
    state: TableState, candidates: Iterable[Candidate], *, rewritable_bytes: float = float("inf")
) -> list[Candidate]:
    """Tasks that have no segment in common, by score, the greatest first."""
    return sorted(candidates, key=lambda one: -one.score)
