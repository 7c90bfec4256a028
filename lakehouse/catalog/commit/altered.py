"""Commits beside changes of columns: what an operation wrote under other columns than the table has when it commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection, exists, select

from lakehouse.catalog.commit.concurrent import rows_came_since
from lakehouse.catalog.store.models import tombstone
from lakehouse.catalog.versions.definitions import read_definition
from lakehouse.core.column import is_uuid_column
from lakehouse.core.contribution import (
    AlterContribution,
    AppendContribution,
    Contribution,
    EraseContribution,
    KeyChangeContribution,
    ResolveContribution,
    RowChangeContribution,
    ScopeDeleteContribution,
)
from lakehouse.core.keys import KeyScope, renamed_scope
from lakehouse.core.operation import Altered, Begun
from lakehouse.core.spec import TableId, TableSpec, field_id_of
from lakehouse.core.widening import is_wider
from lakehouse.errors import InvalidSchema, SchemaMismatch, WriteConflict


def as_altered(connection: Connection, given: Sequence[tuple[Contribution, int]]) -> list[Contribution]:
    """Contributions to tables that were altered since their operations began, as ones to the tables as they will be.

    ``given``: each with the schema number of its table. Files stay what they are: readers know the columns of a schema
    number. A column that was added is its default there, one that was dropped is not read, a wider one is cast. What
    locked time chunks keeps the grain by which it locked them.

    Changes of columns among them are made on what others left. Raises as `altered`; `SchemaMismatch` if a column holds
    less than was written, as after a restore; `WriteConflict` if rows are named by columns that changed, if something
    was written for columns that this commit was to make, and others altered the table first, or if rows came that a new
    primary key was not checked for.
    """
    from lakehouse.schema import altered, key_fields  # noqa: PLC0415 - late

    after: dict[TableId, TableSpec] = {}
    for one, number in given:
        if isinstance(one, AlterContribution):
            table = one.begun.table
            before = after.get(table.id) or _current(connection, table, number)
            after[table.id] = altered(before, one.changes)
            if key_fields(before) != key_fields(after[table.id]):
                _check_key(connection, one, before, after[table.id])
    known = {one.begun.table.id: one.begun.table for one, _ in given if isinstance(one, AlterContribution)}
    for one, _ in given:
        table = one.begun.table
        if table.id in known and table.schema_number > known[table.id].schema_number and table != after[table.id]:
            raise WriteConflict(
                "another operation altered the table first; run the transaction again",
                table=table.name,
                operation=one.begun.id,
            )
    return [_as_altered(connection, one, number, after.get(one.begun.table.id)) for one, number in given]


def _as_altered(connection: Connection, one: Contribution, number: int, after: TableSpec | None) -> Contribution:
    from lakehouse.schema import key_fields  # noqa: PLC0415 - late

    begun = one.begun
    if after is None and number == begun.table.schema_number:
        return one
    if isinstance(one, AppendContribution) and one.as_known:
        raise Altered
    spec = _current(connection, begun.table, number) if after is None else after
    if isinstance(one, RowChangeContribution) and _naming(spec) != _naming(begun.table):
        raise WriteConflict(
            "the time or the primary key was renamed or widened since the operation began, or the cluster columns are "
            "others; run it again",
            table=spec.name,
            operation=begun.id,
        )
    names_keys = isinstance(one, KeyChangeContribution | ResolveContribution)
    if names_keys and key_fields(spec) != key_fields(begun.table):
        raise WriteConflict(
            "the table has another primary key since the operation began; run it again",
            table=spec.name,
            operation=begun.id,
        )
    if one.segments:
        _check_fits(one, spec)
    if begun.locks and spec.grain != begun.table.grain:
        spec = spec.with_grain(begun.table.grain)
    found = replace(one, begun=replace(begun, table=spec, keys=_scope_in(begun.keys, begun, spec)))
    match found:
        case ScopeDeleteContribution(keys=keys):
            return replace(found, keys=_scope_in(keys, begun, spec))
        case EraseContribution(scope=(covered, keys)):
            return replace(found, scope=(covered, _scope_in(keys, begun, spec)))
    return found


def _scope_in(scope: KeyScope | None, begun: Begun, spec: TableSpec) -> KeyScope | None:
    """The values by which rows go, under the names of now. Raises `WriteConflict` if a column is gone."""
    now = {field_id_of(column): column.name for column in spec.schema}
    names = {name: now.get(field_id_of(begun.table.schema.field(name))) for name in scope or {}}
    for name, found in names.items():
        if found is None:
            raise WriteConflict(
                "the table has the column no more by whose values rows were to go; run it again",
                table=spec.name,
                column=name,
                operation=begun.id,
            )
    return renamed_scope(scope, {name: found for name, found in names.items() if found is not None})


def _check_key(connection: Connection, one: AlterContribution, before: TableSpec, after: TableSpec) -> None:
    """Refuse another primary key if rows came since they were looked at, or if tombstones name rows by the one before.

    Cost: the commits since, and the table's live tombstones.
    """
    from lakehouse.schema import key_fields  # noqa: PLC0415 - late

    if before.primary_key:
        live = (tombstone.c.table_id == before.id, tombstone.c.dropped_version.is_(None), tombstone.c.kind == "key")
        if connection.execute(select(exists().where(*live))).scalar():
            raise InvalidSchema(
                "upserts or deletes by the primary key that there is are not resolved yet; call resolve() first",
                table=before.name,
                primary_key=",".join(before.primary_key),
            )
    if one.rows_seen is not None and (
        key_fields(after) != one.key_seen or rows_came_since(connection, before, one.rows_seen)
    ):
        raise WriteConflict(
            "rows came, or columns changed, while the new primary key was checked; run it again",
            table=before.name,
            operation=one.begun.id,
        )


def _current(connection: Connection, known: TableSpec, number: int) -> TableSpec:
    held = None if known.schema_number == number else read_definition(connection, known.id)
    return known if held is None else held[0]


def _naming(spec: TableSpec) -> list[tuple[str, str]]:
    """What an operation names rows by: the time and the primary key, with their types, and the cluster columns."""
    names = (*spec.times, *spec.primary_key)
    return [*((name, str(spec.schema.field(name).type)) for name in names), *((name, "") for name in spec.cluster_by)]


def _check_fits(contribution: Contribution, spec: TableSpec) -> None:
    """Refuse rows that the table's columns do not hold."""
    written = {field_id_of(column): column for column in contribution.begun.table.schema}
    for column in spec.schema:
        there = written.get(field_id_of(column))
        if there is None:
            continue
        if column.type != there.type and not is_wider(column.type, there.type):
            raise _mismatch(contribution, column.name, f"it is {column.type} now, and the rows have {there.type}")
        if is_uuid_column(column) and not is_uuid_column(there):
            raise _mismatch(contribution, column.name, "it holds UUIDs now, and the rows may have other text")
        if there.nullable and not column.nullable:
            stored = spec.history(column).stored
            if any(one.nulls.get(stored) != 0 for one in contribution.segments):
                raise _mismatch(contribution, column.name, "it takes no nulls now, and the rows may have some")


def _mismatch(contribution: Contribution, column: str, why: str) -> SchemaMismatch:
    begun = contribution.begun
    return SchemaMismatch(
        f"the rows were written for other columns than the table has now: {why}; nothing was committed, begin again",
        table=begun.table.name,
        column=column,
        operation=begun.id,
    )
