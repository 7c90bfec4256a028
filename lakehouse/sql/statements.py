"""What a lake does by SQL: the part of `Lake` that runs statements, and lets others do so."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal

from lakehouse.arguments import Args
from lakehouse.core.interval import AsOf
from lakehouse.session.session import Session

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from lakehouse.sql.looking import Answer


class Statements:
    """Statements over one lake, and its views."""

    session: Session

    def sql(
        self,
        text: str,
        *,
        args: Args | None = None,
        as_of: AsOf | None = None,
        engine: Literal["spark", "duckdb"] | None = None,
        memory_bytes: int | None = None,
        seconds: float | None = None,
        rows: int | None = None,
    ) -> Any:
        """Run one statement of Spark's SQL over the lake's tables.

        A query returns a lazy DuckDB relation, made in process. It returns a lazy Spark frame with ``engine="spark"``,
        and without an engine if it uses what is Spark's alone, or opens more files than is sensible in process. INSERT,
        DELETE, UPDATE and MERGE return their `Commit`; SHOW and DESCRIBE an Arrow table; CREATE TABLE the table;
        several changes between BEGIN and COMMIT one commit of them all.

        ``memory_bytes``, ``seconds`` and ``rows`` limit a query in process: it then runs at once, in a process of its
        own, and its rows come back whole, as a relation, or `QueryLimitExceeded` says which limit it reached. `cancel`
        ends what runs.

        ``VERSION AS OF 7`` (or a tag) or ``TIMESTAMP AS OF '2013-01-05'`` may follow a table's name; other tables are
        read at ``as_of``, by default all at the current head. Conditions are pushed into the scans, which prune files.
        Times without an offset are UTC.

        ``args``: values for each ``?`` in order, or by name for each ``:name``: None, bool, int, float, Decimal, str,
        bytes, date or datetime (without a zone: UTC). They become literals of the parsed statement, never text of it.

        The text may come from anyone: anything not on a closed list of constructs and functions is refused, and names
        mean only the lake's tables. Raises `InvalidInput`, which names what is refused, `TableNotFound`,
        `VersionNotFound`, `StatementCancelled`, and what the table's own methods raise.

        Examples
        --------
        >>> import tempfile, lakehouse
        >>> folder = tempfile.mkdtemp()
        >>> lake = lakehouse.connect(f"sqlite:///{folder}/catalog.db", f"{folder}/warehouse")
        >>> lake.sql("CREATE TABLE trips (at TIMESTAMP, client BIGINT) PARTITIONED BY (days(at))")
        <table trips by day of at, 2 columns>
        >>> lake.sql("INSERT INTO trips VALUES ('2013-01-05 07:00', 12), ('2013-01-05 08:00', 77)").rows_added
        2
        >>> lake.sql("SELECT max(client) AS last FROM trips VERSION AS OF 2").fetchall()
        [(77,)]
        >>> lake.sql("SELECT client FROM trips", rows=1)
        Traceback (most recent call last):
        lakehouse.errors.QueryLimitExceeded: the result has more rows than its limit; ... (limit=rows most_rows=1)
        >>> lake.sql("DELETE FROM trips WHERE client = :client", args={"client": 12}).rows_deleted
        1
        >>> lake.close()
        """
        from lakehouse.sql.asking import Limits  # noqa: PLC0415 - late
        from lakehouse.sql.run import run_statement  # noqa: PLC0415 - late

        limits = Limits.of(memory_bytes=memory_bytes, seconds=seconds, rows=rows)
        return run_statement(self.session, text, as_of=as_of, engine=engine, args=args, limits=limits)

    def cancel(self, thread: Thread | None = None) -> None:
        """Cancel what `sql` and `query` of this lake run for a thread, or for all, and return at once.

        A call that runs raises `StatementCancelled`, and has changed nothing; one that is being committed goes on. A
        relation that is being read raises DuckDB's ``InterruptException``, and can be read again; its thread is the one
        that called `sql`. Spark ends its jobs itself: a change by Spark is cancelled when its rows are written.

        >>> lake.cancel()
        >>> lake.sql("SELECT count(*) FROM flights").fetchall()
        [(3,)]
        """
        self.session.cancel(thread)

    def query(
        self,
        text: str,
        *,
        args: Args | None = None,
        as_of: AsOf | None = None,
        most_rows: int = 1000,
        most_bytes: int = 64_000_000,
        most_seconds: float = 30.0,
        most_memory: int = 1_000_000_000,
    ) -> Answer:
        """Query by SQL, without Spark: the first rows, and what each table's scan opens and leaves out, and why.

        Takes queries, SHOW, DESCRIBE and EXPLAIN, as decided from the parsed statement. Rows beyond ``most_rows`` and
        ``most_bytes`` are left out, and ``is_cut`` says so. ``args`` as of `sql`.

        Everything from parsing on runs in a query process, which is killed after ``most_seconds`` and cannot use more
        than ``most_memory`` bytes. Its start, half a second, is not counted, and it is kept for the next query.
        Raises `QueryLimitExceeded` when one of the two limits is reached; `InvalidInput` for anything that could change
        a table; else as `sql`.

        Examples
        --------
        >>> import tempfile, lakehouse
        >>> folder = tempfile.mkdtemp()
        >>> with lakehouse.connect(f"sqlite:///{folder}/catalog.db", f"{folder}/warehouse") as lake:
        ...     lake.query("SELECT 1 AS one").rows.to_pylist()
        [{'one': 1}]
        """
        from lakehouse.sql.asking import Allowed, ask_apart  # noqa: PLC0415 - late

        allowed = Allowed.of(rows=most_rows, bytes=most_bytes, seconds=most_seconds, memory=most_memory)
        return ask_apart(self.session, text, as_of, allowed, args)

    def duckdb(self, as_of: AsOf | None = None, *, tables: Sequence[str] | None = None) -> DuckDBPyConnection:
        """A DuckDB connection of the caller's own, in which each table is a view at one version, by default the head.

        It shows that version for as long as it lives, and protects it from expiry until it is closed or gone, or the
        lake is closed. ``tables``: only these. It is for trusted SQL: see docs/interop.md. Cost: the live segments of
        the tables, whose files are verified now. Raises `VersionNotFound`, `TableNotFound`, `SegmentUnreadable`, and
        `InvalidArgument` for tables that DuckDB cannot tell apart.

        >>> with lake.duckdb() as connection:
        ...     connection.execute("SELECT carrier, sum(delay) FROM flights GROUP BY ALL ORDER BY ALL").fetchall()
        [('DL', 30), ('UA', 3)]
        """
        from lakehouse.sql.duckdb_views import open_views  # noqa: PLC0415 - late

        opened: DuckDBPyConnection = open_views(self.session, as_of, tables)
        return opened

    def views(self) -> list[str]:
        """Names of the views, sorted."""
        from lakehouse.sql.define_view import view_names  # noqa: PLC0415 - late

        return view_names(self.session)

    def create_view(
        self,
        name: str,
        query: str,
        *,
        columns: Sequence[str] | None = None,
        comment: str | None = None,
        or_replace: bool = False,
        if_not_exists: bool = False,
    ) -> None:
        """Store a query under a name, which statements read like a table: `CREATE VIEW`, as one version.

        ``columns``: what the view calls the query's columns. Reads no row. Raises `AlreadyExists`, `InvalidName`,
        `InvalidStatement`, `TableNotFound`.

        >>> lake.create_view("late", "SELECT id, delay FROM flights WHERE delay > 15", comment="more than 15 minutes")
        >>> lake.views(), lake.sql("SELECT count(*) AS n FROM late", engine="duckdb").fetchall()
        (['late'], [(1,)])
        """
        from lakehouse.sql.define_view import create_view  # noqa: PLC0415 - late

        create_view(self.session, name, query, columns, comment, or_replace=or_replace, if_not_exists=if_not_exists)

    def drop_view(self, name: str) -> None:
        """Drop a view; versions before still have it. Raises `ViewNotFound`."""
        from lakehouse.sql.define_view import drop_view  # noqa: PLC0415 - late

        drop_view(self.session, name)
