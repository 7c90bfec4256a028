"""Rows brought to a table's columns, or refused with the column's name. Both engines follow `stores`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.arguments import nearest
from lakehouse.core.column import is_uuid_column
from lakehouse.core.kinds import is_uuid
from lakehouse.engine.castable import castable
from lakehouse.engine.casts import how_to_cast
from lakehouse.engine.fields import fitted, fitted_type, has_other_fields
from lakehouse.engine.validate import GIVEN, Origin, first_refused, refuse_no_uuids, refuse_unreadable
from lakehouse.errors import InvalidInput, InvalidRows


def conform(
    rows: pa.Table | pa.RecordBatch, schema: pa.Schema, origin: Origin = GIVEN, fills: Fills | None = None
) -> pa.Table:
    """Rows with exactly a table's columns, in its order and types. Columns of equal type are not copied.

    ``fills``: values of columns that rows may lack.

    Raises `InvalidInput` for missing and unknown columns, types that a column cannot store, values that it cannot
    hold or that nobody could read again, and nulls where there can be none, naming the row.

    >>> schema = pa.schema([("client", pa.int64()), ("value", pa.float64())])
    >>> conform(pa.table({"value": [0.5], "client": pa.array([1], pa.int32())}), schema).to_pylist()
    [{'client': 1, 'value': 0.5}]
    """
    if rows.schema.names != schema.names:
        rows = _filled(rows, schema, fills or Fills())
    uneven = [name for name in schema.names if len(rows.column(name)) != rows.num_rows]
    if uneven:
        raise InvalidRows("columns of one table differ in length; make it anew", column=",".join(uneven))
    is_lenient = fills is not None and fills.is_lenient
    columns = [_column(rows.column(field.name), field, origin, is_lenient) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _filled(rows: pa.Table | pa.RecordBatch, schema: pa.Schema, fills: Fills) -> pa.Table | pa.RecordBatch:
    """Rows with all columns that they may lack, and without those that they may have beside."""
    kept, lacking = fills.of(rows.schema.names, schema)
    rows = rows.select(kept)
    for name, value in lacking.items():
        rows = rows.append_column(name, pa.repeat(pa.scalar(value, schema.field(name).type), rows.num_rows))
    return rows


@dataclass(frozen=True, slots=True)
class Fills:
    """What becomes of columns that rows lack, or have beside the table's.

    ``defaults``: values by column. ``is_lenient``: what has none is null, and other columns are left out; so with the
    fields of structs.
    """

    defaults: Mapping[str, Any] = field(default_factory=dict)
    is_lenient: bool = False

    def of(self, found: list[str], schema: pa.Schema) -> tuple[list[str], dict[str, Any]]:
        """Which of the columns found are taken, and the values of others by name. Raises `InvalidInput`."""
        expected = schema.names
        kept = [name for name in found if name in expected] if self.is_lenient else found
        lacking = {name: self.defaults.get(name) for name in expected if name not in found}
        if not self.is_lenient:
            lacking = {name: value for name, value in lacking.items() if name in self.defaults}
        check_names([*kept, *lacking], expected)
        return kept, lacking


def check_names(found: list[str], expected: list[str]) -> None:
    """Raise `InvalidInput` unless both have the same names, each once, in any order."""
    check_once(found)
    check_there(expected, found)
    unknown = [name for name in found if name not in expected]
    if unknown:
        raise InvalidRows(
            "unknown column; drop it or choose one of the table's",
            column=",".join(unknown),
            **nearest(unknown[0], expected),
            columns=",".join(expected),
        )


def check_once(found: list[str]) -> None:
    """Raise `InvalidInput` if a name is there twice."""
    if len(set(found)) < len(found):
        twice = sorted({name for name in found if found.count(name) > 1})
        raise InvalidRows("a column is there twice; drop or rename one", column=",".join(twice))


def check_there(expected: Collection[str], found: Collection[str]) -> None:
    """Raise `InvalidInput` unless all names are found."""
    missing = [name for name in expected if name not in found]
    if missing:
        other = [name for name in found if name not in expected]
        raise InvalidRows(
            "missing column; add it, with nulls if need be",
            column=",".join(missing),
            **nearest(missing[0], other),
            found=",".join(found),
        )


def _column(
    values: pa.Array | pa.ChunkedArray, field: pa.Field, origin: Origin, is_lenient: bool = False
) -> pa.Array | pa.ChunkedArray:
    is_other = is_lenient and pa.types.is_nested(field.type) and has_other_fields(values.type, field.type)
    found = fitted_type(values.type, field.type) if is_other else values.type
    if found != field.type and not stores(found, field.type):
        raise cannot_store(field, values.type)
    refuse_unreadable(values, field.name, origin)
    given = values
    if is_other:
        values = fitted(values, field.type)
    if values.type != field.type:
        values = _cast(values, field, origin)
    if values is not given and pa.types.is_nested(field.type):  # two keys of a map may have become one
        refuse_unreadable(values, field.name, origin)
    if is_uuid_column(field):
        refuse_no_uuids(values, field.name, origin)
    if not field.nullable and values.null_count:
        raise InvalidRows(
            "null in a column that takes none; fill or drop such rows",
            column=field.name,
            count=values.null_count,
            **origin.first(pc.is_null(values)),
        )
    return values


def _cast(values: pa.Array | pa.ChunkedArray, field: pa.Field, origin: Origin) -> pa.Array | pa.ChunkedArray:
    try:
        cast = _as_type(values, field.type)
    except (pa.ArrowException, NotImplementedError) as error:
        raise InvalidRows(
            "the column cannot hold a value; correct it or cast the column first",
            column=field.name,
            type=field.type,
            **origin.facts(first_refused(values, lambda some: _is_refused(some, field.type))),
            cause=str(error)[:200],
        ) from error
    if pa.types.is_float32(field.type) and pa.types.is_floating(values.type):
        became_infinite = pc.and_(pc.is_inf(cast), pc.is_finite(values))
        if pc.any(became_infinite).as_py():
            raise InvalidRows(
                "the column cannot hold a value: too large",
                column=field.name,
                type=field.type,
                **origin.first(became_infinite),
            )
    return cast


def _as_type(values: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if pa.types.is_decimal(kind) and pa.types.is_integer(values.type):
        values = values.cast(pa.decimal256(76, kind.scale))  # Arrow wants room for any integer
    if isinstance(values, pa.ChunkedArray):
        parts = [part.cast(kind) for chunk in values.chunks for part in castable(chunk)]
        return pa.chunked_array(parts, kind)
    return pa.concat_arrays([part.cast(kind) for part in castable(values)])


def _is_refused(values: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> bool:
    try:
        _as_type(values, kind)
    except (pa.ArrowException, NotImplementedError):
        return True
    return False


def cannot_store(field: pa.Field, found: object) -> InvalidInput:
    """The error for a column whose type a table's column does not store."""
    return InvalidRows(
        f"wrong type of column; cast it first{how_to_cast(field.name, field.type, found)}",
        column=field.name,
        expected=field.type,
        found=found,
    )


def stores(found: pa.DataType, column: pa.DataType) -> bool:
    """Whether a column stores values of another type, each of which it can hold (that is checked value by value).

    Numbers go into numbers (floats and decimals not into each other), dates and naive times into timestamps (as UTC),
    and nested types part by part. Nothing is made from text or into text.

    >>> stores(pa.int64(), pa.int8()), stores(pa.string(), pa.int64()), stores(pa.date32(), pa.timestamp("us", "UTC"))
    (True, False, True)
    """
    if found == column or pa.types.is_null(found):
        return True
    if pa.types.is_dictionary(found):
        return stores(found.value_type, column)
    if pa.types.is_nested(column):
        return _stores_nested(found, column)
    if pa.types.is_timestamp(column) and pa.types.is_timestamp(found):
        return column.tz is not None or found.tz is None
    return any(of(column) and any(from_(found) for from_ in sources) for of, sources in _SOURCES)


def _is_text(kind: pa.DataType) -> bool:
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return bool(is_text or is_uuid(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


_SOURCES: tuple[tuple[Callable[[Any], bool], tuple[Callable[[Any], bool], ...]], ...] = (
    (pa.types.is_integer, (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)),
    (pa.types.is_floating, (pa.types.is_integer, pa.types.is_floating)),
    (pa.types.is_decimal, (pa.types.is_integer, pa.types.is_decimal)),
    (pa.types.is_timestamp, (pa.types.is_date,)),
    (pa.types.is_date, (pa.types.is_date,)),
    (_is_text, (_is_text,)),
    (_is_bytes, (_is_bytes,)),
)
"""By kind of column, the kinds of values that it stores."""


def _stores_nested(found: pa.DataType, column: pa.DataType) -> bool:
    if pa.types.is_map(column):
        return (
            pa.types.is_map(found)
            and stores(found.key_type, column.key_type)
            and stores(found.item_type, column.item_type)
        )
    if pa.types.is_struct(column):
        if not pa.types.is_struct(found) or found.num_fields != column.num_fields:
            return False
        return all(
            found.field(index).name == column.field(index).name
            and stores(found.field(index).type, column.field(index).type)
            for index in range(column.num_fields)
        )
    is_list = hasattr(found, "value_type") and not pa.types.is_map(found) and not pa.types.is_run_end_encoded(found)
    return is_list and stores(found.value_type, column.value_type)
