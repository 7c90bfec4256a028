"""The catalog as the rest of the library sees it: core values in, core values out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import Connection

from lakehouse.catalog.locks.uploads import OperationUploads
from lakehouse.catalog.state.summaries import Summaries
from lakehouse.catalog.state.tombstone_sets import ReadFile, no_files
from lakehouse.catalog.store.database import Database
from lakehouse.catalog.store.migration import ensure_migrated
from lakehouse.catalog.tasks import plan_counts
from lakehouse.catalog.versions import consumers, log, pins
from lakehouse.catalog.versions.horizon import keep_horizon
from lakehouse.catalog.versions.warehouse import read_warehouse, record_warehouse
from lakehouse.catalog.writer import CatalogWriter
from lakehouse.core.consumer import Given
from lakehouse.core.expire import Expired, RetentionRequest
from lakehouse.core.feed import Position
from lakehouse.core.interval import Interval, from_us
from lakehouse.core.listing import Listing
from lakehouse.core.segments import Segments
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.core.topic import Progress, Topic

if TYPE_CHECKING:
    from lakehouse.catalog.commit import leftover
    from lakehouse.catalog.forget.garbage import Collection
    from lakehouse.catalog.inspect.cells import Held
    from lakehouse.catalog.inspect.checking import Checks
    from lakehouse.catalog.inspect.whereabouts import Whereabouts
    from lakehouse.catalog.tasks.queue import TaskQueue
    from lakehouse.catalog.tasks.serving import ServingGroups
    from lakehouse.catalog.tasks.topics import Reports

T = TypeVar("T")


class Catalog(CatalogWriter):
    """A SQL catalog: tables, versions, locks and operations of one lake.

    Thread-safe. Opens (and on first use migrates) the database at ``url``. ``lease_seconds`` is how long an operation
    keeps its locks when its process stops renewing them; ``read_file`` reads tombstones' sets in the warehouse.
    """

    def __init__(self, url: str, *, lease_seconds: float = 60.0, read_file: ReadFile = no_files) -> None:
        database = Database(url)
        ensure_migrated(database)
        super().__init__(database, read_file, lease_seconds=lease_seconds)
        self.summaries = Summaries(database)

    @property
    def url(self) -> str:
        """The database's address, without its password."""
        return self._database.url.render_as_string(hide_password=True)

    @property
    def address(self) -> str:
        """The database's address as given, with the password: for other processes, not for people."""
        return self._database.url.render_as_string(hide_password=False)

    def close(self) -> None:
        """Close every connection."""
        self._reserve.close()
        self._database.close()

    # The warehouse

    def warehouse(self) -> tuple[str | None, list[str]]:
        """The location of the warehouse that is the lake's, and the stored paths of its newest segments."""
        return self._read(read_warehouse)

    def record_warehouse(self, location: str, before: str | None) -> None:
        """Note where the lake's files lie, unless another process has noted it since it was ``before``."""
        self._database.run(lambda connection: record_warehouse(connection, location, before))

    # Expiry and collection

    def pin(
        self, pin_id: str, spec: TableSpec, version: int, least: int, *, lease_seconds: float | None = None
    ) -> None:
        """Protect versions from ``least`` on for a lease. Raises `VersionNotFound` if ``version`` is gone."""
        seconds = self.lease_seconds if lease_seconds is None else lease_seconds

        def work(connection: Connection) -> None:
            keep_horizon(connection)
            now_us, lease_us = self._database.now_us(connection), int(seconds * 1_000_000)
            pins.place(connection, pin_id, spec, version, least=least, now_us=now_us, lease_us=lease_us)

        self._database.run(work)

    def renew_pin(self, pin_id: str, least: int) -> bool:
        """Renew a pin for ``lease_seconds``, from ``least`` on; False if it has expired."""

        def work(connection: Connection) -> bool:
            keep_horizon(connection)  # an expiry considers the pin either alive or expired, and so does this
            now_us, lease_us = self._database.now_us(connection), int(self.lease_seconds * 1_000_000)
            return pins.renew(connection, pin_id, least, now_us, lease_us)

        return self._database.run(work)

    def unpin(self, pin_id: str, *, wait_seconds: float | None = None) -> None:
        """Remove a pin; ``wait_seconds`` limits the wait for another program that holds the database."""
        self._database.run(lambda connection: pins.remove(connection, pin_id), wait_seconds=wait_seconds)

    def attach(
        self,
        name: str,
        spec: TableSpec,
        start: Position,
        *,
        given: Position | None,
        token: str,
        lease_seconds: float,
    ) -> tuple[Position, Given]:
        """Take over a consumer of a table, or make one at ``start``; where it goes on, and what it was given last.

        A known one goes on where it was, or where ``given`` says if that has expired. Raises `ConsumerExpired`.
        """

        def work(connection: Connection) -> tuple[Position, Given]:
            keep_horizon(connection)
            return consumers.attach(
                connection,
                name,
                spec,
                start,
                given=given,
                token=token,
                head=log.read_head(connection),
                now_us=self._database.now_us(connection),
                lease_us=int(lease_seconds * 1_000_000),
            )

        return self._database.run(work)

    def move(self, name: str, token: str, position: Position, last: Given) -> None:
        """Record how far a consumer's reader has come and what it is given, and renew its lease; or `ConsumerLost`."""

        def work(connection: Connection) -> None:
            keep_horizon(connection)  # an expiry considers it where it was or where it is, and so does this
            consumers.move(connection, name, token, position, last, self._database.now_us(connection))

        self._database.run(work)

    def drop_consumer(self, name: str) -> None:
        """Remove a consumer. Raises `ConsumerNotFound`."""
        self._run(consumers.remove, name)

    def expire(self, request: RetentionRequest, *, dry_run: bool = False) -> Expired:
        """Expire the versions that a request names and nobody holds."""
        from lakehouse.catalog.forget import expiry  # noqa: PLC0415 - late

        return expiry.expire(self._database, request, dry_run=dry_run)

    def collection(self, grace_seconds: float) -> Collection:
        """What may be deleted from storage after a grace period."""
        from lakehouse.catalog.forget.garbage import Collection  # noqa: PLC0415 - late

        return Collection(self._database, grace_seconds)

    def uploads(self) -> OperationUploads:
        """Where uploads of operations' files in parts are noted while they last."""
        return OperationUploads(self._database)

    def checks(self) -> Checks:
        """Checks of the catalog against itself, and of its files."""
        from lakehouse.catalog.inspect.checking import Checks  # noqa: PLC0415 - late

        return Checks(self._database)

    # Erasing

    def stored(self, spec: TableSpec, until: int) -> Iterator[Segments]:
        """Segments up to a version that are in any version, live or not, a few thousand at a time."""
        from lakehouse.catalog.commit import erasure  # noqa: PLC0415 - late

        after = -1
        while True:
            found = self._read(erasure.read_stored, spec, until, after)
            if not len(found):
                return
            yield found
            after = int(found.ids.max())

    def come(self, spec: TableSpec, since: int, until: int) -> Segments:
        """Segments added by versions after ``since`` up to ``until``, live or not."""
        from lakehouse.catalog.commit import erasure  # noqa: PLC0415 - late

        return self._read(erasure.read_come, spec, since, until)

    def write_key_frames(self, spec: TableSpec, spans: Iterable[Interval]) -> None:
        """Write the key frames that an erasure removed from the chunks of some intervals."""
        from lakehouse.catalog.commit import erasure  # noqa: PLC0415 - late

        erasure.write_frames(self._database, self._frames, spec, spans)

    def scopes_named(self, spec: TableSpec, taken: leftover.Taken | None) -> list[Interval]:
        """The intervals of keyed tombstones that an erasure of an interval and keys may change."""
        from lakehouse.catalog.commit import leftover  # noqa: PLC0415 - late

        return self._read(leftover.scopes_named, spec, taken)

    def leftovers(self, spec: TableSpec) -> leftover.Leftovers:
        """Where values of rows erased from a table may remain."""
        from lakehouse.catalog.commit import leftover  # noqa: PLC0415 - late

        return self._read(leftover.read_leftovers, spec)

    def count_readable(self, spec: TableSpec) -> int:
        """How many versions of a table can be read."""
        from lakehouse.catalog.commit import leftover  # noqa: PLC0415 - late

        return self._read(leftover.count_readable, spec)

    def newest_erasure(self) -> int:
        """The version of the lake's newest erasure, 0 without any."""
        from lakehouse.catalog.commit import leftover  # noqa: PLC0415 - late

        return self._database.once("newest erasure", lambda: self._read(leftover.newest_erasure))

    def search(self, begin: Callable[[], Callable[[Held], None]]) -> Whereabouts:
        """Give everything that the database holds to what ``begin`` returns; what it knows of files at that moment.

        It begins again if the connection is lost.
        """
        from lakehouse.catalog.inspect.cells import read_cells  # noqa: PLC0415 - late
        from lakehouse.catalog.inspect.whereabouts import read_whereabouts  # noqa: PLC0415 - late

        def question(connection: Connection) -> Whereabouts:
            look = begin()
            for one in read_cells(connection):
                look(one)
            return read_whereabouts(connection)

        return self._read(question)

    def vacuum(self) -> None:
        """Write a SQLite file anew, without what was deleted from it."""
        self._database.vacuum()

    @property
    def files(self) -> list[Path]:
        """The files of a SQLite database; none of a server's."""
        if not self._database.is_sqlite:
            return []
        path = Path(str(self._database.url.database))
        return [one for end in ("", "-wal", "-journal") if (one := path.with_name(path.name + end)).exists()]

    # The table service

    def tasks(self) -> TaskQueue:
        """The queue of the table service's tasks."""
        from lakehouse.catalog.tasks.queue import TaskQueue  # noqa: PLC0415 - late

        return TaskQueue(self._database, self.lease_seconds)

    def count_plans(self, counts: Mapping[tuple[TableId, int], int]) -> None:
        """Add to how often bins were planned."""
        self._database.run(lambda connection: plan_counts.add(connection, counts, self._database.now_us(connection)))

    def plan_rates(self, spec: TableSpec) -> plan_counts.Rates:
        """How often each time of a table is planned."""

        def rates(connection: Connection) -> plan_counts.Rates:
            return plan_counts.read_rates(connection, spec, self._database.now_us(connection))

        return self._read(rates)

    # Topics

    def topics(self) -> Listing[Topic]:
        """Streams that processes run or ran, by name, as they reported them last."""
        from lakehouse.catalog.tasks import topics  # noqa: PLC0415 - late

        return self._read(lambda connection: topics.read_topics(connection, self._database.now_us(connection)))

    def claim_topic(self, name: str, process: str, progress: Progress, *, dead: tuple[str, ...] = ()) -> str | None:
        """Make a process the one that runs a topic; None, or the process that runs it and is not among the ``dead``."""
        from lakehouse.catalog.tasks import topics  # noqa: PLC0415 - late

        def work(connection: Connection) -> str | None:
            now_us = self._database.now_us(connection)
            return topics.claim(connection, name, process, progress, dead=dead, now_us=now_us)

        return self._database.run(work)

    def report_topics(self, process: str, reports: Reports) -> set[str]:
        """Store what a process says of its topics; the names of those that another one has taken from it."""
        from lakehouse.catalog.tasks import topics  # noqa: PLC0415 - late

        return self._database.run(
            lambda connection: topics.report(connection, process, reports, self._database.now_us(connection))
        )

    def forget_topic(self, name: str) -> None:
        """Remove a topic from those that are listed. Raises `TopicNotFound`."""
        from lakehouse.catalog.tasks import topics  # noqa: PLC0415 - late

        self._database.run(lambda connection: topics.forget(connection, name))

    # Query nodes

    def serving(self) -> ServingGroups:
        """Groups of query nodes."""
        from lakehouse.catalog.tasks.serving import ServingGroups  # noqa: PLC0415 - late

        return ServingGroups(self._database)

    # The clock

    def now(self) -> datetime:
        """The catalog's clock."""
        return from_us(self._read(self._database.now_us))

    def versions_at(self, ages: Iterable[float]) -> dict[float, int]:
        """The newest version that is at least this many seconds old, for each age; 0 without one."""

        def question(connection: Connection) -> dict[float, int]:
            now_us = self._database.now_us(connection)
            return {age: log.version_at(connection, now_us - int(age * 1_000_000)) or 0 for age in ages}

        return self._read(question)
