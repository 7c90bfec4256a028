"""From a statement to its rows at a frozen version, within limits, with a certificate of where they came from."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import LifoQueue
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from sqlglot import exp

from lakehouse.arguments import require_within
from lakehouse.cancelling import check
from lakehouse.core.serving.coverage import Coverage, coverage_of, merged
from lakehouse.engine.duckdb import StatementDatabase, explained, streamed
from lakehouse.errors import InvalidStatement, QueryLimitExceeded, StatementCancelled
from lakehouse.reading.scan import Scan
from lakehouse.remembered import Remembered
from lakehouse.serving.asking import Asking
from lakehouse.serving.deadlines import Deadlines
from lakehouse.serving.frozen import Frozen, FrozenSession
from lakehouse.session.session import Session
from lakehouse.sql.parse import check_text, parse_statement
from lakehouse.sql.translation import Translation, translate
from lakehouse.sql.tree import too_deep
from lakehouse.sql.values import Values
from lakehouse.storage.warehouse import Warehouse
from lakehouse.table.tables import open_table

_BATCH_ROWS = 8192
_FEW_ROWS = 10_000
"""A result of no more rows is fetched at once, which takes a few milliseconds less; for others that is in vain."""
_LETTERS = 16_000_000
"""Of the statements whose translation, and whose text over the files of a version, a node remembers."""
_MOST_SHAPE = 1000
_MOST = 2**50
_LEAST_MEMORY = 1_000_000
"""With half of it the engine cannot group a row."""
_REFUSED = "query nodes answer queries only: SELECT, WITH and VALUES over tables and views; ask the lake itself"


@dataclass(frozen=True, slots=True)
class QueryBounds:
    """What one query of a node may cost: rows and bytes of its result, seconds, and bytes of memory."""

    rows: int = 1_000_000
    bytes: int = 256_000_000
    seconds: float = 30.0
    memory: int = 1_000_000_000

    def __post_init__(self) -> None:
        """Raise `InvalidArgument` for a bound that no query could keep, or that is none."""
        require_within(self.rows, "rows", 1, _MOST)
        require_within(self.bytes, "bytes", 1, _MOST)
        require_within(self.seconds, "seconds", 0.001, 86_400.0)
        require_within(self.memory, "memory", _LEAST_MEMORY, _MOST)


@dataclass(frozen=True, slots=True)
class TableScan:
    """What a statement reads of a table: the segments that it opens."""

    table: str
    scan: Scan


@dataclass(frozen=True, slots=True)
class Ready:
    """A statement over the files of a version: what remains is to run it."""

    text: str
    relations: Mapping[str, str]
    columns: Sequence[str]
    scans: tuple[TableScan, ...]
    is_of_now: bool = False
    """Whether its rows depend on when it is run."""

    def coverage(self, held: Collection[str]) -> tuple[Coverage, ...]:
        """Where the rows come from, if some files, by stored path, are held here."""
        return merged(_coverage(one, held) for one in self.scans)

    def counts(self, held: Collection[str]) -> tuple[int, int]:
        """How many of the files that are opened are held here, and how many are not."""
        paths = [path for one in self.scans for path in one.scan.plan().segments.paths]
        hits = sum(path in held for path in paths)
        return hits, len(paths) - hits


def _coverage(one: TableScan, held: Collection[str]) -> Coverage:
    segments = one.scan.plan().segments
    paths = segments.paths
    cached = np.fromiter((path in held for path in paths), np.bool_, len(paths))
    gone = set(one.scan.missing)
    missing = np.fromiter((path in gone for path in paths), np.bool_, len(paths))
    return coverage_of(one.table, one.scan.version, segments, cached, missing, one.scan.spec.grain)


class Statements:
    """Reads statements over one frozen version, and remembers what it made of each. Thread-safe."""

    def __init__(self, base: Session, frozen: Frozen, warehouse: Warehouse, shared: Translations) -> None:
        self.session = FrozenSession(base, frozen, warehouse)
        self._shared = shared
        self._known: Remembered[tuple[str, str], Ready] = Remembered(_LETTERS)

    def ready(
        self, text: str, values: Values | None, *, best_effort: bool = False, held: Collection[str] | None = None
    ) -> Ready:
        """A statement over the version's files. Raises `InvalidInput` for what is refused, `TableNotFound`.

        Kept for the next time if all its files are ``held``, or are none of a cache's (None): others may go.
        """
        key = (text, repr(values))
        known = None if best_effort else self._known.get(key)
        if known is not None:
            return known
        translation = self._shared.of(self.session, text, values)
        scans = []
        for one in translation.asked:
            if one.system:
                raise InvalidStatement(_REFUSED, system=f"{one.table}.{one.system}".strip("."))
            table = open_table(self.session, one.table)
            columns = one.wanted.columns or (table.spec.lean_column,)
            scan = table.unheld_scan(columns=columns, where=one.wanted.where, as_of=one.as_of, best_effort=best_effort)
            scan.prepare()
            scans.append(TableScan(table.name, scan))
        is_joined = len(scans) > 1
        relations = {
            asked.relation: one.scan.unfiltered_sql(is_joined=is_joined)
            for asked, one in zip(translation.asked, scans, strict=True)
        }
        found = Ready(translation.text, relations, translation.columns, tuple(scans), translation.is_of_now)
        if not best_effort and (held is None or not found.counts(held)[1]):
            self._known.put(key, found, cost=len(text) + sum(map(len, relations.values())))
        return found

    def shape_of(self, text: str, values: Values | None) -> str:
        """A statement without its values, which whoever looks at a node's slow queries is not to see."""
        tree = parse_statement(text, values).tree
        if tree is None:
            return ""
        shown = tree.copy().transform(lambda node: exp.Placeholder() if isinstance(node, exp.Literal) else node)
        return str(shown.sql(dialect="spark"))[:_MOST_SHAPE]

    def forget(self, text: str, values: Values | None) -> None:
        """Read a statement anew when it comes again: a file of it was not there."""
        self._known.drop((text, repr(values)))


class Translations:
    """Translations of statements for every version whose tables have the columns that they had. Thread-safe."""

    def __init__(self) -> None:
        self._known: Remembered[str, Translation] = Remembered(_LETTERS)

    def of(self, session: Session, text: str, values: Values | None) -> Translation:
        """The translation of a text. Raises `InvalidInput`, `TableNotFound`."""
        known = None if values is not None else self._known.get(text)
        if known is not None and not known.views and known.tables(session, None) is not None:
            return known
        check_text(text)
        statement = parse_statement(text, values)
        tree = statement.tree
        if statement.kind == "explain" or statement.show is not None or not isinstance(tree, exp.Query | exp.Values):
            raise InvalidStatement(_REFUSED, found=_kind(statement))
        if isinstance(tree, exp.Values):
            tree = exp.Select(expressions=[exp.Star()], from_=exp.From(this=tree))
        try:
            translation, _ = translate(session, tree, "duckdb")
        except RecursionError as error:
            raise too_deep() from error
        if values is None:
            self._known.put(text, translation, cost=len(text) + translation.letters)
        return translation


def _kind(statement: Any) -> str:
    if statement.kind == "explain":
        return "EXPLAIN"
    return "SHOW" if statement.tree is None else str(statement.tree.key).upper()


class Databases:
    """So many databases, each for one query at a time with a memory of its own, and files of one root alone."""

    def __init__(self, root: Path, count: int, memory: int) -> None:
        self._free: LifoQueue[StatementDatabase] = LifoQueue()
        self._all = [StatementDatabase(root) for _ in range(count)]
        for one in self._all:
            one.most_memory = memory
            self._free.put(one)

    @contextmanager
    def one(self) -> Iterator[StatementDatabase]:
        """A database of the caller's own for a while; there are as many as callers at a time."""
        database = self._free.get()
        try:
            yield database
        finally:
            self._free.put(database)

    def close(self) -> None:
        """Close them."""
        for one in self._all:
            one.close()


@contextmanager
def limited(session: Session, bounds: QueryBounds, deadlines: Deadlines, asking: Asking) -> Iterator[None]:
    """Around a statement's translation and its rows: raises `QueryLimitExceeded` for time and memory.

    A translation is interrupted between its steps. ``asking`` cancels the query: `StatementCancelled`.
    """
    thread, is_late = threading.current_thread(), threading.Event()

    def end() -> None:
        is_late.set()
        session.works.cancel(thread)

    try:
        with session.works.runs(), asking.stopped_by(partial(session.works.cancel, thread)), deadlines.within(end):
            yield
            check()
    except StatementCancelled as error:
        if not is_late.is_set():
            raise
        raise QueryLimitExceeded(
            "the query takes longer than it may; ask for less, or allow more", limit="seconds", most=bounds.seconds
        ) from error
    except MemoryError as error:
        raise QueryLimitExceeded(
            "the query needs more memory than it may have; ask for less, or allow more",
            limit="memory",
            most_memory=bounds.memory,
        ) from error


def run(database: StatementDatabase, ready: Ready, bounds: QueryBounds) -> pa.Table:
    """The rows of a statement, all of them. Raises `QueryLimitExceeded` rather than leave any out. See `limited`."""
    check()
    try:
        few = min(_FEW_ROWS, bounds.rows)
        rows = database.run(_limited(ready.text, few), ready.relations).to_arrow_table()
        if rows.num_rows > few:
            rows = _streamed(database.run(_limited(ready.text, bounds.rows), ready.relations), bounds)
        if rows.nbytes > bounds.bytes:
            raise too_much("bytes", bounds.bytes)
        if len(set(map(str.casefold, ready.columns))) < len(ready.columns):
            # A limit makes other names where one is there twice.
            return rows.rename_columns(database.run(ready.text, ready.relations).columns)
        return rows
    except duckdb.OutOfMemoryException as error:
        raise MemoryError from error
    except duckdb.Error as error:
        raise explained(error) from error
    except (pa.ArrowException, OSError) as error:  # how a stream tells of a row that fails after the first ones
        raise streamed(str(error)) from error


def _limited(text: str, rows: int) -> str:
    """A query of so many rows, and one more if there are more. A relation's own limit would open its files again."""
    return f"SELECT * FROM ({text}) LIMIT {rows + 1}"  # noqa: S608 - a translation, which holds no text of a user's


def _streamed(found: duckdb.DuckDBPyRelation, bounds: QueryBounds) -> pa.Table:
    """The rows, a batch at a time: memory does not grow beyond the limits before they are noticed."""
    reader = found.to_arrow_reader(_BATCH_ROWS)
    batches, rows, size = [], 0, 0
    for batch in reader:
        batches.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows > bounds.rows:
            raise too_much("rows", bounds.rows)
        if size > bounds.bytes:
            raise too_much("bytes", bounds.bytes)
    return pa.Table.from_batches(batches, reader.schema)


def too_much(limit: str, most: int) -> QueryLimitExceeded:
    """The error of a result of more rows or bytes than one may have."""
    return QueryLimitExceeded(
        f"the result has more {limit} than a query node sends; ask for less, or ask the lake itself",
        limit=limit,
        most=most,
    )
