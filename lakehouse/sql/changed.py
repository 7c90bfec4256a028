"""``t.changes``: rows that commits inserted, deleted and updated, of the versions that a query's conditions leave."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakehouse.core.predicate import And, Compare, In, Or, Predicate
from lakehouse.engine.duckdb import filtered
from lakehouse.reading.changes import Changes
from lakehouse.session.session import Session
from lakehouse.sql.push import Wanted
from lakehouse.sql.system import COMMIT_VERSION, changes_schema

if TYPE_CHECKING:
    from lakehouse.core.spec import TableSpec
    from lakehouse.table.table import Table

_LEAST, _GREATEST = -(2**63), 2**63 - 1
_Span = tuple[int, int]


@dataclass
class ChangedRows:
    """What a query asks of a table's changes: of the versions after ``since`` up to ``until``."""

    relation: str
    table: Table
    spec: TableSpec
    wanted: Wanted
    since: int
    until: int
    _changes: Changes | None = field(default=None, repr=False)

    @property
    def schema(self) -> pa.Schema:
        """The columns that the query names."""
        whole = changes_schema(self.spec.schema)
        return pa.schema([whole.field(name) for name in self.wanted.columns])

    def hold(self) -> None:
        """Keep what it reads from expiry. Raises `VersionNotFound` if the history between the versions has expired."""
        if self.since < self.until:
            self._changes = self.table.changes(self.since, self.until).with_columns(self.spec)

    def release(self) -> None:
        """Let it be forgotten."""
        self._changes = None

    def rows(self) -> pa.Table:
        """The rows, in memory. Cost: what the commits of these versions added, dropped and masked."""
        if self._changes is None:
            return self.schema.empty_table()
        where = self.wanted.where
        changes = self._changes if where is None else self._changes.where(where.tree)
        found = filtered(changes.to_reader(), self.wanted.columns, None if where is None else where.duckdb)
        return pa.concat_tables([self.schema.empty_table(), *(rows.cast(self.schema) for rows in found)])

    def __str__(self) -> str:
        where = "none" if self.wanted.where is None else self.wanted.where.text
        return (
            f"changes of {self.table.name} after version {self.since} up to {self.until} as {self.relation}: "
            f"columns {', '.join(self.wanted.columns)}; filter {where}"
        )


def changed_rows(session: Session, relation: str, table: Table, wanted: Wanted, as_of: Any) -> ChangedRows:
    """Fix the versions that a query's conditions on ``_commit_version`` leave: without any, all since the horizon."""
    top = session.catalog.resolve(as_of)
    least, greatest = _LEAST, _GREATEST
    spec = table.spec_at(as_of)
    if wanted.where is not None:
        least, greatest = _versions(wanted.where.tree)
    _, made = session.catalog.table(table.name)
    since = session.catalog.horizon() if least == _LEAST else least - 1
    return ChangedRows(relation, table, spec, wanted, max(since, made), min(greatest, top))


def _versions(tree: Predicate) -> _Span:
    """The least and the greatest version that passes a condition, or wider."""
    match tree:
        case And(parts=parts):
            spans = [_versions(part) for part in parts]
            return max((low for low, _ in spans), default=_LEAST), min((high for _, high in spans), default=_GREATEST)
        case Or(parts=parts):
            held = [span for span in map(_versions, parts) if span[0] <= span[1]]
            return min((low for low, _ in held), default=1), max((high for _, high in held), default=0)
        case Compare(column=name, operator=operator, value=int() as value) if name == COMMIT_VERSION:
            return _compared(operator, value)
        case In(column=name, values=values) if name == COMMIT_VERSION:
            return min(values, default=1), max(values, default=0)
    return _LEAST, _GREATEST


def _compared(operator: str, value: int) -> _Span:
    spans = {
        "=": (value, value),
        "<": (_LEAST, value - 1),
        "<=": (_LEAST, value),
        ">": (value + 1, _GREATEST),
        ">=": (value, _GREATEST),
    }
    return spans.get(operator, (_LEAST, _GREATEST))
