"""Filters given as expressions of pyarrow or polars, written as SQL that passes the same rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.arguments import is_of
from lakehouse.predicate.arrow_expressions import from_arrow
from lakehouse.predicate.polars_expressions import from_polars


def is_expression(where: Any) -> bool:
    """Whether a filter is an expression of pyarrow or polars; polars is not imported for it.

    >>> is_expression(pc.field("x") > 1), is_expression("x > 1")
    (True, False)
    """
    return isinstance(where, pc.Expression) or is_of(where, "polars", "Expr")


def written(where: Any, schema: pa.Schema) -> str:
    """The filter in SQL. Raises `InvalidPredicate` for a part that is not listed, `UnknownColumn`.

    >>> written((pc.field("x") > 1) & pc.field("n").is_valid(), pa.schema([("x", pa.int64()), ("n", pa.string())]))
    '((`x` > 1) AND (`n` IS NOT NULL))'
    """
    return from_polars(where, schema) if is_of(where, "polars", "Expr") else from_arrow(where, schema)
