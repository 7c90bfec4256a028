"""A round of the service: plan tables that changed, then run tasks by score within the budget."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from lakehouse import progress
from lakehouse.catalog.tasks.rows import Proposal
from lakehouse.core.listing import Listing
from lakehouse.core.spec import TableId
from lakehouse.core.task import COLLECT_SECONDS, Maintained, Task, TaskKind, TaskState, Worker
from lakehouse.errors import UnknownTask
from lakehouse.service.planning import plan_table
from lakehouse.service.running import run_claim
from lakehouse.session.session import Session
from lakehouse.table.tables import open_table

_MOST_PLANS = 20
"""The most plans of a table in one round, so that it ends even if others keep writing."""
_WORK = tuple(kind for kind in TaskKind if kind is not TaskKind.PLAN)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a round: which workers, which table (None: all), and bytes to read (None: no limit)."""

    workers: Collection[Worker] = tuple(Worker)
    table: str | None = None
    budget_bytes: int | None = None
    engine: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties of versions that the round makes."""


def maintain(session: Session, limits: Limits, *, dry_run: bool = False) -> Maintained:
    """One round. With ``dry_run``, what would be done now, for every table by score; nothing is written."""
    if dry_run:
        return Maintained(_would_do(session, limits))
    with progress.step("maintain", "tasks"):
        return Maintained(Listing(work(session, limits)))


def work(session: Session, limits: Limits, *, patient: bool = False) -> Iterator[Task]:
    """Plan and run waiting tasks, until a plan finds nothing more; yield each task when it has ended.

    ``patient``: a table whose plan takes long is not planned again at once.
    """
    queue = session.catalog.tasks()
    table = None if limits.table is None else open_table(session, limits.table).spec.id
    plans = Worker.RESIDENT in limits.workers
    left = limits.budget_bytes
    if plans and table is None:
        queue.ask_for_collection(COLLECT_SECONDS)
    for _ in range(_MOST_PLANS):
        if plans:
            queue.ask_for_plans(table, patient=patient)
            yield from _plans(session, table)
        found = False
        quiet = quiet_tables(session)
        if progress.listener() is not None:
            waiting = queue.tasks(table=table, state=TaskState.WAITING)
            progress.remain("tasks", sum(one.kind in _WORK for one in waiting))
        while claim := queue.claim(workers=limits.workers, kinds=_WORK, table=table, most_bytes=left, quiet=quiet):
            found = True
            done = run_claim(session, replace(claim, properties=limits.properties), engine=limits.engine)
            left = None if left is None else left - done.budget_bytes
            progress.advance("tasks")
            yield done
        if not found:
            return


def _plans(session: Session, table: TableId | None) -> Iterator[Task]:
    """Run waiting PLAN tasks."""
    while (claim := session.catalog.tasks().claim(kinds=[TaskKind.PLAN], table=table)) is not None:
        yield run_claim(session, claim)


def run_one(
    session: Session, task_id: int, *, engine: str | None = None, properties: Mapping[str, str] | None = None
) -> Task:
    """Run a waiting task now. Raises `InvalidInput` if it does not wait, or if its chunks are locked."""
    queue = session.catalog.tasks()
    queue.hurry(task_id)
    claim = queue.claim(task_id=task_id)
    if claim is None:
        found = queue.task(task_id)
        raise UnknownTask("the task cannot be run now", task=task_id, state=found.state.value, error=found.error)
    return run_claim(session, replace(claim, properties=properties or {}), engine=engine)


def plan_tasks(session: Session, table: str | None, *, dry_run: bool = False) -> Listing[Task]:
    """Plan a table, or all, and return the waiting tasks by score."""
    if dry_run:
        return _would_do(session, Limits(table=table))
    queue = session.catalog.tasks()
    chosen = None if table is None else open_table(session, table).spec.id
    queue.ask_for_plans(chosen, whatever=True)
    for _ in _plans(session, chosen):
        pass
    return queue.tasks(table=chosen, state=TaskState.WAITING)


def quiet_tables(session: Session) -> list[TableId]:
    """Tables that are in their quiet hours now."""
    now = None
    quiet = []
    for name in session.catalog.table_names():
        table = open_table(session, name)
        hours = table.policy.quiet_hours
        if hours is not None:
            now = now or session.catalog.now()
            if hours.holds(now):
                quiet.append(table.spec.id)
    return quiet


def _would_do(session: Session, limits: Limits) -> Listing[Task]:
    now = session.catalog.now()
    names = session.catalog.table_names() if limits.table is None else [limits.table]
    found = [
        _unstored(name, one, now) for name in names for one in plan_table(session, open_table(session, name)).proposals
    ]
    left = limits.budget_bytes
    chosen: Listing[Task] = Listing()
    for one in sorted(found, key=lambda task: -task.score):
        if one.worker in limits.workers and (left is None or one.budget_bytes <= left):
            chosen.append(one)
            left = None if left is None else left - one.budget_bytes
    return chosen


def _unstored(table: str, proposal: Proposal, now: datetime) -> Task:
    one = proposal.candidate
    return Task(
        id=0,
        table=table,
        kind=one.kind,
        state=TaskState.WAITING,
        worker=proposal.worker,
        score=one.score,
        cause=one.cause,
        interval=one.interval,
        segments=len(one.segments),
        budget_bytes=one.bytes,
        predicted=one.gain,
        actual=None,
        attempts=0,
        created_at=now,
        not_before=now,
    )
