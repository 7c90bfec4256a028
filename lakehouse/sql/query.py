"""A query bound to the lake: its tables' scans at one version, and the engine that runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pyarrow as pa
from sqlglot import exp

from lakehouse.engine.duckdb import QueryLimits, is_refusal, read_relation, run_limited
from lakehouse.errors import InvalidStatement, SegmentUnreadable
from lakehouse.reading.again import again_if_forgotten
from lakehouse.session.session import Session
from lakehouse.sql.allowed import refused
from lakehouse.sql.translation import Asked, Translation, translate
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

    def run(self) -> Any:
        """The rows, lazily: a Spark frame or a DuckDB relation."""
        found = self._run()
        for one in self.reads:
            self.session.pins.linger(one.scan.held_version)
        return found

    def _run(self) -> Any:
        if self.engine == "spark":
            frames = {one.asked.relation: one.scan.frame() for one in self.reads}
            return self.session.spark_engine.run(self.text, frames)  # type: ignore[attr-defined]
        with self._naming_files():
            return self.session.statements.run(self.text, self._relations())

    def first(self, limits: QueryLimits) -> tuple[pa.Table, bool]:
        """The first rows, and whether there are more, calculated in process with limited memory."""
        with self._naming_files():
            return run_limited(self.text, self._relations(), self.session.warehouse, limits)

    def _relations(self) -> dict[str, str]:
        is_joined = len(self.reads) > 1
        return {one.asked.relation: one.scan.unfiltered_sql(is_joined=is_joined) for one in self.reads}

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
            whole = len(open_table(self.session, one.asked.table).segments(as_of=plan.version))
            lines.append(
                f"{one.asked.table} at version {plan.version} as {one.asked.relation}: {len(plan.segments)} of "
                f"{whole} segments, {plan.bytes} bytes, {plan.rows_estimate} rows; columns "
                f"{', '.join(one.asked.wanted.columns)}; filter {one.asked.wanted.where or 'none'}"
            )
        lines.append(f"{self.engine}: {self.text}")
        if self.engine == "duckdb":
            with self._naming_files():
                lines += self.session.statements.explain(self.text, self._relations()).split("\n")
        return "\n".join(lines)


def bind(session: Session, tree: exp.Expr, *, as_of: Any, engine: str, text: str | None = None) -> BoundQuery:
    """Check a query and fix what it reads: every table without a version of its own at one version of the lake.

    What is made of it is remembered by its ``text``, if that is given, for `bind_again`. Raises `InvalidInput` for what
    is not allowed, `TableNotFound`, `VersionNotFound`.
    """
    if isinstance(tree, exp.Values):
        tree = exp.Select(expressions=[exp.Star()], from_=exp.From(this=tree))
    if not isinstance(tree, exp.Query) or isinstance(tree, exp.Table):
        raise refused(tree)
    try:
        translation, tables = translate(session, tree, engine)
    except RecursionError as error:
        raise InvalidStatement("the statement is nested too deeply") from error
    if text is not None:
        session.translations.put((engine, text), translation, cost=len(text) + len(translation.text))
    reads = _held(session, translation, as_of, lambda: _planned(translation, tables, as_of))
    return BoundQuery(session, engine, translation.text, reads)


def bind_again(session: Session, text: str, *, as_of: Any, engine: str) -> BoundQuery | None:
    """A query that was bound before, by its text; None if it was not, or its names or tables are others now.

    Cost: one state of the catalog; the text is not read.
    """
    translation: Translation | None = session.translations.get((engine, text))
    if translation is None:
        return None

    def planned() -> tuple[Read, ...] | None:
        tables = translation.tables(session)
        return None if tables is None else _planned(translation, tables, as_of)

    reads = _held(session, translation, as_of, planned)
    return None if reads is None else BoundQuery(session, engine, translation.text, reads)


R = TypeVar("R", tuple[Read, ...], tuple[Read, ...] | None)


def _held(session: Session, translation: Translation, as_of: Any, plan: Callable[[], R]) -> R:
    """What a query reads, planned from one state of the catalog, and then held."""
    own = next((one.as_of for one in translation.asked if one.as_of is not None), as_of)

    def held() -> R:
        reads = session.catalog.snapshot(plan)
        for one in reads or ():
            one.scan.hold()
        return reads

    return again_if_forgotten(held, own)


def _planned(translation: Translation, tables: Mapping[str, Table], as_of: Any) -> tuple[Read, ...]:
    """What each name reads: without an ``as_of``, at the head."""
    reads = []
    for one in translation.asked:
        point = as_of if one.as_of is None else one.as_of
        scan = tables[one.table].unheld_scan(columns=one.wanted.columns, where=one.wanted.where, as_of=point)
        scan.prepare()
        reads.append(Read(one, scan))
    return tuple(reads)


def fixed_rows(session: Session, tree: exp.Expr) -> pa.Table:
    """The rows of a query that reads no table, calculated in process."""
    with bind(session, tree, as_of=None, engine="duckdb") as query:
        rows: pa.Table = query.rows()
    return rows
