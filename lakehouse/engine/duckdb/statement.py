"""Run the text of a query over relations, in a database that can reach nothing but the warehouse."""

from __future__ import annotations

import re
import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa

from lakehouse.cancelling import watched
from lakehouse.engine.duckdb import literals as sql
from lakehouse.engine.duckdb.connection import KeptDatabase, counted, interrupt, keep_count, open_memory
from lakehouse.engine.duckdb.room import most_memory, spilling
from lakehouse.engine.recursion import MOST_STEPS, TOO_MANY
from lakehouse.errors import InvalidInput, InvalidStatement, QueryLimitExceeded, SegmentUnreadable
from lakehouse.forks import watch_forks

if TYPE_CHECKING:
    import duckdb

Relations = Mapping[str, str | pa.Table]
"""What a query names: the text of another, or rows in memory, which only the query's own connection sees."""
_BATCH_ROWS = 2048
_MOST_CANDIDATES = 6
"""Of the functions that DuckDB suggests, how many an error repeats."""
_PART_OF_MEMORY = 70
"""Per cent of a query's memory that DuckDB may know of; text and results that it does not count need the rest."""


_PART_WITH_DISK = 30
"""The same of a query that may spill: it fills all that it may know of, and freed address space is in pieces."""


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """What a query may cost at most; rows and bytes beyond are left out, and for want of memory it fails.

    With ``spill``, where what memory does not hold may go, only the memory says how many bytes its rows may have.
    """

    rows: int
    bytes: int
    memory: int
    spill: Path | None = None


class StatementDatabase:
    """Runs queries over a warehouse's files, each on a connection of its own. Safe to share between threads.

    Opened on first use, which takes 10 ms, and kept: queries share its memory (`most_memory`), and what does not fit
    waits in the system's folder for temporary files.
    """

    def __init__(self, warehouse: Path) -> None:
        self._warehouse = warehouse
        self.most_memory: int | None = None
        """Bytes of memory when it is next opened; None: as `most_memory` says."""
        self._kept = KeptDatabase(lambda: _spilling(warehouse, self.most_memory or most_memory()))
        self.after_fork()
        watch_forks(self)

    def after_fork(self) -> None:
        """Nothing of the parent's is interrupted by a child."""
        self._guard = threading.Lock()
        self._cursors: WeakKeyDictionary[duckdb.DuckDBPyConnection, threading.Thread] = WeakKeyDictionary()

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        cursor = self._kept.cursor()
        with self._guard:
            self._cursors[cursor] = threading.current_thread()
        return cursor

    def interrupt(self, thread: threading.Thread | None) -> None:
        """End what now runs of relations that were made for a thread, or of all: they can be run again."""
        with self._guard:
            found = [cursor for cursor, maker in self._cursors.items() if thread in (None, maker)]
        for cursor in found:
            interrupt(cursor)

    def run(self, text: str, relations: Relations) -> duckdb.DuckDBPyRelation:
        """The rows of a query, lazily. ``text`` names each relation by its key, in double quotes and nowhere else.

        Raises `InvalidInput` for what DuckDB refuses. Sums of integers are 64 bits wide, as in Spark.
        """
        return _bound(self._cursor(), text, relations)

    def explain(self, text: str, relations: Relations) -> str:
        """DuckDB's plan of a query, a line an operator's line, with the rows that it expects of each."""
        opened = _confined(open_memory(temp_directory=""), self._warehouse)  # nothing is run, or spilled
        with opened as connection, watched(partial(interrupt, connection)):
            return _bound(connection, text, relations).explain().strip()

    def of_rows(self, rows: pa.Table) -> duckdb.DuckDBPyRelation:
        """Rows in memory as a relation, under the names that they have, even one name twice."""
        columns = (f"#{place} AS {sql.name(name)}" for place, name in enumerate(rows.column_names, 1))
        unnamed = rows.rename_columns([f"c{place}" for place in range(rows.num_columns)])
        return self._cursor().from_arrow(unnamed).project(sql.listed(columns))

    def close(self) -> None:
        """Let go of the database, which relations that were made keep for as long as they live: none is closed."""
        self._kept.let_go()


def _spilling(warehouse: Path, memory: int) -> duckdb.DuckDBPyConnection:
    return _confined(open_memory(memory_limit=f"{memory}B", **spilling()), warehouse)


def run_limited(text: str, relations: Relations, warehouse: Path, limits: QueryLimits) -> tuple[pa.Table, bool]:
    """The first rows of a query, and whether there are more. It gets a part of its memory, and ``spill`` on the disk.

    Raises `InvalidInput` for what DuckDB refuses. Nothing here measures time: who has to end it ends the process.
    """
    import duckdb  # noqa: PLC0415 - late

    memory = f"{limits.memory * (_PART_OF_MEMORY if limits.spill is None else _PART_WITH_DISK) // 100}B"
    spill = {"temp_directory": ""} if limits.spill is None else spilling(limits.spill)
    connection = _confined(open_memory(memory_limit=memory, **spill), warehouse, is_counted=True)
    try:
        found = _bound(connection, text, relations)
        with counted(connection, "query"):
            rows, is_cut = (_first if limits.spill is None else _whole)(found.limit(limits.rows + 1), limits)
        return rows.rename_columns(found.columns), is_cut  # of which a limit makes others, if a name is there twice
    except duckdb.OutOfMemoryException as error:
        raise MemoryError from error
    except duckdb.Error as error:
        raise explained(error) from error
    except MemoryError:
        raise
    except (pa.ArrowException, OSError) as error:  # how a stream tells of a row that fails after the first ones
        raise streamed(str(error)) from error
    finally:
        connection.close()


def streamed(cause: str) -> Exception:
    """What the text of a failed stream of rows means."""
    import duckdb  # noqa: PLC0415 - late

    if cause.startswith("Out of Memory Error"):
        return MemoryError(cause)
    return explained(duckdb.IOException(cause) if cause.startswith("IO Error") else duckdb.Error(cause))


def _whole(found: duckdb.DuckDBPyRelation, limits: QueryLimits) -> tuple[pa.Table, bool]:
    """All rows, within the memory that DuckDB may have."""
    rows = found.to_arrow_table()
    return rows.slice(0, limits.rows), rows.num_rows > limits.rows


def _first(relation: duckdb.DuckDBPyRelation, limits: QueryLimits) -> tuple[pa.Table, bool]:
    reader = relation.to_arrow_reader(_BATCH_ROWS)
    batches: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in reader:
        batches.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows > limits.rows or size > limits.bytes:
            break
    found = pa.Table.from_batches(batches, reader.schema)
    taken = min(rows, limits.rows)
    if size > limits.bytes:
        taken = bisect_right(range(1, taken + 1), limits.bytes, key=lambda count: found.slice(0, count).nbytes)
    return found.slice(0, taken), taken < rows


def _confined(
    connection: duckdb.DuckDBPyConnection, warehouse: Path, *, is_counted: bool = False
) -> duckdb.DuckDBPyConnection:
    """The database, from now on unable to reach any file beside a warehouse's, whatever it is asked.

    With ``is_counted`` it says how much of its statements is done, which cannot be asked for any more then.
    """
    if is_counted:
        keep_count(connection)
    connection.execute(f"SET allowed_directories = [{sql.text(str(warehouse))}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _bound(connection: duckdb.DuckDBPyConnection, text: str, relations: Relations) -> duckdb.DuckDBPyRelation:
    import duckdb  # noqa: PLC0415 - late

    try:
        statements = duckdb.extract_statements(_inlined(text, relations))
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise InvalidStatement("one query at a time")
        for name, rows in relations.items():
            if isinstance(rows, pa.Table):
                connection.register(name, rows)
        return _narrowed(connection.sql(statements[0]))
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        raise explained(error) from error


def _inlined(text: str, relations: Relations) -> str:
    """The query with each relation's own query in place of its name, so that conditions and columns reach files."""
    texts = {name: rows for name, rows in relations.items() if isinstance(rows, str)}
    if not texts:
        return text
    names = "|".join(map(re.escape, texts))
    return re.sub(f'"({names})"', lambda found: f"({texts[found[1]]})", text)


def explained(error: duckdb.Error) -> InvalidInput | SegmentUnreadable:
    """What DuckDB refuses, or cannot read, as an error of ours. It can reach no file but the tables' own."""
    import duckdb  # noqa: PLC0415 - late

    cause = _words_of(error)
    if isinstance(error, duckdb.OutOfMemoryException):
        return QueryLimitExceeded(
            "the statement needs more memory, or more of the disk for what memory does not hold, than it may use "
            'in process; ask for fewer rows or columns, or use engine="spark"',
            limit="memory",
            cause=cause,
        )
    if TOO_MANY in cause:
        return QueryLimitExceeded(TOO_MANY, limit="steps", most=MOST_STEPS)
    if isinstance(error, duckdb.IOException):
        return SegmentUnreadable("data file is missing or malformed; restore it from a copy", cause=cause)
    return InvalidStatement(
        'the in-process engine refuses the statement; correct it, or use engine="spark"', cause=cause
    )


def _words_of(error: duckdb.Error) -> str:
    r"""What DuckDB says, with candidates that it names; without the statement, which is not as it was written.

    >>> import duckdb
    >>> said = "Binder Error: no f\n\tCandidate functions:\n\tf(BIGINT)\n\tf(DATE)\n\nLINE 1: SELECT f()"
    >>> _words_of(duckdb.BinderException(said))
    'Binder Error: no f Candidate functions: f(BIGINT); f(DATE)'
    """
    said = str(error).partition("\n\n")[0].partition("\nLINE ")[0]
    first, *others = (line.strip() for line in said.splitlines() or [""])
    headline, *names = list(dropwhile(lambda line: not line.startswith("Candidate"), others)) or [""]
    more = ["..."] if len(names) > _MOST_CANDIDATES else []
    return f"{first[:300]} {headline} {'; '.join([*names[:_MOST_CANDIDATES], *more])}".strip()


def is_refusal(error: BaseException | None) -> bool:
    """Whether DuckDB refused a statement by its words alone: it opened no file, or found it sound."""
    import duckdb  # noqa: PLC0415 - late

    return isinstance(error, duckdb.BinderException | duckdb.CatalogException | duckdb.ParserException)


def read_relation(rows: duckdb.DuckDBPyRelation) -> pa.Table:
    """All rows of a query. Raises `InvalidInput` where the query fails on some row."""
    import duckdb  # noqa: PLC0415 - late

    try:
        return rows.to_arrow_table()
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        raise explained(error) from error


def filtered(batches: Iterable[pa.RecordBatch], columns: Sequence[str], where: str | None) -> Iterator[pa.Table]:
    """Columns of the rows that pass a filter, which was checked and is in DuckDB's words; a batch at a time."""
    import duckdb  # noqa: PLC0415 - late

    chosen = sql.listed(map(sql.name, columns))
    with open_memory() as connection:
        for batch in batches:
            rows = connection.from_arrow(pa.Table.from_batches([batch]))
            try:
                yield (rows if where is None else rows.filter(where)).project(chosen).to_arrow_table()
            except duckdb.Error as error:
                raise explained(error) from error


@contextmanager
def naming_ends() -> Iterator[None]:
    """Say by name that DuckDB ran out of memory, or that it was Ctrl-C of which its client made another error."""
    import duckdb  # noqa: PLC0415 - late

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise explained(error) from error
    except RuntimeError as error:
        if type(error) is RuntimeError and error.args == ("Query interrupted",):  # which has no class of its own
            raise KeyboardInterrupt from error
        raise


def _narrowed(rows: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    wide = [str(kind) == "HUGEINT" for kind in rows.types]
    if not any(wide):
        return rows
    columns = [f"#{place}" for place in range(1, len(wide) + 1)]
    listed = [
        f"CAST({column} AS BIGINT) AS {sql.name(name)}" if is_wide else column
        for column, name, is_wide in zip(columns, rows.columns, wide, strict=True)
    ]
    return rows.project(sql.listed(listed))
