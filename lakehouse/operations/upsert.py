"""Upserts and deletes by primary key: blind writes, which read nothing of the table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.arguments import Rows, unknown_column
from lakehouse.core.column import UUID, is_uuid_column
from lakehouse.core.commit import Commit
from lakehouse.core.contribution import Contribution, KeyChangeContribution
from lakehouse.core.interval import Interval
from lakehouse.core.operation import Begun, Kind, NewTombstone
from lakehouse.core.sets import key_bounds
from lakehouse.core.spec import TableSpec
from lakehouse.engine.conform import conform
from lakehouse.engine.duckdb.source import tables
from lakehouse.engine.frames import is_spark_frame
from lakehouse.errors import DuplicateKey, InvalidRows, NoPrimaryKey
from lakehouse.operations.append import Append
from lakehouse.session.session import Session
from lakehouse.storage.columns import read_columns


class KeyedWrite(Append):
    """Hides every older row with one of its keys."""

    def __init__(self, session: Session, begun: Begun, **marks: Any) -> None:
        super().__init__(session, begun, **marks)
        self._keys: list[pa.Table] = []
        self._tombstones: tuple[NewTombstone, ...] = ()

    def commit(self, *, if_useful: bool = False) -> Commit:
        """Make it visible. Raises `InvalidInput`, which ends the operation, if a key was written twice."""
        if self._state == "running":
            with self._ended_by_errors():
                self._make_tombstone()
        return super().commit(if_useful=if_useful)

    def _contribution(self) -> Contribution:
        if not self._tombstones and self._state == "running":
            self._make_tombstone()
        return KeyChangeContribution(**self._written, tombstones=self._tombstones)

    def _add(self, keys: pa.Table) -> None:
        """Add keys. If a failed commit has made a tombstone already, it lacks these keys, so a new one is made."""
        self._keys.append(keys)
        self._session.warehouse.delete({one.path for one in self._tombstones if one.path})
        self._tombstones = ()

    def _make_tombstone(self) -> None:
        if self._tombstones or not self._keys:
            return
        spec = self._begun.table
        keys = self._distinct(pa.concat_tables(self._keys))
        if len(keys):
            bounds = key_bounds(keys, spec)
            self._tombstones = (self.tombstone("key", keys_interval(keys, spec), keys, bounds),)

    def _distinct(self, keys: pa.Table) -> pa.Table:
        return keys.group_by(keys.column_names).aggregate([])


class Upsert(KeyedWrite):
    """Inserts rows, replacing those with the same primary keys if there are any."""

    kind = Kind.UPSERT

    def __init__(self, session: Session, begun: Begun, *, newest: str | None = None, **marks: Any) -> None:
        super().__init__(session, begun, **marks)
        self._newest = newest

    def write(self, data: Rows) -> None:
        """Write rows; any number of times. Raises `InvalidInput` for rows that do not fit the table.

        No key may be written twice, in one call or several; with a ``newest`` column, only the newest row of each key
        in a call is written.
        """
        self._require_running()
        if self._is_repeat:
            return
        engine = self._session.engine_for(data)
        written = len(self._segments)
        spec = self._begun.table
        if self._newest is not None:
            require_column(self._newest, spec)
            data = engine.newest(data, spec, self._newest)
        self._store(engine, data, is_lenient=self._is_lenient)
        files = self._segments[written:]
        with self._ended_by_errors():
            self._add(require_keys(read_columns(self._session.warehouse, files, spec.primary_key, spec), spec))

    def _distinct(self, keys: pa.Table) -> pa.Table:
        found = super()._distinct(keys)
        if len(found) < len(keys):
            counted = keys.append_column("_count", pa.repeat(1, len(keys))).group_by(keys.column_names)
            totals = counted.aggregate([("_count", "sum")])
            twice = totals.filter(pc.greater(totals.column("_count_sum"), 1)).drop_columns("_count_sum")
            raise DuplicateKey(
                "rows of one upsert have one key twice; drop all but one, or name the column that says which is newest"
                " (newest=)",
                table=self._begun.table.name,
                keys=len(twice),
                example=twice.slice(0, 1).to_pylist()[0],
            )
        return found


class DeleteKeys(KeyedWrite):
    """Removes every row with one of the given primary keys."""

    kind = Kind.DELETE_KEYS

    def write(self, data: Rows) -> None:
        """Write keys, any number of times: the primary key's columns; other columns are ignored."""
        self._require_running()
        if self._is_repeat:
            return
        spec = self._begun.table
        schema = pa.schema([_key_column(spec.schema.field(name)) for name in spec.primary_key])
        given: Any = data
        rows = given.toArrow() if is_spark_frame(given) else given
        with self._ended_by_errors():
            found = pa.concat_tables(tables(rows, schema))
            missing = [name for name in schema.names if name not in found.column_names]
            if missing:
                raise InvalidRows("missing column of the primary key", table=spec.name, column=",".join(missing))
            self._add(require_keys(conform(found.select(schema.names), schema), spec))


def _key_column(column: pa.Field) -> pa.Field:
    """A column of the key without what is said of it in files; a UUID that is none would match no row."""
    return column.with_metadata({UUID: column.metadata[UUID]}) if is_uuid_column(column) else column.remove_metadata()


def require_keys(keys: pa.Table, spec: TableSpec) -> pa.Table:
    """Keys, checked to have no nulls."""
    for name in keys.column_names:
        nulls = keys.column(name).null_count
        if nulls:
            raise InvalidRows(
                "null in a column of the primary key; fill or drop such rows", table=spec.name, column=name, count=nulls
            )
    return keys


def keys_interval(keys: pa.Table, spec: TableSpec) -> Interval:
    """The interval in which rows with these keys can lie: all time, unless the time is part of the key."""
    if spec.time not in keys.column_names:
        return Interval(None, None)
    bounds = pc.min_max(keys.column(spec.time).cast(pa.timestamp("us")).cast(pa.int64()))
    return Interval(bounds["min"].as_py(), bounds["max"].as_py() + 1)


def require_column(newest: str, spec: TableSpec) -> None:
    """Refuse a column of the newest row that the table has not."""
    if newest not in spec.schema.names:
        raise unknown_column("newest names no column of the table", newest, spec.schema.names, table=spec.name)


def require_primary_key(spec: TableSpec) -> None:
    """Refuse a table without a primary key."""
    if not spec.primary_key:
        raise NoPrimaryKey(
            "the table has no primary key; create it with primary_key=[...], or use append, update or merge",
            table=spec.name,
        )
