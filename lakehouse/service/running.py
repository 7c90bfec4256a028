"""Running one claimed task, and its result."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from lakehouse.admin.collect import collect
from lakehouse.admin.expire import expire
from lakehouse.catalog.tasks.rows import Claim
from lakehouse.core.commit import Commit
from lakehouse.core.expire import RetentionRequest
from lakehouse.core.interval import Interval
from lakehouse.core.operation import ENTRY_BITS
from lakehouse.core.plan import plan_read
from lakehouse.core.policy import longest_retention
from lakehouse.core.segments import Segments
from lakehouse.core.task import Gain, Task, TaskKind, TaskState
from lakehouse.core.tombstone import Tombstone
from lakehouse.errors import LockLost, LockTimeout, TableNotFound
from lakehouse.faults import reach
from lakehouse.operations.compaction import Compaction, commit_if_useful
from lakehouse.operations.summarize import build_indexes, build_statistics
from lakehouse.service.planning import plan_table
from lakehouse.session.session import Session
from lakehouse.table.tables import open_table, table_names

if TYPE_CHECKING:
    from lakehouse.table.table import Table

logger = logging.getLogger(__name__)
TASKS_KEPT_SECONDS = 30 * 86_400.0
_PLAN_SHARE = 10.0
"""A table rests for this many times the duration of its last plan."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a task: the version of its commit, what a scan saves, and other figures."""

    version: int | None = None
    actual: Gain = field(default_factory=Gain)
    details: Mapping[str, int] = field(default_factory=dict)


class Outdated(Exception):
    """The inputs of a task are no longer there."""


def run_claim(session: Session, claim: Claim, *, engine: str | None = None) -> Task:
    """Run a claimed task to its end, and return it with its result.

    It gives way to users' operations and is then retried later; a failed one is retried a few times. Nothing of an
    unsuccessful task is visible.
    """
    queue = session.catalog.tasks()
    try:
        reach("task.claimed")
        with session.heartbeat.calling(lambda: queue.renew(claim)):
            outcome = _RUN[claim.task.kind](session, claim, engine)
            reach("task.done")
        queue.end(claim, TaskState.DONE, actual=outcome.actual, version=outcome.version, details=dict(outcome.details))
    except (Outdated, TableNotFound) as error:
        queue.end(claim, TaskState.CANCELLED, error=str(error))
    except (LockTimeout, LockLost) as error:
        queue.put_back(claim, str(error), is_failure=False)
    except Exception as error:  # the other tasks have to continue; the task records the error
        logger.exception("task %s (%s of %s) failed", claim.task.id, claim.task.kind, claim.task.table)
        queue.put_back(claim, f"{type(error).__name__}: {error}")
    return queue.task(claim.task.id)


def _plan(session: Session, claim: Claim, _: str | None) -> Outcome:
    plan = plan_table(session, _table(session, claim))
    session.catalog.tasks().propose(
        plan.spec,
        plan.version,
        plan.proposals,
        pause_seconds=plan.seconds * _PLAN_SHARE,
        due_seconds=plan.due_seconds,
    )
    return Outcome(details={"tasks": len(plan.proposals), "failed_strategies": len(plan.failed)})


def _compact(session: Session, claim: Claim, engine: str | None) -> Outcome:
    table = _table(session, claim)
    wanted = set(claim.entries.tolist())
    operation = table.begin_compaction(
        _interval(claim), segments=wanted, engine=engine, message=claim.task.cause, properties=_properties(claim)
    )
    session.catalog.tasks().note_operation(claim, operation.id)
    segments, tombstones = session.catalog.live(table.spec, operation.base_version, _interval(claim))
    before = scan_cost(segments.where(np.isin(segments.ids, list(wanted))), tombstones)
    commit = commit_if_useful(operation)
    if commit is None:
        raise Outdated("segments that it was to compact are no longer there")
    return _merged(session, table, operation, commit, before)


def _merged(session: Session, table: Table, operation: Compaction, commit: Commit, before: Gain) -> Outcome:
    """Measured on the state after the commit, since other commits may have come in between."""
    segments, tombstones = session.catalog.live(table.spec, commit.version, operation.begun.interval)
    made = segments.where(segments.ids >> ENTRY_BITS == operation.begun.number)
    return Outcome(commit.version, before - scan_cost(made, tombstones), {"segments_out": commit.added})


def _resolve(session: Session, claim: Claim, engine: str | None) -> Outcome:
    table = _table(session, claim)
    wanted = frozenset(claim.entries.tolist())
    operation = table.begin_resolve(wanted, engine=engine, message=claim.task.cause, properties=_properties(claim))
    session.catalog.tasks().note_operation(claim, operation.id)
    return _measured(commit_if_useful(operation))


def _clean(session: Session, claim: Claim, _: str | None) -> Outcome:
    table = _table(session, claim)
    return _measured(table.clean(_interval(claim), message=claim.task.cause, properties=_properties(claim)))


def _measured(commit: Commit | None) -> Outcome:
    """What a scan saves by a commit without a rewrite."""
    if commit is None:
        return Outcome()
    entries = commit.dropped + commit.tombstones_dropped - commit.tombstones_added
    return Outcome(commit.version, Gain(entries=entries))


def _collect(session: Session, claim: Claim, _: str | None) -> Outcome:
    """Expire versions as every table's retention allows, delete unreachable files, remove old tasks."""
    lets_go = longest_retention(open_table(session, name).policy for name in table_names(session))
    versions = 0 if lets_go is None else expire(session, RetentionRequest.of(*lets_go)).versions
    gone = collect(session)
    tasks = session.catalog.tasks().forget(TASKS_KEPT_SECONDS)
    details = {"versions": versions, "files_deleted": gone.files, "bytes_deleted": gone.bytes, "tasks": tasks}
    return Outcome(details=details)


def _index(session: Session, claim: Claim, engine: str | None) -> Outcome:
    made = build_indexes(session, _table(session, claim).spec, claim.entries.tolist(), engine)
    return Outcome(details={"indexes": made})


def _sketch(session: Session, claim: Claim, engine: str | None) -> Outcome:
    made = build_statistics(session, _table(session, claim).spec, claim.entries.tolist(), engine)
    return Outcome(details={"sketches": made})


_RUN: Mapping[TaskKind, Callable[[Session, Claim, str | None], Outcome]] = {
    TaskKind.PLAN: _plan,
    TaskKind.COMPACT: _compact,
    TaskKind.RESOLVE: _resolve,
    TaskKind.CLEAN: _clean,
    TaskKind.COLLECT: _collect,
    TaskKind.STATS: _sketch,
    TaskKind.INDEX: _index,
}


def scan_cost(segments: Segments, tombstones: list[Tombstone]) -> Gain:
    """The cost of scanning some segments: files, bytes, and rows compared with tombstones."""
    plan = plan_read(segments, tombstones, version=0)
    opened = plan.segments
    masked = sum(Segments.of(group.segments).rows for group in plan.groups if group.tombstones)
    return Gain(files=len(opened), bytes=opened.bytes, masked_rows=masked, entries=len(segments))


def _table(session: Session, claim: Claim) -> Table:
    if claim.task.table is None:
        raise TableNotFound("the task's table is gone", task=claim.task.id)
    return open_table(session, claim.task.table)


def _interval(claim: Claim) -> Interval:
    assert claim.task.interval is not None
    return claim.task.interval


def _properties(claim: Claim) -> dict[str, str]:
    """Properties that lead from a version back to its task."""
    return {**claim.properties, "task": str(claim.task.id)}
