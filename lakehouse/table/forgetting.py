"""Erasing, beside rows, what remembers that they were applied as changes (`lakehouse.core.beside`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from lakehouse.predicate import ParsedPredicate
from lakehouse.predicate.literals import is_one_of
from lakehouse.table.remembered import open_remembered

_AT_ONCE = 2_000
"""Keys that are erased together."""


def forgetting(
    open_table: Callable[[str], Any], table: Any, where: ParsedPredicate
) -> tuple[tuple[str, ...], Callable[[pa.Table], None]] | None:
    """The columns of the keys by which changes of a `Table` are remembered, and what erases some; None without any."""
    memory = open_remembered(open_table, table.spec)
    if memory is None:
        return None
    names = memory.spec.primary_key
    if not set(names) <= set(table.spec.schema.names):
        return None  # dropped since: nothing is applied by them any more
    return names, _Forgetting(table, memory, where)


class _Forgetting:
    """Erases keys from what remembers them, before their rows are: if it fails, the erasure can find them again."""

    def __init__(self, table: Any, memory: Any, where: ParsedPredicate) -> None:
        self._table, self._memory, self._where = table, memory, where
        self._names = list(memory.spec.primary_key)

    def __call__(self, keys: pa.Table) -> None:
        """Forget the keys of rows that are erased.

        A key that keeps a row is forgotten in earlier versions, and remembered anew. Where the condition is about keys
        alone, those go too whose rows no version has any more.
        """
        if set(self._where.columns) <= set(self._names):
            self._memory.erase(self._where.text)
            return
        keys = keys.group_by(self._names).aggregate([])
        for first in range(0, len(keys), _AT_ONCE):
            self._forget(keys.slice(first, _AT_ONCE))

    def _forget(self, keys: pa.Table) -> None:
        these = self._condition(keys)
        there, goes = self._counts(these), self._counts(f"({these}) AND ({self._where.text})")
        stays = {key for key, count in there.items() if count > goes.get(key, 0)}
        gone = set(_rows(keys)) - stays
        held = self._memory.scan(where=these).to_arrow()
        self._memory.erase(these)
        kept = held.filter(pa.array([key not in gone for key in _rows(held.select(self._names))], pa.bool_()))
        if len(kept):
            self._memory.merge(kept, self._names)

    def _counts(self, where: str) -> Counter[tuple[Any, ...]]:
        """How many rows of each key the table shows."""
        return Counter(_rows(self._table.scan(columns=self._names, where=where).to_arrow().select(self._names)))

    def _condition(self, keys: pa.Table) -> str:
        """A filter that rows with these keys pass, and maybe others: those are remembered anew."""
        parts = []
        for one in self._names:
            kind = self._table.spec.schema.field(one).type
            if pa.types.is_integer(kind) or pa.types.is_string(kind):
                parts.append(is_one_of(one, keys.column(one).unique().to_pylist()))
        return " AND ".join(parts) or "TRUE"


def _rows(keys: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in keys.columns), strict=True))
