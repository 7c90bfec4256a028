"""Merge: rows of a source, each put to the rows of the table that it matches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.core.operation import Begun, Contribution, Kind
from lakehouse.core.predicate import And, Compare, Predicate
from lakehouse.core.sets import is_ordered, key_bounds
from lakehouse.core.spec import ROW_ID, TableSpec
from lakehouse.engine import Matches, Query
from lakehouse.engine.conform import conform, stores
from lakehouse.engine.duckdb.source import tables
from lakehouse.engine.frames import is_spark_frame
from lakehouse.errors import InvalidInput
from lakehouse.predicate import ParsedExpression, ParsedPredicate, equal_columns, parse, parse_expression
from lakehouse.rowchange import RowChange, require_columns
from lakehouse.schema import from_spark_type
from lakehouse.storage.columns import read_columns
from lakehouse.upsert import keys_interval, require_keys

if TYPE_CHECKING:
    from lakehouse.lake import Lake


@dataclass(frozen=True, slots=True)
class Clauses:
    """What a merge does, checked. ``updates`` and ``inserts`` are expressions by column; None leaves that part out."""

    on: ParsedPredicate
    equal: tuple[tuple[str, str], ...]
    """Columns of the table and of the source that are equal in every match."""
    deletes: ParsedPredicate | None
    updates: Mapping[str, ParsedExpression] | None
    inserts: Mapping[str, ParsedExpression] | None
    is_upsert: bool
    """Every match gets all of the source's values, and every other row of the source is inserted."""


class Merge(RowChange):
    """Updates or deletes the rows that a source's rows match, and inserts those that match none.

    What it inserts carries its primary keys as an upsert does, where it is one in all but name; else it conflicts with
    whoever wrote one of those keys meanwhile.
    """

    kind = Kind.MERGE

    def __init__(self, lake: Lake, begun: Begun, *, source: Any, clauses: Clauses, **marks: Any) -> None:
        super().__init__(lake, begun, **marks)
        self._source = source
        self._clauses = clauses
        self._keys: pa.Table | None = None

    def _run(self) -> None:
        clauses, dialect = self._clauses, self._engine.dialect
        equal = [pair for pair, _ in self._equal]
        with self._engine.join(clauses.on.sql(dialect), self._target(), self._source, equal) as matches:
            hits = self._matched(matches)
            self._found(hits)
            if clauses.updates is not None and len(hits):
                keep = "TRUE" if clauses.deletes is None else f"NOT coalesce({clauses.deletes.sql(dialect)}, FALSE)"
                assigned = {name: one.sql(dialect) for name, one in clauses.updates.items()}
                self._store(self._engine, matches.updated(assigned, keep), row_ids=True)
                self._rewritten()
            if clauses.inserts is not None:
                self._insert(matches, {name: one.sql(dialect) for name, one in clauses.inserts.items()})

    def _matched(self, matches: Matches) -> pa.Table:
        """The rows that are updated or deleted. Raises `InvalidInput` if two rows of the source claim one."""
        clauses = self._clauses
        if clauses.updates is None and clauses.deletes is None:
            where = "FALSE"
        elif clauses.updates is None:
            assert clauses.deletes is not None
            where = f"coalesce({clauses.deletes.sql(self._engine.dialect)}, FALSE)"
        else:
            where = "TRUE"
        found = matches.hits(self._told, where)
        if pc.count_distinct(found.column(ROW_ID)).as_py() < len(found):
            counted = found.group_by(ROW_ID).aggregate([([], "count_all")])
            twice = counted.filter(pc.greater(counted.column("count_all"), 1)).column(ROW_ID)
            example = found.filter(pc.equal(found.column(ROW_ID), twice[0])).slice(0, 1).to_pylist()[0]
            raise InvalidInput(
                "several rows of the source match one row; make the source's keys unique or the condition narrower",
                table=self._begun.table.name,
                rows=len(twice),
                example=example,
            )
        return found

    def _insert(self, matches: Matches, values: Mapping[str, str]) -> None:
        spec = self._begun.table
        written = len(self._segments)
        self._store(self._engine, matches.inserted(values))
        paths = [one.path for one in self._segments[written:]]
        if not paths:
            return
        assert self._hits is not None
        self._hits = replace(self._hits, inserted=read_columns(self._lake.warehouse, paths, self._placing, spec))
        if spec.primary_key:
            keys = require_keys(read_columns(self._lake.warehouse, paths, spec.primary_key, spec), spec)
            once = keys.group_by(keys.column_names).aggregate([])
            if len(once) < len(keys):
                raise InvalidInput("rows that a merge inserts have one key twice; make the source's keys unique",
                                   table=spec.name, keys=len(keys) - len(once))  # fmt: skip
            self._tombstones.append(self.tombstone("key", keys_interval(keys, spec), once, key_bounds(once, spec)))
            if not self._clauses.is_upsert:
                self._keys = once

    def contribution(self) -> Contribution:
        """The operation's part of a commit."""
        found = super().contribution()
        return replace(found, keys=self._keys, read=self._looked_in(self._reach))

    def _target(self) -> Query:
        """Every row that a row of the source can match, with the columns that the merge reads."""
        clauses, names = self._clauses, self._begun.table.schema.names
        read = {*clauses.on.columns, *self._told, *(() if clauses.deletes is None else clauses.deletes.columns)}
        if clauses.updates is not None:
            read |= {name for name in names if name not in clauses.updates}
            read |= {name for one in clauses.updates.values() for name in one.columns}
        return self._query(self._reach, tuple(name for name in names if name in read))

    @cached_property
    def _reach(self) -> ParsedPredicate:
        """What every matching row passes, for pruning: the source's least and greatest of what must be equal."""
        parts: list[Predicate] = []
        for (name, _), column in self._equal:
            bounds = pc.min_max(column) if is_ordered(column.type) else {"min": pa.NULL}
            if bounds["min"].as_py() is not None:
                parts.append(Compare(name, ">=", bounds["min"].as_py()))
                parts.append(Compare(name, "<=", bounds["max"].as_py()))
        return ParsedPredicate("TRUE", And(tuple(parts)), (), "TRUE", "TRUE")

    @property
    def _equal(self) -> list[tuple[tuple[str, str], pa.ChunkedArray]]:
        """Columns of the table and of a source in memory that must be equal and are of one type, and the source's."""
        if not isinstance(self._source, pa.Table):
            return []
        schema = self._begun.table.schema
        found = [((name, from_), self._source.column(from_)) for name, from_ in self._clauses.equal]
        return [
            (pair, held)
            for pair, held in found
            if held.type == schema.field(pair[0]).type and (is_ordered(held.type) or pa.types.is_string(held.type))
        ]


def read_source(source: Any, spec: TableSpec) -> Any:
    """A source that is a Spark frame as it is, any other in memory, in the types of the table's columns of its names.

    Raises `InvalidInput` for what cannot be read as rows.
    """
    if is_spark_frame(source):
        return source
    given = pa.concat_tables(tables(source, spec.schema.names))
    fields = []
    for field in given.schema:
        known = spec.schema.field(field.name).type if field.name in spec.schema.names else _plain(field.type)
        fields.append(pa.field(field.name, known if stores(field.type, known) else field.type))
    return conform(given, pa.schema(fields))


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz and "UTC")
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def read_clauses(spec: TableSpec, source: Any, on: Any, update: Any, delete: Any, insert: Any) -> Clauses:
    """Check what a merge is asked to do."""
    schemas = {"target": spec.schema, "source": source_schema(source)}
    columns = [name for name in schemas["source"].names if name in spec.schema.names]
    condition = _read_on(on, schemas)
    updates = _read_values(update, spec, schemas, {name: f"source.`{name}`" for name in columns}, "when_matched_update")
    inserts = _read_values(
        True if insert is None else insert, spec, schemas, {name: f"source.`{name}`" for name in columns},
        "when_not_matched_insert",
    )  # fmt: skip
    deletes = None
    if delete not in (None, False):
        deletes = parse("TRUE" if delete is True else delete, spec.schema, schemas)
    if updates is None and inserts is None and deletes is None:
        raise InvalidInput("the merge would do nothing; say what becomes of matched rows or of others", table=spec.name)
    is_upsert = (
        update is True and insert in (True, None) and delete in (None, False) and len(columns) == len(spec.schema)
    )
    return Clauses(condition, tuple(equal_columns(condition.text)), deletes, updates, inserts, is_upsert)


def _read_on(on: Any, schemas: Mapping[str, pa.Schema]) -> ParsedPredicate:
    """The condition; a list of columns means that each is equal."""
    if isinstance(on, list | tuple):
        for name in on:
            if not all(name in schema.names for schema in schemas.values()):
                raise InvalidInput("both the table and the source need this column to be matched by it", column=name)
        on = " AND ".join(f"target.`{name}` = source.`{name}`" for name in on)
    return parse(on, schemas["target"], schemas)


def _read_values(
    given: Any, spec: TableSpec, schemas: Mapping[str, pa.Schema], same: Mapping[str, str], what: str
) -> dict[str, ParsedExpression] | None:
    if given is None or given is False:
        return None
    if given is not True and not isinstance(given, Mapping):
        raise InvalidInput(f"{what} is True, False or columns with SQL expressions", found=repr(given)[:200])
    chosen = same if given is True else given
    require_columns(chosen, spec)
    return {
        name: parse_expression(text, spec.schema, spec.schema.field(name), schemas) for name, text in chosen.items()
    }


def source_schema(source: Any) -> pa.Schema:
    """The columns of a merge's source."""
    if is_spark_frame(source):
        return pa.schema(
            [pa.field(one["name"], from_spark_type(one["type"], one["name"]))
             for one in json.loads(source.schema.json())["fields"]]
        )  # fmt: skip
    found: pa.Schema = source.schema
    return found
