"""A query bound to the lake: its tables' scans at one version, and the engine that runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import pyarrow as pa
from sqlglot import exp

from lakehouse.core.spec import ROW_ID
from lakehouse.engine.duckdb import QueryLimits, is_refusal, read_relation, run_limited
from lakehouse.errors import InvalidStatement, OnlySpark, SegmentUnreadable
from lakehouse.operations.clauses import source_schema
from lakehouse.reading.again import again_if_forgotten
from lakehouse.session.session import Session
from lakehouse.sql.allowed import refused
from lakehouse.sql.changed import ChangedRows, changed_rows
from lakehouse.sql.system import CHANGES
from lakehouse.sql.system_rows import rows_of
from lakehouse.sql.translation import Asked, Translation, translate
from lakehouse.sql.tree import too_deep
from lakehouse.table.tables import open_table

if TYPE_CHECKING:
    from lakehouse.reading.scan import Scan
    from lakehouse.table.table import Table


@dataclass(frozen=True, slots=True)
class Read:
    """One table of a query, and the scan of what is asked of it."""

    asked: Asked
    scan: Scan


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query whose tables are found and whose versions are fixed."""

    session: Session
    engine: str
    text: str
    reads: tuple[Read, ...]
    system_rows: Mapping[str, pa.Table] = field(default_factory=dict)
    """Rows of system tables, by relation."""
    changes: tuple[ChangedRows, ...] = ()

    @property
    def is_for_spark(self) -> bool:
        """Whether it is to run in process, but would open more than is read there where nobody asked for it."""
        size = sum(one.scan.planned_bytes for one in self.reads)
        return self.engine == "duckdb" and size > self.session.most_in_process

    def run(self) -> Any:
        """The rows, lazily: a Spark frame or a DuckDB relation."""
        found = self._run()
        for one in self.reads:
            one.scan.linger()
        return found

    def _run(self) -> Any:
        if self.engine == "spark":
            frames = {one.asked.relation: one.scan.unfiltered_frame() for one in self.reads}
            tables = {**self.system_rows, **self._changed()}
            frames |= {name: self.session.spark.createDataFrame(rows) for name, rows in tables.items()}
            return self.session.spark_engine.run(self.text, frames)  # type: ignore[attr-defined]
        with self._naming_files():
            return self.session.statements.run(self.text, self._relations() | self._changed())

    def _changed(self) -> dict[str, pa.Table]:
        """Rows of tables' changes, which are read now."""
        return {one.relation: one.rows() for one in self.changes}

    def first(self, limits: QueryLimits) -> tuple[pa.Table, bool]:
        """The first rows, and whether there are more, calculated in process with limited memory."""
        with self._naming_files():
            return run_limited(self.text, self._relations() | self._changed(), self.session.warehouse.root, limits)

    def _relations(self) -> dict[str, str | pa.Table]:
        is_joined = len(self.reads) > 1
        texts = {one.asked.relation: one.scan.unfiltered_sql(is_joined=is_joined) for one in self.reads}
        return {**texts, **self.system_rows}

    def schema(self) -> pa.Schema:
        """The columns that it gives; no row is read."""
        found = self._run()
        if self.engine == "spark":
            return source_schema(found)
        return read_relation(found.limit(0)).schema

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
        for changed in self.changes:
            changed.release()

    def explain(self) -> str:
        """What each table's scan opens, the text that the engine is given, and DuckDB's plan with expected rows."""
        lines = []
        for one in self.reads:
            plan = one.scan.plan()
            where = one.asked.wanted.where
            whole = len(open_table(self.session, one.asked.table).segments(as_of=plan.version))
            lines.append(
                f"{one.asked.table} at version {plan.version} as {one.asked.relation}: {len(plan.segments)} of "
                f"{whole} segments, {plan.bytes} bytes, {plan.rows_estimate} rows; columns "
                f"{', '.join(one.asked.wanted.columns)}; filter {where.text if where is not None else 'none'}"
            )
        lines += [f"{name} from the catalog: {rows.num_rows} rows" for name, rows in self.system_rows.items()]
        lines += [str(one) for one in self.changes]
        lines.append(f"{self.engine}: {self.text}")
        if self.engine == "duckdb":
            unread = {one.relation: one.schema.empty_table() for one in self.changes}
            with self._naming_files():
                lines += self.session.statements.explain(self.text, self._relations() | unread).split("\n")
        return "\n".join(lines)


def bind(
    session: Session,
    tree: exp.Expr,
    *,
    as_of: Any,
    engine: str | None,
    text: str | None = None,
    row_ids: Sequence[exp.Table] = (),
) -> BoundQuery:
    """Check a query and fix what it reads: every table without a version of its own at one version of the lake.

    Without an engine it runs in process, unless it has what is Spark's alone, or files of more than
    `Session.most_in_process` bytes are opened for it.

    What is made of it is remembered by its ``text``, if that is given, for `bind_again`. Tables of the query's tree in
    ``row_ids`` have a column `_row_id` beside their own. Raises `InvalidInput` for what is not allowed,
    `TableNotFound`, `VersionNotFound`.
    """
    if isinstance(tree, exp.Values):
        tree = exp.Select(expressions=[exp.Star()], from_=exp.From(this=tree))
    if not isinstance(tree, exp.Query) or isinstance(tree, exp.Table):
        raise refused(tree)
    try:
        translation, tables = _translated(session, tree, engine, row_ids, as_of)
    except RecursionError as error:
        raise too_deep() from error
    if text is not None and translation.is_lasting:
        session.translations.put((engine, text), translation, cost=len(text) + translation.letters)
    found = _held(session, translation, as_of, lambda: _planned(session, translation, tables, as_of))
    assert found is not None, "its tables are given"
    query = BoundQuery(session, translation.engine, translation.text, *found)
    if engine is None and query.is_for_spark:
        query.release()
        return bind(session, tree, as_of=as_of, engine="spark")
    return query


def check_query(session: Session, tree: exp.Expr, *, as_of: Any, engine: str | None) -> None:
    """Raise as `bind` does for what a query says wrongly. Nothing is planned."""
    try:
        _translated(session, tree, engine, (), as_of)
    except RecursionError as error:
        raise too_deep() from error


def _translated(
    session: Session, tree: exp.Expr, engine: str | None, row_ids: Sequence[exp.Table], as_of: Any
) -> tuple[Translation, dict[str, Table]]:
    if engine is not None:
        return translate(session, tree, engine, row_ids, as_of)
    try:
        return translate(session, tree, "duckdb", row_ids, as_of)
    except OnlySpark:
        return translate(session, tree, "spark", row_ids, as_of)


def bind_again(session: Session, text: str, *, as_of: Any, engine: str | None) -> BoundQuery | None:
    """A query that was bound before, by its text; None if it was not, or its names or tables are others now.

    Cost: one state of the catalog; the text is not read.
    """
    translation: Translation | None = session.translations.get((engine, text))
    if translation is None:
        return None

    def planned() -> _Found | None:
        tables = translation.tables(session, as_of)
        return None if tables is None else _planned(session, translation, tables, as_of)

    found = _held(session, translation, as_of, planned)
    if found is None:
        return None
    query = BoundQuery(session, translation.engine, translation.text, *found)
    if engine is None and query.is_for_spark:  # its text is for the other engine
        query.release()
        return None
    return query


_Found: TypeAlias = tuple[tuple[Read, ...], dict[str, pa.Table], tuple[ChangedRows, ...]]
"""Scans of tables, rows of system tables by relation, and tables' changes."""


def _held(session: Session, translation: Translation, as_of: Any, plan: Callable[[], _Found | None]) -> _Found | None:
    """What a query reads, planned from one state of the catalog, and then held."""
    own = next((one.as_of for one in translation.asked if one.as_of is not None), as_of)

    def held() -> _Found | None:
        found = session.catalog.snapshot(plan)
        for one in found[0] if found is not None else ():
            one.scan.hold()
        for changed in found[2] if found is not None else ():
            changed.hold()
        return found

    return again_if_forgotten(held, own)


def _planned(session: Session, translation: Translation, tables: Mapping[str, Table], as_of: Any) -> _Found:
    """What each name reads: without an ``as_of``, at the head."""
    reads, system, changes = [], {}, []
    for one in translation.asked:
        point = as_of if one.as_of is None else one.as_of
        if one.system == CHANGES:
            changes.append(changed_rows(session, one.relation, tables[one.table], one.wanted, point))
            continue
        if one.system:
            system[one.relation] = rows_of(session, one.system, tables.get(one.table), point)
            continue
        table = tables[one.table]
        columns = tuple(name for name in one.wanted.columns if name != ROW_ID) or (table.spec_at(point).lean_column,)
        scan = table.unheld_scan(
            columns=columns, where=one.wanted.where, as_of=point, row_ids=ROW_ID in one.wanted.columns
        )
        scan.prepare()
        reads.append(Read(one, scan))
    return tuple(reads), system, tuple(changes)


def fixed_rows(session: Session, tree: exp.Expr) -> pa.Table:
    """The rows of a query that reads no table, calculated in process."""
    with bind(session, tree, as_of=None, engine="duckdb") as query:
        rows: pa.Table = query.rows()
    return rows
