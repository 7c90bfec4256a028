"""How the files of a table hold its columns, whatever was altered since they were written.

A column has one name in files, for ever, and so has a field of a struct. No later column, or field of that struct, gets
that name again: a name in a file is who a column is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from lakehouse.core.kinds import is_uuid

STORED = b"lakehouse:stored"
"""Metadata of a struct's field: its name in files, if that is another one."""
DEFAULT = b"lakehouse:default"
"""Metadata of a struct's field: what structs have in it that were written before it was added, as JSON."""
COMMENT = b"comment"
UUID = b"lakehouse:uuid"
"""Metadata of a column of text whose values are UUIDs."""

Steps = tuple[tuple[int, pa.DataType | None], ...]
"""Types of a column in files, each from a schema number on."""


@dataclass(frozen=True, slots=True)
class ColumnHistory:
    """What became of a column since the table was created.

    ``stored`` is its name in files and in the catalog's statistics, which no renaming changes. ``steps`` are the types
    that it has in files, each from a schema number on, ascending; None where files lack it. Without steps every file
    has it with its current type. Rows of files without it have the value ``default``; rows that are written without it,
    ``default_for_new``. Of a column that held UUIDs and then any text, or the reverse by a restore, steps say UUID
    where files hold nothing else.
    """

    stored: str
    steps: Steps = ()
    default: Any = None
    default_for_new: Any = None
    comment: str = ""

    def type_in(self, number: int, current: pa.DataType) -> pa.DataType | None:
        """The column's type in files of a schema number; None if they lack it.

        >>> widened = ColumnHistory("delay", ((0, None), (2, pa.int32()), (5, pa.int64())))
        >>> [str(widened.type_in(number, pa.int64())) for number in (1, 4, 5)]
        ['None', 'int32', 'int64']
        """
        found: pa.DataType | None = stored_type(current)
        for first, kind in self.steps:
            if first <= number:
                found = kind
        return found

    def held_in(self, number: int, column: pa.Field) -> Held:
        """How files of a schema number hold the column.

        Text that may be none is not held by a column of UUIDs, which are text as well:

        >>> restored = ColumnHistory("id", ((0, pa.uuid()), (2, pa.string()), (5, pa.uuid())))
        >>> ids = pa.field("id", pa.string(), metadata={UUID: b"text"})
        >>> [restored.held_in(number, ids).is_plain for number in (1, 2, 5)]
        [True, False, True]
        """
        there, wanted = self.type_in(number, column.type), column.type
        if there is not None and is_uuid(there):
            there = pa.string()
        elif there == pa.string() and is_uuid_column(column) and self.has_uuid_steps:
            wanted = pa.uuid()
        return Held(column.name, self.stored, there, wanted, self.default)

    @property
    def has_uuid_steps(self) -> bool:
        """Whether steps tell UUIDs from other text."""
        return any(kind is not None and is_uuid(kind) for _, kind in self.steps)


class Held(NamedTuple):
    """A column of a table in some files: the one called ``stored``, of ``type``, or where that is None a value.

    ``is_lacked``: whether some of the files lack it, whose rows have the value as well.
    """

    name: str
    stored: str
    type: pa.DataType | None
    wanted: pa.DataType
    default: Any = None
    is_lacked: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the files hold it as it is."""
        is_plain = self.name == self.stored and self.type is not None and holds_plainly(self.type, self.wanted)
        return is_plain and not self.is_lacked


Layout = tuple[Held, ...]
"""A table's columns, in its order, as the files of one schema number hold them."""


def is_uuid_column(column: pa.Field) -> bool:
    """Whether a column of text holds UUIDs alone.

    >>> is_uuid_column(pa.field("id", pa.string(), metadata={UUID: b"text"}))
    True
    """
    return UUID in (column.metadata or {})


def stored_name(field: pa.Field) -> str:
    """The name of a struct's field in files."""
    held = (field.metadata or {}).get(STORED)
    return str(field.name) if held is None else held.decode()


def stored_type(kind: pa.DataType) -> pa.DataType:
    """A type as files have it: the fields of its structs under their names there, lists of fixed size as any lists.

    >>> renamed = pa.field("new", pa.int64(), metadata={STORED: b"old"})
    >>> str(stored_type(pa.list_(pa.struct([renamed]))))
    'list<item: struct<old: int64>>'
    """
    if not pa.types.is_nested(kind):
        return kind
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(stored_name(part), stored_type(part.type)) for part in kind])
    return with_parts(kind, stored_type)


def listed_type(kind: pa.DataType) -> pa.DataType:
    """A type with lists where it has lists of fixed size, which Parquet and the engines do not tell apart from others.

    >>> str(listed_type(pa.struct([("v", pa.list_(pa.float32(), 3))])))
    'struct<v: list<item: float>>'
    """
    if not has_fixed_size(kind):
        return kind
    if pa.types.is_struct(kind):
        return pa.struct([part.with_type(listed_type(part.type)) for part in kind])
    return with_parts(kind, listed_type)


def has_fixed_size(kind: pa.DataType) -> bool:
    """Whether a type is, or has inside, a list of fixed size.

    >>> has_fixed_size(pa.list_(pa.list_(pa.float32(), 3))), has_fixed_size(pa.list_(pa.float32()))
    (True, False)
    """
    if not pa.types.is_nested(kind):
        return False
    parts = (kind.field(index).type for index in range(kind.num_fields))
    return bool(pa.types.is_fixed_size_list(kind)) or any(map(has_fixed_size, parts))


def with_parts(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """A list or map with its parts' types changed; a list of fixed size becomes one of any."""
    if pa.types.is_map(kind):
        return pa.map_(change(kind.key_type), change(kind.item_type))
    return pa.list_(change(kind.value_type))


def holds_plainly(held: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a type in files is a table's type, name by name and in who its parts are; the size of lists aside."""
    if not pa.types.is_nested(wanted):
        return bool(held == wanted)
    return bool(held == listed_type(wanted)) and bool(stored_type(wanted) == held)
