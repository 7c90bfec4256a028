"""A table whose columns change, in plain Python: what every version of it shows, by rows in a list.

It knows columns by keys of its own, never by names in files, and shares no code with the library.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

_EPOCH = datetime(2013, 1, 5, tzinfo=UTC)
_WIDER: dict[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.int8(): (pa.int16(), pa.int64(), pa.decimal128(6, 2)),
    pa.int16(): (pa.int32(), pa.decimal128(9, 1)),
    pa.int32(): (pa.int64(),),
    pa.float32(): (pa.float64(),),
    pa.decimal128(6, 2): (pa.decimal128(12, 3),),
    pa.date32(): (pa.timestamp("us", "UTC"), pa.timestamp("us")),
}
_TYPES = (pa.int8(), pa.int16(), pa.int32(), pa.float32(), pa.decimal128(6, 2), pa.date32(), pa.string(), pa.bool_())
_NAMES = ("a", "b", "c", "Größe", "with blank", 'qu"x'.replace('"', ""), "file_index", "key")


@dataclass(frozen=True)
class Column:
    """A column: who it is, what it is called, its type, and what rows without it have."""

    key: int
    name: str
    type: pa.DataType
    default: Any = None
    for_new: Any = None


@dataclass
class Altered:
    """A table under random changes, as it has to be. Rows are values by column key; ``id`` and the time stand apart."""

    rng: random.Random
    columns: list[Column] = field(default_factory=list)
    rows: dict[int, dict[int, Any]] = field(default_factory=dict)
    versions: dict[int, tuple[list[Column], dict[int, dict[int, Any]]]] = field(default_factory=dict)
    keys: int = 0
    ids: int = 0

    def note(self, version: int) -> None:
        """Remember what the table is at a version."""
        self.versions[version] = list(self.columns), copy.deepcopy(self.rows)

    def seen(self, version: int | None = None, *, current: bool = False) -> list[dict[str, Any]]:
        """The rows of a version (None: now) by name, ordered by id, with its own columns or those of now."""
        columns, rows = (self.columns, self.rows) if version is None else self.versions[version]
        shown, known = self.columns if current else columns, {one.key for one in columns}

        def value(row: dict[int, Any], one: Column) -> Any:
            return as_type(row[one.key] if one.key in row and one.key in known else one.default, one.type)

        return [
            {"at": _EPOCH + timedelta(hours=number), "id": number} | {one.name: value(row, one) for one in shown}
            for number, row in sorted(rows.items())
        ]

    def narrows(self, version: int) -> bool:
        """Whether a column had a type at a version that its type of now does not hold, as after a restore."""
        then = {one.key: one.type for one in self.versions[version][0]}
        return any(one.key in then and one.type not in _held_by(then[one.key]) for one in self.columns)

    def free_name(self) -> str | None:
        """A name that no column has."""
        taken = {one.name.casefold() for one in self.columns}
        free = [name for name in _NAMES if name.casefold() not in taken]
        return self.rng.choice(free) if free else None

    def value(self, kind: pa.DataType) -> Any:
        """A value of a type, sometimes null."""
        return None if self.rng.random() < 0.2 else as_type(self.rng.randrange(-9, 99), kind)

    def append(self, count: int) -> pa.Table:
        """Rows to append, some without columns that have a default for new ones; they are in the table then."""
        lacking = {one.key for one in self.columns if one.for_new is not None and self.rng.random() < 0.5}
        made = []
        for _ in range(count):
            self.ids += 1
            row = {one.key: one.for_new if one.key in lacking else self.value(one.type) for one in self.columns}
            self.rows[self.ids] = row
            made.append(
                {"at": _EPOCH + timedelta(hours=self.ids), "id": self.ids}
                | {one.name: row[one.key] for one in self.columns if one.key not in lacking}
            )
        fields = [("at", pa.timestamp("us", "UTC")), ("id", pa.int64())]
        fields += [(one.name, one.type) for one in self.columns if one.key not in lacking]
        return pa.Table.from_pylist(made, schema=pa.schema(fields))

    def delete(self, wanted: Callable[[int], bool]) -> None:
        """Remove rows by id."""
        self.rows = {number: row for number, row in self.rows.items() if not wanted(number)}

    def add(self) -> tuple[Column, int] | None:
        """A new column and its place; None if no name is free."""
        name = self.free_name()
        if name is None:
            return None
        kind = self.rng.choice(_TYPES)
        self.keys += 1
        default = self.value(kind)
        column = Column(self.keys, name, kind, default, default if self.rng.random() < 0.5 else self.value(kind))
        place = self.rng.randint(0, len(self.columns))
        self.columns.insert(place, column)
        return column, place

    def drop(self) -> Column | None:
        """Drop a column; None if there is none."""
        return self.columns.pop(self.rng.randrange(len(self.columns))) if self.columns else None

    def rename(self) -> tuple[str, str] | None:
        """The old and new name of a column; None if there is none."""
        name = self.free_name()
        if name is None or not self.columns:
            return None
        place = self.rng.randrange(len(self.columns))
        old = self.columns[place].name
        self.columns[place] = replace(self.columns[place], name=name)
        return old, name

    def widen(self) -> Column | None:
        """A column with its wider type; None if none can be."""
        places = [place for place, one in enumerate(self.columns) if one.type in _WIDER]
        if not places:
            return None
        place = self.rng.choice(places)
        held = self.columns[place]
        kind = self.rng.choice(_WIDER[held.type])
        wider = replace(held, type=kind, default=as_type(held.default, kind), for_new=as_type(held.for_new, kind))
        self.columns[place] = wider
        return wider

    def restore(self) -> int:
        """Restore a version, which is returned."""
        version = self.rng.choice(list(self.versions))
        columns, rows = self.versions[version]
        self.columns, self.rows = list(columns), copy.deepcopy(rows)
        return version


def _held_by(kind: pa.DataType) -> set[pa.DataType]:
    """A type and all that it can become."""
    found = {kind}
    for one in _WIDER.get(kind, ()):
        found |= _held_by(one)
    return found


def as_type(value: Any, kind: pa.DataType) -> Any:
    """A number, or a value of a narrower type, as a value of a type; None stays None."""
    if value is None:
        return None
    if pa.types.is_boolean(kind):
        return bool(value)
    if pa.types.is_string(kind):
        return str(value)
    if pa.types.is_date(kind):
        if isinstance(value, datetime):
            return value.date()
        return value if isinstance(value, date) else date(2013, 1, 5) + timedelta(days=value)
    if pa.types.is_timestamp(kind):
        if isinstance(value, datetime):
            return value
        day = value if isinstance(value, date) else date(2013, 1, 5) + timedelta(days=value)
        return datetime(day.year, day.month, day.day, tzinfo=UTC if kind.tz else None)
    return pa.scalar(value).cast(kind).as_py() if not pa.types.is_decimal(kind) else _decimal(value, kind)


def _decimal(value: Any, kind: pa.DataType) -> Any:
    return Decimal(value).quantize(Decimal(1).scaleb(-kind.scale))
