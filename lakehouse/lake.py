"""A lake: a catalog and a warehouse, and the tables in them."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from lakehouse.arguments import read_limit, read_message, read_properties, read_seconds, read_task_id, read_wait
from lakehouse.catalog.catalog import Catalog
from lakehouse.core.activity import Activity, RunningOperation
from lakehouse.core.check import Checked
from lakehouse.core.commit import Commit
from lakehouse.core.consumer import Consumer
from lakehouse.core.erased import Verified
from lakehouse.core.expire import GRACE_SECONDS, Collected, Expired, RetentionRequest
from lakehouse.core.interval import AsOf
from lakehouse.core.listing import Listing
from lakehouse.core.spec import WriteOrder
from lakehouse.core.task import Maintained, Task, TaskState, Worker
from lakehouse.core.topic import Topic
from lakehouse.errors import InvalidArgument
from lakehouse.schema import check_table_name
from lakehouse.session.addresses import addresses
from lakehouse.session.session import Session
from lakehouse.sql.statements import Statements
from lakehouse.storage.cache import Cache
from lakehouse.storage.opening import open_warehouse
from lakehouse.storage.sets import read_set
from lakehouse.table.load_rules import ServedTables
from lakehouse.table.named import NamedTables
from lakehouse.table.table import Table
from lakehouse.table.tables import create_table

if TYPE_CHECKING:
    import pyspark.sql

    from lakehouse.admin.export import Exported
    from lakehouse.arguments import Age, SchemaLike, Spark
    from lakehouse.table.transaction import Transaction


def connect(
    catalog: str | None = None,
    warehouse: str | os.PathLike[str] | None = None,
    *,
    spark: Spark | None = None,
    lease_seconds: float = 60.0,
    wait_seconds: float = 30.0,
    pin_seconds: float = 3600.0,
    storage_options: Mapping[str, Any] | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    cache_bytes: int | None = None,
) -> Lake:
    """Open a lake; create it if there is none.

    Parameters
    ----------
    catalog
        ``sqlite:///path`` or ``postgresql+psycopg://user@host/database``; default ``$LAKEHOUSE_CATALOG``, else SQLite
        in ``./.lakehouse/``.
    warehouse
        A path, ``file://`` URI, or an object store's ``s3://bucket/prefix``, ``gs://`` or ``az://``; default
        ``$LAKEHOUSE_WAREHOUSE``, else ``./.lakehouse/warehouse``.
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
    storage_options
        Of an object store: ``endpoint``, ``region``, ``access_key_id``, ``secret_access_key``, ``allow_http`` and what
        else `obstore` knows; default ``LAKEHOUSE_STORAGE_*``, else the usual ``AWS_*``, ``GOOGLE_*``, ``AZURE_*``.
    cache_dir, cache_bytes
        Where copies of an object store's files lie on this machine, and how many bytes they may take: default
        ``$LAKEHOUSE_CACHE_DIR``, else ``~/.cache/lakehouse``; ``$LAKEHOUSE_CACHE_BYTES``, else 20 GiB.

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
    opened = open_warehouse(place, storage_options, cache_dir, cache_bytes)
    return Lake(
        Session(
            Catalog(
                url, lease_seconds=read_seconds(lease_seconds, "lease_seconds"), read_file=partial(read_set, opened)
            ),
            opened,
            spark=spark,
            wait_seconds=read_wait(wait_seconds),
            pin_seconds=read_seconds(pin_seconds, "pin_seconds"),
        )
    )


_open: WeakSet[Lake] = WeakSet()


def open_lakes() -> list[Lake]:
    """The lakes that this process has open."""
    return list(_open)


class Lake(NamedTables, Statements, ServedTables):
    """Tables under one sequence of versions. Thread-safe; a context manager."""

    def __init__(self, session: Session) -> None:
        self.session = session
        _open.add(self)

    @property
    def catalog(self) -> Catalog:
        """The catalog: tables, versions and locks."""
        return self.session.catalog

    @property
    def warehouse(self) -> Path | str:
        """The folder of the tables' files, or the URL of the object store."""
        warehouse = self.session.warehouse
        return warehouse.root if warehouse.cache is None else warehouse.address

    @property
    def cache(self) -> Cache:
        """The copies of an object store's files on this machine. Raises `InvalidArgument` for a folder."""
        cache = self.session.warehouse.cache
        if cache is None:
            raise InvalidArgument("a warehouse in a folder needs no cache", warehouse=self.session.warehouse.address)
        return cache

    @property
    def spark(self) -> pyspark.sql.SparkSession:
        """The Spark session; a local one starts now if none was given. Raises `EngineUnavailable`."""
        found: pyspark.sql.SparkSession = self.session.spark
        return found

    # Tables

    def create_table(
        self,
        name: str,
        schema: SchemaLike,
        *,
        time: str | None = None,
        grain: str | None = None,
        primary_key: Sequence[str] = (),
        cluster_by: Sequence[str] | Mapping[str, int] = (),
        write_order: WriteOrder = "commit",
        properties: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
    ) -> Table:
        """Create a table and return it; with ``if_not_exists``, return an existing one, whatever its definition.

        ``schema``: a `pyarrow.Schema`, a Spark ``StructType``, or DDL text. ``time``: the column of a row's time, a
        timestamp or date; None for rows without one, as of look-ups, which all lie in one chunk: all of time.
        ``grain``: length of a time chunk: hour, day (None), week, month or year. ``primary_key``: columns by which
        upserts match rows. ``cluster_by``: columns by which plans and locks distinguish rows of one chunk,
        with a number of hash buckets if they have many values. ``write_order``: ``commit`` (the later commit wins) or
        ``start``. Raises `AlreadyExists`, `InvalidName`, `InvalidSchema`, `InvalidProperty`.

        >>> stops = lake.create_table("stops", "at TIMESTAMP, line INT", time="at", grain="month", cluster_by=["line"])
        >>> stops
        <table stops by month of at, 2 columns>
        >>> lake.create_table("lines", "line INT, name STRING", primary_key=["line"])
        <table lines, 2 columns>
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

    # Versions

    @property
    def head(self) -> int:
        """The newest version; 0 for a new lake."""
        return self.catalog.head()

    def log(self, limit: int | None = None) -> Listing[Commit]:
        """Every version, newest first."""
        return self.catalog.commits(limit=read_limit(limit))

    def tag(self, name: str, version: AsOf | None = None) -> None:
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

    def consumers(self) -> Listing[Consumer]:
        """Readers that `Table.follow` and Spark's streams keep a place for, by name: where each is, and how far behind.

        >>> batches = flights.follow(consumer="ledger", wait_seconds=0)
        >>> [(one.name, one.table, one.lag) for one in lake.consumers()], sum(batch.rows.num_rows for batch in batches)
        ([('ledger', 'flights', 1)], 3)
        >>> [one.lag for one in lake.consumers()], lake.drop_consumer("ledger")
        ([0], None)
        """
        return self.catalog.consumers()

    def drop_consumer(self, name: str) -> None:
        """Forget a consumer's place, so that what it has yet to read may expire. Raises `ConsumerNotFound`."""
        self.catalog.drop_consumer(name)

    def topics(self) -> Listing[Topic]:
        """Streams that processes run or ran by ``lakehouse stream run``, by name, as they reported them last.

        Each has its ``state``, its ``progress`` (rows, last batch and version, lag, restarts, last error) and its
        ``health()``; see `lakehouse.core.topic`. Cost: one small read.

        >>> lake.topics()
        []
        """
        return self.catalog.topics()

    def forget_topic(self, name: str) -> None:
        """Remove a topic that is not to run any more from those that are listed. Raises `TopicNotFound`."""
        self.catalog.forget_topic(name)

    def transaction(self, *, message: str | None = None, properties: Mapping[str, str] | None = None) -> Transaction:
        """Collect operations on several tables and commit them as one version, all or none."""
        from lakehouse.table.transaction import Transaction  # noqa: PLC0415 - late

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

    # Clean-up

    def expire(self, *, older_than: Age | None = None, keep_last: int | None = None, dry_run: bool = False) -> Expired:
        """Expire old versions and report the result; with ``dry_run`` only report it.

        ``older_than``: a time, or an age as a timedelta, seconds or text such as "30d": the version that was newest
        then, and all later ones, are kept. ``keep_last``: this many versions are kept. With both, what either keeps.

        Always kept are the head, tagged versions, each table's newest version at any of these, and what a reader or
        running operation holds, with everything newer; ``held`` of the result says which of these held more back. Files
        are deleted later: see `collect`. Traces of ended operations, ``txn`` marks beyond their table's
        ``txn_retention``, and dropped tables are removed too. Cost: what is expired. Raises `InvalidArgument` if
        neither is given.

        >>> lake.expire(older_than="30d", keep_last=10)
        Expired(versions=0, segments=0, tombstones=0, bytes=0, horizon=0, held='')
        """
        from lakehouse.admin.expire import expire  # noqa: PLC0415 - late

        return expire(self.session, RetentionRequest.of(older_than, keep_last), dry_run=dry_run)

    def collect(self, *, grace_seconds: float = GRACE_SECONDS, dry_run: bool = False) -> Collected:
        """Delete files that nothing can reach and report the result; with ``dry_run`` only report it.

        These are files of expired segments, and files of operations that were aborted or whose lease expired, each more
        than ``grace_seconds`` ago. The catalog alone says which: no folder is searched. In a store, uploads in parts
        that such operations did not complete are aborted.

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with connect(f"sqlite:///{folder}/catalog.db", f"{folder}/warehouse") as lake:
        ...     lake.collect()
        Collected(files=0, bytes=0, operations=0)
        """
        from lakehouse.admin.collect import collect  # noqa: PLC0415 - late

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
        from lakehouse.admin import check, check_rows  # noqa: PLC0415 - late

        checks = self.catalog.checks()
        found = check.check(
            checks,
            self.session.warehouse,
            rebuild_key_frames=rebuild_key_frames,
            delete_unknown=delete_unknown,
            content=deep,
        )
        if deep:
            rows = check_rows.check_rows(self.session, {one.subject for one in found.findings})
            found = replace(found, findings=Listing([*found.findings, *rows]))
        if add_checksums:
            made = check.add_checksums(checks, self.session.warehouse, {one.subject for one in found.findings})
            found = replace(found, unsummed=found.unsummed - made)
        return found

    def verify_erased(
        self, table: str | None = None, where: str | None = None, *, values: Sequence[Any] = (), vacuum: bool = False
    ) -> Verified:
        """Search everything that the lake keeps for values that were erased, and list each place that has one.

        Read are all files of the warehouse (garbage, operations that did not commit and exports too), of an object
        store also this machine's copies, and every row of the catalog: as bytes, and Parquet, Arrow and the catalog's
        pages decoded. ``table`` and ``where`` are those of
        the erasure, if its condition is a list of ``column = value``, joined by OR; its numbers and times are then
        looked for in columns of that name. ``values``: texts, numbers, dates and times that are looked for in every
        column instead. A text is found inside another one too. A text or number of less than five characters is looked
        for in values and in users' texts, not in bytes, where it would be by chance.

        ``vacuum`` first writes a SQLite catalog anew, without what was deleted. Indexes and sketches hold hashes, which
        show no value. Cost: all bytes of the lake, decoded. Raises `InvalidArgument` for a condition that is no such
        list, and for ``vacuum`` of another catalog; `CatalogHeld` if others hold the catalog that is to be vacuumed.

        >>> gone = flights.erase("carrier = 'UA'")
        >>> found = lake.verify_erased("flights", "carrier = 'UA'")
        >>> found.is_clean, found.findings[0].remedy
        (False, 'run collect; it goes after its grace')
        >>> collected = lake.collect(grace_seconds=0)
        >>> lake.verify_erased("flights", "carrier = 'UA'").findings
        ()
        """
        from lakehouse.admin.traces import read_wanted, search  # noqa: PLC0415 - late

        spec = None if table is None else self.table(table).spec
        wanted = read_wanted(self.session, spec, where, values, vacuum=vacuum)
        return search(self.session, wanted, vacuum=vacuum)

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
        from lakehouse.service.rounds import Limits, maintain  # noqa: PLC0415 - late

        kept = read_properties(properties) or {}
        return maintain(self.session, Limits(workers, table, read_limit(budget_bytes), engine, kept), dry_run=dry_run)

    def plan_tasks(self, *, table: str | None = None, dry_run: bool = False) -> Listing[Task]:
        """Plan what is worth doing now (for one table), and return the waiting tasks, best first."""
        from lakehouse.service.rounds import plan_tasks  # noqa: PLC0415 - late

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
        from lakehouse.service.rounds import run_one  # noqa: PLC0415 - late

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
        from lakehouse.admin.export import write_export  # noqa: PLC0415 - late

        self.session.require_home()
        return write_export(self.catalog, self.session.warehouse, keep=keep)

    def close(self) -> None:
        """Close the catalog's connections. The Spark session keeps running."""
        _open.discard(self)
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<lake {self.catalog.url} in {self.warehouse}>"
