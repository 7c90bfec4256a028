"""Conversions of columns whose type is known, so that they need no care for text.

What Spark reads in a text is long to say in DuckDB's words, and DuckDB reads and binds what it is told several times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from lakehouse.sql.meanings import NO_TEXT
from lakehouse.sql.names import Reference
from lakehouse.sql.push import is_about, scope_of
from lakehouse.sql.sources import Scope
from lakehouse.sql.tree import found_in


def mark_known(tree: exp.Expr, references: Sequence[Reference], schemas: Mapping[str, pa.Schema]) -> None:
    """Mark conversions of a resolved statement whose operand can only be a table's column, and no text, by `NO_TEXT`.

    ``schemas`` are those of tables by relation. Cost: one walk of the statement, if it converts a column at all.
    """
    casts = [one for one in found_in(tree, exp.Cast, exp.TryCast) if isinstance(one.this, exp.Column)]
    if not casts:
        return
    scope = scope_of(tree, references, schemas)
    types = {id(one.node): {field.name.casefold(): field.type for field in schemas[one.relation]} for one in references}
    for cast in casts:
        kind = _type_of(cast.this, scope, types)
        if kind is not None and not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            cast.meta[NO_TEXT] = True  # which a copy keeps


def _type_of(column: exp.Column, scope: Scope, types: Mapping[int, Mapping[str, pa.DataType]]) -> pa.DataType | None:
    """The type of a column of a table in the FROM around it; None where the name could mean something else."""
    around = column.find_ancestor(exp.Select, exp.Lambda, exp.Order)
    if not isinstance(around, exp.Select) or not around.args.get("from_"):
        return None  # in ORDER BY a name after AS comes first
    sources = scope.sources(around)
    seen = [one for one in sources if one.seen]
    for source in sources:
        if id(source.node) in types and id(source.node) in scope.columns and is_about(column, source, seen, scope):
            return types[id(source.node)].get(column.name.casefold())
    return None
