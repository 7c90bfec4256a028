"""Strategies: plain functions from a table's state to what is worth doing with it."""

from lakehouse.core.strategy.state import Strategy, TableState

__all__ = ["Strategy", "TableState"]
