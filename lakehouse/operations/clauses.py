"""The clauses of a merge: which rows meet which clause, and what happens to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from lakehouse.core.kinds import is_uuid
from lakehouse.core.predicate import And
from lakehouse.core.spec import ROW_ID, SIDES, TableSpec, field_id_of
from lakehouse.engine.conform import conform, stores
from lakehouse.engine.duckdb.source import tables
from lakehouse.engine.frames import is_spark_frame
from lakehouse.errors import InvalidMerge, SchemaMismatch
from lakehouse.operations.row_change import require_columns
from lakehouse.predicate import (
    ParsedExpression,
    ParsedPredicate,
    equal_columns,
    equates_columns,
    parse,
    parse_expression,
)
from lakehouse.predicate.literals import literal_term
from lakehouse.schema import from_spark_schema

ROW_TIME = "_row_time"
"""What a source that names rows by their ids calls their time; no column of a table has such a name."""
CLAUSE = "_clause"
"""What found rows call the number of the clause of a merge that they meet."""


@dataclass(frozen=True, slots=True)
class When:
    """One clause as written: what happens to rows that meet a condition (None: all rows).

    ``values`` are SQL expressions by column; True: the source's columns of the same names; None: the row is deleted.
    """

    condition: str | None
    values: Mapping[str, str] | Literal[True] | None


@dataclass(frozen=True, slots=True)
class Whens:
    """The clauses of a merge as written, each list in order: the first that a row meets applies."""

    matched: tuple[When, ...]
    not_matched: tuple[When, ...]
    not_matched_by_source: tuple[When, ...] = ()
    """What happens to rows of the table that no row of the source matches."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause, checked. ``values`` is None where rows are deleted."""

    condition: ParsedPredicate | None
    values: Mapping[str, ParsedExpression] | None


@dataclass(frozen=True, slots=True)
class Clauses:
    """What a merge does, checked."""

    on: ParsedPredicate
    equal: tuple[tuple[str, str], ...]
    """Columns of the table and of the source that are equal in every match."""
    matched: tuple[Clause, ...]
    not_matched: tuple[Clause, ...]
    is_upsert: bool
    """Every match gets all values of the source, and every other row of the source is inserted."""
    is_by_key: bool
    """Rows match if, and only if, they have the same primary key."""
    not_matched_by_source: tuple[Clause, ...] = ()
    is_repeatable: bool = False
    """Whether what is done to a match may be said of it several times, because all of them are deleted."""

    @property
    def deletes_all(self) -> bool:
        """Whether every match is deleted, so several source rows may match one row."""
        return self.is_repeatable or [(one.condition, one.values) for one in self.matched] == [(None, None)]


def chosen(clauses: Sequence[Clause], place: int, dialect: str) -> str:
    """The condition that a row meets a clause and none before it."""
    before = [f"NOT {_met(one, dialect)}" for one in clauses[:place]]
    return " AND ".join([*before, _met(clauses[place], dialect)])


def any_chosen(clauses: Sequence[Clause], dialect: str) -> str:
    """The condition that a row meets one of the clauses."""
    return "(" + " OR ".join(_met(one, dialect) for one in clauses) + ")" if clauses else "FALSE"


def _met(clause: Clause, dialect: str) -> str:
    return "TRUE" if clause.condition is None else f"coalesce({clause.condition.sql(dialect)}, FALSE)"


def read_arguments(update: Any, delete: Any, insert: Any, left_update: Any = None, left_delete: Any = None) -> Whens:
    """The clauses for the arguments of `Table.merge`: a row to be deleted is not updated.

    ``left_update`` and ``left_delete`` are about rows of the table that no row of the source matches.
    """
    matched = _read_changes(update, delete, "when_matched_update")
    left = _read_changes(left_update, left_delete, "when_not_matched_by_source_update")
    if any(one.values is True for one in left):
        raise InvalidMerge("rows that no row of the source matches take columns with SQL expressions, not True")
    not_matched = []
    if insert is not False:
        not_matched.append(When(None, True if insert is None else _read_columns(insert, "when_not_matched_insert")))
    return Whens(matched, tuple(not_matched), left)


def _read_changes(update: Any, delete: Any, what: str) -> tuple[When, ...]:
    found: list[When] = []
    if delete not in (None, False):
        found.append(When(None if delete is True else delete, None))
    if update not in (None, False):
        found.append(When(None, _read_columns(update, what)))
    return tuple(found)


def _read_columns(given: Any, what: str) -> Any:
    if given is not True and not isinstance(given, Mapping):
        raise InvalidMerge(f"{what} is True, False or columns with SQL expressions", found=repr(given)[:200])
    return given


def read_source(source: Any, spec: TableSpec) -> Any:
    """A source: a Spark frame unchanged, any other in memory, cast to the table's columns of the same names.

    Raises `InvalidInput` for anything that cannot be read as rows.
    """
    if is_spark_frame(source):
        return source
    given = pa.concat_tables(tables(source, spec.schema))
    known = {name.casefold(): spec.schema.field(name) for name in spec.schema.names}
    fields = []
    for field in given.schema:
        column = known.get(field.name.casefold(), pa.field(field.name, _plain(field.type)))
        kind = column.type if stores(field.type, column.type) else field.type
        fields.append(pa.field(field.name, kind))
    return conform(given, pa.schema(fields))


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or is_uuid(kind):
        return pa.string()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz and "UTC")
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def source_schema(source: Any) -> pa.Schema:
    """The columns of a merge's source. Raises `InvalidInput` if two names differ at most by case."""
    found = from_spark_schema(source.schema) if is_spark_frame(source) else source.schema
    folded = [name.casefold() for name in found.names]
    twice = sorted({name for name in folded if folded.count(name) > 1})
    if twice:
        raise InvalidMerge("the source has a column twice; give its columns names of their own", columns=twice)
    return found


def require_names_kept(source: Any, known: TableSpec, spec: TableSpec) -> None:
    """Raise `SchemaMismatch` if a column that a source has was renamed since ``known``: its values would be lost."""
    now = {field_id_of(column): column.name for column in spec.schema}
    held = {name.casefold() for name in source_schema(source).names}
    for column in known.schema:
        name = now.get(field_id_of(column), column.name)
        if column.name.casefold() in held and name.casefold() not in held:
            raise SchemaMismatch(
                "the column was renamed since the table was opened; rename it in the source too",
                table=spec.name,
                column=column.name,
                name=name,
            )


def read_clauses(spec: TableSpec, source: Any, on: Any, whens: Whens) -> Clauses:
    """Check the arguments of a merge."""
    if whens == Whens((), ()):
        raise InvalidMerge("the merge would do nothing; add a clause for matched or for other rows", table=spec.name)
    both = {"target": spec.schema, "source": source_schema(source)}
    shared = _shared(both)
    condition = _read_on(on, both)
    alone = {"source": both["source"]}
    matched = tuple(_read_clause(one, spec, both, shared) for one in whens.matched)
    not_matched = tuple(_with_defaults(_read_clause(one, spec, alone, shared), spec) for one in whens.not_matched)
    target = {"target": both["target"]}
    left = tuple(_read_clause(one, spec, target, {}) for one in whens.not_matched_by_source)
    everything = (When(None, True),)
    is_upsert = whens == Whens(everything, everything) and len(shared) == len(spec.schema)
    equal = _equal(condition, both)
    keys = {(name, source) for name, source in equal if name.casefold() == source.casefold()}
    is_by_key = {name for name, _ in keys} == set(spec.primary_key) and equates_columns(condition.text)
    return Clauses(condition, equal, matched, not_matched, is_upsert, is_by_key, left)


def row_clauses(spec: TableSpec, source: pa.Table, columns: Sequence[str] | None) -> Clauses:
    """What a merge does by a source that names rows by their ids: gives them its values of columns, or deletes them.

    The source tells each row's time too, if the table has one, as `ROW_TIME`, by which files are left out.
    """
    target, given = (f"`{SIDES[side]}`.`{ROW_ID}`" for side in ("target", "source"))
    on = _made(f"({target} = {given})")
    values = None if columns is None else {name: f"source.`{name}`" for name in columns}
    both = {"target": spec.schema, "source": source.schema}
    equal = tuple((name, ROW_TIME) for name in spec.times)
    return Clauses(on, equal, (_read_clause(When(None, values), spec, both, {}),), (), is_upsert=False, is_by_key=False)


@dataclass(frozen=True, slots=True)
class Found:
    """One clause of a merge whose rows somebody finds: those with its number as `CLAUSE`.

    ``values`` says in which column of the found rows the new value of a table's column is (None: null); None instead of
    them deletes.
    """

    number: int
    inserts: bool
    values: Mapping[str, str | None] | None


def found_clauses(spec: TableSpec, source: Any, clauses: Sequence[Found], *, is_repeatable: bool) -> Clauses:
    """What a merge does by rows that name their clause, and the row of the table by its id, or none to be inserted."""
    rows = row_clauses(spec, source, None)
    matched = tuple(_found_clause(one) for one in clauses if not one.inserts)
    inserted = tuple(_with_defaults(_found_clause(one), spec) for one in clauses if one.inserts)
    return replace(rows, matched=matched, not_matched=inserted, is_repeatable=is_repeatable)


def _found_clause(clause: Found) -> Clause:
    condition = _made(f"({_given(CLAUSE)} = {clause.number})")
    if clause.values is None:
        return Clause(condition, None)
    given = {name: "NULL" if held is None else _given(held) for name, held in clause.values.items()}
    return Clause(
        condition, {name: ParsedExpression(text, (), text, text.replace("`", '"')) for name, text in given.items()}
    )


def _made(spark: str) -> ParsedPredicate:
    """A condition of our own making on names that both engines take, which bounds nothing."""
    return ParsedPredicate("TRUE", And(()), (), spark, spark.replace("`", '"'))


def _given(column: str) -> str:
    """A column of found rows, in Spark's SQL."""
    return f"`{SIDES['source']}`.`{column}`"


def read_found(found: pa.Table, spec: TableSpec, clauses: Sequence[Found]) -> pa.Table:
    """Found rows in memory, with new values as their columns have them. Raises `InvalidInput` for what does not fit."""
    held = {column: name for one in clauses for name, column in (one.values or {}).items() if column is not None}
    if spec.times:
        held[ROW_TIME] = spec.times[0]
    columns = {}
    for name, column in zip(found.column_names, found.columns, strict=True):
        own = held.get(name, name)  # which errors name
        kind = spec.schema.field(own).type if name in held else pa.int64()
        columns[name] = conform(pa.table({own: column}), pa.schema([(own, kind)])).column(0)
    return pa.table(columns)


def _shared(schemas: Mapping[str, pa.Schema]) -> dict[str, str]:
    """Columns that table and source share, with the source's name of each, ignoring case."""
    held = {name.casefold(): name for name in schemas["source"].names}
    return {name: held[name.casefold()] for name in schemas["target"].names if name.casefold() in held}


def _read_clause(when: When, spec: TableSpec, sides: Mapping[str, pa.Schema], shared: Mapping[str, str]) -> Clause:
    schema = sides["target"] if "target" in sides else sides["source"]
    condition = None if when.condition is None else parse(when.condition, schema, sides)
    if when.values is None:
        return Clause(condition, None)
    same = {name: f"source.`{held}`" for name, held in shared.items()}
    values = same if when.values is True else when.values
    require_columns(values, spec)
    return Clause(
        condition,
        {name: parse_expression(text, schema, spec.schema.field(name), sides) for name, text in values.items()},
    )


def _with_defaults(clause: Clause, spec: TableSpec) -> Clause:
    """A clause that inserts rows, with the defaults of columns that it does not name."""
    if clause.values is None:
        return clause
    made = {}
    for name, value in spec.defaults_for_new.items():
        if name not in clause.values:
            term = literal_term(value, spec.schema.field(name).type)
            made[name] = ParsedExpression(term.spark, (), term.spark, term.duckdb)
    return replace(clause, values={**clause.values, **made}) if made else clause


def _read_on(on: Any, schemas: Mapping[str, pa.Schema]) -> ParsedPredicate:
    """The condition; a list of columns means equality of each."""
    if isinstance(on, list | tuple):
        shared = {name.casefold(): (name, held) for name, held in _shared(schemas).items()}
        pairs = []
        for name in on:
            if not isinstance(name, str) or name.casefold() not in shared:
                raise InvalidMerge("both the table and the source need this column to be matched by it", column=name)
            pairs.append(shared[name.casefold()])
        on = " AND ".join(f"target.`{name}` = source.`{held}`" for name, held in pairs)
    return parse(on, schemas["target"], schemas)


def _equal(condition: ParsedPredicate, schemas: Mapping[str, pa.Schema]) -> tuple[tuple[str, str], ...]:
    """Columns of table and source that must be equal, by their own names."""
    real = {side: {name.casefold(): name for name in schema.names} for side, schema in schemas.items()}
    return tuple(
        (real["target"][one.casefold()], real["source"][other.casefold()])
        for one, other in equal_columns(condition.text)
    )
