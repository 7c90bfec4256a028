"""A new catalog from an export, and from data files that no export knows.

The rebuilt history has only the states of the export, each as a delta on the one before. Numbers continue well above
the old ones, so none given out after the export is given out again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlalchemy import Connection, Table, bindparam, func, make_url, select, text
from sqlalchemy.exc import ArgumentError

from lakehouse import progress
from lakehouse.catalog.commit import commit, tables
from lakehouse.catalog.commit.delta import entry_id
from lakehouse.catalog.forget.entries import forget_commits, forget_views
from lakehouse.catalog.locks import operations
from lakehouse.catalog.recovery.contents import Contents
from lakehouse.catalog.recovery.export import PLAIN
from lakehouse.catalog.state.bins import BinState, StateReader
from lakehouse.catalog.state.key_frames import FrameWriter
from lakehouse.catalog.state.tombstone_sets import Sets, no_files
from lakehouse.catalog.store import models
from lakehouse.catalog.store.database import Database, take_head
from lakehouse.catalog.store.encoding import encode_statistics
from lakehouse.catalog.store.migration import current_revision, ensure_migrated
from lakehouse.catalog.store.opening import is_missing
from lakehouse.catalog.store.prepared import run_for_each
from lakehouse.catalog.store.rows import tombstone_values
from lakehouse.catalog.versions.log import EXPORTED, GAP
from lakehouse.catalog.versions.warehouse import record_warehouse
from lakehouse.core.contribution import AppendContribution
from lakehouse.core.operation import Kind
from lakehouse.core.segment import NewSegment
from lakehouse.core.segment_columns import BUCKETS, FIELDS, HIGH, LOW, NULLS
from lakehouse.core.skyline import IntArray
from lakehouse.core.spec import TableSpec
from lakehouse.core.version import ADD, DROP, diff
from lakehouse.errors import InvalidAddress

ROW_GAP = 1 << 40
"""Row ids after a recovery begin at a multiple of this."""
_ENTRIES = entry_id(1, 0)
_BATCH = 10_000
_NO_IDS = np.empty(0, dtype=np.int64)


def address(url: str) -> str:
    """A catalog's address, without its password. Raises `InvalidInput` for an unknown form."""
    try:
        return make_url(url).render_as_string(hide_password=True)
    except ArgumentError as error:
        raise InvalidAddress("not a catalog address", catalog=url) from error


def require_empty(url: str) -> None:
    """Check, without creating anything, that a catalog is missing or empty. Raises `InvalidInput` with the remedy."""
    if is_missing(url):
        return
    database = Database(url)
    try:
        if current_revision(database) is not None:
            database.read(lambda connection: _require_empty(connection, database))
    finally:
        database.close()


def _require_empty(connection: Connection, database: Database) -> None:
    counter = connection.execute(select(models.lake.c.counter)).scalar_one()
    held = connection.execute(select(func.count()).select_from(models.lake_table)).scalar_one()
    if counter or held:
        raise InvalidAddress(
            "the catalog is not empty and recovery never writes into one that is in use;"
            " name a new one (--catalog) or move this one away",
            catalog=database.url.render_as_string(hide_password=True),
            version=counter,
            tables=held,
        )


class Rebuilding:
    """A new catalog at ``url``, for a recovered lake in a warehouse. Raises `InvalidInput` if it is not empty."""

    def __init__(self, url: str, location: str) -> None:
        require_empty(url)
        self._database = Database(url)
        ensure_migrated(self._database)
        self._database.run(lambda connection: record_warehouse(connection, location, None))
        self._states = StateReader()
        self._frames = FrameWriter(self._database, self._states)

    @property
    def url(self) -> str:
        """The database's address, without its password."""
        return self._database.url.render_as_string(hide_password=True)

    def close(self) -> None:
        """Close every connection."""
        self._database.close()

    def fill(self, contents: Contents) -> int:
        """Store the contents of an export in the catalog, in one transaction; return the head."""

        def work(connection: Connection) -> int:
            take_head(connection)
            _require_empty(connection, self._database)
            with progress.step("make the catalog", "tables", len(PLAIN) + 1) as step:
                for table in progress.counted(PLAIN, step):
                    if table is not models.lake:
                        _insert(connection, table, _changed(table, contents.rows(table.name)))
                _States(connection, contents).fill()
                step.advance()
            _forget_sets(connection)
            return _go_on(connection, contents.lake, self._database.now_us(connection))

        return self._database.run(work)

    def create(self, spec: TableSpec) -> TableSpec:
        """Add a table known only from footers to the catalog; its rows get ids above those that files store."""

        def work(connection: Connection) -> TableSpec:
            made, _ = tables.create_table(connection, spec)
            row = models.lake_table.c.id == made.id
            connection.execute(models.lake_table.update().where(row).values(next_row_id=ROW_GAP))
            return made

        return self._database.run(work)

    def adopt(self, spec: TableSpec, operation_id: str, segments: Sequence[NewSegment], message: str) -> int:
        """Append files that an operation left as one commit, under the operation's own id; return its version.

        One transaction registers and commits it: it never counts as running, so nothing can end it and delete its
        folder.
        """

        def work(connection: Connection) -> commit.Recorded:
            take_head(connection)
            cursor = operations.register(connection, spec, Kind.APPEND, operation_id=operation_id, lease_us=0)
            begun = operations.registered(cursor, spec)
            contribution = AppendContribution(begun, segments=tuple(segments))
            return commit.record(
                connection, self._states, Sets(no_files), [contribution], message=message, properties=None
            )

        recorded = self._database.run(work, last=lambda connection, planned: planned.write(connection))
        for table, bins in recorded.due():
            self._frames.write_due(table, bins, recorded.commit.version)
        return recorded.commit.version


def _forget_sets(connection: Connection) -> None:
    """Remove sets of tombstones that no state of the export has."""
    held = select(models.tombstone.c.id)
    connection.execute(models.tombstone_set.delete().where(models.tombstone_set.c.id.not_in(held)))


def _changed(table: Table, rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows of an export as the new catalog stores them: row ids continue well above, garbage gets new numbers."""
    for row in rows:
        if table is models.lake_table:
            row["next_row_id"] = _beyond(row["next_row_id"], ROW_GAP)
        elif table is models.garbage:
            del row["id"]
        yield row


def _beyond(number: int, gap: int) -> int:
    return (number // gap + 1) * gap


def _insert(connection: Connection, table: Table, rows: Iterator[dict[str, Any]]) -> None:
    while batch := list(islice(rows, _BATCH)):
        run_for_each(connection, table.insert(), batch)


class _States:
    """Writes segments, tombstones, deltas, key frames and bins from the states that an export holds."""

    def __init__(self, connection: Connection, contents: Contents) -> None:
        self._connection = connection
        self._contents = contents
        self._before: dict[tuple[int, int], IntArray] = {}
        self._is_tombstone: dict[int, bool] = {}
        # By entry: the version in its row, the least that added it in any bin, and its last change.
        self._added: dict[int, int] = {}
        self._first: dict[int, int] = {}
        self._last: dict[int, tuple[int, int]] = {}
        self._rows: defaultdict[Table, list[dict[str, Any]]] = defaultdict(list)

    def fill(self) -> None:
        newest: dict[tuple[int, int], dict[str, Any]] = {}
        for spec, state, page in self._contents.pages():
            key = spec.id, state.bin
            if not len(state.ids) and key not in newest:
                continue  # no known entry was ever in that bin
            self._add(spec, state)
            self._rows[models.key_frame].append(page)
            newest[key] = page
            if any(len(rows) >= _BATCH for rows in self._rows.values()):
                self._flush()
        self._flush()
        bins = (
            {"table_id": table, "bin": one, "version": page["version"], "frame_version": page["version"],
             "frame_entries": page["entries"], "chain": 0}
            for (table, one), page in newest.items()
        )  # fmt: skip
        _insert(self._connection, models.bin, bins)
        self._correct()

    def _add(self, spec: TableSpec, state: BinState) -> None:
        """Add one state as a delta on the one before it, and entries not seen before as rows."""
        key = spec.id, state.bin
        change = diff(self._before.get(key, _NO_IDS), state.ids)
        self._before[key] = state.ids
        delta = {"table_id": spec.id, "bin": state.bin, "version": state.version}
        new = np.array([one for one in change.added.tolist() if one not in self._added], dtype=np.int64)
        for entry in new.tolist():
            self._is_tombstone[entry] = entry in state.tombstones
            self._added[entry] = state.version
        for action, ids in ((ADD, change.added.tolist()), (DROP, change.dropped.tolist())):
            for entry in ids:
                self._rows[models.delta].append(
                    {**delta, "entry": entry, "action": action, "is_tombstone": self._is_tombstone[entry]}
                )
                self._first[entry] = min(self._first.get(entry, state.version), state.version)
                self._last[entry] = max(self._last.get(entry, (0, 0)), (state.version, action))
        self._rows[models.segment].extend(self._segments(spec, state, np.isin(state.segments.ids, new)))
        for entry in new.tolist():
            if entry in state.tombstones:
                self._rows[models.tombstone].append(
                    tombstone_values(
                        state.tombstones[entry], spec.id, entry // _ENTRIES, state.version, spec.stored_names
                    )
                )

    def _segments(self, spec: TableSpec, state: BinState, fresh: npt.NDArray[np.bool_]) -> Iterator[dict[str, Any]]:
        """Rows of some segments of a state, converted by column, since value by value would dominate the time."""
        body = state.body.filter(pa.array(fresh))
        stored = spec.stored_names
        plain = body.select(FIELDS.names).to_pylist()
        statistics = {
            prefix: {stored.get(name.removeprefix(prefix), name.removeprefix(prefix)): body.column(name).to_pylist()
                     for name in body.column_names if name.startswith(prefix)}
            for prefix in (LOW, HIGH, NULLS, BUCKETS)
        }  # fmt: skip
        for place, row in enumerate(plain):
            low, high, nulls, buckets = (
                {name: values[place] for name, values in columns.items() if values[place] is not None}
                for columns in statistics.values()
            )
            yield {
                **row,
                "rewrites": row["rewrites"] or 0,
                "schema_number": row["schema_number"] or 0,
                "table_id": spec.id,
                "operation": self._contents.numbers.get(row["path"].split("/")[1], row["id"] // _ENTRIES),
                "statistics": encode_statistics(low, high, nulls, buckets),
                "added_version": state.version,
                "dropped_version": None,
            }

    def _flush(self) -> None:
        for table, rows in self._rows.items():
            _insert(self._connection, table, iter(rows))
        self._rows.clear()

    def _correct(self) -> None:
        """Set when entries were dropped and, for those in several bins, when the first bin got them."""
        rows: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
        for entry, (version, action) in self._last.items():
            if action != ADD or self._first[entry] != self._added[entry]:
                dropped = None if action == ADD else version
                rows[self._is_tombstone[entry]].append({"entry": entry, "at": self._first[entry], "until": dropped})
        for table, corrected in ((models.segment, rows[False]), (models.tombstone, rows[True])):
            if corrected:
                statement = table.update().where(table.c.id == bindparam("entry"))
                change = statement.values(added_version=bindparam("at"), dropped_version=bindparam("until"))
                self._connection.execute(change, corrected)


def _go_on(connection: Connection, counters: dict[str, int], now_us: int) -> int:
    """Set every counter well above any number given out before, as a version of its own; return that version."""
    version = _beyond(counters["counter"], GAP)
    exported = counters["head"]
    now_us = max(now_us, counters["clock_us"] + 1)
    connection.execute(
        models.lake.update().values(
            head=version,
            counter=version,
            next_token=_beyond(counters["next_token"], GAP),
            clock_us=now_us,
            horizon=exported,
        )
    )
    commit.record_version(
        connection,
        version,
        Kind.RECOVER,
        now_us,
        message=f"recovered from the export of version {exported}" if exported else "recovered without an export",
        properties={EXPORTED: str(exported)},
    )
    tagged = connection.execute(select(models.tag.c.version)).scalars()
    points = np.unique(np.array([*tagged, exported], dtype=np.int64))
    while forget_commits(connection, exported, points):
        pass
    forget_views(connection, exported, points)
    newest = connection.execute(select(func.max(models.operation.c.number))).scalar() or 0
    _continue_sequences(connection, _beyond(newest, GAP))
    return version


def _continue_sequences(connection: Connection, operation: int) -> None:
    """Let the database number operations from ``operation`` on, and tables after the existing ones."""
    if connection.dialect.name == "sqlite":
        connection.execute(text("DELETE FROM sqlite_sequence WHERE name = 'operation'"))
        connection.execute(
            text("INSERT INTO sqlite_sequence (name, seq) VALUES ('operation', :number)"), {"number": operation}
        )
        return
    connection.execute(
        text("SELECT setval(pg_get_serial_sequence('operation', 'number'), :number)"), {"number": operation}
    )
    connection.execute(
        text(
            "SELECT setval(pg_get_serial_sequence('lake_table', 'id'), coalesce(max(id), 1), max(id) IS NOT NULL)"
            " FROM lake_table"
        )
    )
