"""A query bound to the lake: its tables' scans at one version, and the engine that runs it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
from sqlglot import exp

from lakehouse.engine.duckdb import QueryLimits, read_relation, run_limited, run_query
from lakehouse.errors import InvalidStatement, SegmentUnreadable, VersionNotFound
from lakehouse.session.session import Session
from lakehouse.sql.allowed import check_allowed, refused
from lakehouse.sql.columns import Columns
from lakehouse.sql.names import Reference, resolve
from lakehouse.sql.normal import normalized
from lakehouse.sql.push import Wanted, pushed
from lakehouse.sql.written import write
from lakehouse.storage.verify import verified
from lakehouse.table.tables import open_table, table_names

if TYPE_CHECKING:
    from lakehouse.reading.scan import Scan
    from lakehouse.table.table import Table

_ATTEMPTS = 5
_PREFIX = "lake_relation_"


@dataclass(frozen=True, slots=True)
class Read:
    """One table of a query: what its scan is asked for."""

    reference: Reference
    wanted: Wanted
    scan: Scan


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query whose tables are found and whose versions are fixed."""

    session: Session
    engine: str
    text: str
    reads: tuple[Read, ...]

    def run(self) -> Any:
        """The rows, lazily: a Spark frame or a DuckDB relation."""
        found = self._run()
        for one in self.reads:
            self.session.pins.linger(one.scan.held_version)
        return found

    def _run(self) -> Any:
        if self.engine == "spark":
            frames = {one.reference.relation: one.scan.frame() for one in self.reads}
            return self.session.spark_engine.run(self.text, frames)  # type: ignore[attr-defined]
        return run_query(self.text, self._relations(), self.session.warehouse)

    def first(self, limits: QueryLimits) -> tuple[pa.Table, bool]:
        """The first rows, and whether there are more, calculated in process with limited memory."""
        with self._naming_files():
            return run_limited(self.text, self._relations(), self.session.warehouse, limits)

    def _relations(self) -> dict[str, Any]:
        return {one.reference.relation: one.scan.relation for one in self.reads}

    def rows(self) -> Any:
        """The rows as a write takes them: an Arrow table, or a Spark frame, which is to be read before `release`."""
        found = self._run()
        if self.engine == "spark":
            return found
        with self._naming_files():
            return read_relation(found)

    @contextmanager
    def _naming_files(self) -> Iterator[None]:
        """Say which table's file it was that could not be read."""
        try:
            yield
        except SegmentUnreadable:
            for one in self.reads:
                verified(self.session.warehouse, one.scan.plan().segments)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Let what it reads be forgotten now, not when the last of it is gone."""
        for one in self.reads:
            one.scan.release()

    def explain(self) -> str:
        """What each table's scan opens, and the text that the engine is given."""
        lines = []
        for one in self.reads:
            plan = one.scan.plan()
            whole = len(open_table(self.session, one.reference.table).segments(as_of=plan.version))
            lines.append(
                f"{one.reference.table} at version {plan.version} as {one.reference.relation}: {len(plan.segments)} of "
                f"{whole} segments, {plan.bytes} bytes; columns {', '.join(one.wanted.columns)}; "
                f"filter {one.wanted.where or 'none'}"
            )
        return "\n".join([*lines, f"{self.engine}: {self.text}"])


def bind(session: Session, tree: exp.Expr, *, as_of: Any, engine: str) -> BoundQuery:
    """Check a query and fix what it reads: every table without a version of its own at one version of the lake.

    Raises `InvalidInput` for what is not allowed, `TableNotFound`, `VersionNotFound`.
    """
    if isinstance(tree, exp.Values):
        tree = exp.Select(expressions=[exp.Star()], from_=exp.From(this=tree))
    if not isinstance(tree, exp.Query) or isinstance(tree, exp.Table):
        raise refused(tree)
    try:
        return _bound(session, tree, as_of, engine)
    except RecursionError as error:
        raise InvalidStatement("the statement is nested too deeply") from error


def _bound(session: Session, tree: exp.Expr, as_of: Any, engine: str) -> BoundQuery:
    check_allowed(tree, engine)
    tree = normalized(tree.copy())
    references = resolve(tree, table_names(session), _prefix(tree))
    tables = {one.relation: open_table(session, one.table) for one in references}
    named = tree.copy()
    Columns({name: table.schema.names for name, table in tables.items()}, engine).of(named)
    text = write(named, engine)
    for _ in range(_ATTEMPTS if as_of is None else 0):
        try:
            return BoundQuery(session, engine, text, _reads(tables, tree, references, session.catalog.head()))
        except VersionNotFound:
            if any(one.as_of is not None for one in references):
                break  # may be the user's own
    at = session.catalog.head() if as_of is None else as_of
    return BoundQuery(session, engine, text, _reads(tables, tree, references, at))


def _prefix(tree: exp.Expr) -> str:
    """The beginning of names that the query does not use."""
    prefix, used = _PREFIX, " ".join(one.name.casefold() for one in tree.find_all(exp.Identifier, exp.Literal))
    while prefix in used:
        prefix += "_"
    return prefix


def _reads(tables: Mapping[str, Table], tree: exp.Expr, references: list[Reference], as_of: Any) -> tuple[Read, ...]:
    wanted = pushed(tree, references, {name: table.schema for name, table in tables.items()})
    reads = []
    for one in references:
        ask = wanted[one.relation]
        point = as_of if one.as_of is None else one.as_of
        scan = tables[one.relation].scan(columns=ask.columns, where=ask.where, as_of=point)
        reads.append(Read(one, ask, scan))
    return tuple(reads)


def fixed_rows(session: Session, tree: exp.Expr) -> pa.Table:
    """The rows of a query that reads no table, calculated in process."""
    with bind(session, tree, as_of=None, engine="duckdb") as query:
        rows: pa.Table = query.rows()
    return rows
