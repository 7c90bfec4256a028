"""Parts of a filter as SQL: columns and values that come from expressions of other libraries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakehouse.arguments import refuse_surrogates
from lakehouse.errors import InvalidPredicate
from lakehouse.predicate.literals import quoted_text
from lakehouse.predicate.written import no_column

IN_SQL = "write the filter in SQL, or filter what `to_arrow` or `to_polars(lazy=True)` gives"
"""What to do about an expression that cannot be translated."""


def column(name: str, schema: pa.Schema) -> str:
    """A column of the table by its exact name. Raises `UnknownColumn`."""
    if name not in schema.names:
        raise no_column(name, schema.names)
    if "`" in name:
        raise InvalidPredicate("a filter cannot name this column: quotes are taken for code", column=name)
    return f"`{name}`"


def is_float(name: str, schema: pa.Schema) -> bool:
    """Whether a column may hold NaN."""
    return bool(pa.types.is_floating(schema.field(name).type))


def value(given: Any) -> str:
    r"""A value of Python as a literal. Raises `InvalidPredicate` for null, NaN and types without one.

    >>> value(1.5), value("it's"), value(datetime(2013, 1, 5))
    ("CAST('1.5' AS DOUBLE)", "'it\\'s'", "'2013-01-05 00:00:00'")
    """
    match given:
        case None:
            raise InvalidPredicate("nothing equals null; ask with is_null()")
        case bool():
            return str(given).upper()
        case int():
            return str(given)
        case float() if math.isnan(given):
            raise InvalidPredicate("a filter compares with numbers; ask for NaN with is_nan()")
        case float():
            return f"CAST('{given!r}' AS DOUBLE)"
        case Decimal() if given.is_finite():
            return f"{given:f}"
        case str():
            refuse_surrogates(given, "the filter")
            if "\0" in given:
                raise InvalidPredicate("the filter holds a null character, which no text has")
            return quoted_text(given)
        case bytes():
            return f"X'{given.hex()}'"
        case datetime():
            return f"'{given.isoformat(' ')}'"
        case date():
            return f"DATE '{given.isoformat()}'"
    raise InvalidPredicate(f"a filter has no such value; {IN_SQL}", type=type(given).__name__)


def among(name: str, values: Sequence[Any]) -> str | None:
    """``name IN (...)``, null where the column is; None for no values."""
    return f"({name} IN ({', '.join(map(value, values))}))" if values else None


def nan_or_null(name: str, *, is_floating: bool) -> str:
    """Whether a column is NaN, null where it is null: SQL's `isnan` is false there."""
    return f"(isnan({name}) OR ({name} <> {name}))" if is_floating else f"({name} <> {name})"
