"""A query bound to the lake: its tables' scans at one version, and the engine that runs it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
from sqlglot import exp

from lakehouse.core.spec import ROW_ID
from lakehouse.engine.duckdb import QueryLimits, is_refusal, read_relation, run_limited
from lakehouse.errors import InvalidStatement, SegmentUnreadable
from lakehouse.reading.again import again_if_forgotten
from lakehouse.session.session import Session
from lakehouse.sql.allowed import check_allowed, refused
from lakehouse.sql.columns import Columns
from lakehouse.sql.names import Reference, resolve
from lakehouse.sql.normal import normalized
from lakehouse.sql.push import Wanted, pushed
from lakehouse.sql.system import schema_of
from lakehouse.sql.told import rows_of
from lakehouse.sql.written import write
from lakehouse.table.tables import open_table, table_names

if TYPE_CHECKING:
    from lakehouse.reading.scan import Scan
    from lakehouse.table.table import Table

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
    told: Mapping[str, pa.Table] = field(default_factory=dict)
    """Rows of system tables, by relation."""

    def run(self) -> Any:
        """The rows, lazily: a Spark frame or a DuckDB relation."""
        found = self._run()
        for one in self.reads:
            self.session.pins.linger(one.scan.held_version)
        return found

    def _run(self) -> Any:
        if self.engine == "spark":
            frames = {one.reference.relation: one.scan.frame() for one in self.reads}
            frames |= {name: self.session.spark.createDataFrame(rows) for name, rows in self.told.items()}
            return self.session.spark_engine.run(self.text, frames)  # type: ignore[attr-defined]
        with self._naming_files():
            return self.session.statements.run(self.text, self._relations())

    def first(self, limits: QueryLimits) -> tuple[pa.Table, bool]:
        """The first rows, and whether there are more, calculated in process with limited memory."""
        with self._naming_files():
            return run_limited(self.text, self._relations(), self.session.warehouse, limits)

    def _relations(self) -> dict[str, str | pa.Table]:
        return {**{one.reference.relation: one.scan.sql() for one in self.reads}, **self.told}

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
        except (SegmentUnreadable, InvalidStatement) as error:
            if isinstance(error, SegmentUnreadable) or not is_refusal(error.__cause__):
                for one in self.reads:
                    one.scan.check_readable()
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
        """What each table's scan opens, the text that the engine is given, and DuckDB's plan with expected rows."""
        lines = []
        for one in self.reads:
            plan = one.scan.plan()
            whole = len(open_table(self.session, one.reference.table).segments(as_of=plan.version))
            lines.append(
                f"{one.reference.table} at version {plan.version} as {one.reference.relation}: {len(plan.segments)} of "
                f"{whole} segments, {plan.bytes} bytes, {plan.rows_estimate} rows; columns "
                f"{', '.join(one.wanted.columns)}; filter {one.wanted.where or 'none'}"
            )
        lines += [f"{name} from the catalog: {rows.num_rows} rows" for name, rows in self.told.items()]
        lines.append(f"{self.engine}: {self.text}")
        if self.engine == "duckdb":
            with self._naming_files():
                lines += self.session.statements.explain(self.text, self._relations()).split("\n")
        return "\n".join(lines)


def bind(session: Session, tree: exp.Expr, *, as_of: Any, engine: str, row_ids: Sequence[exp.Table] = ()) -> BoundQuery:
    """Check a query and fix what it reads: every table without a version of its own at one version of the lake.

    Tables of the query's tree in ``row_ids`` have a column `_row_id` beside their own. Raises `InvalidInput` for what
    is not allowed, `TableNotFound`, `VersionNotFound`.
    """
    if isinstance(tree, exp.Values):
        tree = exp.Select(expressions=[exp.Star()], from_=exp.From(this=tree))
    if not isinstance(tree, exp.Query) or isinstance(tree, exp.Table):
        raise refused(tree)
    try:
        return _bound(session, tree, as_of, engine, row_ids)
    except RecursionError as error:
        raise InvalidStatement("the statement is nested too deeply") from error


def _bound(session: Session, tree: exp.Expr, as_of: Any, engine: str, row_ids: Sequence[exp.Table] = ()) -> BoundQuery:
    check_allowed(tree, engine)
    for one in row_ids:
        one.meta[ROW_ID] = True  # which a copy keeps
    tree = normalized(tree.copy())
    names, known = session.catalog.snapshot(lambda: _tables(session, tree))
    references = resolve(tree, names, _prefix(tree))
    tables = {one.relation: known[one.table] for one in references if one.table}
    schemas = {one.relation: _schema(tables.get(one.relation), one) for one in references}
    named = tree.copy()
    Columns({name: schema.names for name, schema in schemas.items()}, engine).of(named)
    text = write(named, engine)
    stored = [one for one in references if not one.system]
    wanted = pushed(tree, stored, schemas)
    own = next((one.as_of for one in references if one.as_of is not None), as_of)

    def held() -> tuple[tuple[Read, ...], dict[str, pa.Table]]:
        reads, told = session.catalog.snapshot(
            lambda: (
                _planned(tables, stored, wanted, as_of),
                {
                    one.relation: rows_of(
                        session, one, tables.get(one.relation), as_of if one.as_of is None else one.as_of
                    )
                    for one in references
                    if one.system
                },
            )
        )
        for one in reads:
            one.scan.hold()
        return reads, told

    return BoundQuery(session, engine, text, *again_if_forgotten(held, own))


def _tables(session: Session, tree: exp.Expr) -> tuple[list[str], dict[str, Table]]:
    """The names of all tables, and those tables that a query may name."""
    names = table_names(session)
    written = {part.name.casefold() for one in tree.find_all(exp.Table) for part in one.parts}
    return names, {name: open_table(session, name) for name in names if name.casefold() in written}


def _schema(table: Table | None, reference: Reference) -> pa.Schema:
    """The columns that a query can name of a table."""
    if table is None or reference.system:
        return schema_of(reference.system)
    schema = table.schema
    return schema.append(pa.field(ROW_ID, pa.int64())) if reference.node.meta.get(ROW_ID) else schema


def _planned(
    tables: Mapping[str, Table], references: Sequence[Reference], wanted: Mapping[str, Wanted], as_of: Any
) -> tuple[Read, ...]:
    """What each reference reads, all planned from one state of the catalog: without an ``as_of``, at its head."""
    reads = []
    for one in references:
        ask = wanted[one.relation]
        point = as_of if one.as_of is None else one.as_of
        table = tables[one.relation]
        columns = tuple(name for name in ask.columns if name != ROW_ID) or (table.time,)
        has_ids = ROW_ID in ask.columns
        scan = table.unheld_scan(columns=columns, where=ask.where, as_of=point, row_ids=has_ids)
        scan.prepare()
        reads.append(Read(one, ask, scan))
    return tuple(reads)


def _prefix(tree: exp.Expr) -> str:
    """The beginning of names that the query does not use."""
    prefix, used = _PREFIX, " ".join(one.name.casefold() for one in tree.find_all(exp.Identifier, exp.Literal))
    while prefix in used:
        prefix += "_"
    return prefix


def fixed_rows(session: Session, tree: exp.Expr) -> pa.Table:
    """The rows of a query that reads no table, calculated in process."""
    with bind(session, tree, as_of=None, engine="duckdb") as query:
        rows: pa.Table = query.rows()
    return rows
