"""Operations in three steps: begin, write, commit. Only commit makes anything visible."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, ClassVar, Self, TypedDict

import pyarrow as pa

from lakehouse import progress
from lakehouse.arguments import Txn
from lakehouse.core.bucket import Buckets
from lakehouse.core.commit import Commit
from lakehouse.core.contribution import Contribution, RepeatContribution
from lakehouse.core.interval import Interval
from lakehouse.core.operation import Begun, Kind, NewTombstone
from lakehouse.core.segment import NewSegment
from lakehouse.core.sets import INLINE_BYTES, MatchSet, encode_set, stored_keys
from lakehouse.core.spec import TableSpec
from lakehouse.core.tombstone import TombstoneKind
from lakehouse.engine import Engine, WriteTarget, Written
from lakehouse.engine.frames import row_count
from lakehouse.errors import InternalError, LakehouseError, OperationEnded, WriteConflict, coded, writing_to
from lakehouse.faults import reach
from lakehouse.forks import watch_forks
from lakehouse.session.session import Session
from lakehouse.storage.footer import read_footers
from lakehouse.storage.sets import write_set

logger = logging.getLogger(__name__)


class _Written(TypedDict):
    begun: Begun
    segments: tuple[NewSegment, ...]
    txn: Txn | None


class Operation:
    """An operation that has begun.

    As a context manager it commits on leaving normally and aborts on leaving by an exception. ``id`` identifies it in
    the catalog and in storage, ``base_version`` is the version it started from.

    Examples
    --------
    >>> op = flights.begin_append()
    >>> op.write(late)
    >>> op.commit().version - op.base_version, flights.count()
    (1, 5)
    """

    kind: ClassVar[Kind]

    def __init__(
        self, session: Session, begun: Begun, *, txn: Txn | None = None, message: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.wait_seconds = session.wait_seconds
        self._session = session
        self._begun = begun
        self._txn = txn
        self._message = message
        self._properties = properties
        self._state = "running"
        self._commit: Commit | None = None
        self._segments: list[NewSegment] = []
        self._batches = 0
        self._ran = False
        self._guard = threading.Lock()
        # Its txn was committed before: nothing is written, and its commit returns that one.
        self._is_repeat = txn is not None and session.catalog.committed(begun.table.id, txn)
        session.heartbeat.watch(begun)
        watch_forks(self)

    def after_fork(self) -> None:
        """A forked child must not write to, commit or end its parent's operation."""
        self._guard = threading.Lock()
        if self._state == "running":
            self._state = "inherited"

    @property
    def id(self) -> str:
        """The operation's id, 32 hexadecimal digits."""
        return self._begun.id

    @property
    def base_version(self) -> int:
        """The version that the operation started from."""
        return self._begun.base_version

    @property
    def begun(self) -> Begun:
        """What the catalog registered at begin."""
        return self._begun

    def write_as(self, spec: TableSpec) -> None:
        """Write rows for columns that the table will have by a change that commits with this operation."""
        self._begun = replace(self._begun, table=spec)

    @property
    def is_repeat(self) -> bool:
        """Whether its ``txn`` had been committed when it began: it writes nothing, and its commit is that one."""
        return self._is_repeat

    @property
    def txn(self) -> Txn | None:
        """The caller's idempotency key, which commits once."""
        return self._txn

    def commit(self, *, if_useful: bool = False) -> Commit:
        """Make everything visible as one version. A second call returns the same commit.

        Raises `LockLost` if the chunks were taken, `WriteConflict` if rows that it removes or updates were changed by
        another operation since it began, `CommitUnknown` if the outcome is unknown. With ``if_useful``, raises
        `NothingToDo` if nothing would change; the operation then goes on.
        """
        if self._commit is not None:
            return self._commit
        self._require_running()
        return self._commit_now(if_useful=if_useful)

    def _commit_now(self, *, if_useful: bool) -> Commit:
        contribution = self.contribution()
        try:
            commit = self._session.catalog.commit(
                [replace(contribution, if_useful=True) if if_useful else contribution],
                message=self._message,
                properties=self._properties,
                wait_seconds=self.wait_seconds,
            )
        except WriteConflict:
            self._fail()
            raise
        self.committed(commit)
        return commit

    def contribution(self) -> Contribution:
        """The operation's part of a commit."""
        if self._is_repeat:
            return RepeatContribution(self._begun, txn=self._txn)
        return self._contribution()

    def _contribution(self) -> Contribution:
        """The contribution of this kind of operation; kinds that commit nothing have none."""
        raise InternalError("operations of this kind commit nothing", kind=self.kind)

    @property
    def _written(self) -> _Written:
        """Fields of every kind's contribution."""
        return {"begun": self._begun, "segments": tuple(self._segments), "txn": self._txn}

    def committed(self, commit: Commit) -> None:
        """Record that the operation became visible in ``commit``."""
        self._commit = commit
        self._state = "committed"
        self._session.heartbeat.forget(self._begun)

    def abort(self) -> None:
        """Abort: release locks, and delete files that this operation wrote. Nothing was ever visible."""
        if self._state == "committed":
            raise OperationEnded("the operation is committed; use restore to undo it", operation=self.id)
        if self._state == "running":
            self._end("aborted")

    def _end(self, state: str) -> None:
        self._state = state
        self._session.heartbeat.forget(self._begun)
        if self._session.catalog.abort(self._begun):  # no commit can follow, so the files can never become visible
            self._session.warehouse.abandon(f"{self._begun.table.folder}/{self.id}")

    def _fail(self) -> None:
        """Abort after an error, which is the one that the caller should see."""
        try:
            self._end("failed")
        except (LakehouseError, OSError) as error:
            logger.warning("operation %s could not be ended; it ends with its lease: %s", self.id, coded(error))

    @contextmanager
    def _ended_by_errors(self) -> Iterator[None]:
        """End the operation by an error, which the caller sees."""
        try:
            yield
        except BaseException:
            self._fail()
            raise

    @property
    def has_failed(self) -> bool:
        """Whether a write failed, which ended the operation."""
        return self._state == "failed"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            if self._state == "running":
                self.commit()
        elif self._state == "running":
            self._fail()

    def __repr__(self) -> str:
        return f"<{self.kind.value} {self.id} on {self._begun.table.name}: {self._state}>"

    def require_own(self) -> None:
        """Raise `InvalidInput` in a child process of the one that began the operation."""
        if self._state == "inherited":
            raise OperationEnded(
                "the operation belongs to the process that this one was forked from; begin another", operation=self.id
            )

    def _require_running(self) -> None:
        self.require_own()
        if self._state == "failed":
            raise OperationEnded("the operation failed and has ended; begin another", operation=self.id)
        if self._state != "running":
            raise OperationEnded("the operation has ended; begin another", operation=self.id, state=self._state)

    def _start(self) -> None:
        """Record that the operation runs. It runs only once, or its rows would be committed twice."""
        with self._guard:
            self._require_running()
            if self._ran:
                raise OperationEnded("the operation has run; commit it, or begin another", operation=self.id)
            self._ran = True

    def _store(self, engine: Engine, rows: Any, *, row_ids: bool = False, is_lenient: bool = False) -> None:
        """Write rows below the operation's folder; a failure ends the operation."""
        spec = self._begun.table
        with self._guard:
            self._require_running()
            batch, self._batches = self._batches, self._batches + 1
        warehouse = self._session.warehouse
        folder = warehouse.root / spec.folder / self.id
        reach("write.before")
        with self._ended_by_errors(), writing_to(folder, then="begin again"), self._counting(rows):
            target = WriteTarget(
                spec,
                folder,
                self.id,
                batch=batch,
                row_ids=row_ids,
                is_lenient=is_lenient,
                now_us=self._now_us(),
                warehouse=warehouse,
            )
            self.take(engine.write(rows, target))
        reach("write.after")

    def _counting(self, rows: Any) -> AbstractContextManager[object]:
        """The step that counts rows while they are written."""
        return progress.step(f"{self.kind.value} {self._begun.table.name}", "rows", row_count(rows))

    def _now_us(self) -> int:
        """The time by which files get the codec for their age: this host's, since the catalog's may be far away."""
        return time.time_ns() // 1000

    def tombstone(
        self,
        kind: TombstoneKind,
        interval: Interval,
        matched: MatchSet,
        bounds: tuple[Mapping[str, Any], Mapping[str, Any], Buckets],
    ) -> NewTombstone:
        """A tombstone of this operation; its set is written to a file if it is too large for the catalog."""
        spec = self._begun.table
        if isinstance(matched, pa.Table):
            matched = stored_keys(matched, spec)
        stored = spec.stored_names
        low, high, buckets = ({stored.get(name, name): value for name, value in one.items()} for one in bounds)
        made = NewTombstone(kind, interval, len(matched), min=low, max=high, buckets=buckets)
        content = encode_set(matched)
        if len(content) <= INLINE_BYTES:
            return replace(made, content=content)
        with self._guard:
            batch, self._batches = self._batches, self._batches + 1
        path = f"{spec.folder}/{self.id}/{batch:05d}.{kind}s"
        checksum = write_set(self._session.warehouse, path, content)
        return replace(made, path=path, bytes=len(content), checksum=checksum)

    def take(self, written: Sequence[Written]) -> None:
        """Add durable files below the operation's folder, named relative to it, to the commit.

        For rows that other processes wrote. Raises `InvalidInput` for rows outside the operation's scope.
        """
        spec = self._begun.table
        prefix = f"{spec.folder}/{self.id}"
        unread = [one.name for one in written if one.segment is None]
        read = {one.path: one for one in read_footers(self._session.warehouse.root / prefix, unread, spec)}
        found = [(one, one.segment or read.get(one.name)) for one in written]
        files = [
            replace(segment, path=f"{prefix}/{one.name}", checksum=one.checksum)
            for one, segment in found
            if segment is not None
        ]
        self._check(files)
        with self._guard:
            self._segments.extend(files)

    def _check(self, files: list[NewSegment]) -> None:
        """Refuse rows outside the operation's scope."""


def commit_together(
    session: Session, operations: Sequence[Operation], message: str | None, properties: Mapping[str, str] | None
) -> Commit:
    """Make several operations visible as one version. Raises as `Operation.commit`; none has ended then."""
    contributions = [one.contribution() for one in operations]
    commit = session.catalog.commit(contributions, message=message, properties=properties)
    for one in operations:
        one.committed(commit)
    return commit
