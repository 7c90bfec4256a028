"""Merge: matches rows of a source with rows of the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.core.contribution import Contribution, MergeContribution
from lakehouse.core.operation import Begun, Kind
from lakehouse.core.predicate import And, Compare, Or, Predicate
from lakehouse.core.sets import is_ordered, key_bounds
from lakehouse.core.spec import ROW_ID
from lakehouse.engine import Matches, Query
from lakehouse.engine.frames import is_spark_frame
from lakehouse.errors import DuplicateKey
from lakehouse.operations.clauses import (
    ROW_TIME,
    Clause,
    Clauses,
    Found,
    any_chosen,
    chosen,
    found_clauses,
    read_found,
    read_source,
    row_clauses,
)
from lakehouse.operations.row_change import RowChange
from lakehouse.operations.upsert import keys_interval, require_keys
from lakehouse.predicate import ParsedPredicate
from lakehouse.session.session import Session
from lakehouse.storage.columns import read_columns


class Merge(RowChange):
    """Updates or deletes rows that match a source, or that none matches, and inserts source rows that match none.

    If the merge is equivalent to an upsert, inserted rows carry a key tombstone like an upsert's; otherwise it
    conflicts with any write of one of those keys meanwhile.
    """

    kind = Kind.MERGE

    def __init__(self, session: Session, begun: Begun, *, source: Any, clauses: Clauses, **marks: Any) -> None:
        super().__init__(session, begun, **marks)
        self._source = source
        self._clauses = clauses
        self._keys: pa.Table | None = None

    def _run(self) -> None:
        clauses, dialect = self._clauses, self._engine.dialect
        equal = [pair for pair, _ in self._equal]
        left = None if not clauses.not_matched_by_source else self._left()
        with self._engine.join(clauses.on.sql(dialect), self._target(), self._source, equal, left) as matches:
            hits, others = self._matched(matches), self._unmatched(matches)
            self._found(hits if others is None else pa.concat_tables([hits, others]))
            if len(hits):
                self._update(matches, clauses.matched)
            if others is not None and matches.left is not None:
                self._update(matches.left, clauses.not_matched_by_source)
            self._rewritten()
            self._insert(matches)

    def _update(self, rows: Matches, clauses: Sequence[Clause]) -> None:
        """Write the new values of what some clauses update."""
        dialect = self._engine.dialect
        for place, clause in enumerate(clauses):
            if clause.values is not None:
                assigned = {name: one.sql(dialect) for name, one in clause.values.items()}
                updated = rows.updated(assigned, chosen(clauses, place, dialect))
                self._store(self._engine, updated, row_ids=True)

    def _unmatched(self, matches: Matches) -> pa.Table | None:
        """The rows that are updated or deleted because no row of the source matches them; None without any."""
        if matches.left is None:
            return None
        found = matches.left.hits(self._naming, "TRUE")
        return found if len(found) else None

    def _matched(self, matches: Matches) -> pa.Table:
        """The rows that are updated or deleted. Raises `InvalidInput` if two rows of the source would change one."""
        clauses = self._clauses
        found = matches.hits(self._naming, any_chosen(clauses.matched, self._engine.dialect))
        if clauses.deletes_all:
            return found.group_by(found.column_names).aggregate([]).cast(found.schema)
        require_unique(found, self._begun.table.name)
        return found

    def _insert(self, matches: Matches) -> None:
        spec, dialect = self._begun.table, self._engine.dialect
        clauses, written = self._clauses.not_matched, len(self._segments)
        for place, clause in enumerate(clauses):
            values = {name: one.sql(dialect) for name, one in (clause.values or {}).items()}
            self._store(self._engine, matches.inserted(values, chosen(clauses, place, dialect)))
        files = self._segments[written:]
        if not files:
            return
        inserted = read_columns(self._session.warehouse, files, self._placing, spec)
        self._hits = replace(self._found_hits, inserted=inserted)
        if spec.primary_key:
            keys = require_keys(read_columns(self._session.warehouse, files, spec.primary_key, spec), spec)
            once = keys.group_by(keys.column_names).aggregate([])
            if len(once) < len(keys):
                raise DuplicateKey("rows that a merge inserts have one key twice; make the source's keys unique",
                                   table=spec.name, keys=len(keys) - len(once))  # fmt: skip
            self._tombstones.append(self.tombstone("key", keys_interval(keys, spec), once, key_bounds(once, spec)))
            if not self._clauses.is_upsert:
                self._keys = once

    def _contribution(self) -> Contribution:
        inserts_keys = any(one.kind == "key" for one in self._tombstones)
        return MergeContribution(
            **self._written,
            **self._changed(self._looked),
            keys=self._keys,
            hides_unseen=inserts_keys and self._keys is None and not self._clauses.is_by_key,
        )

    def _target(self) -> Query:
        """Every row that a source row may match, with the columns that the merge reads."""
        return self._query(self._reach, self._read_by(self._clauses.matched))

    def _left(self) -> tuple[Query, str]:
        """Every row that a clause about unmatched rows can change, and the condition that it meets one of them."""
        clauses = self._clauses.not_matched_by_source
        return self._query(self._left_reach, self._read_by(clauses)), any_chosen(clauses, self._engine.dialect)

    def _read_by(self, clauses: Sequence[Clause]) -> tuple[str, ...]:
        """The columns that are read for ON and some clauses."""
        names = self._begun.table.schema.names
        read = {*self._clauses.on.columns, *self._naming}
        for clause in clauses:
            read |= set(() if clause.condition is None else clause.condition.columns)
            if clause.values is not None:
                read |= {name for name in names if name not in clause.values}
                read |= {name for one in clause.values.values() for name in one.columns}
        return tuple(name for name in names if name in read)

    @property
    def _left_reach(self) -> ParsedPredicate:
        """A condition that every row passes that a clause about unmatched rows can change."""
        conditions = [one.condition for one in self._clauses.not_matched_by_source]
        trees = tuple(one.tree for one in conditions if one is not None)
        return _for_pruning(Or(trees) if len(trees) == len(conditions) else And(()))

    @property
    def _looked(self) -> ParsedPredicate:
        """A condition that every row passes that any clause can change."""
        if not self._clauses.not_matched_by_source:
            return self._reach
        return _for_pruning(Or((self._reach.tree, self._left_reach.tree)))

    @cached_property
    def _reach(self) -> ParsedPredicate:
        """A condition that every matching row passes, for pruning: bounds of the source's equal columns.

        None passes where matches do not count.
        """
        if not self._clauses.matched and not self._clauses.not_matched:
            return _for_pruning(Or(()))
        parts: list[Predicate] = []
        for (name, _), column in self._equal:
            bounds = pc.min_max(column) if is_ordered(column.type) else {"min": pa.NULL}
            if bounds["min"].as_py() is not None:
                parts.append(Compare(name, ">=", bounds["min"].as_py()))
                parts.append(Compare(name, "<=", bounds["max"].as_py()))
        return _for_pruning(And(tuple(parts)))

    @property
    def _equal(self) -> list[tuple[tuple[str, str], pa.ChunkedArray]]:
        """Columns of table and in-memory source that must be equal and have the same type, and the source's."""
        if not isinstance(self._source, pa.Table):
            return []
        schema = self._begun.table.schema
        found = [((name, from_), self._source.column(from_)) for name, from_ in self._clauses.equal]
        return [
            (pair, held)
            for pair, held in found
            if held.type == schema.field(pair[0]).type and (is_ordered(held.type) or pa.types.is_string(held.type))
        ]


def _for_pruning(tree: Predicate) -> ParsedPredicate:
    """A filter that leaves out files, and no row of those that are read."""
    return ParsedPredicate("TRUE", tree, (), "TRUE", "TRUE")


class FoundRows(Merge):
    """Updates or deletes rows that somebody finds by their ids at the operation's base, who may look at other tables.

    ``find`` is given the base and returns a row for each, with ``_row_id``, ``_row_time`` (what its time column holds)
    and new values of ``columns`` (None: rows are deleted). Rows that others change meanwhile conflict as in a merge;
    what else was looked at does not.
    """

    def __init__(
        self,
        session: Session,
        begun: Begun,
        *,
        find: Callable[[int], pa.Table],
        columns: Sequence[str] | None,
        **marks: Any,
    ) -> None:
        nothing = pa.table({name: pa.array([], pa.int64()) for name in (ROW_ID, ROW_TIME)})
        super().__init__(session, begun, source=nothing, clauses=row_clauses(begun.table, nothing, None), **marks)
        self._find = find
        self._columns = columns

    def _run(self) -> None:
        spec = self._begun.table
        self._source = read_source(self._find(self.base_version), spec)
        self._clauses = row_clauses(spec, self._source, self._columns)
        super()._run()


class FoundMerge(Merge):
    """A merge whose rows somebody finds at the operation's base, as a query does that joins source and table.

    ``find`` is given the base, and holds while they are used: rows, in memory or of Spark, with ``_row_id`` and
    ``_row_time`` of the table's row (null where there is none), ``_clause``, and new values as ``clauses`` name them.
    """

    def __init__(
        self,
        session: Session,
        begun: Begun,
        *,
        find: Callable[[int], AbstractContextManager[Any]],
        clauses: Sequence[Found],
        is_repeatable: bool,
        **marks: Any,
    ) -> None:
        nothing = pa.table({name: pa.array([], pa.int64()) for name in (ROW_ID, ROW_TIME)})
        checked = found_clauses(begun.table, nothing, clauses, is_repeatable=is_repeatable)
        super().__init__(session, begun, source=nothing, clauses=checked, **marks)
        self._find = find
        self._named = clauses

    def _run(self) -> None:
        with self._find(self.base_version) as rows:
            if is_spark_frame(rows):
                self._engine = self._session.spark_engine
                self._source = rows
            else:
                self._source = read_found(rows, self._begun.table, self._named)
            super()._run()

    @property
    def _looked(self) -> ParsedPredicate:
        """What is inserted depends on every row of the table, what is changed on the rows that are changed."""
        return _for_pruning(And(())) if self._clauses.not_matched else self._reach

    @cached_property
    def _reach(self) -> ParsedPredicate:
        rows = self._source
        if isinstance(rows, pa.Table) and rows.column(ROW_ID).null_count == len(rows):
            return _for_pruning(Or(()))
        return super()._reach


def require_unique(found: pa.Table, table: str) -> None:
    """Raise `DuplicateKey` if rows that were found for a change name one row of the table twice."""
    if pc.count_distinct(found.column(ROW_ID)).as_py() == len(found):
        return
    counted = found.group_by(ROW_ID).aggregate([([], "count_all")])
    twice = counted.filter(pc.greater(counted.column("count_all"), 1)).column(ROW_ID)
    example = found.filter(pc.equal(found.column(ROW_ID), twice[0])).slice(0, 1).to_pylist()[0]
    raise DuplicateKey(
        "several rows of the source would change one row; make its keys unique or a condition narrower",
        table=table,
        rows=len(twice),
        example=example,
    )
