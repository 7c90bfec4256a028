"""A query node: answers to questions, each at one version of the lake."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import pyarrow as pa

from lakehouse.arguments import nearest, read_called, require_within
from lakehouse.core.beside import is_beside
from lakehouse.core.serving.coverage import Coverage
from lakehouse.core.serving.group import Glance, Group, Node, NodeStage, SlowQuery
from lakehouse.errors import (
    CatalogUnavailable,
    LakehouseError,
    OtherLake,
    QueryLimitExceeded,
    SegmentUnreadable,
    TableNotFound,
    VersionNotServed,
)
from lakehouse.fair_queue import FairQueue, Turn
from lakehouse.lake import Lake
from lakehouse.remembered import Remembered
from lakehouse.serving.answering import Databases, QueryBounds, limited, run
from lakehouse.serving.asking import Asking, Askings
from lakehouse.serving.deadlines import Deadlines
from lakehouse.serving.figures import Figures
from lakehouse.serving.glances import Glances
from lakehouse.serving.member import Member, Membership
from lakehouse.serving.sending import Sending
from lakehouse.serving.versions import ServedVersion, Versions
from lakehouse.serving.wire import Question, Said
from lakehouse.sql.values import Values, read_values
from lakehouse.storage.opening import open_copies

_LOOK_SECONDS = 0.25
"""How long an answer waits for a look at the catalog; then it goes by what was seen last, and says how old that is."""
_ATTEMPTS = 3
_FEW_BYTES = 65_536
"""A known answer of no more is sent at once: so many fit into a connection."""
_Key: TypeAlias = tuple[int, int, str, str]


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """How a node serves. ``at_once`` queries run at a time, each within its ``bounds``; the others wait their turn.

    No query begins while answers of ``send_bytes`` are being sent, and none of a reader who has half of them. Who takes
    less than a mebibyte of an answer in ``send_seconds``, and not its rest either, is cut off.
    """

    cache_dir: str | None = None
    cache_bytes: int | None = None
    bounds: QueryBounds = field(default_factory=QueryBounds)
    at_once: int = 4
    most_waiting: int = 200
    most_waiting_each: int = 100
    result_bytes: int = 64_000_000
    send_bytes: int = 1_000_000_000
    send_seconds: float = 30.0
    lease_seconds: float = 3.0
    replicas: int | None = None

    def __post_init__(self) -> None:
        """Raise `InvalidArgument` for a setting that lies outside its bounds."""
        require_within(self.at_once, "at_once", 1, 64)
        require_within(self.lease_seconds, "lease_seconds", 0.5, 3600.0)
        require_within(self.send_seconds, "send_seconds", 0.001, 86_400.0)
        for name, least, most in _WHOLE:
            given = getattr(self, name)
            if given is not None:
                require_within(given, name, least, most)


_WHOLE = (
    ("cache_bytes", 1, 2**50),
    ("most_waiting", 1, 10_000),
    ("most_waiting_each", 1, 10_000),
    ("result_bytes", 0, 2**50),
    ("send_bytes", 1, 2**50),
    ("replicas", 0, 1000),
)


@dataclass(frozen=True, slots=True)
class _Found:
    """Rows, where they come from, and how many segments were read from the cache and from the warehouse."""

    rows: pa.Table
    coverage: tuple[Coverage, ...]
    segments: tuple[int, int] = (0, 0)
    is_known: bool = False


class ServingNode:
    """One node of a group. Thread-safe; close it to leave the group. The lake stays open.

    It answers from the moment that it is made: what it does not hold yet is read from the warehouse.
    """

    def __init__(self, lake: Lake, group: str, node: str, url: str, settings: NodeSettings | None = None) -> None:
        self.id, self.url, self.settings = read_called(node, "node"), url, settings or NodeSettings()
        read_called(group, "group")
        self.session = lake.session
        self.figures = Figures()
        chosen = self.settings
        warehouse = open_copies(self.session.warehouse, chosen.cache_dir, chosen.cache_bytes)
        self._versions = Versions(self.session, warehouse)
        self._results: Remembered[_Key, _Found] = Remembered(chosen.result_bytes)
        self._queue = FairQueue(
            at_once=chosen.at_once,
            each=max(1, chosen.at_once - 1),
            most_waiting=chosen.most_waiting,
            most_waiting_each=chosen.most_waiting_each,
            may_begin=self._has_room,
        )
        self.sending = Sending(chosen.send_bytes, self._queue.look_again)
        self._databases = Databases(warehouse.root, chosen.at_once, chosen.bounds.memory)
        self._deadlines = Deadlines(chosen.bounds.seconds)
        self._patience = FairQueue(
            at_once=chosen.most_waiting, each=chosen.most_waiting_each, most_waiting=1, most_waiting_each=1
        )
        """Places for those who wait for a version: as many as for their turn, so that threads are left for others."""
        self._askings = Askings()
        self._member = Member(
            Membership(node, group, url, chosen.lease_seconds, chosen.replicas),
            lake.catalog.serving(),
            self._versions,
            filled=self.figures.filled,
            notice=self._notice,
        )
        self._glances = Glances(self._member.look, self._member.look())
        self._member.start()

    def _notice(self, seen: Glance) -> None:
        """Do at once what may not wait: answer at the live version, and without rows that were erased since."""
        if self._versions.renew(seen.erasure):
            self._results.clear()
            self._member.place_anew()
        if seen.live > self._versions.live:
            self._versions.follow(seen.live)

    def _has_room(self, reader: str) -> bool:
        return self.sending.has_room(reader)

    def ask(self, question: Question, *, reader: str = "", asking: Asking | None = None) -> tuple[pa.Table, Said]:
        """Answer a question: all rows, and what they are of. ``reader`` names whose turn it is; ``asking`` cancels it.

        With an ``asking`` the rows count as being sent until that says that they are (`Asking.sent`).

        Raises what is wrong with the question, `TableNotFound`, `QueryLimitExceeded`, `VersionNotServed`,
        `VersionNotFound`, `OtherLake`, `SegmentUnreadable`, `StatementCancelled`.
        """
        chosen = asking or Asking()
        try:
            with self._askings.listed(chosen):
                found = self._ask(question, reader, chosen)
        except BaseException as error:
            chosen.sent()
            if isinstance(error, LakehouseError):
                self.figures.failed(error.code)
            raise
        if asking is None:
            chosen.sent()
        return found

    def _ask(self, question: Question, reader: str, asking: Asking) -> tuple[pa.Table, Said]:
        started = time.monotonic()
        group = self._member.group
        if question.lake not in (None, group.lake):
            raise OtherLake(
                "this node serves another catalog, or another group, than those that answered before; correct the list "
                "of addresses",
                node=self.url,
                group=group.name,
                lake=group.lake,
                expected=question.lake,
            )
        values = read_values(question.args)
        asking.check()
        age = self._current(question, reader, asking)
        with self._versions.using(question.versions) as version:
            served, found = self._tried(question, values, version, reader, asking)
            seconds = time.monotonic() - started
            self._count(question, values, served, found, seconds)
            versions = served.frozen.versions
        said = Said(version, versions, found.coverage, self.id, group.lake, seconds, age, found.is_known)
        return found.rows, said

    def _current(self, question: Question, reader: str, asking: Asking) -> float:
        """Look at the catalog, follow it, and wait for what the question waits for; how old what is known is.

        Raises `VersionNotServed`, `TableNotFound`, and `QueryLimitExceeded` where too many wait.
        """
        seen, age = self._glances.fresh(_LOOK_SECONDS)
        if not age:
            self._notice(seen)
        if not self._has_come(question, reader, asking):
            raise VersionNotServed(
                "the version is not served yet; wait longer, or see `lakehouse serving` for what the handoff waits for",
                at_least=question.seen if question.at_least is None else question.at_least,
                serves=self._versions.live,
                node=self.url,
                catalog_age_seconds=round(self.age_seconds, 1),
            )
        return age and self.age_seconds

    def _has_come(self, question: Question, reader: str, asking: Asking) -> bool:
        """Whether the version that the question asks for is live, which may be waited for."""
        wanted = question.seen, question.at_least
        if self._versions.has(*wanted):
            return True
        if isinstance(question.at_least, Mapping):
            self._require_tables(question.at_least)
        if not question.wait_seconds:
            return False
        with self._patience.slot(reader, most_seconds=0):
            return self._versions.wait_for(*wanted, question.wait_seconds, asking)

    def _require_tables(self, names: Iterable[str]) -> None:
        """Raise `TableNotFound` for names of no table in the lake, if its catalog can say: no wait makes one."""
        try:
            known = self.session.catalog.table_names()
        except CatalogUnavailable:
            return
        for name in names:
            if name not in known or is_beside(name):
                raise TableNotFound(
                    "no such table, whose version could be waited for; correct at_least",
                    table=name,
                    **nearest(name, [one for one in known if not is_beside(one)]),
                )

    def _tried(
        self, question: Question, values: Values | None, version: int, reader: str, asking: Asking
    ) -> tuple[ServedVersion, _Found]:
        """The rows; again where a file was not there, since an erasure or another process may have taken it."""
        for attempt in range(_ATTEMPTS):
            served = self._versions.served(version)
            try:
                return served, self._found(question, values, served, reader, asking)
            except SegmentUnreadable:
                if attempt == _ATTEMPTS - 1:
                    raise
                served.statements.forget(question.sql, values)
                seen, age = self._glances.fresh(_LOOK_SECONDS)
                if not age:
                    self._notice(seen)
        raise AssertionError

    def _found(
        self, question: Question, values: Values | None, served: ServedVersion, reader: str, asking: Asking
    ) -> _Found:
        frozen = served.frozen
        key = (frozen.version, frozen.erasure, question.sql, repr(values))
        known = None if question.best_effort else self._results.get(key)
        if known is not None and self._may_send(known, reader, asking):
            return replace(known, segments=(0, 0), is_known=True)
        with self._slot(reader, asking):
            if known is None:
                found = self._calculated(question, values, served, asking, key)
            else:
                found = replace(known, segments=(0, 0), is_known=True)
            asking.holds(self.sending.hold(reader, found.rows.nbytes))  # before another query gets the slot
        return found

    def _may_send(self, known: _Found, reader: str, asking: Asking) -> bool:
        """Whether an answer may be sent without waiting for a slot: it is small, or there is room for it."""
        size = known.rows.nbytes
        if size <= _FEW_BYTES:
            return True
        held = self.sending.begin(reader, size)
        if held is not None:
            asking.holds(held)
        return held is not None

    @contextmanager
    def _slot(self, reader: str, asking: Asking) -> Iterator[None]:
        """Wait for a slot, and hold it inside the block. Raises `QueryLimitExceeded`, `StatementCancelled`."""
        seconds, turn = self.settings.bounds.seconds, Turn()
        with ExitStack() as stack:
            try:
                with asking.stopped_by(turn.leave):
                    stack.enter_context(self._queue.slot(reader, most_seconds=seconds, turn=turn))
            except QueryLimitExceeded as error:
                if self.sending.has_room(reader):
                    raise
                raise QueryLimitExceeded(
                    "answers that clients have yet to take fill the memory for them; take yours, or try again when "
                    "some have been taken",
                    limit="sending",
                    sending_bytes=self.sending.bytes,
                    most=self.sending.most_bytes,
                ) from error
            yield

    def _calculated(
        self, question: Question, values: Values | None, served: ServedVersion, asking: Asking, key: _Key
    ) -> _Found:
        held = self._versions.held
        is_copied = self._versions.warehouse.cache is not None
        bounds = self.settings.bounds
        with limited(self.session, bounds, self._deadlines, asking):
            ready = served.statements.ready(
                question.sql, values, best_effort=question.best_effort, held=held if is_copied else None
            )
            with self._databases.one() as database:
                rows = run(database, ready, bounds)
        found = _Found(rows, ready.coverage(held), ready.counts(held))
        if not (question.best_effort or ready.is_of_now):
            self._results.put(key, found, cost=max(rows.nbytes, 1000) + len(question.sql))
        return found

    def _count(
        self, question: Question, values: Values | None, served: ServedVersion, found: _Found, seconds: float
    ) -> None:
        query = SlowQuery("", seconds, served.frozen.version)
        rows = found.rows
        self.figures.answered(query, rows.num_rows, rows.nbytes, segments=found.segments, is_known=found.is_known)
        if self.figures.is_slow(seconds):
            self.figures.note_slow(replace(query, statement=served.statements.shape_of(question.sql, values)))

    @property
    def running(self) -> list[str]:
        """Ids of the queries that run or wait."""
        return self._askings.ids

    def cancel(self, query_id: str) -> bool:
        """Cancel the queries of an id, whether they run or wait; whether there is any."""
        return self._askings.cancel(query_id)

    # Looking, and the end

    @property
    def live(self) -> int:
        """The version that it answers at."""
        return self._versions.live

    @property
    def is_ready(self) -> bool:
        """Whether it holds what it is to hold of a version of its group."""
        return self._member.stage is NodeStage.SERVING

    @property
    def is_well(self) -> bool:
        """Whether it takes part in its group's handoffs: its last look at the group went well."""
        return self._member.is_at_work and not self._member.trouble

    @property
    def age_seconds(self) -> float:
        """How long ago it reached its catalog, if the last look failed; else 0."""
        return 0.0 if self._glances.is_current else self._glances.age_seconds

    def status(self) -> tuple[Node, Group]:
        """The node as it is, and its group as it was seen last."""
        return self._member.status()

    def metrics(self) -> str:
        """Its figures for Prometheus."""
        return self.figures.exposition(*self.status(), self.age_seconds, self.sending)

    def close(self) -> None:
        """Leave the group and let go of everything."""
        self._member.leave()
        self._glances.close()
        self._deadlines.close()
        self._databases.close()
        self._versions.close()
