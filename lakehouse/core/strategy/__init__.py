"""Strategies: plain functions from a table's state to what is worth doing with it, and their combination to tasks."""

from lakehouse.core.strategy.combine import checked, combine
from lakehouse.core.strategy.cooled import cooled
from lakehouse.core.strategy.deleted_rows import deleted_rows
from lakehouse.core.strategy.open_segments import open_segments
from lakehouse.core.strategy.outliers import outliers
from lakehouse.core.strategy.overlap import overlap
from lakehouse.core.strategy.small_files import small_files
from lakehouse.core.strategy.state import Strategy, TableState
from lakehouse.core.strategy.tombstone_debt import tombstone_debt

BUILT_IN: tuple[tuple[str, Strategy], ...] = (
    ("open_segments", open_segments),
    ("small_files", small_files),
    ("overlap", overlap),
    ("deleted_rows", deleted_rows),
    ("outliers", outliers),
    ("tombstone_debt", tombstone_debt),
    ("compression", cooled),
)
"""The library's own strategies, by the name of the table's property that limits each, or of what it looks at."""

__all__ = ["BUILT_IN", "Strategy", "TableState", "checked", "combine"]
