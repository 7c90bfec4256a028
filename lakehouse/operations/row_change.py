"""Deletes and updates of rows that match a filter: found at one version, changed by a later commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa

from lakehouse.arguments import unknown_column
from lakehouse.core.contribution import Contribution, RowChangeContribution, ScopeDeleteContribution
from lakehouse.core.hits import Hits
from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope
from lakehouse.core.operation import Begun, Kind, NewTombstone
from lakehouse.core.segments import Segments
from lakehouse.core.sets import row_id_bounds
from lakehouse.core.spec import ROW_ID, TableSpec
from lakehouse.engine import Query
from lakehouse.engine.verifying import at_least
from lakehouse.errors import InternalError, InvalidArgument, WriteConflict
from lakehouse.operations.run_operation import RunOperation
from lakehouse.predicate import ParsedExpression, ParsedPredicate, parse_expression, whole_scope
from lakehouse.reading.row_count import count_visible
from lakehouse.reading.scan import planned_read, sets_of
from lakehouse.session.session import Session
from lakehouse.storage.columns import read_columns


class _Changed(TypedDict):
    hits: Hits
    read: Interval
    tombstones: tuple[NewTombstone, ...]


class RowChange(RunOperation):
    """Finds rows at its base version, and commits their changes."""

    def __init__(self, session: Session, begun: Begun, **marks: Any) -> None:
        super().__init__(session, begun, **marks)
        self._hits: Hits | None = None
        self._tombstones: list[NewTombstone] = []

    def _overtaken(self) -> WriteConflict:
        return WriteConflict(
            "rows were erased, and their files collected, while they were read; run the operation again",
            table=self._begun.table.name,
            operation=self.id,
        )

    @property
    def _found_hits(self) -> Hits:
        """What `run` found."""
        if self._hits is None:
            raise InternalError("an operation commits before it has run", operation=self.id)
        return self._hits

    def _changed(self, where: ParsedPredicate) -> _Changed:
        """Fields of the contribution of every change that found rows by a filter."""
        return {"hits": self._found_hits, "read": self._looked_in(where), "tombstones": tuple(self._tombstones)}

    @property
    def _naming(self) -> tuple[str, ...]:
        """Columns that decide whether another operation's tombstone matches a row."""
        spec = self._begun.table
        return tuple(dict.fromkeys([*spec.times, *spec.scope_columns, *spec.primary_key]))

    @property
    def _placing(self) -> tuple[str, ...]:
        """Columns that decide whether a row lies in the scope of a replace."""
        spec = self._begun.table
        return tuple(dict.fromkeys([*spec.times, *spec.scope_columns]))

    def _looked_in(self, where: ParsedPredicate) -> Interval:
        """The interval in which rows that pass the filter can lie."""
        return where.interval(self._begun.table.time) or Interval(None, None)

    def _found(self, rows: pa.Table) -> None:
        """Record the found rows, and make the tombstone that hides their old values."""
        self._hits = Hits(self._begun.table.time, rows)
        if len(rows):
            row_ids = self._hits.row_ids
            self._tombstones.append(self.tombstone("row", self._hits.interval, row_ids, row_id_bounds(row_ids)))

    def _rewritten(self) -> None:
        """Record the new values of updated rows, as far as other operations need them."""
        spec = self._begun.table
        names = [ROW_ID, *self._placing]
        files = [one for one in self._segments if one.has_row_ids]
        if files:
            self._hits = replace(self._found_hits, after=read_columns(self._session.warehouse, files, names, spec))

    def _query(self, where: ParsedPredicate, columns: tuple[str, ...]) -> Query:
        spec = self._begun.table
        plan = planned_read(self._session, spec, self.base_version, where)
        return Query(
            plan=plan,
            spec=spec,
            warehouse=self._session.warehouse,
            columns=columns,
            where=where.sql(self._engine.dialect),
            row_ids=True,
            ordinals=True,
            sets=sets_of(self._session, plan),
            verify=at_least(spec.verify, "pages"),
        )


class Delete(RowChange):
    """Removes the rows that match a filter. It takes no lock and conflicts only with restores.

    A filter of only an interval and values of cluster columns removes every row there that was committed before it;
    rows are read only to count them.
    """

    kind = Kind.DELETE

    def __init__(self, session: Session, begun: Begun, *, where: ParsedPredicate, **marks: Any) -> None:
        super().__init__(session, begun, **marks)
        self._where = where
        self._taken: tuple[Interval, KeyScope | None] | None = None
        self._rows_taken: int | None = None
        self._emptied: frozenset[int] = frozenset()

    def _run(self) -> None:
        spec = self._begun.table
        self._taken = whole_scope(self._where.tree, spec)
        if self._taken is not None:
            # Read now, so that the commit, for which others wait, only has to read what came since.
            self._session.catalog.live(spec, self.base_version, self._taken[0])
            self._rows_taken = count_visible(self._session, spec, self.base_version, *self._taken)
        else:
            query = self._query(self._where, self._naming)
            self._found(self._engine.collect(query))
            self._emptied = emptied(query.plan.segments, self._hits)

    def _contribution(self) -> Contribution:
        if self._taken is not None:
            interval, keys = self._taken
            return ScopeDeleteContribution(**self._written, interval=interval, keys=keys, rows_taken=self._rows_taken)
        return RowChangeContribution(**self._written, **self._changed(self._where), emptied=self._emptied)


class Update(RowChange):
    """Sets columns of the rows that match a filter to new values; rows keep their ids."""

    kind = Kind.UPDATE

    def __init__(
        self,
        session: Session,
        begun: Begun,
        *,
        assigned: Mapping[str, ParsedExpression],
        where: ParsedPredicate,
        **marks: Any,
    ) -> None:
        super().__init__(session, begun, **marks)
        self._where = where
        self._assigned = assigned

    def _run(self) -> None:
        query = self._query(self._where, self._naming)
        self._found(self._engine.collect(query))
        if self._tombstones:
            dialect = self._engine.dialect
            assigned = {name: one.sql(dialect) for name, one in self._assigned.items()}
            rows = self._engine.rewrite(replace(query, ordinals=False), assigned)
            self._store(self._engine, rows, row_ids=True)
            self._rewritten()

    def _contribution(self) -> Contribution:
        return RowChangeContribution(**self._written, **self._changed(self._where))


def emptied(segments: Segments, hits: Hits | None) -> frozenset[int]:
    """Segments of which every row was found, as far as their row ids show."""
    if hits is None or not len(hits.rows) or not len(segments):
        return frozenset()
    found = np.sort(hits.rows.column(ROW_ID).to_numpy())
    least, greatest = segments.row_ids
    counted = np.searchsorted(found, greatest, side="right") - np.searchsorted(found, least, side="left")
    rows = segments.numbers("rows")
    return frozenset(segments.ids[(counted == rows) & (greatest - least + 1 == rows)].tolist())


def read_assignments(assigned: Any, spec: TableSpec) -> dict[str, ParsedExpression]:
    """The new values, by column. Raises `InvalidInput` for unknown columns."""
    if not isinstance(assigned, Mapping) or not assigned:
        raise InvalidArgument(
            'an update takes columns and SQL expressions, as in {"value": "value + 1"}', found=assigned
        )
    require_columns(assigned, spec)
    return {name: parse_expression(text, spec.schema, spec.schema.field(name)) for name, text in assigned.items()}


def require_columns(names: Iterable[str], spec: TableSpec) -> None:
    """Raise `InvalidInput` for names that are not columns of the table."""
    unknown = [name for name in names if name not in spec.schema.names]
    if unknown:
        raise unknown_column("no such column; choose among the table's", unknown, spec.schema.names, table=spec.name)
