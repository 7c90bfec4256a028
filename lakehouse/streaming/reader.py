"""A table as a streaming source of Spark: offsets are positions in its change feed, and tasks read the files.

Spark keeps the offsets in its checkpoint, which says what is read. A consumer follows what Spark has committed, so that
what the checkpoint has yet to read does not expire.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as spark_source
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from lakehouse.core.consumer import LEASE_SECONDS
from lakehouse.core.feed import CommitDelta, Limits, Piece, Position, between
from lakehouse.core.spec import TableSpec
from lakehouse.engine.spark import to_spark_type
from lakehouse.errors import CheckpointMismatch, InvalidArgument, SchemaMismatch, VersionNotFound
from lakehouse.lake import Lake
from lakehouse.reading.feed_columns import changes_schema
from lakehouse.reading.feed_window import Feed
from lakehouse.reading.follow import Place
from lakehouse.streaming.tasks import packed, read_flag, with_lists
from lakehouse.table.table import Table

Open = Callable[[Mapping[str, str]], tuple[Lake, Table]]
"""Opens the lake and the table that options name."""
_WITHOUT_LIMIT = 2**62
_TABLE = "table"
"""The id of an offset's table, which offsets of before this was kept lack."""
_NUMBERS = ("max_rows", "max_bytes", "max_versions")


def limits_of(options: Mapping[str, str]) -> Limits:
    """The most that a micro-batch takes, by options; each is a whole number above 0."""
    found: dict[str, int] = {}
    for name in _NUMBERS:
        given = options.get(name)
        if given is None:
            continue
        if not str(given).isdecimal() or not 0 < int(given) < _WITHOUT_LIMIT:
            raise InvalidArgument(f"the option {name} is a whole number above 0", found=str(given)[:100])
        found[name.removeprefix("max_")] = int(given)
    return Limits(**found)


@dataclass(frozen=True)
class _Share:
    """Some pieces of one commit, and the definition by which their rows are read."""

    spec: TableSpec
    delta: CommitDelta
    pieces: Sequence[Piece]
    after: int | None = None
    """The row of the first piece up to which it was read before."""


class _Shares(spark_source.InputPartition):
    """What one task reads."""

    def __init__(self, shares: Sequence[_Share]) -> None:
        self.shares = shares


@dataclass
class _Live:
    """What the driver's process keeps open."""

    lake: Lake
    table: Table
    feed: Feed
    place: Place
    begun: Position
    """Where it began; Spark asks for it more than once."""


class StreamReader(spark_source.DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a table's rows, or with the option ``changes`` its changes, from one position to another."""

    def __init__(self, options: Mapping[str, str], schema: StructType, opened: Open) -> None:
        self._options = dict(options)
        self._schema = schema
        self._open = opened
        self._changes = read_flag(options, "changes")
        self._limits = limits_of(options)
        self._live: _Live | None = None
        self._target: int | None = None
        """The newest version that is read, if the query ends there."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_live": None}  # tasks open the lake themselves

    # In the driver's process

    def _opened(self, start: Position | None, table_id: int | None = None) -> _Live:
        """What is kept open; its reader begins at a position, or (None) where the options say.

        Raises `CheckpointMismatch` if the position is one in the changes of another table.
        """
        if self._live is not None:
            return self._live
        lake, table = self._open(self._options)
        consumer, since = self._options.get("consumer"), self._options.get("since")
        lease = float(self._options.get("lease_seconds", LEASE_SECONDS))
        try:
            if table_id not in (None, table.spec.id):
                raise CheckpointMismatch(
                    "the checkpoint says how far another table was read; take a new checkpoint for this one, also "
                    "if it was dropped and made again",
                    table=table.name,
                )
            feed, place, begun = table.begin_following(since if start is None else None, consumer, lease, start=start)
        except BaseException:
            lake.close()
            raise
        self._live = _Live(lake, table, feed, place, begun)
        return self._live

    def _offset(self, position: Position) -> dict[str, Any]:
        """A position as Spark keeps it, with its table: positions in two tables look alike."""
        return position.to_json() | {_TABLE: self._opened(position).table.spec.id}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a query without a checkpoint begins."""
        return self._offset(self._opened(None).begun)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read no version that is newer than those of now."""
        lake, table = self._open(self._options)
        with lake:
            self._target = lake.catalog.look(table.spec).newest or 0

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The limits of the options, which `latestOffset` knows; Spark asks for all where a trigger wants all."""
        if self._limits == Limits():
            return ReadAllAvailable()
        return ReadMaxRows(self._limits.rows or _WITHOUT_LIMIT)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The position to which the next micro-batch reads; ``start`` if there is nothing to read.

        A snapshot is read to its end before changes are.
        """
        position = _position(start)
        live = self._opened(position, start.get(_TABLE))
        live.place.acknowledge(position)  # Spark asks for the next batch when it has written down that this one is done
        look = live.place.look()
        newest = look.newest or 0
        if self._target is not None:
            newest = min(newest, self._target)
        if not position.is_snapshot and Position(newest) <= position:
            return start
        if look.schema_number != live.feed.spec.schema_number:
            live.feed.refresh()
        limits = Limits() if isinstance(limit, ReadAllAvailable) else self._limits
        if limits == Limits():
            return self._offset(Position(position.version if position.is_snapshot else newest))
        return self._offset(self._admitted(live.feed, position, newest, limits))

    def _admitted(self, feed: Feed, position: Position, newest: int, limits: Limits) -> Position:
        last = limits.last(self._pieces(feed, position, newest))
        if last is not None:
            return last.end
        return Position(position.version if position.is_snapshot else newest)

    def _pieces(self, feed: Feed, position: Position, newest: int) -> Iterator[Piece]:
        """Those that follow, of a snapshot or of commits; what is not asked for is not looked up."""
        while position.is_snapshot or position.version < newest:
            deltas, reached = feed.following(position, newest)
            for delta in deltas:
                yield from between(delta.pieces(changes=self._changes), position)
            if position.is_snapshot:
                return
            position = Position(reached)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """The table's newest version, for the query's progress."""
        if self._live is None:
            return None
        return self._offset(Position(self._live.place.look().newest or 0))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[spark_source.InputPartition]:
        """The pieces between two positions, packed into tasks of about 128 MiB of files."""
        first, last = _position(start), _position(end)
        if first.is_snapshot and first.version != last.version:  # of a first batch that is read again
            first = Position(last.version, is_snapshot=True)
        live = self._opened(first, start.get(_TABLE))
        newest = last.version if last.is_snapshot or not last.file else max(live.place.look().newest or 0, last.version)
        try:
            shares = list(self._shares(live.feed, first, last, newest))
        except VersionNotFound as error:
            raise live.place.explained(error) from error
        return [_Shares(some) for some in packed(shares, _bytes_of)]

    def _shares(self, feed: Feed, first: Position, last: Position, newest: int) -> Iterator[_Share]:
        while first < last:
            deltas, reached = feed.following(first, newest)
            for delta in deltas:
                pieces = between(delta.pieces(changes=self._changes), first, last)
                if pieces:
                    spec = self._fitting(feed.spec_at(delta.version))
                    after = first.row
                    for some in packed(pieces, lambda piece: piece.bytes):
                        yield _Share(spec, delta.of(some), some, after)
                        after = None
                if delta.end >= last:
                    return
            first = Position(reached)

    def _fitting(self, spec: TableSpec) -> TableSpec:
        """The definition with the query's columns. Raises `SchemaMismatch` if the table has others since it began."""
        schema = changes_schema(spec.schema) if self._changes else spec.schema
        there = {one.name: one for one in to_spark_type(schema).fields}
        wrong = [
            one.name
            for one in self._schema.fields
            if one.name not in there
            or there[one.name].dataType != one.dataType
            or (there[one.name].nullable and not one.nullable)
        ]
        if wrong:
            raise SchemaMismatch(
                "columns of the table were changed since the query began; start it again: it goes on where it was",
                table=spec.name,
                columns=wrong,
            )
        return with_lists(spec)

    def commit(self, end: dict[str, Any]) -> None:
        """Let go of what Spark has read and written to its checkpoint."""
        if self._live is not None:
            self._live.place.acknowledge(_position(end))

    def stop(self) -> None:
        """Close the lake; a consumer keeps its place."""
        if self._live is not None:
            self._live.place.close()
            self._live.lake.close()
            self._live = None

    # In tasks

    def read(self, partition: spark_source.InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task, read in process."""
        if not isinstance(partition, _Shares):
            return
        names = self._schema.fieldNames()
        lake, _ = self._open(self._options)
        with lake:
            for share in partition.shares:
                feed = Feed(lake.session, share.spec)
                for batch in feed.rows(share.delta, share.pieces, changes=self._changes, after=share.after):
                    yield batch if batch.schema.names == names else batch.select(names)


def _position(offset: Mapping[str, Any]) -> Position:
    """What `StreamReader._offset` made of it. Raises `InvalidArgument` for anything else."""
    return Position.of_json({name: value for name, value in offset.items() if name != _TABLE})


def _bytes_of(share: _Share) -> int:
    return sum(piece.bytes for piece in share.pieces)
