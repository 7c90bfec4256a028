"""A lake: a catalog and a warehouse, and the tables in them."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Literal, Self

from lakehouse.admin.check import add_checksums as add_checksums_to
from lakehouse.admin.check import check
from lakehouse.admin.check_rows import check_rows
from lakehouse.admin.collect import GRACE_SECONDS, collect
from lakehouse.admin.expire import expire
from lakehouse.admin.export import Exported, write_export
from lakehouse.arguments import read_limit, read_message, read_properties, read_seconds, read_task_id, read_wait
from lakehouse.catalog.catalog import Catalog
from lakehouse.core.activity import Activity, RunningOperation
from lakehouse.core.check import Checked
from lakehouse.core.commit import Commit
from lakehouse.core.expire import Collected, Expired, RetentionRequest
from lakehouse.core.listing import Listing
from lakehouse.core.spec import WriteOrder
from lakehouse.core.task import Maintained, Task, TaskState, Worker
from lakehouse.errors import InvalidArgument
from lakehouse.schema import check_table_name
from lakehouse.service.rounds import Limits, maintain, plan_tasks, run_one
from lakehouse.session.addresses import addresses
from lakehouse.session.session import Session
from lakehouse.sql import Allowed, Answer, ask_apart, create_view, drop_view, open_views, run_statement, view_names
from lakehouse.sql import Limits as QueryLimits
from lakehouse.storage.paths import warehouse_path
from lakehouse.storage.sets import read_set
from lakehouse.table.table import Table
from lakehouse.table.tables import create_table, open_table, table_names
from lakehouse.table.transaction import Transaction


def connect(
    catalog: str | None = None,
    warehouse: str | os.PathLike[str] | None = None,
    *,
    spark: Any = None,
    lease_seconds: float = 60.0,
    wait_seconds: float = 30.0,
    pin_seconds: float = 3600.0,
) -> Lake:
    """Open a lake; create it if there is none.

    Parameters
    ----------
    catalog
        ``sqlite:///path`` or ``postgresql+psycopg://user@host/database``; default ``$LAKEHOUSE_CATALOG``, else SQLite
        in ``./.lakehouse/``.
    warehouse
        A path or ``file://`` URI; default ``$LAKEHOUSE_WAREHOUSE``, else ``./.lakehouse/warehouse``.
    spark
        A SparkSession, classic or Connect. Without one, a local session starts when an operation first needs it. `sql`
        runs in process all the same where it can; ``engine="spark"`` asks for it.
    lease_seconds
        How long an operation keeps its locks after its process has stopped renewing them.
    wait_seconds
        How long a replace or restore waits for another's locks before it raises `LockTimeout`, and how long updates,
        erasures and compactions retry after conflicts.
    pin_seconds
        How long a lazy result (a Spark frame, a DuckDB relation, a stream) protects its version from expiry, while this
        process lives. A `Scan` protects its own for as long as it exists.

    Raises
    ------
    CatalogUnavailable
        The catalog's database does not answer.
    InvalidInput
        An address has an unknown form.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with connect(f"sqlite:///{folder}/catalog.db", f"{folder}/warehouse") as lake:
    ...     lake.tables(), lake.head
    ([], 0)
    """
    url, place = addresses(catalog, warehouse)
    root = warehouse_path(place)
    return Lake(
        Session(
            Catalog(url, lease_seconds=read_seconds(lease_seconds, "lease_seconds"), read_file=partial(read_set, root)),
            root,
            spark=spark,
            wait_seconds=read_wait(wait_seconds),
            pin_seconds=read_seconds(pin_seconds, "pin_seconds"),
        )
    )


class Lake:
    """Tables under one sequence of versions. Thread-safe; a context manager."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @property
    def catalog(self) -> Catalog:
        """The catalog: tables, versions and locks."""
        return self.session.catalog

    @property
    def warehouse(self) -> Path:
        """The folder of the tables' files."""
        return self.session.warehouse

    @property
    def spark(self) -> Any:
        """The Spark session; a local one starts now if none was given. Raises `EngineUnavailable`."""
        return self.session.spark

    # Tables

    def create_table(
        self,
        name: str,
        schema: Any,
        *,
        time: str,
        grain: str = "day",
        primary_key: Sequence[str] = (),
        cluster_by: Sequence[str] | Mapping[str, int] = (),
        write_order: WriteOrder = "commit",
        properties: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
    ) -> Table:
        """Create a table and return it; with ``if_not_exists``, return an existing one, whatever its definition.

        ``schema``: a `pyarrow.Schema`, a Spark ``StructType``, or DDL text. ``time``: the column of a row's time, a
        timestamp or date. ``grain``: length of a time chunk: hour, day, week, month or year. ``primary_key``: columns
        by which upserts match rows. ``cluster_by``: columns by which plans and locks distinguish rows of one chunk,
        with a number of hash buckets if they have many values. ``write_order``: ``commit`` (the later commit wins) or
        ``start``. Raises `AlreadyExists`, `InvalidName`, `InvalidSchema`, `InvalidProperty`.

        >>> stops = lake.create_table("stops", "at TIMESTAMP, line INT", time="at", grain="month", cluster_by=["line"])
        >>> stops
        <table stops by month of at, 2 columns>
        """
        return create_table(
            self.session,
            name,
            schema,
            time=time,
            grain=grain,
            primary_key=primary_key,
            cluster_by=cluster_by,
            write_order=write_order,
            properties=properties,
            if_not_exists=if_not_exists,
        )

    def table(self, name: str) -> Table:
        """A table by name. Raises `TableNotFound`.

        >>> lake.table("flights").count()
        3
        """
        return open_table(self.session, name)

    def tables(self) -> list[str]:
        """Names of the tables, sorted."""
        return table_names(self.session)

    def drop_table(self, name: str) -> None:
        """Drop a table. Raises `TableNotFound`."""
        self.catalog.drop_table(name)

    def rename_table(self, old: str, new: str) -> None:
        """Rename a table; files and history stay where they are. Raises `TableNotFound`, `AlreadyExists`.

        >>> lake.rename_table("flights", "departures")
        >>> lake.tables()
        ['departures']
        """
        self.catalog.rename_table(old, check_table_name(new))

    def views(self) -> list[str]:
        """Names of the views, sorted."""
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
        create_view(self.session, name, query, columns, comment, or_replace=or_replace, if_not_exists=if_not_exists)

    def drop_view(self, name: str) -> None:
        """Drop a view; versions before still have it. Raises `ViewNotFound`."""
        drop_view(self.session, name)

    # Versions

    @property
    def head(self) -> int:
        """The newest version; 0 for a new lake."""
        return self.catalog.head()

    def log(self, limit: int | None = None) -> Listing[Commit]:
        """Every version, newest first."""
        return self.catalog.commits(limit=read_limit(limit))

    def tag(self, name: str, version: Any = None) -> None:
        """Name a version, tag or time (None: the head), which protects it from expiry.

        Raises `AlreadyExists` if the tag names another version, `InvalidName`, `VersionNotFound`.

        >>> lake.tag("january")
        >>> gone = flights.delete("TRUE")
        >>> flights.scan(as_of="january").count()
        3
        """
        self.catalog.tag(name, version)

    def tags(self) -> dict[str, int]:
        """Versions by tag."""
        return self.catalog.tags()

    def untag(self, name: str) -> None:
        """Remove a tag. Raises `VersionNotFound`."""
        self.catalog.untag(name)

    def transaction(self, *, message: str | None = None, properties: Mapping[str, str] | None = None) -> Transaction:
        """Collect operations on several tables and commit them as one version, all or none."""
        return Transaction(self.session, message=read_message(message), properties=read_properties(properties))

    def operations(self) -> Listing[RunningOperation]:
        """Running operations, oldest first: whose, since when, and the rest of their leases."""
        return self.activity().operations

    def activity(self) -> Activity:
        """Running operations, the locks of all tables, and who waits for whom, at one moment.

        An in-process append in one call is listed once it has run for a heartbeat, a third of a lease.
        """
        return self.catalog.activity()

    def release(self, operation_id: str) -> None:
        """End any running operation and release its locks: its commit then fails with `LockLost`.

        For administrators. A dead process needs no such help: its lease expires by itself. Raises `InvalidInput` if no
        such operation runs.
        """
        self.catalog.release(operation_id)

    # SQL

    def sql(
        self,
        text: str,
        *,
        args: Sequence[Any] | Mapping[str, Any] | None = None,
        as_of: Any = None,
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
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> lake = connect(f"sqlite:///{folder}/catalog.db", f"{folder}/warehouse")
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
        limits = QueryLimits.of(memory_bytes=memory_bytes, seconds=seconds, rows=rows)
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
        args: Sequence[Any] | Mapping[str, Any] | None = None,
        as_of: Any = None,
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
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with connect(f"sqlite:///{folder}/catalog.db", f"{folder}/warehouse") as lake:
        ...     lake.query("SELECT 1 AS one").rows.to_pylist()
        [{'one': 1}]
        """
        allowed = Allowed.of(rows=most_rows, bytes=most_bytes, seconds=most_seconds, memory=most_memory)
        return ask_apart(self.session, text, as_of, allowed, args)

    def duckdb(self, as_of: Any = None, *, tables: Sequence[str] | None = None) -> Any:
        """A DuckDB connection of the caller's own, in which each table is a view at one version, by default the head.

        It shows that version for as long as it lives, and protects it from expiry until it is closed or gone, or the
        lake is closed. ``tables``: only these. It is for trusted SQL: see docs/interop.md. Cost: the live segments of
        the tables, whose files are verified now. Raises `VersionNotFound`, `TableNotFound`, `SegmentUnreadable`, and
        `InvalidArgument` for tables that DuckDB cannot tell apart.

        >>> with lake.duckdb() as connection:
        ...     connection.execute("SELECT carrier, sum(delay) FROM flights GROUP BY ALL ORDER BY ALL").fetchall()
        [('DL', 30), ('UA', 3)]
        """
        return open_views(self.session, as_of, tables)

    # Clean-up

    def expire(self, *, older_than: Any = None, keep_last: int | None = None, dry_run: bool = False) -> Expired:
        """Expire old versions and report the result; with ``dry_run`` only report it.

        ``older_than``: a time, or an age as a timedelta, seconds or text such as "30d": the version that was newest
        then, and all later ones, are kept. ``keep_last``: this many versions are kept. With both, what either keeps.

        Always kept are the head, tagged versions, each table's newest version at any of these, and what a reader or
        running operation holds, with everything newer. Files are deleted later: see `collect`. Traces of ended
        operations, ``txn`` marks beyond their table's ``txn_retention``, and dropped tables are removed too. Cost: what
        is expired. Raises `InvalidArgument` if neither is given.

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with connect(f"sqlite:///{folder}/catalog.db", f"{folder}/warehouse") as lake:
        ...     lake.expire(older_than="30d", keep_last=10)
        Expired(versions=0, segments=0, tombstones=0, bytes=0, horizon=0)
        """
        return expire(self.session, RetentionRequest.of(older_than, keep_last), dry_run=dry_run)

    def collect(self, *, grace_seconds: float = GRACE_SECONDS, dry_run: bool = False) -> Collected:
        """Delete files that nothing can reach and report the result; with ``dry_run`` only report it.

        These are files of expired segments, and files of operations that were aborted or whose lease expired, each more
        than ``grace_seconds`` ago. The catalog alone says which: no folder is searched.

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with connect(f"sqlite:///{folder}/catalog.db", f"{folder}/warehouse") as lake:
        ...     lake.collect()
        Collected(files=0, bytes=0, operations=0)
        """
        return collect(self.session, grace_seconds=read_seconds(grace_seconds, "grace_seconds"), dry_run=dry_run)

    def check(
        self,
        *,
        rebuild_key_frames: bool = False,
        delete_unknown: bool = False,
        deep: bool = False,
        add_checksums: bool = False,
    ) -> Checked:
        """Compare the catalog with itself and with what is stored, and list what is wrong.

        ``rebuild_key_frames`` writes every key frame again. ``delete_unknown`` deletes files in tables' folders that
        the catalog does not explain, if they are a day old. Cost: every delta and key frame, and the size of every
        file. ``deep`` reads files: every byte of those with a checksum, then every live row, to compare it with the
        catalog, and the inputs and outputs of each maintenance commit. ``add_checksums`` then adds checksums to sound
        files written before there were any.

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with connect(f"sqlite:///{folder}/catalog.db", f"{folder}/warehouse") as lake:
        ...     lake.check().is_sound
        True
        """
        checks = self.catalog.checks()
        found = check(
            checks, self.warehouse, rebuild_key_frames=rebuild_key_frames, delete_unknown=delete_unknown, content=deep
        )
        if deep:
            rows = check_rows(self.session, {one.subject for one in found.findings})
            found = replace(found, findings=Listing([*found.findings, *rows]))
        if add_checksums:
            made = add_checksums_to(checks, self.warehouse, {one.subject for one in found.findings})
            found = replace(found, unsummed=found.unsummed - made)
        return found

    # The table service

    def maintain(
        self,
        *,
        table: str | None = None,
        budget_bytes: int | None = None,
        dry_run: bool = False,
        engine: str | None = None,
        workers: Collection[Worker] = tuple(Worker),
        properties: Mapping[str, str] | None = None,
    ) -> Maintained:
        """Run one round of maintenance: plan tables that changed, then run tasks by score until none is left.

        ``budget_bytes``: what the tasks may read together. ``engine``: ``spark`` compacts with Spark, otherwise in
        process. ``dry_run`` returns what would be done first, and why, and writes nothing. No row changes, and users'
        operations neither wait nor fail because of it. ``properties`` are stored with the versions that it makes.

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with connect(f"sqlite:///{folder}/catalog.db", f"{folder}/warehouse") as lake:
        ...     [task.kind.value for task in lake.maintain().tasks]
        ['collect']
        """
        kept = read_properties(properties) or {}
        return maintain(self.session, Limits(workers, table, read_limit(budget_bytes), engine, kept), dry_run=dry_run)

    def plan_tasks(self, *, table: str | None = None, dry_run: bool = False) -> Listing[Task]:
        """Plan what is worth doing now (for one table), and return the waiting tasks, best first."""
        return plan_tasks(self.session, table, dry_run=dry_run)

    def tasks(self, *, table: str | None = None, state: str | None = None, limit: int | None = None) -> Listing[Task]:
        """Tasks of the table service, newest first; those in state ``waiting`` best first."""
        if state is not None and state not in tuple(TaskState):
            raise InvalidArgument("no such state; use waiting, running, done, failed or cancelled", state=state)
        chosen = None if table is None else self.table(table).spec.id
        held = None if state is None else TaskState(state)
        return self.catalog.tasks().tasks(table=chosen, state=held, limit=read_limit(limit))

    def run_task(self, task_id: int, *, engine: str | None = None, properties: Mapping[str, str] | None = None) -> Task:
        """Run a waiting task now, and return it with its result. Raises `InvalidInput` if it does not wait."""
        return run_one(self.session, read_task_id(task_id), engine=engine, properties=read_properties(properties))

    def cancel_task(self, task_id: int) -> None:
        """Cancel a waiting or running task; a running one commits nothing more.

        Raises `InvalidInput` if it has ended.
        """
        operation = self.catalog.tasks().cancel(read_task_id(task_id))
        if operation is not None:
            self.catalog.release(operation, if_running=True)

    # Recovery

    def export(self, *, keep: int = 3) -> Exported:
        """Write the catalog's state at the head and the tags into the warehouse, consistently.

        `lakehouse.recover` makes a new catalog from it if this one is lost. The newest ``keep`` exports stay.
        """
        return write_export(self.catalog, self.warehouse, keep=keep)

    def close(self) -> None:
        """Close the catalog's connections. The Spark session keeps running."""
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<lake {self.catalog.url} in {self.warehouse}>"
