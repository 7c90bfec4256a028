"""Names, paths and types as DuckDB's SQL writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.errors import InternalError
from lakehouse.predicate.literals import literal_term, text_term

_TYPES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP",
    pa.timestamp("us", "UTC"): "TIMESTAMPTZ",
}

_WILDCARD = re.compile(r"[*?\[]")
_PLAIN = r"^[A-Za-z0-9][A-Za-z0-9_.:/-]*$"
"""Texts without a letter that means something in a literal, or in a list's literal form within quotes."""


def name(text: str) -> str:
    """A column's name, quoted.

    >>> name('delay in %'), name('a"b')
    ('"delay in %"', '"a""b"')
    """
    return '"' + text.replace('"', '""') + '"'


def text(value: str) -> str:
    """A string literal.

    >>> text("it's")
    "'it''s'"
    """
    return text_term(value).duckdb


def file(path: str) -> str:
    """A string literal of one file's path, its wildcards made plain.

    >>> file("/data/[2013]*.parquet")
    "'/data/[[]2013][*].parquet'"
    """
    return text(_WILDCARD.sub(r"[\g<0>]", path))


def null(kind: pa.DataType) -> str:
    """A null of a column's type."""
    return f"CAST(NULL AS {type_name(kind)})"


def value(expression: str, kind: pa.DataType) -> str:
    """An expression for a column; a bare NULL gets the column's type."""
    return null(kind) if expression == "NULL" else expression


def listed(values: Iterable[str]) -> str:
    """Literals or expressions with commas between them."""
    return ", ".join(values)


def numbers(values: npt.NDArray[np.int64]) -> str:
    """Many integers as a list; one literal, since those that the parser sees one by one cost it more.

    >>> numbers(np.array([5, 7]))
    "CAST('[5,7]' AS BIGINT[])"
    """
    return f"CAST('[{','.join(map(str, values.tolist()))}]' AS BIGINT[])"


def values(column: pa.ChunkedArray) -> str:
    r"""The values of a column, none of which is null, as a list.

    >>> values(pa.chunked_array([["it's", ""]]))
    "CAST(['it''s', ''] AS VARCHAR[])"
    >>> values(pa.chunked_array([["k1", "k2"]]))
    'CAST(\'["k1","k2"]\' AS VARCHAR[])'
    """
    if pa.types.is_integer(column.type):
        return numbers(column.cast(pa.int64()).to_numpy())
    if pa.types.is_string(column.type) and pc.all(pc.match_substring_regex(column, _PLAIN)).as_py():
        return f"""CAST('["{'","'.join(column.to_pylist())}"]' AS VARCHAR[])"""
    written = listed(literal_term(one, column.type).duckdb for one in column.to_pylist())
    return f"CAST([{written}] AS {type_name(column.type)}[])"


def type_name(kind: pa.DataType) -> str:
    """DuckDB's name of a column's type.

    >>> type_name(pa.struct([("x", pa.list_(pa.int32()))]))
    'STRUCT("x" INTEGER[])'
    """
    if kind in _TYPES:
        return _TYPES[kind]
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_map(kind):
        return f"MAP({type_name(kind.key_type)}, {type_name(kind.item_type)})"
    if pa.types.is_struct(kind):
        return f"STRUCT({listed(f'{name(part.name)} {type_name(part.type)}' for part in kind)})"
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return f"{type_name(kind.value_type)}[]"
    raise InternalError("a type that no table has", type=kind)
