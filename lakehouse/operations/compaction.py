"""Maintenance that changes no row: compactions, and dropping what has no effect any more."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa

from lakehouse import progress
from lakehouse.core.commit import Commit
from lakehouse.core.contribution import CleanContribution, CompactionContribution
from lakehouse.core.gaps import cut_at_gaps
from lakehouse.core.interval import MIN_TIME, Interval, to_us
from lakehouse.core.operation import Begun, Kind, NothingToDo
from lakehouse.core.plan import plan_read
from lakehouse.core.policy import Policy
from lakehouse.core.skyline import distinct
from lakehouse.core.spec import TableSpec
from lakehouse.core.strategy.whole import CompactionGroup, whole
from lakehouse.engine import Query
from lakehouse.engine.verifying import verify_whole
from lakehouse.errors import LockLost
from lakehouse.operations.operation import Operation
from lakehouse.operations.run_operation import RunOperation
from lakehouse.reading.scan import sets_of
from lakehouse.session.session import Session

logger = logging.getLogger(__name__)


class Compaction(RunOperation):
    """Rewrites many small or masked segments into few: the same rows with the same row ids.

    It takes those of the locked segments that gain from it, ``every`` one, or those ``chosen`` by id, if all of them
    are still there. It reads by the definition with which it began, and writes by that of `write_as`.
    Cost: the bytes of the segments that gain from it, streamed, after a pass over all metadata.
    """

    kind = Kind.COMPACTION

    def __init__(
        self,
        session: Session,
        begun: Begun,
        *,
        chosen: Collection[int] | None = None,
        every: bool = False,
        **marks: Any,
    ) -> None:
        super().__init__(session, begun, **marks)
        self._spec = begun.table
        self._chosen = chosen
        self._every = every
        self._inputs: set[int] = set()

    @property
    def has_work(self) -> bool:
        """Whether `run` found anything to gain."""
        return bool(self._inputs)

    def _run(self) -> None:
        self._warehouse = self._session.planning_warehouse()
        groups: Iterable[CompactionGroup] = self._groups()
        with progress.step(f"compact {self._begun.table.name}", "rows") as step:
            if progress.listener() is not None:
                groups = list(groups)
                step.total = sum(one.segments.rows for one in groups)
            before = 0
            for group in groups:
                self._compact(group)
                before = step.done = before + group.segments.rows  # those that tombstones hide are done, too

    def _counting(self, rows: Any) -> AbstractContextManager[object]:
        return nullcontext()

    def _overtaken(self) -> LockLost:
        return LockLost(
            "rows were erased, and their files collected, while they were read; begin it again", operation=self.id
        )

    def _groups(self) -> Iterator[CompactionGroup]:
        begun = self._begun
        spec = begun.table
        locked = self._spec.grain.align(begun.locked)
        segments, tombstones = self._session.catalog.live(self._spec, begun.base_version, locked)
        starts, ends, _ = segments.bounds
        inside = segments.where((starts >= locked.start_us) & (ends <= locked.end_us))
        if self._chosen is None:
            return whole(spec, inside, tombstones, every=self._every)
        taken = inside.where(np.isin(inside.ids, list(self._chosen)))
        return iter([CompactionGroup(taken, tuple(tombstones))] if len(taken) == len(self._chosen) else [])

    def _compact(self, group: CompactionGroup) -> None:
        spec = self._begun.table
        verify_whole(self._engine, self._warehouse, group.segments)
        self._inputs.update(one.id for one in group.segments)
        is_curve = Policy.of(spec.properties).order == "zorder"
        by = (*spec.times, *spec.cluster_by) if is_curve else spec.times
        for part in self._parts(group):
            plan = plan_read(group.segments, group.tombstones, version=self.base_version, interval=part)
            if plan.groups:
                sets = sets_of(self._session, plan)
                query = Query(plan, self._spec, self._warehouse, row_ids=True, sets=sets)
                self._store(self._engine, self._engine.ordered(query, by), row_ids=True)

    def _now_us(self) -> int:
        """The catalog's time, by which its segments were chosen: a host that is behind would write them as they are."""
        return to_us(self._session.catalog.now())

    def _parts(self, group: CompactionGroup) -> Sequence[Interval | None]:
        """Ranges to write separately: a lone segment of a ragged table is cut at its gaps. Reads its times for that."""
        spec = self._begun.table
        alone = group.segments[0]
        if not spec.ragged or len(group.segments) > 1 or spec.grain.chunk(alone.start).contains(alone.interval):
            return [None]
        plan = plan_read(group.segments, (), version=self.base_version)
        times = self._session.local_engine.read(Query(plan, spec, self._warehouse, columns=(spec.time,))).reader()
        chunks = [spec.grain.floor_us(batch.column(0).cast(pa.int64()).to_numpy()) for batch in times]
        starts = distinct(np.concatenate([distinct(one) for one in chunks]))
        return [Interval(first, last) for first, last in cut_at_gaps(starts, alone.interval.end_us)]

    def _contribution(self) -> CompactionContribution:
        return CompactionContribution(**self._written, inputs=frozenset(self._inputs))


class Clean(Operation):
    """Drops, at its commit, overshadowed segments and tombstones that hide nothing, in locked chunks."""

    kind = Kind.CLEAN
    has_work = True
    """Only the commit finds out whether there is work."""

    def run(self) -> None:
        """Read nothing: the catalog has everything needed."""

    def _contribution(self) -> CleanContribution:
        return CleanContribution(**self._written)


class Maintenance(Protocol):
    """An operation that may find that there is nothing to gain."""

    @property
    def has_work(self) -> bool:
        """Whether `run` found anything."""

    def run(self) -> None:
        """Do everything but the commit."""

    def commit(self, *, if_useful: bool = False) -> Commit:
        """Make it visible. Raises `NothingToDo` if nothing would change and it has to be useful."""

    def abort(self) -> None:
        """Abort."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def commit_if_useful(operation: Maintenance) -> Commit | None:
    """Run and commit an operation; None, with nothing left of it, if there is nothing to gain."""
    with operation:
        operation.run()
        try:
            if operation.has_work:
                return operation.commit(if_useful=True)
        except NothingToDo:
            logger.debug("nothing was left to do at the commit")
        operation.abort()
        return None


def locked_for_compaction(session: Session, spec: TableSpec, interval: Interval | None) -> Interval:
    """What a compaction of an interval must lock: its chunks, and all chunks of ragged segments that touch these."""
    if interval is None:
        return session.catalog.extent(spec) or spec.grain.chunk(MIN_TIME)
    aligned = spec.grain.align(interval)
    segments, _ = session.catalog.live(spec, session.catalog.head(), aligned)
    start = min([aligned.start, *(one.start for one in segments)])
    end = max([aligned.end, *(one.end for one in segments)])
    return spec.grain.align(Interval(start, end))
