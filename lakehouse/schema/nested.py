"""Changes inside structs, lists and maps: what a column's type becomes.

A path names a part: fields of structs by their names, what a list holds as ``element``, a map's parts as ``key`` and
``value``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from lakehouse.core.column import COMMENT, DEFAULT, STORED, stored_name, with_parts
from lakehouse.core.kinds import is_uuid
from lakehouse.core.widening import is_wider
from lakehouse.errors import InvalidSchema, UnknownColumn
from lakehouse.schema.changes import AddColumn, WidenColumn, shown
from lakehouse.schema.json_values import decode_value, encode_value
from lakehouse.schema.names import check_column_name, check_distinct
from lakehouse.schema.types import normal_type
from lakehouse.schema.values import typed_value

Path = Sequence[str]
ELEMENT, KEY, VALUE = "element", "key", "value"


def type_at(kind: pa.DataType, path: Path) -> pa.DataType:
    """The type of a part. Raises `UnknownColumn`.

    >>> str(type_at(pa.list_(pa.struct([("p", pa.int8())])), ("element", "p")))
    'int8'
    """
    for place, step in enumerate(path):
        if pa.types.is_struct(kind):
            kind = _field(kind, step, path[: place + 1]).type
        elif pa.types.is_map(kind) and step in (KEY, VALUE):
            kind = kind.key_type if step == KEY else kind.item_type
        elif pa.types.is_list(kind) and step == ELEMENT:
            kind = kind.value_type
        else:
            raise _unknown(kind, path[: place + 1])
    return kind


def changed_at(kind: pa.DataType, path: Path, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """A type with that of a part changed."""
    if not path:
        return change(kind)
    type_at(kind, path[:1])
    if pa.types.is_struct(kind):
        return pa.struct(
            [one.with_type(changed_at(one.type, path[1:], change)) if one.name == path[0] else one for one in kind]
        )
    if pa.types.is_map(kind):
        parts = {KEY: kind.key_type, VALUE: kind.item_type}
        parts[path[0]] = changed_at(parts[path[0]], path[1:], change)
        return pa.map_(parts[KEY], parts[VALUE])
    return with_parts(kind, lambda part: changed_at(part, path[1:], change))


def with_field(
    struct: pa.DataType, name: str, kind: pa.DataType, taken: Iterable[str], default: object = None, comment: str = ""
) -> pa.DataType:
    """A struct with one more field, last; ``taken`` are names that fields of it ever had in files."""
    _require_struct(struct, name)
    check_column_name(name)
    check_distinct([*(part.name for part in struct), name])
    if default is not None and pa.types.is_nested(kind):
        raise InvalidSchema("a nested field has no default but null", column=name)
    value = typed_value(default, pa.field(name, kind))
    metadata = {} if value is None else {DEFAULT: json.dumps(encode_value(value)).encode()}
    if comment:
        metadata[COMMENT] = comment.encode()
    used = {one.casefold() for one in taken}
    if name.casefold() in used:
        number = len(used) + 1
        while f"_{number}_{name}".casefold() in used:
            number += 1
        metadata[STORED] = f"_{number}_{name}".encode()
    return pa.struct([*struct, pa.field(name, kind, metadata=metadata or None)])


def without_field(struct: pa.DataType, name: str) -> pa.DataType:
    """A struct without a field."""
    _require_struct(struct, name)
    _field(struct, name, (name,))
    if struct.num_fields == 1:
        raise InvalidSchema("a struct keeps one field at least; drop the column", column=name)
    return pa.struct([part for part in struct if part.name != name])


def renamed_field(struct: pa.DataType, name: str, new: str) -> pa.DataType:
    """A struct with another name for a field."""
    _require_struct(struct, name)
    field = _field(struct, name, (name,))
    check_column_name(new)
    check_distinct([new if part.name == name else part.name for part in struct])
    metadata = {key: value for key, value in (field.metadata or {}).items() if key != STORED}
    if stored_name(field) != new:
        metadata[STORED] = stored_name(field).encode()
    renamed = pa.field(new, field.type, metadata=metadata or None)
    return pa.struct([renamed if part.name == name else part for part in struct])


def commented_field(struct: pa.DataType, name: str, comment: str) -> pa.DataType:
    """A struct with a comment on a field; none for an empty text."""
    _require_struct(struct, name)
    field = _field(struct, name, (name,))
    metadata = {key: value for key, value in (field.metadata or {}).items() if key != COMMENT}
    if comment:
        metadata[COMMENT] = comment.encode()
    noted = pa.field(field.name, field.type, metadata=metadata or None)
    return pa.struct([noted if part.name == name else part for part in struct])


def merging_parts(path: Path, held: pa.DataType, found: pa.DataType) -> Iterator[AddColumn | WidenColumn]:
    """The changes by which a part of a column, and what is in it, holds values of another type.

    >>> held, found = pa.struct([("x", pa.int8())]), pa.struct([("x", pa.int64()), ("y", pa.string())])
    >>> [str(change) for change in merging_parts(("legs",), pa.list_(held), pa.list_(found))]
    ['widen column legs.element.x to int64', 'add column legs.element.y string']
    """
    if pa.types.is_struct(held):
        known = {part.name: part.type for part in held}
        for part in found if pa.types.is_struct(found) else ():
            inside = (*path, part.name)
            if part.name in known:
                yield from merging_parts(inside, known[part.name], part.type)
            elif not pa.types.is_null(part.type):
                kind = normal_type(part.type, shown(inside))
                yield AddColumn(inside, pa.string() if is_uuid(kind) else kind)
    elif pa.types.is_map(held):
        if pa.types.is_map(found):
            yield from merging_parts((*path, KEY), held.key_type, found.key_type)
            yield from merging_parts((*path, VALUE), held.item_type, found.item_type)
    elif pa.types.is_list(held):
        if hasattr(found, "value_type"):
            yield from merging_parts((*path, ELEMENT), held.value_type, found.value_type)
    elif is_wider(found, held):
        yield WidenColumn(tuple(path), found)


def names_in_files(kinds: Iterable[pa.DataType | None], path: Path) -> set[str]:
    """Names that fields of a struct had in files, of all types that the column had there; a path of such names."""
    found: set[str] = set()
    for kind in kinds:
        try:
            struct = None if kind is None else type_at(kind, path)
        except UnknownColumn:
            continue
        if struct is not None and pa.types.is_struct(struct):
            found.update(part.name for part in struct)
    return found


def is_in_key(kind: pa.DataType, path: Path) -> bool:
    """Whether a part belongs to the key of a map.

    >>> is_in_key(pa.map_(pa.struct([("x", pa.int8())]), pa.int8()), ("key", "x"))
    True
    """
    return any(step == KEY and pa.types.is_map(type_at(kind, path[:place])) for place, step in enumerate(path))


def stored_path(kind: pa.DataType, path: Path) -> tuple[str, ...]:
    """A path by the names that fields have in files."""
    found = []
    for step in path:
        if pa.types.is_struct(kind):
            field = _field(kind, step, path)
            found.append(stored_name(field))
            kind = field.type
        else:
            found.append(step)
            kind = type_at(kind, (step,))
    return tuple(found)


def default_of(field: pa.Field) -> Any:
    """What structs have in a field that were written before it was added."""
    held = (field.metadata or {}).get(DEFAULT)
    return None if held is None else decode_value(json.loads(held))


def _require_struct(kind: pa.DataType, name: str) -> None:
    if not pa.types.is_struct(kind):
        raise InvalidSchema("only structs have fields to add, drop or rename", column=name, type=kind)


def _field(struct: pa.DataType, name: str, path: Path) -> pa.Field:
    for part in struct:
        if part.name == name:
            return part
    raise _unknown(struct, path)


def _unknown(kind: pa.DataType, path: Path) -> UnknownColumn:
    return UnknownColumn("no such part of the column", path=".".join(path), type=str(kind)[:200])
