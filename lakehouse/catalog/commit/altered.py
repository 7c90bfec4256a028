"""Commits beside changes of columns: what an operation wrote under other columns than the table has when it commits."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Connection

from lakehouse.catalog.versions.definitions import read_definition
from lakehouse.core.contribution import Contribution, RowChangeContribution
from lakehouse.core.spec import TableSpec, field_id_of
from lakehouse.errors import SchemaMismatch, WriteConflict
from lakehouse.schema import is_wider


def as_altered(connection: Connection, contribution: Contribution, schema_number: int) -> Contribution:
    """A contribution to a table that was altered since its operation began, as one to the table as it is.

    Its files stay what they are: readers know the columns of a schema number. A column that was added is its default
    there, one that was dropped is not read, a wider one is cast. Raises `SchemaMismatch` if a column holds less than
    was written, as after a restore; `WriteConflict` if rows are named by columns that changed.
    """
    begun = contribution.begun
    if schema_number == begun.table.schema_number:
        return contribution
    held = read_definition(connection, begun.table.id)
    assert held is not None
    spec = held[0]
    if isinstance(contribution, RowChangeContribution) and _naming(spec) != _naming(begun.table):
        raise WriteConflict(
            "the time or the primary key was renamed or widened since the operation began; run it again",
            table=spec.name,
            operation=begun.id,
        )
    if contribution.segments:
        _check_fits(contribution, spec)
    return replace(contribution, begun=replace(begun, table=spec))


def _naming(spec: TableSpec) -> list[tuple[str, str]]:
    """What an operation names rows by: the time and the primary key, with their types."""
    return [(name, str(spec.schema.field(name).type)) for name in (spec.time, *spec.primary_key)]


def _check_fits(contribution: Contribution, spec: TableSpec) -> None:
    """Refuse rows that the table's columns do not hold."""
    written = {field_id_of(column): column for column in contribution.begun.table.schema}
    for column in spec.schema:
        there = written.get(field_id_of(column))
        if there is None:
            continue
        if column.type != there.type and not is_wider(column.type, there.type):
            raise _mismatch(contribution, column.name, f"it is {column.type} now, and the rows have {there.type}")
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
