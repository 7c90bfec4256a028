"""A look by SQL: one statement that changes nothing, at a limited cost, with what its tables' scans leave out."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from lakehouse.core.pruned import Pruned
from lakehouse.core.segments import Segments
from lakehouse.engine.duckdb import QueryLimits
from lakehouse.errors import InvalidStatement, QueryLimitExceeded
from lakehouse.session.session import Session
from lakehouse.sql.parse import parse_statement
from lakehouse.sql.query import Read, bind
from lakehouse.sql.show import describe, show
from lakehouse.sql.values import Values
from lakehouse.table.tables import open_table

if TYPE_CHECKING:
    from lakehouse.reading.scan import Scan


_MOST_FILTER = 20_000


@dataclass(frozen=True)
class TableRead:
    """What a query reads of one table: the columns and the filter that reach its scan.

    What that opens and leaves out is planned again when it is asked for.
    """

    table: str
    version: int
    columns: tuple[str, ...]
    where: str | None
    _session: Session | None = field(repr=False, compare=False, default=None)

    @property
    def segments(self) -> Segments:
        """The segments that are opened. Raises as `pruned` does."""
        return self._scan.plan().segments

    def pruned(self) -> list[Pruned]:
        """Live segments that are left out, by reason; see `lakehouse.core.pruned`.

        Raises `VersionNotFound` if the version was forgotten since, and `QueryLimitExceeded` where the filter is so
        long that planning it again, which no limit of time would end, could take seconds.
        """
        return self._scan.pruned()

    @cached_property
    def _scan(self) -> Scan:
        if self.where is not None and len(self.where) > _MOST_FILTER:
            raise QueryLimitExceeded(
                "the filter is too long to tell what it leaves out; EXPLAIN tells how much is opened",
                limit="characters",
                characters=len(self.where),
                most=_MOST_FILTER,
            )
        assert self._session is not None
        return open_table(self._session, self.table).scan(columns=self.columns, where=self.where, as_of=self.version)


@dataclass(frozen=True, slots=True)
class Answer:
    """The first rows of a statement, whether there are more, and what it read (nothing, of system tables).

    ``is_plan`` says that the rows are the lines of an EXPLAIN.
    """

    rows: pa.Table
    is_cut: bool = False
    reads: tuple[TableRead, ...] = ()
    is_plan: bool = False


def answer(session: Session, text: str, *, as_of: Any, limits: QueryLimits, values: Values | None = None) -> Answer:
    """Run one statement that only looks: a query, SHOW, DESCRIBE or EXPLAIN. ``values`` are those of its marks.

    Only `lakehouse.queryprocess` calls it, for `Lake.query`: nothing here ends it, whatever it costs.
    """
    statement = parse_statement(text, values)
    if statement.show is not None:
        return Answer(*_cut(show(session, statement.show), limits))
    match statement.tree:
        case exp.Describe() as tree:
            return Answer(*_cut(describe(session, tree, as_of), limits))
        case exp.Query() | exp.Values() as tree:
            query = bind(session, tree, as_of=as_of, engine="duckdb")
        case tree:
            raise InvalidStatement(
                "only statements that change nothing are run here: SELECT, SHOW, DESCRIBE and EXPLAIN",
                found="" if tree is None else tree.key.upper(),
            )
    is_plan = statement.kind == "explain"
    rows, is_cut = _cut(pa.table({"plan": query.explain().split("\n")}), limits) if is_plan else query.first(limits)
    return Answer(rows, is_cut, tuple(_table_read(session, one) for one in query.reads), is_plan)


def _cut(rows: pa.Table, limits: QueryLimits) -> tuple[pa.Table, bool]:
    """The first rows within limits, and whether there are more."""
    within = range(1, min(rows.num_rows, limits.rows) + 1)
    count = bisect_right(within, limits.bytes, key=lambda count: rows.slice(0, count).nbytes)
    return rows.slice(0, count), count < rows.num_rows


def _table_read(session: Session, read: Read) -> TableRead:
    wanted = read.asked.wanted
    where = None if wanted.where is None else wanted.where.text
    return TableRead(read.asked.table, read.scan.version, wanted.columns, where, session)
