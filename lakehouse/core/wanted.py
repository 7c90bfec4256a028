"""Values to search for in everything that holds rows or tells of them: bytes, texts, values and columns."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.core.interval import to_utc
from lakehouse.core.segment import BOUND_LENGTH
from lakehouse.errors import InvalidArgument

SHORT = 5
"""A shorter text or number is in any bytes by chance, so it is searched in values and in users' words only."""
_MOST = BOUND_LENGTH - 1
"""A longer text is searched by what it begins with, which is all that bounds hold of it."""
_LARGE = 1 << 32
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class Value:
    """A value to search for: as text everywhere, as a number or time in ``columns`` (None: in all).

    >>> Value.of(77.0)
    Value(text='77', number=Decimal('77.0'), moment=None, columns=None)
    """

    text: str
    number: Decimal | None = None
    moment: datetime | None = None
    columns: frozenset[str] | None = None

    @classmethod
    def of(cls, value: Any, columns: Collection[str] | None = None) -> Value:
        """A value as a column has it, or as text. Raises `InvalidArgument` for one that cannot be told from others."""
        named = None if columns is None else frozenset(columns)
        match value:
            case bool() | None | "" | b"":
                raise InvalidArgument("null, true, false and empty values are everywhere; name others", value=value)
            case int() | float() | Decimal():
                number = _number(str(value))
                if number is None:
                    raise InvalidArgument("no number is equal to this one; name others", value=value)
                return cls(_plain(number, str(value)), number, None, named)
            case datetime() | date():
                return cls(value.isoformat(), None, _moment(value), named)
            case str():
                number = _number(value) if _NUMBER.fullmatch(value) else None
                return cls(value[:_MOST], number, _read_moment(value), named)
            case _:
                raise InvalidArgument("values are texts, numbers, dates and times", type=type(value).__name__)

    @property
    def needles(self) -> tuple[bytes, ...]:
        """The bytes by which a file shows it, whatever the file's format; none where they would come by chance."""
        found = [self.text.encode()] if len(self.text) >= SHORT else []
        if found and not self.text.isascii():
            found.append(json.dumps(self.text)[1:-1].encode())
        return (*found, *(() if self.number is None else _packed(self.number)))

    def is_in_text(self, text: str) -> bool:
        """Whether a text that no user wrote names it: a number only if no letter or digit adjoins it."""
        if len(self.text) < SHORT:
            return self.number is None and text == self.text
        return self.is_in_words(text)

    def is_in_words(self, text: str) -> bool:
        """Whether a user's text names it: a number only if no letter or digit adjoins it."""
        if self.number is None:
            return self.text in text
        return re.search(rf"(?<!\w){re.escape(self.text)}(?!\w)", text) is not None

    def is_value(self, value: Any, column: str | None = None) -> bool:
        """Whether a value of a column is it, or holds it as text."""
        match value:
            case str():
                return value == self.text if self.number is not None else self.text in value
            case bytes():
                needle = self.text.encode()[:_MOST]
                # What is short, or a number, is inside of others by chance.
                return value == needle if self.number is not None or len(needle) < SHORT else needle in value
            case bool() | None:
                return False
            case float():
                return self._is_of(column) and self.number is not None and value in _floats(self.number)
            case int() | Decimal():
                return self._is_of(column) and self.number is not None and self.number == value
            case datetime() | date():
                return self._is_of(column) and self.moment is not None and _moment(value) == self.moment
            case _:
                return False

    def is_in_column(self, values: pa.Array | pa.ChunkedArray, column: str | None = None) -> bool:
        """Whether a column's values, those inside nested ones and all of its dictionaries, have it."""
        parts = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        return any(self._is_in_part(part, column) for part in parts)

    def _is_in_part(self, part: pa.Array, column: str | None) -> bool:
        kind = part.type
        if pa.types.is_dictionary(kind):
            return self._is_in_part(part.dictionary, column)
        if pa.types.is_struct(kind):
            return any(self._is_in_part(one, column) for one in part.flatten())
        if pa.types.is_map(kind):
            return self._is_in_part(part.keys, column) or self._is_in_part(part.items, column)
        if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
            return self._is_in_part(part.flatten(), column)
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            if self.number is not None:
                return _any(pc.equal(part, pa.scalar(self.text, kind)))
            return _any(pc.match_substring(part, self.text))
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
            return any(self.is_value(one) for one in part.to_pylist())
        scalar = self._scalar(kind) if self._is_of(column) else None
        return scalar is not None and _any(pc.equal(part, scalar))

    def _scalar(self, kind: pa.DataType) -> pa.Scalar | None:
        """It as a value of a type that is not text; None where that has no such value."""
        try:
            if pa.types.is_integer(kind) and self.number is not None:
                return pa.scalar(int(self.number), kind) if self.number == int(self.number) else None
            if pa.types.is_floating(kind) and self.number is not None:
                return pa.scalar(float(self.number), pa.float64()).cast(kind, safe=False)
            if pa.types.is_decimal(kind) and self.number is not None:
                return pa.scalar(self.number, kind)
            if pa.types.is_timestamp(kind) and self.moment is not None:
                return pa.scalar(self.moment if kind.tz else self.moment.replace(tzinfo=None), kind)
            if pa.types.is_date(kind) and self.moment is not None and _moment(self.moment.date()) == self.moment:
                return pa.scalar(self.moment.date(), kind)
        except (pa.ArrowException, OverflowError, ValueError):
            return None
        return None

    def _is_of(self, column: str | None) -> bool:
        return self.columns is None or column is None or column in self.columns


def needles_of(values: Sequence[Value]) -> list[tuple[int, bytes]]:
    """The bytes of some values, each with the value's place."""
    return [(place, needle) for place, one in enumerate(values) for needle in one.needles]


def _any(found: pa.BooleanArray) -> bool:
    return bool(pc.any(found).as_py())


def _plain(number: Decimal, text: str) -> str:
    """A number as people write it: without a point if it is whole."""
    return str(int(number)) if number == number.to_integral_value() else text


def _floats(number: Decimal) -> set[float]:
    """A number as columns of both sizes of floats have it."""
    found = {float(number)}
    with suppress(OverflowError):
        found |= set(struct.unpack("<f", struct.pack("<f", float(number))))
    return found


def _packed(number: Decimal) -> list[bytes]:
    """A number's bytes in files that do not pack it further, where they are none that come by chance."""
    if number != number.to_integral_value():
        packed = struct.pack("<d", float(number))
        return [packed] if any(packed[:4]) else []
    if abs(number) < _LARGE:
        return []
    whole = int(number)
    sizes = [size for size in (6, 8) if -(1 << (8 * size - 1)) <= whole < 1 << (8 * size - 1)]
    return [whole.to_bytes(size, "big", signed=True) for size in sizes] + [
        whole.to_bytes(8, "little", signed=True) for size in sizes if size == 8
    ]


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _moment(value: date) -> datetime:
    if isinstance(value, datetime):
        return to_utc(value)
    return datetime(value.year, value.month, value.day, tzinfo=UTC)


def _read_moment(text: str) -> datetime | None:
    if not _INSTANT.match(text):
        return None
    try:
        return _moment(datetime.fromisoformat(text))
    except ValueError:
        return None
