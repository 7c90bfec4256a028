"""The catalog's tables. Their constraints are invariants of the model; rows never leave `lakehouse.catalog`.

Times are BIGINT microseconds since 1970 (``_us``). A ``bin`` is one of `lakehouse.core.bins`. Tables that grow with
history are ordered so that new rows come last, so writing costs the same whatever their size.
"""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
    true,
)

from lakehouse.catalog.store.columns import NUMBER as _NUMBER
from lakehouse.catalog.store.columns import big as _big
from lakehouse.catalog.store.columns import dropped as _dropped
from lakehouse.catalog.store.columns import live_name as _live_name
from lakehouse.catalog.store.columns import metadata
from lakehouse.catalog.store.columns import open_tasks as _open_tasks
from lakehouse.catalog.store.columns import reference as _reference

lake = Table(
    "lake",
    metadata,
    Column("id", Integer(), primary_key=True, nullable=False),
    _big("head"),
    _big("counter"),
    _big("next_token"),
    _big("clock_us"),
    _big("horizon"),
    Column("clock_boot", Text(), nullable=False, server_default=""),
    _big("clock_ticks_us", server_default="0"),
    Column("warehouse", Text()),
    CheckConstraint("id = 1"),
    CheckConstraint("horizon <= head"),
    CheckConstraint("head <= counter"),
)
"""One row: the number sequence and its newest version. The transaction that updates it holds the head.

Versions below ``horizon`` have expired, except tagged ones and each table's newest. ``warehouse`` is the
location of the files, null before the first write.
"""
lake_table = Table(
    "lake_table",
    metadata,
    Column("id", _NUMBER, primary_key=True, autoincrement=True),
    Column("name", Text(), nullable=False),
    Column("folder", Text(), nullable=False, unique=True),
    Column("definition", Text(), nullable=False),
    _big("created_version"),
    _big("dropped_version", nullable=True),
    _big("next_row_id"),
    _big("erased_version", server_default="0"),
    _big("schema_number", server_default="0"),
    _live_name("lake_table"),
)
"""A table; a dropped one keeps its row, so that its history stays readable by id.

``erased_version`` is that of the newest erasure, which invalidates what processes cached before it.
"""
table_schema = Table(
    "table_schema",
    metadata,
    _reference("table_id", "lake_table.id", primary_key=True, autoincrement=False),
    _big("number", primary_key=True, autoincrement=False),
    _big("version"),
    Column("definition", Text(), nullable=False),
)
"""A definition that an altered table has had from a version on, its first one included.

A table that was never altered has none. There is one for each number that segments can have.
"""
lake_view = Table(
    "lake_view",
    metadata,
    Column("id", Text(), primary_key=True),
    Column("name", Text(), nullable=False),
    Column("query", Text(), nullable=False),
    Column("columns", Text(), nullable=False),
    Column("comment", Text()),
    _big("created_version"),
    _big("dropped_version", nullable=True),
    CheckConstraint("created_version < dropped_version"),
    _live_name("lake_view"),
)
"""One form of a view, from the version that made it to the one that replaced or dropped it.

``columns`` lists, as JSON, its columns' names, each with the query's column that it is, or null.
"""
operation = Table(
    "operation",
    metadata,
    Column("number", _NUMBER, primary_key=True, autoincrement=True),
    Column("id", Text(), nullable=False, unique=True),
    _reference("table_id", "lake_table.id"),
    Column("kind", Text(), nullable=False),
    Column("state", Text(), nullable=False),
    _big("base_version"),
    _big("ordinal", nullable=True),
    _big("begun_us"),
    _big("lease_until_us"),
    _big("version", nullable=True),
    _big("start_us", nullable=True),
    _big("end_us", nullable=True),
    Column("keys", Text()),
    CheckConstraint("state IN ('running', 'committed', 'aborted', 'collected')"),
    CheckConstraint("(state = 'committed') = (version IS NOT NULL)"),
    Index(
        "operation_open",
        "lease_until_us",
        sqlite_where=text("state IN ('running', 'aborted')"),
        postgresql_where=text("state IN ('running', 'aborted')"),
    ),
    Index(
        "operation_taking_over",
        "table_id",
        "version",
        sqlite_where=text("start_us IS NOT NULL"),
        postgresql_where=text("start_us IS NOT NULL"),
    ),
    sqlite_autoincrement=True,
)
"""An operation from begin to its end; its folder is registered here before its first byte is written.

``collected``: it was aborted and its folder has been deleted. Operations that replace or delete an interval record
it (``start_us``, ``end_us``, ``keys``), for concurrent row-level changes. One that built indexes or sketches ends
as committed at the head that it found: it makes no version.
"""
updated_rows = Table(
    "rewritten",
    metadata,
    _reference("operation", "operation.number", primary_key=True, autoincrement=False),
    _big("version", primary_key=True, autoincrement=False),
    Column("row_ids", LargeBinary(), nullable=False),
)
"""Rows updated inside the scope of a running replace, by row id; the replace hides them when it commits."""
chunk_lock = Table(
    "chunk_lock",
    metadata,
    _big("token", primary_key=True, autoincrement=False),
    _reference("table_id", "lake_table.id"),
    _reference("operation", "operation.number", index=True),
    _big("start_us"),
    _big("end_us"),
    Column("keys", Text()),
    Column("priority", SmallInteger(), nullable=False),
    CheckConstraint("start_us < end_us"),
    Index("chunk_lock_range", "table_id", "start_us"),
)
"""An exclusive lock on a range of whole chunks, for some keys or all (null)."""
lock_wait = Table(
    "lock_wait",
    metadata,
    _big("token", primary_key=True, autoincrement=False),
    _reference("table_id", "lake_table.id"),
    Column("operation", Text(), nullable=False),
    Column("kind", Text(), nullable=False),
    _big("start_us"),
    _big("end_us"),
    Column("keys", Text()),
    Column("priority", SmallInteger(), nullable=False),
    _big("lease_until_us"),
    CheckConstraint("start_us < end_us"),
    Index("lock_wait_queue", "table_id", "token"),
)
"""A place in the queue for a lock: later waiters of no higher priority do not get it first."""
pin = Table(
    "pin",
    metadata,
    Column("id", Text(), primary_key=True),
    _big("version"),
    _big("lease_until_us"),
)
"""A process that reads: versions from this one on do not expire while its lease lasts."""
consumer = Table(
    "consumer",
    metadata,
    Column("name", Text(), primary_key=True),
    _reference("table_id", "lake_table.id"),
    _big("version"),
    _big("file"),
    Column("is_snapshot", Boolean(), nullable=False),
    Column("token", Text(), nullable=False),
    _big("lease_us"),
    _big("lease_until_us"),
    Column("given", Text()),
)
"""A named reader of a table's change feed, where it is (`lakehouse.core.feed.Position`) and who reads for it.

Versions after its own do not expire while its lease lasts. ``lease_us`` is how long a move renews it.
"""
garbage = Table(
    "garbage",
    metadata,
    Column("id", _NUMBER, primary_key=True, autoincrement=True),
    _reference("table_id", "lake_table.id"),
    Column("path", Text(), nullable=False),
    _big("marked_us", index=True),
    sqlite_autoincrement=True,
)
"""A data file that no version can reach, and since when; deleted after a grace."""
commit_log = Table(
    "commit_log",
    metadata,
    _big("version", primary_key=True, autoincrement=False),
    Column("operation", Text(), nullable=False),
    _big("committed_us", index=True),
    Column("message", Text()),
    Column("properties", Text()),
)
"""A version."""
commit_table = Table(
    "commit_table",
    metadata,
    _reference("version", "commit_log.version", primary_key=True, autoincrement=False),
    _reference("table_id", "lake_table.id", primary_key=True, autoincrement=False),
    Column("operation", Text(), nullable=False),
    _big("segments_added"),
    _big("segments_dropped"),
    _big("tombstones_added"),
    _big("tombstones_dropped"),
    _big("rows_added"),
    _big("rows_deleted"),
    _big("bytes_added", server_default="0"),
    Column("is_exact", Boolean(), nullable=False, server_default=true()),
    Index("commit_table_history", "table_id", "version"),
)
"""What a version did to one table."""
txn = Table(
    "txn",
    metadata,
    _reference("table_id", "lake_table.id", primary_key=True, autoincrement=False),
    Column("app", Text(), primary_key=True),
    _big("sequence", primary_key=True, autoincrement=False),
    _big("version", index=True),
)
"""A caller's ``(app, sequence)``: present means committed, once."""
tag = Table(
    "tag",
    metadata,
    Column("name", Text(), primary_key=True),
    _big("version"),
    _big("tagged_us"),
)
"""A name for a version, which protects it from expiry."""
segment = Table(
    "segment",
    metadata,
    _big("id", primary_key=True, autoincrement=False),
    _reference("table_id", "lake_table.id"),
    _reference("operation", "operation.number"),
    Column("path", Text(), nullable=False),
    _big("start_us"),
    _big("end_us"),
    _big("ordinal"),
    _big("rows"),
    _big("bytes"),
    _big("first_row_id"),
    Column("has_row_ids", Boolean(), nullable=False),
    Column("statistics", Text(), nullable=False),
    _big("added_version"),
    _big("dropped_version", nullable=True),
    _big("rewrites", server_default="0"),
    Column("checksum", LargeBinary()),
    _big("schema_number", server_default="0"),
    _big("codec", nullable=True),
    UniqueConstraint("operation", "path"),
    CheckConstraint("start_us < end_us"),
    CheckConstraint("rows > 0"),
    _dropped("segment"),
)
"""An immutable file of rows. ``statistics`` holds min, max and null counts by column as JSON.

Its newest file is that of ``operation``, after so many ``rewrites``; who made the segment is in its ``id``. A
segment's or tombstone's ``dropped_version`` is that of the version that dropped it; null while it is live.
``codec`` is a number of `lakehouse.core.codec`, null where none is known.
"""
tombstone = Table(
    "tombstone",
    metadata,
    _big("id", primary_key=True, autoincrement=False),
    _reference("table_id", "lake_table.id"),
    _reference("operation", "operation.number"),
    Column("kind", Text(), nullable=False),
    _big("start_us"),
    _big("end_us"),
    _big("ordinal"),
    Column("keys", Text()),
    _big("rows"),
    Column("path", Text(), nullable=False, server_default=""),
    _big("bytes", server_default="0"),
    Column("statistics", Text(), nullable=False, server_default="{}"),
    _big("added_version"),
    _big("dropped_version", nullable=True),
    Column("checksum", LargeBinary()),
    CheckConstraint("kind IN ('interval', 'key', 'row')"),
    CheckConstraint("start_us < end_us"),
    _dropped("tombstone"),
)
"""Hides rows of segments with a smaller ordinal.

The set of a key or row tombstone is in `TombstoneSetRow` or, with a ``path``, in a file; ``statistics`` bounds it.
"""
tombstone_set = Table(
    "tombstone_set",
    metadata,
    _big("id", primary_key=True, autoincrement=False),
    Column("content", LargeBinary(), nullable=False),
)
"""The row ids or primary keys of a small tombstone, stored separately so that planning need not read them."""
segment_summary = Table(
    "segment_summary",
    metadata,
    _reference("segment", "segment.id", primary_key=True, autoincrement=False),
    Column("kind", Text(), primary_key=True),
    _big("field", primary_key=True, autoincrement=False),
    _reference("operation", "operation.number", nullable=True, index=True),
    Column("content", LargeBinary()),
    Column("path", Text(), nullable=False),
    _big("bytes"),
    Column("checksum", LargeBinary()),
    CheckConstraint("kind IN ('index', 'sketch')"),
    CheckConstraint("(path = '') = (content IS NOT NULL)"),
    CheckConstraint("(path = '') = (operation IS NULL)"),
)
"""A summary of a column's values in a segment, by Parquet field id: an index or a sketch. Derived.

It is in ``content`` or, with a ``path``, in a file that the operation wrote.
"""
bin = Table(  # noqa: A001 - the word of the scheme
    "bin",
    metadata,
    _reference("table_id", "lake_table.id", primary_key=True, autoincrement=False),
    _big("bin", primary_key=True, autoincrement=False),
    _big("version"),
    _big("frame_version", nullable=True),
    _big("frame_entries"),
    _big("chain"),
    sqlite_with_rowid=False,
)
"""The newest version of a bin, its newest key frame, and the number of versions since."""
delta = Table(
    "delta",
    metadata,
    _reference("table_id", "lake_table.id", primary_key=True, autoincrement=False),
    _big("bin", primary_key=True, autoincrement=False),
    _big("version", primary_key=True, autoincrement=False),
    _big("entry", primary_key=True, autoincrement=False),
    Column("action", SmallInteger(), nullable=False),
    Column("is_tombstone", Boolean(), nullable=False),
    CheckConstraint("action IN (1, -1)"),
    sqlite_with_rowid=False,
)
"""One ADD (1) or DROP (-1) of a segment or tombstone in one bin at one version."""
key_frame = Table(
    "key_frame",
    metadata,
    _reference("table_id", "lake_table.id", primary_key=True, autoincrement=False),
    _big("bin", primary_key=True, autoincrement=False),
    _big("version", primary_key=True, autoincrement=False),
    _big("entries"),
    Column("page", LargeBinary(), nullable=False),
)
"""One bin's state at one version: an Arrow page of its live segments and tombstones. Derived."""
task = Table(
    "task",
    metadata,
    Column("id", _NUMBER, primary_key=True, autoincrement=True),
    _reference("table_id", "lake_table.id", nullable=True),
    Column("kind", Text(), nullable=False),
    Column("state", Text(), nullable=False),
    Column("worker", Text(), nullable=False),
    Column("identity", Text(), nullable=False),
    Column("score", Float(), nullable=False),
    Column("cause", Text(), nullable=False),
    _big("start_us", nullable=True),
    _big("end_us", nullable=True),
    _big("segments"),
    Column("entries", LargeBinary(), nullable=False),
    _big("budget_bytes"),
    Column("predicted", Text(), nullable=False),
    Column("actual", Text()),
    _big("attempts"),
    _big("created_us"),
    _big("not_before_us"),
    _big("started_us", nullable=True),
    _big("ended_us", nullable=True, index=True),
    _big("lease_until_us", nullable=True),
    Column("owner", Text()),
    Column("operation", Text()),
    _big("version", nullable=True),
    Column("error", Text()),
    CheckConstraint("state IN ('waiting', 'running', 'done', 'failed', 'cancelled')"),
    CheckConstraint("(state = 'running') = (owner IS NOT NULL)"),
    CheckConstraint("(start_us IS NULL) = (end_us IS NULL)"),
    _open_tasks("task_open", "identity", unique=True),
    _open_tasks("task_score", "score"),
    sqlite_autoincrement=True,
)
"""A task of the table service, kept for a while after its end. ``table_id`` is null for one of the whole lake.

``identity`` keeps the same task from being proposed twice; ``entries`` holds the ids of its input segments and
tombstones. A running one belongs to the holder of its ``owner`` token, until its lease expires.
"""
upkeep = Table(
    "upkeep",
    metadata,
    _reference("table_id", "lake_table.id", primary_key=True, autoincrement=False),
    _big("planned_version"),
    _big("planned_us"),
    _big("not_before_us"),
    _big("due_us", nullable=True),
    _big("appended_bytes"),
    _big("rewritten_bytes"),
)
"""The version of a table that the service planned last, when to plan again, and the bytes written until then."""
plan_count = Table(
    "plan_count",
    metadata,
    _reference("table_id", "lake_table.id", primary_key=True, autoincrement=False),
    _big("bin", primary_key=True, autoincrement=False),
    Column("plans", Float(), nullable=False),
    _big("counted_us"),
)
"""How often reads plan the chunks of a bin: a count that halves every week, as of a stored time."""
