"""What leads from one definition of a table to another, column by column, and inside nested ones part by part."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lakehouse.core.column import COMMENT, is_uuid_column, stored_name
from lakehouse.core.diff import ColumnChange
from lakehouse.core.spec import TableSpec, field_id_of
from lakehouse.core.widening import is_wider
from lakehouse.schema.layout import key_fields
from lakehouse.schema.nested import ELEMENT, KEY, VALUE

_UUID = pa.uuid()
_NULLS = {True: "may be null", False: "never null"}


def column_changes(before: TableSpec, after: TableSpec) -> list[ColumnChange]:
    """The changes of columns from one definition to another: those dropped first, then the others in their order.

    The last are those of the layout.

    A column is its field id, and a struct's field its name in files: one that was renamed is the same, and one of a
    dropped one's name is another. A column may have changed in several ways, each of which is one change. Where columns
    were moved, they are the fewest whose move makes one order of the other. Cost: O(n log n) of all columns and fields.

    >>> from lakehouse.schema import altered, define_table
    >>> from lakehouse.schema.changes import AddColumn, RenameColumn
    >>> spec = define_table("flights", "ts TIMESTAMP, delay INT, at STRUCT<zone: INT>", time="ts")
    >>> after = altered(
    ...     spec, [RenameColumn("delay", "late"), AddColumn("delay", "DOUBLE"), AddColumn(("at", "gate"), "STRING")]
    ... )
    >>> [str(change) for change in column_changes(spec, after)]
    ['column late renamed: delay to late', 'column at.gate added: string', 'column delay added: double']
    """
    return [*_between("", _columns(before), _columns(after)), *_of_layout(before, after)]


def _of_layout(before: TableSpec, after: TableSpec) -> Iterator[ColumnChange]:
    """What became of keys, cluster columns and time chunks."""
    if key_fields(before) != key_fields(after):
        yield ColumnChange("primary key", "", ", ".join(before.primary_key), ", ".join(after.primary_key))
    if before.cluster_by != after.cluster_by:
        yield ColumnChange("cluster by", "", _clustered(before), _clustered(after))
    if before.grain != after.grain:
        yield ColumnChange("grain", "", before.grain.value, after.grain.value)


def _clustered(spec: TableSpec) -> str:
    return ", ".join(f"{name} in {count} buckets" if count else name for name, count in spec.cluster_by.items())


@dataclass(frozen=True, slots=True)
class _Part:
    """A column, or a field of a struct."""

    name: str
    type: pa.DataType
    nullable: bool = True
    default: str = ""
    comment: str = ""


_Parts = Mapping[Hashable, _Part]
"""Columns or fields in their order, by what stays the same whatever they are called."""


def _columns(spec: TableSpec) -> _Parts:
    found: dict[Hashable, _Part] = {}
    for column in spec.schema:
        known = spec.history(column)
        default = "" if known.default_for_new is None else repr(known.default_for_new)
        kind = pa.uuid() if is_uuid_column(column) else column.type
        found[field_id_of(column)] = _Part(column.name, kind, column.nullable, default, known.comment or "")
    return found


def _fields(struct: pa.DataType) -> _Parts:
    noted = {stored_name(part): (part.metadata or {}).get(COMMENT, b"").decode() for part in struct}
    return {stored_name(part): _Part(part.name, part.type, comment=noted[stored_name(part)]) for part in struct}


def _between(above: str, old: _Parts, new: _Parts) -> Iterator[ColumnChange]:
    for key, part in old.items():
        if key not in new:
            yield ColumnChange("dropped", above + part.name, _said(part.type), "")
    moved = set(_moved([key for key in old if key in new], [key for key in new if key in old]))
    for key, part in new.items():
        path = above + part.name
        if key not in old:
            yield ColumnChange("added", path, "", _said(part.type))
            continue
        yield from _of_one(path, old[key], part)
        if key in moved:
            yield ColumnChange("moved", path, _place(old, key), _place(new, key))


def _of_one(path: str, old: _Part, new: _Part) -> Iterator[ColumnChange]:
    if old.name != new.name:
        yield ColumnChange("renamed", path, old.name, new.name)
    yield from _of_type(path, old.type, new.type)
    said = [
        ("nullability", _NULLS[old.nullable], _NULLS[new.nullable]),
        ("default", old.default, new.default),
        ("commented", old.comment, new.comment),
    ]
    yield from (ColumnChange(kind, path, one, other) for kind, one, other in said if one != other)


def _of_type(path: str, old: pa.DataType, new: pa.DataType) -> Iterator[ColumnChange]:
    """What became of a type, down to what is not nested."""
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        yield from _between(f"{path}.", _fields(old), _fields(new))
    elif pa.types.is_map(old) and pa.types.is_map(new):
        yield from _of_type(f"{path}.{KEY}", old.key_type, new.key_type)
        yield from _of_type(f"{path}.{VALUE}", old.item_type, new.item_type)
    elif pa.types.is_list(old) and pa.types.is_list(new):
        yield from _of_type(f"{path}.{ELEMENT}", old.value_type, new.value_type)
    elif old != new:
        is_widened = old == _UUID or is_wider(new, old)
        kind = "widened" if is_widened else "narrowed" if new == _UUID or is_wider(old, new) else "retyped"
        yield ColumnChange(kind, path, _said(old), _said(new))


def _said(kind: pa.DataType) -> str:
    return "uuid" if kind == _UUID else str(kind)


def _moved(before: list[Hashable], after: list[Hashable]) -> Iterator[Hashable]:
    """Those outside a longest run that has the same order in both (Schensted, Canad. J. Math. 13, 1961)."""
    place = {key: number for number, key in enumerate(before)}
    ends: list[int] = []
    """The least last place of a run, by the run's length."""
    last: list[Hashable] = []
    follows: dict[Hashable, Hashable | None] = {}
    for key in after:
        length = bisect_left(ends, place[key])
        follows[key] = last[length - 1] if length else None
        ends[length : length + 1] = [place[key]]
        last[length : length + 1] = [key]
    kept: set[Hashable] = set()
    one = last[-1] if last else None
    while one is not None:
        kept.add(one)
        one = follows[one]
    return (key for key in after if key not in kept)


def _place(parts: _Parts, key: Hashable) -> str:
    keys = list(parts)
    at = keys.index(key)
    return "first" if at == 0 else f"after {parts[keys[at - 1]].name}"
