"""A look by SQL: one statement that changes nothing, at a limited cost, with what its tables' scans leave out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from lakehouse.core.pruned import Pruned
from lakehouse.core.segments import Segments
from lakehouse.engine.duckdb import QueryLimits
from lakehouse.errors import InvalidInput
from lakehouse.sql.define import describe, show_tables
from lakehouse.sql.parse import parse_statement
from lakehouse.sql.query import Read, bind

if TYPE_CHECKING:
    from lakehouse.lake import Lake


@dataclass(frozen=True, slots=True)
class TableRead:
    """What a query reads of one table: the columns and the filter that reach its scan, and the segments it opens."""

    table: str
    version: int
    columns: tuple[str, ...]
    where: str | None
    segments: Segments
    _read: Read = field(repr=False, compare=False)

    def pruned(self) -> list[Pruned]:
        """Live segments that are left out, by reason; see `lakehouse.core.pruned`."""
        return self._read.scan.pruned()


@dataclass(frozen=True, slots=True)
class Answer:
    """The first rows of a statement, whether there are more, and what it read (nothing, of what the catalog told)."""

    rows: pa.Table
    is_cut: bool = False
    reads: tuple[TableRead, ...] = ()


def answer(lake: Lake, text: str, *, as_of: Any, limits: QueryLimits) -> Answer:
    """Run one statement that only looks: a query, SHOW TABLES, DESCRIBE or EXPLAIN. See `Lake.query`."""
    statement = parse_statement(text)
    match statement.tree:
        case None:
            return _cut(show_tables(lake), limits)
        case exp.Describe() as tree:
            return _cut(describe(lake, tree), limits)
        case exp.Query() | exp.Values() as tree:
            query = bind(lake, tree, as_of=as_of, engine="duckdb")
        case tree:
            raise InvalidInput(
                "only statements that change nothing are run here: SELECT, SHOW TABLES, DESCRIBE and EXPLAIN",
                found=tree.key.upper(),
            )
    if statement.kind == "explain":
        rows, is_cut = pa.table({"plan": query.explain().split("\n")}), False
    else:
        rows, is_cut = query.first(limits)
    return Answer(rows, is_cut, tuple(_told(one) for one in query.reads))


def _cut(rows: pa.Table, limits: QueryLimits) -> Answer:
    return Answer(rows.slice(0, limits.rows), rows.num_rows > limits.rows)


def _told(read: Read) -> TableRead:
    plan = read.scan.plan()
    return TableRead(read.reference.table, plan.version, read.wanted.columns, read.wanted.where, plan.segments, read)
