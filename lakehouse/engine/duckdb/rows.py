"""Rows as Python has them, in dicts, tuples and dataclasses, turned into Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from lakehouse.engine.conform import stores
from lakehouse.errors import InvalidRows

_BATCH_ROWS = 8192
"""Rows of an iterator that are turned at a time."""


def is_python_rows(rows: Any) -> bool:
    """Whether something is a collection of rows, or columns by name.

    >>> is_python_rows([(1, 2)]), is_python_rows({"client": [1]}), is_python_rows("trips.csv")
    (True, True, False)
    """
    return isinstance(rows, Iterable) and not isinstance(rows, str | bytes | bytearray | memoryview)


def from_python(rows: Any, schema: pa.Schema) -> pa.Table | pa.RecordBatchReader:
    """Rows, or columns by name, as Arrow; those of an iterator are read as they are written, in bounded memory.

    A row is a dict, a dataclass, a named tuple, or a tuple or list with a value for each of the columns of ``schema``
    in their order. Rows may lack a column that others have: it is null there. Types are those of the values where a
    column stores them, or else the column's. Raises `InvalidRows`, naming the row.

    >>> schema = pa.schema([("client", pa.int64()), ("value", pa.float64())])
    >>> from_python([{"client": 1, "value": 2}, (3, 0.5)], schema).to_pylist()
    [{'client': 1, 'value': 2.0}, {'client': 3, 'value': 0.5}]
    """
    if isinstance(rows, Mapping):
        return _from_columns(rows, schema)
    if not isinstance(rows, Iterator):
        return _from_rows(list(rows), schema)
    first = _from_rows(list(islice(rows, _BATCH_ROWS)), schema)
    # Of a column whose first values are all null, or whole, others may follow.
    columns = {field.name: field.type for field in schema}
    kinds = [
        (name, columns.get(name, kind), kind) for name, kind in zip(first.schema.names, first.schema.types, strict=True)
    ]
    first = _fitted(
        first, pa.schema([(name, column if stores(kind, column) else kind) for name, column, kind in kinds])
    )
    return pa.RecordBatchReader.from_batches(first.schema, _batches(first, rows, schema))


def _batches(first: pa.Table, rows: Iterator[Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    yield from first.to_batches()
    before = first.num_rows
    while taken := list(islice(rows, _BATCH_ROWS)):
        yield from _fitted(_from_rows(taken, schema, before), first.schema, before).to_batches()
        before += len(taken)


def _fitted(rows: pa.Table, wanted: pa.Schema, before: int = 0) -> pa.Table:
    """Rows of an iterator with the columns of its first ones."""
    other = [name for name in rows.schema.names if name not in wanted.names]
    if other:
        raise InvalidRows(
            "a row has a column that the first rows do not have; give all rows the same columns, or give a list",
            column=",".join(other),
            rows_before=before,
        )
    columns = []
    for field in wanted:
        try:
            is_there = field.name in rows.schema.names
            columns.append(
                rows.column(field.name).cast(field.type) if is_there else pa.nulls(rows.num_rows, field.type)
            )
        except (pa.ArrowException, NotImplementedError) as error:
            raise InvalidRows(
                "a column's values change their type; convert them first",
                column=field.name,
                rows_before=before,
                cause=str(error)[:200],
            ) from error
    return pa.Table.from_arrays(columns, schema=wanted)


def _from_rows(rows: Sequence[Any], schema: pa.Schema, before: int = 0) -> pa.Table:
    named = [_named(row, schema.names, before + place) for place, row in enumerate(rows)]
    if not named:
        return schema.empty_table()
    names = list(dict.fromkeys(chain.from_iterable(named)))
    return _from_columns({name: [row.get(name) for row in named] for name in names}, schema)


def _named(row: Any, names: Sequence[str], place: int) -> Mapping[str, Any]:
    """A row's values by column."""
    if isinstance(row, Mapping):
        return row
    if is_dataclass(row) and not isinstance(row, type):
        return {field.name: getattr(row, field.name) for field in fields(row)}
    own = getattr(row, "_fields", None) or getattr(row, "__fields__", None)  # a named tuple, or a row of Spark's
    if isinstance(row, tuple | list):
        columns = own if own is not None else names
        if len(columns) != len(row):
            raise InvalidRows(
                "a row has not as many values as there are columns; add or drop some, or give dicts",
                row=place,
                found=len(row),
                columns=",".join(names),
            )
        return dict(zip(columns, row, strict=True))
    raise InvalidRows(
        "not a row; give a dict, a dataclass, or a tuple with the columns' values in their order",
        row=place,
        found=type(row).__name__,
    )


def _from_columns(columns: Mapping[Any, Any], schema: pa.Schema) -> pa.Table:
    for name, values in columns.items():
        if not isinstance(name, str):
            raise InvalidRows("a column has a name of text", found=repr(name)[:100])
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise InvalidRows(
                "a dict is columns of values; give one row as a list of it, as in [row]",
                column=name,
                found=type(values).__name__,
            )
    arrays = {
        name: _array(name, values, schema.field(name).type if name in schema.names else None)
        for name, values in columns.items()
    }
    lengths = {name: len(one) for name, one in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidRows("columns of one table differ in length; make it anew", column=",".join(lengths))
    return pa.table(arrays)


def _array(name: str, values: Any, kind: pa.DataType | None) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        found, cause = pa.array(values), None
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        found, cause = None, error
    # Arrow would also make times of numbers, which are refused wherever else rows come from.
    if found is not None and (kind is None or found.type == kind or not _takes_python(kind)):
        return found
    try:
        return pa.array(values, kind) if kind is not None else _refused(name, cause)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        return found if found is not None else _refused(name, error)


def _takes_python(kind: pa.DataType) -> bool:
    """Whether a type's values look like those of another one in Python: a map's as dicts, a decimal's as integers."""
    return bool(pa.types.is_nested(kind) or pa.types.is_decimal(kind))


def _refused(name: str, error: Exception | None) -> pa.Array:
    raise InvalidRows(
        "a column's values have no one type; convert them first", column=name, cause=str(error)[:200]
    ) from error
