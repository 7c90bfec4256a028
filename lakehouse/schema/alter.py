"""What a definition becomes by changes of its columns. Files stay as they are.

What makes this possible is that a column is its Parquet field id (as in Iceberg), not its name: a file's columns keep
the names that they had when the column was made, and the definition knows which of them is which column today.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from lakehouse.arguments import read_text, unknown_column
from lakehouse.core.column import ColumnHistory, Steps, is_uuid_column, stored_type
from lakehouse.core.kinds import is_uuid
from lakehouse.core.policy import Policy
from lakehouse.core.spec import TableSpec, field_id_of
from lakehouse.core.widening import INTEGERS, is_wider
from lakehouse.errors import InvalidName, InvalidSchema, UnknownColumn
from lakehouse.schema.changes import (
    AddColumn,
    CommentColumn,
    DropColumn,
    LayoutChange,
    MakeNullable,
    MoveColumn,
    NamedChange,
    RenameColumn,
    SchemaChange,
    SetDefault,
    WidenColumn,
    path_of,
    shown,
)
from lakehouse.schema.layout import laid_out, read_layout
from lakehouse.schema.names import check_column_name, check_distinct
from lakehouse.schema.nested import (
    changed_at,
    commented_field,
    is_in_key,
    merging_parts,
    names_in_files,
    renamed_field,
    stored_path,
    with_field,
    without_field,
)
from lakehouse.schema.read import read_type
from lakehouse.schema.types import normal_type, table_column
from lakehouse.schema.values import typed_value


def altered(spec: TableSpec, changes: Sequence[SchemaChange]) -> TableSpec:
    """A definition after changes, each made on what the one before it left; its schema number is one more.

    Raises `UnknownColumn`, `InvalidName` for a name that is taken or reserved, `InvalidSchema` for what a column cannot
    become, and `InvalidRows` for a default that it cannot hold.

    >>> from lakehouse.schema import define_table
    >>> spec = define_table("flights", "ts TIMESTAMP, delay INT", time="ts")
    >>> after = altered(spec, [RenameColumn("delay", "late"), AddColumn("delay", pa.float64())])
    >>> after.schema.names, [after.stored_names[name] for name in ("late", "delay")], after.schema_number
    (['ts', 'late', 'delay'], ['delay', '_3_delay'], 1)
    """
    if not changes:
        raise InvalidSchema("name at least one change of the columns", table=spec.name)
    following = spec.next_field_id or 1 + max(field_id_of(column) for column in spec.schema)
    found = replace(spec, schema_number=spec.schema_number + 1, next_field_id=following)
    for change in changes:
        found = _changed(found, read_change(change))
    return found


def _newest(column: pa.Field, known: Sequence[TableSpec]) -> tuple[Steps, int]:
    """The steps of a column by the last of some definitions that has it, and the place of that."""
    for place in range(len(known) - 1, -1, -1):
        for one in known[place].schema:
            if field_id_of(one) == field_id_of(column):
                return known[place].history(one).steps or ((0, stored_type(one.type)),), place
    raise InvalidSchema("a restored column is in no definition that the table had", column=column.name)


def _type_in_files(column: pa.Field, steps: Steps) -> pa.DataType:
    """A column's type in new files, as its steps say it."""
    tells_uuids = ColumnHistory(column.name, steps).has_uuid_steps
    return pa.uuid() if tells_uuids and is_uuid_column(column) else stored_type(column.type)


def merging(spec: TableSpec, found: pa.Schema) -> list[SchemaChange]:
    """The changes by which a table holds rows with some columns: new ones, and wider types where they are allowed.

    >>> from lakehouse.schema import define_table
    >>> spec = define_table("flights", "ts TIMESTAMP, delay INT", time="ts")
    >>> rows = pa.schema([("delay", pa.int64()), ("gate", pa.string()), ("note", pa.null())])
    >>> [str(change) for change in merging(spec, rows)]
    ['widen column delay to int64', 'add column gate string']
    """
    changes: list[SchemaChange] = []
    for column in found:
        kind = column.type
        if pa.types.is_null(kind):
            continue
        if column.name not in spec.schema.names:
            changes.append(AddColumn(column.name, normal_type(kind, column.name)))
            continue
        held = spec.schema.field(column.name).type
        if pa.types.is_nested(held):
            changes += merging_parts((column.name,), held, kind)
        elif is_wider(kind, held) and _may_widen(spec, column.name, kind):
            changes.append(WidenColumn(column.name, kind))
    return changes


def _may_widen(spec: TableSpec, name: str, kind: pa.DataType) -> bool:
    """Whether nothing uses a column of the table as it is; its values are then checked one by one."""
    try:
        _widened(spec, name, kind)
    except InvalidSchema:
        return False
    return True


def restored(current: TableSpec, then: TableSpec, between: Sequence[TableSpec]) -> TableSpec:
    """A definition with the columns, time and keys that it had; ``between`` are those that it has had since, in order.

    Columns that come back are those that went: files that have them still do.
    """
    number = current.schema_number + 1
    columns = {}
    for column in then.schema:
        history = then.history(column)
        steps, there = _newest(column, [then, *between])
        if there < len(between):
            steps = (*steps, (between[there].schema_number, None))
        there = _type_in_files(column, steps)
        if steps[-1][1] != there:
            steps = (*steps, (number, there))
        if len(steps) > 1 or replace(history, steps=()) != ColumnHistory(column.name):
            columns[field_id_of(column)] = replace(history, steps=steps)
    back = {then.history(column).stored for column in then.schema}
    names = {field_id_of(column): column.name for column in then.schema}
    known = [field_id_of(current.schema.field(one)) for one in current.scope_columns]
    scoped = [names[one] for one in known if one in names]
    gone = [current.history(one).stored for one in current.schema if current.history(one).stored not in back]
    return replace(
        current.with_grain(then.grain),
        schema=then.schema,
        time=then.time,
        primary_key=then.primary_key,
        cluster_by=then.cluster_by,
        declustered=tuple(one for one in dict.fromkeys([*scoped, *then.scope_columns]) if one not in then.cluster_by),
        schema_number=number,
        columns=columns,
        retired=tuple(one for one in (*current.retired, *gone) if one not in back),
    )


def read_change(given: Any) -> SchemaChange:
    """A change whose types are those of tables and whose texts can be stored. Raises `InvalidInput` for any other."""
    if not isinstance(given, SchemaChange):
        raise InvalidSchema("not a change of columns; use the classes of lakehouse.schema", change=repr(given)[:200])
    if isinstance(given, LayoutChange):
        return read_layout(given)
    change: NamedChange = given
    path: Any = (change.name,) if isinstance(change.name, str) else change.name
    if not isinstance(path, tuple | list) or not path or not all(isinstance(one, str) for one in path):
        raise InvalidName("a column is text, or texts for a part of one: ('a', 'b')", column=repr(path)[:200])
    if isinstance(change, AddColumn | WidenColumn):
        change = replace(change, type=read_type(change.type, shown(change.name)))
        if len(path) > 1 and is_uuid(change.type):
            raise InvalidSchema("only whole columns hold UUIDs; inside others use STRING", column=shown(change.name))
    if isinstance(change, AddColumn | CommentColumn):
        change = replace(change, comment=read_text(change.comment, "a column's comment"))
    return change


def _changed(spec: TableSpec, change: SchemaChange) -> TableSpec:
    if isinstance(change, LayoutChange):
        return laid_out(spec, change)
    path = path_of(change.name)
    if len(path) != 1:
        return _changed_inside(spec, change, path)
    name = path[0]
    match change:
        case AddColumn():
            return _added(spec, change, name)
        case DropColumn():
            return _dropped(spec, name)
        case RenameColumn():
            return _renamed(spec, name, change.new)
        case MoveColumn():
            column = _column(spec, name)
            others = [one for one in spec.schema if one.name != name]
            return _with_columns(spec, _placed(others, column, change.after, change.first))
        case WidenColumn():
            return _widened(spec, name, change.type)
        case MakeNullable():
            return _made_nullable(spec, name)
        case CommentColumn():
            column = _column(spec, name)
            return _with_history(spec, column, replace(spec.history(column), comment=change.comment))
        case SetDefault():
            column = _column(spec, name)
            history = replace(spec.history(column), default_for_new=typed_value(change.value, column))
            return _with_history(spec, column, history)


def _added(spec: TableSpec, change: AddColumn, name: str) -> TableSpec:
    check_column_name(name)
    check_distinct([*spec.schema.names, name])
    if pa.types.is_nested(change.type) and (change.default, change.default_for_new) != (None, None):
        raise InvalidSchema("a nested column has no default but null", column=name)
    number = spec.next_field_id
    column = table_column(name, change.type, True, number)
    history = ColumnHistory(
        _unused(spec, name, number),
        ((0, None), (spec.schema_number, stored_type(column.type))),
        typed_value(change.default, column),
        typed_value(change.default_for_new, column),
        change.comment,
    )
    found = replace(spec, columns={**spec.columns, number: history}, next_field_id=number + 1)
    return _with_columns(found, _placed(list(spec.schema), column, change.after, change.first))


def _changed_inside(spec: TableSpec, change: SchemaChange, path: tuple[str, ...]) -> TableSpec:
    """A definition with a part of a column changed."""
    column = _column(spec, path[0] if path else "")
    known = spec.history(column)
    parent, name = path[1:-1], path[-1]
    steps = known.steps or ((0, stored_type(column.type)),)
    match change:
        case AddColumn():
            if change.default_for_new not in (None, change.default):
                raise InvalidSchema("a field of a struct has no default of its own for new rows", column=".".join(path))
            used = names_in_files((kind for _, kind in steps), stored_path(column.type, parent))
            made = partial(with_field, name=name, kind=change.type, taken=used, default=change.default)
            kind = changed_at(column.type, parent, partial(made, comment=change.comment))
            if change.first or change.after is not None:
                kind = changed_at(
                    kind, parent, partial(_moved_field, name=name, after=change.after, first=change.first)
                )
        case DropColumn():
            if is_in_key(column.type, path[1:]):
                raise InvalidSchema(
                    "a map's keys keep their fields: without one, two may be the same", path=shown(path)
                )
            kind = changed_at(column.type, parent, partial(without_field, name=name))
        case RenameColumn():
            kind = changed_at(column.type, parent, partial(renamed_field, name=name, new=change.new))
        case MoveColumn():
            moved = partial(_moved_field, name=name, after=change.after, first=change.first)
            kind = changed_at(column.type, parent, moved)
        case WidenColumn():
            kind = changed_at(column.type, path[1:], lambda held: _wider(held, change.type, ".".join(path)))
        case CommentColumn():
            kind = changed_at(column.type, parent, partial(commented_field, name=name, comment=change.comment))
        case _:
            raise InvalidSchema("this is not said of a part of a column", column=".".join(path), change=str(change))
    found = _with_history(spec, column, replace(known, steps=(*steps, (spec.schema_number, stored_type(kind)))))
    return _with_columns(found, [one.with_type(kind) if one.name == column.name else one for one in spec.schema])


def _moved_field(struct: pa.DataType, name: str, after: str | None, first: bool) -> pa.DataType:
    if not pa.types.is_struct(struct) or name not in [part.name for part in struct]:
        raise UnknownColumn("no such field of a struct", field=name, type=str(struct)[:200])
    field = next(part for part in struct if part.name == name)
    return pa.struct(_placed([part for part in struct if part.name != name], field, after, first))


def _wider(held: pa.DataType, kind: pa.DataType, column: str) -> pa.DataType:
    if held != kind and not is_wider(kind, held):
        raise InvalidSchema(
            "the column cannot become this type, which does not hold all of its values; add a column and fill it",
            column=column,
            type=held,
            wanted=kind,
        )
    return kind


def _unused(spec: TableSpec, name: str, number: int) -> str:
    """A name in files that no column of the table ever had there; readers ignore case. Users' have no underscore."""
    return f"_{number}_{name}" if name.casefold() in {one.casefold() for one in spec.names_in_files} else name


def _dropped(spec: TableSpec, name: str) -> TableSpec:
    column = _column(spec, name)
    _refuse_used(spec, name, "dropped")
    for what, names in (("the time", spec.times), ("part of the primary key", spec.primary_key)):
        if name in names:
            raise InvalidSchema(f"the column is {what} and cannot be dropped", table=spec.name, column=name)
    if len(spec.schema) == 1:
        raise InvalidSchema("a table needs a column; add another one first, or drop the table", table=spec.name)
    stored = spec.history(column).stored
    left = {number: one for number, one in spec.columns.items() if number != field_id_of(column)}
    found = replace(spec, columns=left, retired=(*spec.retired, stored))
    return _with_columns(found, [one for one in spec.schema if one.name != column.name])


def _renamed(spec: TableSpec, name: str, new: str) -> TableSpec:
    column = _column(spec, name)
    check_column_name(new)
    check_distinct([new if one == name else one for one in spec.schema.names])
    _refuse_indexed(spec, name, "renamed")
    found = _with_history(spec, column, spec.history(column))
    renamed = [one.with_name(new) if one.name == name else one for one in spec.schema]
    return replace(
        found,
        schema=pa.schema(renamed),
        time=new if spec.time == name else spec.time,
        primary_key=tuple(new if one == name else one for one in spec.primary_key),
        cluster_by={new if one == name else one: buckets for one, buckets in spec.cluster_by.items()},
        declustered=tuple(new if one == name else one for one in spec.declustered),
    )


def _widened(spec: TableSpec, name: str, kind: pa.DataType) -> TableSpec:
    column = _column(spec, name)
    if _wider(column.type, kind, name) == column.type:
        if not is_uuid_column(column):
            return spec
        if name in spec.primary_key:
            raise InvalidSchema(
                "a column of the primary key can only become a longer integer", column=name, wanted=kind
            )
        _refuse_used(spec, name, "widened")
        text = table_column(name, kind, column.nullable, field_id_of(column))
        known = spec.history(column)
        # From now on steps tell UUIDs from text, which a restore may bring back to a column of UUIDs.
        before = known.steps or ((0, kind),)
        if not known.has_uuid_steps:
            before = tuple((number, one if one is None else pa.uuid()) for number, one in before)
        found = _with_history(spec, column, replace(known, steps=(*before, (spec.schema_number, kind))))
        return _with_columns(found, [text if one.name == name else one for one in spec.schema])
    if name in spec.primary_key and kind not in INTEGERS:
        raise InvalidSchema("a column of the primary key can only become a longer integer", column=name, wanted=kind)
    if name == spec.time:
        raise InvalidSchema("the time column has the one type that it can have", column=name, type=column.type)
    _refuse_used(spec, name, "widened")
    known, wider = spec.history(column), column.with_type(kind)
    history = replace(
        known,
        steps=(*(known.steps or ((0, column.type),)), (spec.schema_number, kind)),
        default=typed_value(known.default, wider),
        default_for_new=typed_value(known.default_for_new, wider),
    )
    found = _with_history(spec, column, history)
    return _with_columns(found, [one.with_type(kind) if one.name == column.name else one for one in spec.schema])


def _made_nullable(spec: TableSpec, name: str) -> TableSpec:
    column = _column(spec, name)
    if name == spec.time or name in spec.primary_key:
        raise InvalidSchema("the time and the primary key take no nulls", table=spec.name, column=name)
    return _with_columns(spec, [one.with_nullable(True) if one.name == column.name else one for one in spec.schema])


def _refuse_used(spec: TableSpec, name: str, done: str) -> None:
    """Refuse to change what replaces named rows by, and what indexes know."""
    if name in spec.scope_columns:
        raise InvalidSchema(
            f"the table is or was clustered by the column, and replaces may have named rows by its values: it cannot "
            f"be {done}; add a column and fill it",
            table=spec.name,
            column=name,
        )
    _refuse_indexed(spec, name, done)


def _refuse_indexed(spec: TableSpec, name: str, done: str) -> None:
    if name in Policy.of(spec.properties).index:
        raise InvalidSchema(
            f"the property index uses the column, so it cannot be {done}; take it out of there first",
            table=spec.name,
            column=name,
        )


def _column(spec: TableSpec, name: Any) -> pa.Field:
    for column in spec.schema:
        if column.name == name:
            return column
    raise unknown_column("no such column; choose among the table's", str(name), spec.schema.names, table=spec.name)


def _placed(columns: list[pa.Field], column: pa.Field, after: str | None, first: bool) -> list[pa.Field]:
    if first and after is not None:
        raise InvalidSchema("a column is first or after another one, not both", column=column.name, after=after)
    names = [one.name for one in columns]
    if after is not None and after not in names:
        raise unknown_column("no such column to come after", after, names)
    place = 0 if first else len(columns) if after is None else names.index(after) + 1
    return [*columns[:place], column, *columns[place:]]


def _with_columns(spec: TableSpec, columns: list[pa.Field]) -> TableSpec:
    return replace(spec, schema=pa.schema(columns))


def _with_history(spec: TableSpec, column: pa.Field, history: ColumnHistory) -> TableSpec:
    return replace(spec, columns={**spec.columns, field_id_of(column): history})
