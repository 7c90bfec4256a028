"""Changes of a table's columns, as values; `lakehouse.schema.alter` says what a definition becomes by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

Name = str | tuple[str, ...]
"""A column, or a part of one: ``("a", "b")`` is the field b of the struct a (`lakehouse.schema.nested`)."""


def path_of(name: Name) -> tuple[str, ...]:
    """A name as the path of a part."""
    return (name,) if isinstance(name, str) else tuple(name)


def shown(name: Name) -> str:
    """A name as people write it."""
    return ".".join(map(str, path_of(name)))


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A new column, which may be null: last, first, or after another one.

    Rows that are there get the value ``default``, rows that are written without it ``default_for_new``.
    """

    name: Name
    type: pa.DataType
    default: Any = None
    default_for_new: Any = None
    after: str | None = None
    first: bool = False
    comment: str = ""

    def __str__(self) -> str:
        return f"add column {shown(self.name)} {self.type}"


@dataclass(frozen=True, slots=True)
class DropColumn:
    """A column that goes; a later one of its name is another one."""

    name: Name

    def __str__(self) -> str:
        return f"drop column {shown(self.name)}"


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Another name for a column."""

    name: Name
    new: str

    def __str__(self) -> str:
        return f"rename column {shown(self.name)} to {self.new}"


@dataclass(frozen=True, slots=True)
class MoveColumn:
    """Another place for a column: first, or after another one."""

    name: Name
    after: str | None = None
    first: bool = False

    def __str__(self) -> str:
        return f"move column {shown(self.name)}"


@dataclass(frozen=True, slots=True)
class WidenColumn:
    """A type that holds every value of the column's own."""

    name: Name
    type: pa.DataType

    def __str__(self) -> str:
        return f"widen column {shown(self.name)} to {self.type}"


@dataclass(frozen=True, slots=True)
class MakeNullable:
    """Nulls in a column that took none."""

    name: Name

    def __str__(self) -> str:
        return f"make column {shown(self.name)} nullable"


@dataclass(frozen=True, slots=True)
class CommentColumn:
    """What people read about a column; none for an empty text."""

    name: Name
    comment: str

    def __str__(self) -> str:
        return f"comment on column {shown(self.name)}"


@dataclass(frozen=True, slots=True)
class SetDefault:
    """What rows that are written without a column have in it; None: it must be given."""

    name: Name
    value: Any = None

    def __str__(self) -> str:
        return f"set default of column {shown(self.name)}"


@dataclass(frozen=True, slots=True)
class SetClusterBy:
    """Other cluster columns, each with a number of hash buckets (0: none); for what is written from now on."""

    columns: Any

    def __str__(self) -> str:
        return f"cluster by {', '.join(self.columns) or 'none'}"


@dataclass(frozen=True, slots=True)
class SetPrimaryKey:
    """Another primary key; none for no columns. Whoever makes this change has looked at the rows."""

    columns: Any

    def __str__(self) -> str:
        return f"primary key {', '.join(self.columns) or 'none'}"


@dataclass(frozen=True, slots=True)
class SetGrain:
    """Other time chunks; for what is written from now on."""

    grain: str

    def __str__(self) -> str:
        return f"grain {self.grain}"


NamedChange = (
    AddColumn | DropColumn | RenameColumn | MoveColumn | WidenColumn | MakeNullable | CommentColumn | SetDefault
)
"""Changes of one column or a part of one, by its name."""
LayoutChange = SetClusterBy | SetPrimaryKey | SetGrain
"""Changes of how rows are laid out and found, which leave the columns as they are."""
SchemaChange = NamedChange | LayoutChange
