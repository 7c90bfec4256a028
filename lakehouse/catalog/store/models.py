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
    LargeBinary,
    SmallInteger,
    Text,
    UniqueConstraint,
    text,
    true,
)
from sqlmodel import Field

from lakehouse.catalog.store.columns import NUMBER as _NUMBER
from lakehouse.catalog.store.columns import Row
from lakehouse.catalog.store.columns import big as _big
from lakehouse.catalog.store.columns import dropped as _dropped
from lakehouse.catalog.store.columns import live_name as _live_name
from lakehouse.catalog.store.columns import open_tasks as _open_tasks
from lakehouse.catalog.store.columns import reference as _reference
from lakehouse.core.checksum import Checksum


class LakeRow(Row, table=True):
    """One row: the number sequence and its newest version. The transaction that updates it holds the head.

    Versions below ``horizon`` have expired, except tagged ones and each table's newest. ``warehouse`` is the
    location of the files, null before the first write.
    """

    __tablename__ = "lake"
    __table_args__ = (CheckConstraint("id = 1"), CheckConstraint("horizon <= head"), CheckConstraint("head <= counter"))
    id: int = Field(primary_key=True)
    head: int = Field(sa_column=_big())
    counter: int = Field(sa_column=_big())
    next_token: int = Field(sa_column=_big())
    clock_us: int = Field(sa_column=_big())
    horizon: int = Field(sa_column=_big())
    clock_boot: str = Field(default="", sa_column=Column(Text(), nullable=False, server_default=""))
    clock_ticks_us: int = Field(default=0, sa_column=_big(server_default="0"))
    warehouse: str | None = Field(default=None, sa_column=Column(Text()))


class TableRow(Row, table=True):
    """A table; a dropped one keeps its row, so that its history stays readable by id.

    ``erased_version`` is that of the newest erasure, which invalidates what processes cached before it.
    """

    __tablename__ = "lake_table"
    __table_args__ = (_live_name("lake_table"),)
    id: int | None = Field(default=None, sa_column=Column(_NUMBER, primary_key=True, autoincrement=True))
    name: str = Field(sa_column=Column(Text(), nullable=False))
    folder: str = Field(sa_column=Column(Text(), nullable=False, unique=True))
    definition: str = Field(sa_column=Column(Text(), nullable=False))
    created_version: int = Field(sa_column=_big())
    dropped_version: int | None = Field(default=None, sa_column=_big(nullable=True))
    next_row_id: int = Field(sa_column=_big())
    erased_version: int = Field(sa_column=_big(server_default="0"))
    schema_number: int = Field(default=0, sa_column=_big(server_default="0"))


class TableSchemaRow(Row, table=True):
    """A definition that an altered table has had from a version on, its first one included.

    A table that was never altered has none. There is one for each number that segments can have.
    """

    __tablename__ = "table_schema"
    table_id: int = Field(sa_column=_reference("lake_table.id", primary_key=True, autoincrement=False))
    number: int = Field(sa_column=_big(primary_key=True, autoincrement=False))
    version: int = Field(sa_column=_big())
    definition: str = Field(sa_column=Column(Text(), nullable=False))


class ViewRow(Row, table=True):
    """One form of a view, from the version that made it to the one that replaced or dropped it.

    ``columns`` lists, as JSON, its columns' names, each with the query's column that it is, or null.
    """

    __tablename__ = "lake_view"
    __table_args__ = (
        CheckConstraint("created_version < dropped_version"),
        _live_name("lake_view"),
    )
    id: str = Field(sa_column=Column(Text(), primary_key=True))
    name: str = Field(sa_column=Column(Text(), nullable=False))
    query: str = Field(sa_column=Column(Text(), nullable=False))
    columns: str = Field(sa_column=Column(Text(), nullable=False))
    comment: str | None = Field(default=None, sa_column=Column(Text()))
    created_version: int = Field(sa_column=_big())
    dropped_version: int | None = Field(default=None, sa_column=_big(nullable=True))


class OperationRow(Row, table=True):
    """An operation from begin to its end; its folder is registered here before its first byte is written.

    ``collected``: it was aborted and its folder has been deleted. Operations that replace or delete an interval record
    it (``start_us``, ``end_us``, ``keys``), for concurrent row-level changes. One that built indexes or sketches ends
    as committed at the head that it found: it makes no version.
    """

    __tablename__ = "operation"
    __table_args__ = (
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
        {"sqlite_autoincrement": True},
    )
    number: int | None = Field(default=None, sa_column=Column(_NUMBER, primary_key=True, autoincrement=True))
    id: str = Field(sa_column=Column(Text(), nullable=False, unique=True))
    table_id: int = Field(sa_column=_reference("lake_table.id"))
    kind: str = Field(sa_column=Column(Text(), nullable=False))
    state: str = Field(sa_column=Column(Text(), nullable=False))
    base_version: int = Field(sa_column=_big())
    ordinal: int | None = Field(default=None, sa_column=_big(nullable=True))
    begun_us: int = Field(sa_column=_big())
    lease_until_us: int = Field(sa_column=_big())
    version: int | None = Field(default=None, sa_column=_big(nullable=True))
    start_us: int | None = Field(default=None, sa_column=_big(nullable=True))
    end_us: int | None = Field(default=None, sa_column=_big(nullable=True))
    keys: str | None = Field(default=None, sa_column=Column(Text()))


class UpdatedRows(Row, table=True):
    """Rows updated inside the scope of a running replace, by row id; the replace hides them when it commits."""

    __tablename__ = "rewritten"
    operation: int = Field(sa_column=_reference("operation.number", primary_key=True, autoincrement=False))
    version: int = Field(sa_column=_big(primary_key=True, autoincrement=False))
    row_ids: bytes = Field(sa_column=Column(LargeBinary(), nullable=False))


class LockRow(Row, table=True):
    """An exclusive lock on a range of whole chunks, for some keys or all (null)."""

    __tablename__ = "chunk_lock"
    __table_args__ = (CheckConstraint("start_us < end_us"), Index("chunk_lock_range", "table_id", "start_us"))
    token: int = Field(sa_column=_big(primary_key=True, autoincrement=False))
    table_id: int = Field(sa_column=_reference("lake_table.id"))
    operation: int = Field(sa_column=_reference("operation.number", index=True))
    start_us: int = Field(sa_column=_big())
    end_us: int = Field(sa_column=_big())
    keys: str | None = Field(default=None, sa_column=Column(Text()))
    priority: int = Field(sa_column=Column(SmallInteger(), nullable=False))


class LockWaitRow(Row, table=True):
    """A place in the queue for a lock: later waiters of no higher priority do not get it first."""

    __tablename__ = "lock_wait"
    __table_args__ = (CheckConstraint("start_us < end_us"), Index("lock_wait_queue", "table_id", "token"))
    token: int = Field(sa_column=_big(primary_key=True, autoincrement=False))
    table_id: int = Field(sa_column=_reference("lake_table.id"))
    operation: str = Field(sa_column=Column(Text(), nullable=False))
    kind: str = Field(sa_column=Column(Text(), nullable=False))
    start_us: int = Field(sa_column=_big())
    end_us: int = Field(sa_column=_big())
    keys: str | None = Field(default=None, sa_column=Column(Text()))
    priority: int = Field(sa_column=Column(SmallInteger(), nullable=False))
    lease_until_us: int = Field(sa_column=_big())


class PinRow(Row, table=True):
    """A process that reads: versions from this one on do not expire while its lease lasts."""

    __tablename__ = "pin"
    id: str = Field(sa_column=Column(Text(), primary_key=True))
    version: int = Field(sa_column=_big())
    lease_until_us: int = Field(sa_column=_big())


class ConsumerRow(Row, table=True):
    """A named reader of a table's change feed, where it is (`lakehouse.core.feed.Position`) and who reads for it.

    Versions after its own do not expire while its lease lasts. ``lease_us`` is how long a move renews it.
    """

    __tablename__ = "consumer"
    name: str = Field(sa_column=Column(Text(), primary_key=True))
    table_id: int = Field(sa_column=_reference("lake_table.id"))
    version: int = Field(sa_column=_big())
    file: int = Field(sa_column=_big())
    is_snapshot: bool
    token: str = Field(sa_column=Column(Text(), nullable=False))
    lease_us: int = Field(sa_column=_big())
    lease_until_us: int = Field(sa_column=_big())
    given: str | None = Field(default=None, sa_column=Column(Text()))


class GarbageRow(Row, table=True):
    """A data file that no version can reach, and since when; deleted after a grace."""

    __tablename__ = "garbage"
    __table_args__ = ({"sqlite_autoincrement": True},)
    id: int | None = Field(default=None, sa_column=Column(_NUMBER, primary_key=True, autoincrement=True))
    table_id: int = Field(sa_column=_reference("lake_table.id"))
    path: str = Field(sa_column=Column(Text(), nullable=False))
    marked_us: int = Field(sa_column=_big(index=True))


class CommitRow(Row, table=True):
    """A version."""

    __tablename__ = "commit_log"
    version: int = Field(sa_column=_big(primary_key=True, autoincrement=False))
    operation: str = Field(sa_column=Column(Text(), nullable=False))
    committed_us: int = Field(sa_column=_big(index=True))
    message: str | None = Field(default=None, sa_column=Column(Text()))
    properties: str | None = Field(default=None, sa_column=Column(Text()))


class CommitTableRow(Row, table=True):
    """What a version did to one table."""

    __tablename__ = "commit_table"
    __table_args__ = (Index("commit_table_history", "table_id", "version"),)
    version: int = Field(sa_column=_reference("commit_log.version", primary_key=True, autoincrement=False))
    table_id: int = Field(sa_column=_reference("lake_table.id", primary_key=True, autoincrement=False))
    operation: str = Field(sa_column=Column(Text(), nullable=False))
    segments_added: int = Field(sa_column=_big())
    segments_dropped: int = Field(sa_column=_big())
    tombstones_added: int = Field(sa_column=_big())
    tombstones_dropped: int = Field(sa_column=_big())
    rows_added: int = Field(sa_column=_big())
    rows_deleted: int = Field(sa_column=_big())
    bytes_added: int = Field(sa_column=_big(server_default="0"))
    is_exact: bool = Field(sa_column=Column(Boolean(), nullable=False, server_default=true()))


class TxnRow(Row, table=True):
    """A caller's ``(app, sequence)``: present means committed, once."""

    __tablename__ = "txn"
    table_id: int = Field(sa_column=_reference("lake_table.id", primary_key=True, autoincrement=False))
    app: str = Field(sa_column=Column(Text(), primary_key=True))
    sequence: int = Field(sa_column=_big(primary_key=True, autoincrement=False))
    version: int = Field(sa_column=_big(index=True))


class TagRow(Row, table=True):
    """A name for a version, which protects it from expiry."""

    __tablename__ = "tag"
    name: str = Field(sa_column=Column(Text(), primary_key=True))
    version: int = Field(sa_column=_big())
    tagged_us: int = Field(sa_column=_big())


class SegmentRow(Row, table=True):
    """An immutable file of rows. ``statistics`` holds min, max and null counts by column as JSON.

    Its newest file is that of ``operation``, after so many ``rewrites``; who made the segment is in its ``id``. A
    segment's or tombstone's ``dropped_version`` is that of the version that dropped it; null while it is live.
    ``codec`` is a number of `lakehouse.core.codec`, null where none is known.
    """

    __tablename__ = "segment"
    __table_args__ = (
        UniqueConstraint("operation", "path"),
        CheckConstraint("start_us < end_us"),
        CheckConstraint("rows > 0"),
        _dropped("segment"),
    )
    id: int = Field(sa_column=_big(primary_key=True, autoincrement=False))
    table_id: int = Field(sa_column=_reference("lake_table.id"))
    operation: int = Field(sa_column=_reference("operation.number"))
    path: str = Field(sa_column=Column(Text(), nullable=False))
    start_us: int = Field(sa_column=_big())
    end_us: int = Field(sa_column=_big())
    ordinal: int = Field(sa_column=_big())
    rows: int = Field(sa_column=_big())
    bytes: int = Field(sa_column=_big())
    first_row_id: int = Field(sa_column=_big())
    has_row_ids: bool
    statistics: str = Field(sa_column=Column(Text(), nullable=False))
    added_version: int = Field(sa_column=_big())
    dropped_version: int | None = Field(default=None, sa_column=_big(nullable=True))
    rewrites: int = Field(sa_column=_big(server_default="0"))
    checksum: Checksum | None = Field(default=None, sa_column=Column(LargeBinary()))
    schema_number: int = Field(default=0, sa_column=_big(server_default="0"))
    codec: int | None = Field(default=None, sa_column=_big(nullable=True))


class TombstoneRow(Row, table=True):
    """Hides rows of segments with a smaller ordinal.

    The set of a key or row tombstone is in `TombstoneSetRow` or, with a ``path``, in a file; ``statistics`` bounds it.
    """

    __tablename__ = "tombstone"
    __table_args__ = (
        CheckConstraint("kind IN ('interval', 'key', 'row')"),
        CheckConstraint("start_us < end_us"),
        _dropped("tombstone"),
    )
    id: int = Field(sa_column=_big(primary_key=True, autoincrement=False))
    table_id: int = Field(sa_column=_reference("lake_table.id"))
    operation: int = Field(sa_column=_reference("operation.number"))
    kind: str = Field(sa_column=Column(Text(), nullable=False))
    start_us: int = Field(sa_column=_big())
    end_us: int = Field(sa_column=_big())
    ordinal: int = Field(sa_column=_big())
    keys: str | None = Field(default=None, sa_column=Column(Text()))
    rows: int = Field(sa_column=_big())
    path: str = Field(sa_column=Column(Text(), nullable=False, server_default=""))
    bytes: int = Field(sa_column=_big(server_default="0"))
    statistics: str = Field(sa_column=Column(Text(), nullable=False, server_default="{}"))
    added_version: int = Field(sa_column=_big())
    dropped_version: int | None = Field(default=None, sa_column=_big(nullable=True))
    checksum: Checksum | None = Field(default=None, sa_column=Column(LargeBinary()))


class TombstoneSetRow(Row, table=True):
    """The row ids or primary keys of a small tombstone, stored separately so that planning need not read them."""

    __tablename__ = "tombstone_set"
    id: int = Field(sa_column=_big(primary_key=True, autoincrement=False))
    content: bytes = Field(sa_column=Column(LargeBinary(), nullable=False))


class SegmentSummaryRow(Row, table=True):
    """A summary of a column's values in a segment, by Parquet field id: an index or a sketch. Derived.

    It is in ``content`` or, with a ``path``, in a file that the operation wrote.
    """

    __tablename__ = "segment_summary"
    __table_args__ = (
        CheckConstraint("kind IN ('index', 'sketch')"),
        CheckConstraint("(path = '') = (content IS NOT NULL)"),
        CheckConstraint("(path = '') = (operation IS NULL)"),
    )
    segment: int = Field(sa_column=_reference("segment.id", primary_key=True, autoincrement=False))
    kind: str = Field(sa_column=Column(Text(), primary_key=True))
    field: int = Field(sa_column=_big(primary_key=True, autoincrement=False))
    operation: int | None = Field(default=None, sa_column=_reference("operation.number", nullable=True, index=True))
    content: bytes | None = Field(default=None, sa_column=Column(LargeBinary()))
    path: str = Field(sa_column=Column(Text(), nullable=False))
    bytes: int = Field(sa_column=_big())
    checksum: Checksum | None = Field(default=None, sa_column=Column(LargeBinary()))


class BinRow(Row, table=True):
    """The newest version of a bin, its newest key frame, and the number of versions since."""

    __tablename__ = "bin"
    __table_args__ = ({"sqlite_with_rowid": False},)
    table_id: int = Field(sa_column=_reference("lake_table.id", primary_key=True, autoincrement=False))
    bin: int = Field(sa_column=_big(primary_key=True, autoincrement=False))
    version: int = Field(sa_column=_big())
    frame_version: int | None = Field(default=None, sa_column=_big(nullable=True))
    frame_entries: int = Field(sa_column=_big())
    chain: int = Field(sa_column=_big())


class DeltaRow(Row, table=True):
    """One ADD (1) or DROP (-1) of a segment or tombstone in one bin at one version."""

    __tablename__ = "delta"
    __table_args__ = (
        CheckConstraint("action IN (1, -1)"),
        {"sqlite_with_rowid": False},
    )
    table_id: int = Field(sa_column=_reference("lake_table.id", primary_key=True, autoincrement=False))
    bin: int = Field(sa_column=_big(primary_key=True, autoincrement=False))
    version: int = Field(sa_column=_big(primary_key=True, autoincrement=False))
    entry: int = Field(sa_column=_big(primary_key=True, autoincrement=False))
    action: int = Field(sa_column=Column(SmallInteger(), nullable=False))
    is_tombstone: bool


class KeyFrameRow(Row, table=True):
    """One bin's state at one version: an Arrow page of its live segments and tombstones. Derived."""

    __tablename__ = "key_frame"
    table_id: int = Field(sa_column=_reference("lake_table.id", primary_key=True, autoincrement=False))
    bin: int = Field(sa_column=_big(primary_key=True, autoincrement=False))
    version: int = Field(sa_column=_big(primary_key=True, autoincrement=False))
    entries: int = Field(sa_column=_big())
    page: bytes = Field(sa_column=Column(LargeBinary(), nullable=False))


class TaskRow(Row, table=True):
    """A task of the table service, kept for a while after its end. ``table_id`` is null for one of the whole lake.

    ``identity`` keeps the same task from being proposed twice; ``entries`` holds the ids of its input segments and
    tombstones. A running one belongs to the holder of its ``owner`` token, until its lease expires.
    """

    __tablename__ = "task"
    __table_args__ = (
        CheckConstraint("state IN ('waiting', 'running', 'done', 'failed', 'cancelled')"),
        CheckConstraint("(state = 'running') = (owner IS NOT NULL)"),
        CheckConstraint("(start_us IS NULL) = (end_us IS NULL)"),
        _open_tasks("task_open", "identity", unique=True),
        _open_tasks("task_score", "score"),
        {"sqlite_autoincrement": True},
    )
    id: int | None = Field(default=None, sa_column=Column(_NUMBER, primary_key=True, autoincrement=True))
    table_id: int | None = Field(default=None, sa_column=_reference("lake_table.id", nullable=True))
    kind: str = Field(sa_column=Column(Text(), nullable=False))
    state: str = Field(sa_column=Column(Text(), nullable=False))
    worker: str = Field(sa_column=Column(Text(), nullable=False))
    identity: str = Field(sa_column=Column(Text(), nullable=False))
    score: float = Field(sa_column=Column(Float(), nullable=False))
    cause: str = Field(sa_column=Column(Text(), nullable=False))
    start_us: int | None = Field(default=None, sa_column=_big(nullable=True))
    end_us: int | None = Field(default=None, sa_column=_big(nullable=True))
    segments: int = Field(sa_column=_big())
    entries: bytes = Field(sa_column=Column(LargeBinary(), nullable=False))
    budget_bytes: int = Field(sa_column=_big())
    predicted: str = Field(sa_column=Column(Text(), nullable=False))
    actual: str | None = Field(default=None, sa_column=Column(Text()))
    attempts: int = Field(sa_column=_big())
    created_us: int = Field(sa_column=_big())
    not_before_us: int = Field(sa_column=_big())
    started_us: int | None = Field(default=None, sa_column=_big(nullable=True))
    ended_us: int | None = Field(default=None, sa_column=_big(nullable=True, index=True))
    lease_until_us: int | None = Field(default=None, sa_column=_big(nullable=True))
    owner: str | None = Field(default=None, sa_column=Column(Text()))
    operation: str | None = Field(default=None, sa_column=Column(Text()))
    version: int | None = Field(default=None, sa_column=_big(nullable=True))
    error: str | None = Field(default=None, sa_column=Column(Text()))


class UpkeepRow(Row, table=True):
    """The version of a table that the service planned last, when to plan again, and the bytes written until then."""

    __tablename__ = "upkeep"
    table_id: int = Field(sa_column=_reference("lake_table.id", primary_key=True, autoincrement=False))
    planned_version: int = Field(sa_column=_big())
    planned_us: int = Field(sa_column=_big())
    not_before_us: int = Field(sa_column=_big())
    due_us: int | None = Field(default=None, sa_column=_big(nullable=True))
    appended_bytes: int = Field(sa_column=_big())
    rewritten_bytes: int = Field(sa_column=_big())


class PlanCountRow(Row, table=True):
    """How often reads plan the chunks of a bin: a count that halves every week, as of a stored time."""

    __tablename__ = "plan_count"
    table_id: int = Field(sa_column=_reference("lake_table.id", primary_key=True, autoincrement=False))
    bin: int = Field(sa_column=_big(primary_key=True, autoincrement=False))
    plans: float = Field(sa_column=Column(Float(), nullable=False))
    counted_us: int = Field(sa_column=_big())


lake = LakeRow.__table__  # type: ignore[attr-defined]
lake_table = TableRow.__table__  # type: ignore[attr-defined]
table_schema = TableSchemaRow.__table__  # type: ignore[attr-defined]
lake_view = ViewRow.__table__  # type: ignore[attr-defined]
operation = OperationRow.__table__  # type: ignore[attr-defined]
chunk_lock = LockRow.__table__  # type: ignore[attr-defined]
lock_wait = LockWaitRow.__table__  # type: ignore[attr-defined]
pin = PinRow.__table__  # type: ignore[attr-defined]
consumer = ConsumerRow.__table__  # type: ignore[attr-defined]
garbage = GarbageRow.__table__  # type: ignore[attr-defined]
commit_log = CommitRow.__table__  # type: ignore[attr-defined]
commit_table = CommitTableRow.__table__  # type: ignore[attr-defined]
txn = TxnRow.__table__  # type: ignore[attr-defined]
tag = TagRow.__table__  # type: ignore[attr-defined]
segment = SegmentRow.__table__  # type: ignore[attr-defined]
tombstone = TombstoneRow.__table__  # type: ignore[attr-defined]
tombstone_set = TombstoneSetRow.__table__  # type: ignore[attr-defined]
segment_summary = SegmentSummaryRow.__table__  # type: ignore[attr-defined]
updated_rows = UpdatedRows.__table__  # type: ignore[attr-defined]
bin = BinRow.__table__  # type: ignore[attr-defined]  # noqa: A001 - the word of the scheme
delta = DeltaRow.__table__  # type: ignore[attr-defined]
key_frame = KeyFrameRow.__table__  # type: ignore[attr-defined]
task = TaskRow.__table__  # type: ignore[attr-defined]
upkeep = UpkeepRow.__table__  # type: ignore[attr-defined]
plan_count = PlanCountRow.__table__  # type: ignore[attr-defined]
