"""Reads of a catalog: core values in, core values out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from sqlalchemy import Connection

from lakehouse.catalog.commit import tables
from lakehouse.catalog.inspect.chunks import list_changes, list_chunks
from lakehouse.catalog.inspect.history import read_bytes_written, read_history, read_origins, versions_touching
from lakehouse.catalog.inspect.numbers import read_drawn
from lakehouse.catalog.state.bins import BinState, StateReader, extent_of, live_in, touching
from lakehouse.catalog.state.tombstone_sets import ReadFile, Sets
from lakehouse.catalog.store.database import Database
from lakehouse.catalog.versions import batches, consumers, definitions, log
from lakehouse.catalog.versions.horizon import check_complete, check_readable, gone, read_horizon
from lakehouse.core.chunk import Chunk
from lakehouse.core.commit import Commit
from lakehouse.core.consumer import Consumer
from lakehouse.core.diff import Diff, EntryDiff
from lakehouse.core.drawn import DrawnNumber
from lakehouse.core.feed import CommitDelta, Position
from lakehouse.core.history import Origin, Touch
from lakehouse.core.interval import Interval
from lakehouse.core.key_frame import ChainLength, ChainLink, KeyFrame
from lakehouse.core.listing import Listing
from lakehouse.core.overview import TableSummary
from lakehouse.core.segments import Segments
from lakehouse.core.sets import MatchSet
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.core.stream import Batch
from lakehouse.core.tombstone import Tombstone
from lakehouse.core.view import View
from lakehouse.remembered import Remembered

if TYPE_CHECKING:
    from lakehouse.catalog.recovery import export
    from lakehouse.catalog.state.feed import Look

P = ParamSpec("P")
T = TypeVar("T")
_DEFINITIONS = 1000
"""Of how many altered tables a process remembers what they were."""


class ReadPoint(NamedTuple):
    """What a reader of a table at ``as_of`` needs."""

    version: int
    """The table's newest version at or before it."""
    held_version: int
    """The version to pin."""
    spec: TableSpec
    """The definition that the table had then."""


class CatalogReader:
    """Tables, versions, and what is live at a version."""

    def __init__(self, database: Database, read_file: ReadFile) -> None:
        self._database = database
        self._states = StateReader()
        self._sets = Sets(read_file)
        self._known_definitions: Remembered[tuple[int, int], list[tuple[int, TableSpec]]] = Remembered(_DEFINITIONS)

    def _read(self, question: Callable[Concatenate[Connection, P], T], *given: P.args, **named: P.kwargs) -> T:
        """Call a function with a connection and the given arguments, to read one state of the catalog."""
        return self._database.read(lambda connection: question(connection, *given, **named))

    def forget_remembered(self) -> None:
        """Drop the caches, so that everything is read again: for tests that change the database directly."""
        self._states.forget()
        self._sets.forget()

    def snapshot(self, work: Callable[[], T]) -> T:
        """Run ``work`` such that all its reads see one state. It must write nothing, and may be run again."""
        return self._database.snapshot(work)

    # Tables

    def table(self, name: str) -> tuple[TableSpec, int]:
        """A table's definition and the version that created it. Raises `TableNotFound`."""
        return self._read(tables.get_table, name)

    def table_names(self) -> list[str]:
        """Names of the tables, sorted, of the lake's own (`core.beside`) too."""
        return self._read(tables.table_names)

    def names(self) -> tuple[list[str], frozenset[str]]:
        """Names of the tables, sorted, and folded names of all views of versions that are kept."""
        from lakehouse.catalog.commit import views  # noqa: PLC0415 - late

        return self._read(views.read_names)

    def views(self) -> list[View]:
        """Every form of every view in the versions that are kept, by name and version."""
        from lakehouse.catalog.commit import views  # noqa: PLC0415 - late

        return self._read(views.read_views)

    def overview(self, days: int = 14) -> Listing[TableSummary]:
        """A summary of every table. Cost: one pass over the live segments, in the database."""
        from lakehouse.catalog.inspect import overview  # noqa: PLC0415 - late

        return self._read(lambda c: overview.read_overview(c, now_us=self._database.now_us(c), days=days))

    # Versions

    def head(self) -> int:
        """The newest version."""
        return self._read(log.read_head)

    def resolve(self, as_of: Any) -> int:
        """The version of the lake that a version, tag or time means; None: the head. Raises `VersionNotFound`."""
        return self._read(log.resolve_version, as_of)

    def newest_batch(self, table: TableId, stream: str) -> Batch | None:
        """The newest batch of a stream on a table; None if it has committed none there."""
        return self._read(batches.newest_batch, table, stream)

    def newest_batches(self, table: TableId) -> list[Batch]:
        """The newest batch of each stream on a table, by stream."""
        return self._read(batches.newest_batches, table)

    def horizon(self) -> int:
        """The oldest version at which every table can be read."""
        return self._read(read_horizon)

    def commits(
        self,
        table: TableId | None = None,
        limit: int | None = None,
        *,
        before: int | None = None,
        operation: str | None = None,
        touching: tuple[TableSpec, Interval] | None = None,
        definitions: bool = False,
    ) -> Listing[Commit]:
        """The log, newest first; optionally before a version, of one kind, or touching an interval of a table.

        Of a table those that changed its rows, with ``definitions`` also those that altered it.
        """
        touched = None if touching is None else versions_touching(*touching)
        return self._read(
            log.read_commits,
            table=table,
            limit=limit,
            before=before,
            operation=operation,
            touching=touched,
            definitions=definitions,
        )

    def commits_between(self, spec: TableSpec, since: int, until: int) -> Listing[Commit]:
        """Every commit that changed a table's rows after a version, up to another, newest first.

        Raises `VersionNotFound` if one of them may have expired.
        """

        def question(connection: Connection) -> Listing[Commit]:
            check_complete(connection, spec, since, until)
            return log.read_commits(connection, table=spec.id, after=since, before=until + 1)

        return self._read(question)

    def check_complete(self, spec: TableSpec, since: int, until: int) -> None:
        """Raise `VersionNotFound` if a version of a table after ``since``, up to ``until``, may have expired."""
        self._read(check_complete, spec, since, until)

    def feed(self, spec: TableSpec, since: int, until: int, *, every: bool = False) -> tuple[list[CommitDelta], int]:
        """What commits after a version did to a table's segments, a few hundred commits at once; see `read_feed`."""
        from lakehouse.catalog.state.feed import read_feed  # noqa: PLC0415 - late

        return self._read(lambda connection: read_feed(connection, self._states, spec, since, until, every=every))

    def look(self, spec: TableSpec, consumer: str | None = None) -> Look:
        """What a reader that waits for a table's next commit looks at, for the consumer that it reads for."""
        from lakehouse.catalog.state.feed import look  # noqa: PLC0415 - late

        return self._read(look, spec.id, consumer)

    def consumers(self) -> Listing[Consumer]:
        """Every consumer, by name."""
        return self._read(consumers.read_consumers)

    def consumer_position(self, name: str, spec: TableSpec) -> Position | None:
        """Where a consumer of a table is; None without such a consumer."""
        return self._read(consumers.find, name, spec)

    def version_numbers(self, table: TableId) -> list[int]:
        """Numbers of a table's versions, oldest first. Cost: its history, by an index."""
        return self._read(log.version_numbers, table)

    def bytes_written(self, versions: Iterable[int], table: TableId | None = None) -> dict[int, int]:
        """Bytes of segments that each version wrote, of one table or all, as far as the catalog still has them."""
        return self._read(read_bytes_written, versions, table)

    def history(self, spec: TableSpec, interval: Interval, limit: int | None = None) -> Listing[Touch]:
        """What versions did to an interval, newest first."""
        return self._read(read_history, spec, interval, limit)

    def newest_version(self, table: TableId, created: int) -> int:
        """A table's newest version."""
        return self._read(log.newest_version, table, created)

    def newest_by(self, spec: TableSpec, version: int) -> int:
        """A table's newest version at or before another one, of those that are kept; that one if there is none."""
        return self._read(log.newest_version, spec.id, version, version)

    def table_version(self, spec: TableSpec, created: int, as_of: Any) -> int:
        """A table's newest version at or before ``as_of``. Raises `VersionNotFound`."""
        return self.resolve_as_of(spec, created, as_of).version

    def resolve_as_of(self, spec: TableSpec, created: int, as_of: Any) -> ReadPoint:
        """A table's newest version at or before ``as_of``, and its definition then. Raises `VersionNotFound`."""
        found = self._read(log.resolve_on_table, spec, created, as_of)
        if found.schema_number == spec.schema_number and (as_of is None or not spec.schema_number):
            return ReadPoint(found.version, found.held_version, spec)
        then = self._definition(spec, found.schema_number, None if as_of is None else found.point)
        return ReadPoint(found.version, found.held_version, then)

    def redefined(self, spec: TableSpec) -> TableSpec:
        """A table's definition now. Raises `TableNotFound` if it was dropped."""
        held = self._read(definitions.read_definition, spec.id)
        if held is None:
            raise gone(spec)
        return held[0]

    def definitions(self, spec: TableSpec, created: int) -> list[tuple[int, TableSpec]]:
        """Every definition of a table's columns, with the version from which on it holds, oldest first."""
        held = self._read(definitions.read_definition, spec.id)
        if held is None:
            raise gone(spec)
        return self._definitions(*held) or [(created, held[0])]

    def _definition(self, spec: TableSpec, schema_number: int, point: int | None) -> TableSpec:
        """A table's definition at a version of the lake (None: the newest), when it is known to have had a number."""
        key = spec.id, schema_number
        known = self._known_definitions.get(key)
        if known is None:
            held = self._read(definitions.read_definition, spec.id)
            if held is None:
                raise gone(spec)
            known = self._definitions(*held)
            self._known_definitions.put(key, known)
        at = [one for since, one in known if point is None or since <= point]
        return replace((at or [known[0][1]])[-1], properties=spec.properties)

    def _definitions(self, current: TableSpec, created: int) -> list[tuple[int, TableSpec]]:
        found = self._read(definitions.read_definitions, current)
        if not found or found[-1][1].schema_number != current.schema_number:  # recovered from footers
            found.append((created, current))
        return found

    def tags(self) -> dict[str, int]:
        """Versions by tag."""
        return self._read(log.read_tags)

    def export(self, write: export.WritePart) -> export.Snapshot:
        """Write every part of an export from one state of the catalog; may start again from the beginning."""
        from lakehouse.catalog.recovery import export  # noqa: PLC0415 - late

        return self._read(export.export, write)

    # State

    def states(self, spec: TableSpec, version: int, interval: Interval | None = None) -> dict[int, BinState]:
        """What is live at a version, by bin, in the bins that an interval may touch (None: all).

        Raises `VersionNotFound` if the version has expired.
        """
        ranges = touching(spec, interval)

        def question(connection: Connection) -> dict[int, BinState]:
            check_readable(connection, spec, version)
            return self._states.read(connection, spec, version, ranges)

        return self._read(question)

    def live(self, spec: TableSpec, version: int, interval: Interval | None = None) -> tuple[Segments, list[Tombstone]]:
        """Live segments and tombstones, each once, by id, that touch the chunks that an interval touches.

        Cost: the bins that hold those chunks and, of each, what changed since this process last saw it.
        """
        aligned = None if interval is None else spec.grain.align(interval)

        def look() -> tuple[TableSpec, Segments, list[Tombstone]]:
            segments, held = live_in(self.states(spec, version, interval).values())
            tombstones = [held[entry] for entry in sorted(held)]
            if aligned is None:
                return spec, segments, tombstones
            return spec, segments.within(aligned), [one for one in tombstones if aligned.overlaps(one.interval)]

        # A statement may name a table many times. Its definition is found with it, so that no other has its place.
        _, segments, tombstones = self._database.once(("live", id(spec), version, aligned), look)
        return segments, tombstones

    def sets(self, tombstones: Iterable[Tombstone]) -> dict[int, MatchSet]:
        """The sets of row and key tombstones, by tombstone id."""
        listed = list(tombstones)
        files = self._sets.load(listed)
        inline = [one for one in listed if one.id not in files]
        return files | self._read(self._sets.read, inline) if inline else files

    def chunks(self, spec: TableSpec, version: int) -> Listing[Chunk]:
        """Every chunk with something live, by time.

        Its version is the newest of its bins, including the larger ones.
        """
        return list_chunks(spec.grain, spec.bin_grain, self.states(spec, version).values())

    def extent(self, spec: TableSpec) -> Interval | None:
        """An interval from the first to the last chunk that ever held something, or wider; None if none did."""
        return self._read(extent_of, spec)

    def key_frames(self, spec: TableSpec) -> Listing[KeyFrame]:
        """Every key frame of a table."""
        from lakehouse.catalog.inspect import chains  # noqa: PLC0415 - late

        return self._read(chains.read_key_frames, spec)

    def chain(self, spec: TableSpec, version: int, interval: Interval | None) -> Listing[ChainLink]:
        """The key frames and deltas that make a version's state in the chunks of an interval, by bin."""
        from lakehouse.catalog.inspect import chains  # noqa: PLC0415 - late

        ranges = touching(spec, interval)

        def question(connection: Connection) -> Listing[ChainLink]:
            check_readable(connection, spec, version)
            return chains.read_chain(connection, spec, ranges, version)

        return self._read(question)

    def chain_lengths(self, spec: TableSpec, interval: Interval | None, limit: int) -> Listing[ChainLength]:
        """Lengths of the chains in an interval's chunks (None: all), most recently changed first."""
        from lakehouse.catalog.inspect import chains  # noqa: PLC0415 - late

        return self._read(chains.read_chain_lengths, spec, touching(spec, interval), limit)

    def chunk_history(self, spec: TableSpec, interval: Interval, limit: int) -> Listing[ChainLink]:
        """The newest key frames and deltas of each bin that may hold anything overlapping an interval."""
        from lakehouse.catalog.inspect import chains  # noqa: PLC0415 - late

        return self._read(chains.read_chunk_history, spec, touching(spec, interval), limit)

    def replayed(self, spec: TableSpec, version: int, interval: Interval | None = None) -> dict[int, BinState]:
        """The same as `states`, rebuilt from key frames and deltas without the cache, to measure that."""
        ranges = touching(spec, interval)

        def question(connection: Connection) -> dict[int, BinState]:
            check_readable(connection, spec, version)
            return StateReader().read(connection, spec, version, ranges)

        return self._read(question)

    def diff(self, spec: TableSpec, a: int, b: int) -> Diff:
        """ADD and DROP by chunk between two versions, in either order. Cost: the bins changed since the older."""
        from lakehouse.catalog.state.diff import changed_entries  # noqa: PLC0415 - late

        return Diff(a, b, list_changes(spec.grain, changed_entries(*self._before_and_after(spec, a, b))))

    def entry_diff(self, spec: TableSpec, a: int, b: int, interval: Interval | None = None) -> EntryDiff:
        """The same in columns, for entries that may touch an interval (None: all)."""
        from lakehouse.catalog.state.diff import entries_between  # noqa: PLC0415 - late

        return entries_between(*self._before_and_after(spec, a, b, interval))

    def _before_and_after(
        self, spec: TableSpec, a: int, b: int, interval: Interval | None = None
    ) -> tuple[dict[int, BinState], dict[int, BinState]]:
        def question(connection: Connection) -> tuple[dict[int, BinState], dict[int, BinState]]:
            older, ranges = min(a, b), touching(spec, interval)
            for version in (a, b):
                check_readable(connection, spec, version)
            return (
                self._states.read(connection, spec, a, ranges, since=older),
                self._states.read(connection, spec, b, ranges, since=older),
            )

        return self._read(question)

    def drawn(self, numbers: Collection[int]) -> list[DrawnNumber]:
        """What became of numbers that are no versions, as far as operations' traces are kept."""
        return self._read(read_drawn, numbers) if numbers else []

    def origins(self, spec: TableSpec, ids: Iterable[int]) -> dict[int, Origin]:
        """The versions that added and dropped some segments and tombstones, by id. Cost: one look-up each."""
        return self._read(read_origins, spec, ids)
