"""The task queue of the table service: tasks are proposed, claimed under a lease, and ended by the holder of the claim.

A task is a row. Claiming one is a single short transaction that skips rows locked by other claims, without taking the
head. A claim ends with its lease, so a dead worker keeps a task no longer than that.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Text, and_, cast, delete, exists, func, or_, select, true, update

from lakehouse.catalog.store.columns import inserting
from lakehouse.catalog.store.database import Database
from lakehouse.catalog.store.models import commit_table, lake_table, task, upkeep
from lakehouse.catalog.tasks.rows import (
    Claim,
    Proposal,
    ids_of,
    new_row,
    proposed_row,
    task_from_row,
    with_names,
)
from lakehouse.core.listing import Listing
from lakehouse.core.operation import NAMINGS, REWRITES
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.core.task import Amplification, Gain, Task, TaskKind, TaskState, Worker
from lakehouse.errors import LockLost, UnknownTask

MOST_ATTEMPTS = 5
"""After this many failures a task is given up; the next plan may propose it again."""
_FIRST_PAUSE_SECONDS = 5.0
_OPEN = (TaskState.WAITING.value, TaskState.RUNNING.value)
_LOCKING = (TaskKind.COMPACT.value, TaskKind.CLEAN.value)
"""Kinds that lock the chunks of their interval."""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The service's state of a table: the version planned last, and the bytes written up to it."""

    planned_version: int = 0
    appended_bytes: int = 0
    rewritten_bytes: int = 0


class TaskQueue:
    """Tasks of one lake. Every method is one transaction. ``lease_seconds``: how long a claim lasts without renewal."""

    def __init__(self, database: Database, lease_seconds: float) -> None:
        self._database = database
        self._lease_us = int(lease_seconds * 1_000_000)

    # Queries

    def tasks(
        self, *, table: TableId | None = None, state: TaskState | None = None, limit: int | None = None
    ) -> Listing[Task]:
        """Tasks, newest first; waiting ones by score."""
        order = [task.c.score.desc(), task.c.id] if state is TaskState.WAITING else [task.c.id.desc()]
        query = with_names().order_by(*order).limit(limit)
        if table is not None:
            query = query.where(task.c.table_id == table)
        if state is not None:
            query = query.where(task.c.state == state.value)
        return self._database.read(lambda connection: Listing(map(task_from_row, connection.execute(query))))

    def task(self, task_id: int) -> Task:
        """A task by id. Raises `InvalidInput`."""
        found = self._database.read(
            lambda connection: connection.execute(with_names().where(task.c.id == task_id)).first()
        )
        if found is None:
            raise UnknownTask("no such task; see the list of tasks", task=task_id)
        return task_from_row(found)

    def busy(self, table: TableId) -> set[int]:
        """Inputs of running tasks of a table: segments and tombstones."""

        def question(connection: Connection) -> set[int]:
            running = select(task.c.entries).where(
                task.c.table_id == table,
                task.c.state == TaskState.RUNNING.value,
                task.c.lease_until_us >= self._database.now_us(connection),
            )
            return {one for held in connection.execute(running).scalars() for one in ids_of(held).tolist()}

        return self._database.read(question)

    def upkeep(self, table: TableId) -> Upkeep:
        """The service's state of a table."""
        return self._database.read(lambda connection: _upkeep(connection, table))

    def written(self, table: TableId, since: int, until: int) -> Amplification:
        """Bytes that commits after a version, up to another, wrote."""
        return self._database.read(lambda connection: _written(connection, table, since, until))

    # Proposals

    def ask_for_plans(self, table: TableId | None = None, *, patient: bool = False, whatever: bool = False) -> int:
        """Propose a PLAN for each table that has changed or aged since its last one; return how many.

        With ``patient``, a table's pause is respected; with ``whatever``, every table is planned.
        """

        def work(connection: Connection) -> int:
            now_us = self._database.now_us(connection)
            newest = (
                select(func.max(commit_table.c.version))
                .where(
                    commit_table.c.table_id == lake_table.c.id,
                    commit_table.c.operation.not_in([kind.value for kind in NAMINGS]),
                )
                .correlate(lake_table)
                .scalar_subquery()
            )
            # Nothing was written yet, or everything has expired.
            behind = func.coalesce(newest - func.coalesce(upkeep.c.planned_version, 0), 0)
            query = (
                select(lake_table.c.id, lake_table.c.name, behind.label("behind"))
                .outerjoin(upkeep, upkeep.c.table_id == lake_table.c.id)
                .where(
                    lake_table.c.dropped_version.is_(None),
                    true() if whatever else _is_due(behind, now_us, patient=patient),
                    ~exists().where(task.c.identity == _plan_identity(lake_table.c.id), task.c.state.in_(_OPEN)),
                )
            )
            if table is not None:
                query = query.where(lake_table.c.id == table)
            due = connection.execute(query).all()
            rows = [
                new_row(
                    kind=TaskKind.PLAN,
                    identity=f"{row.id}:plan",
                    table_id=row.id,
                    worker=Worker.RESIDENT,
                    score=1e6 + row.behind,
                    cause="written to since the last plan" if row.behind > 0 else "grown older since the last plan",
                    now_us=now_us,
                )
                for row in due
            ]
            self._insert(connection, rows)
            return len(rows)

        return self._database.run(work)

    def ask_for_collection(self, every_seconds: float) -> None:
        """Propose a collection, unless one waits, runs, or ended less than ``every_seconds`` ago."""

        def work(connection: Connection) -> None:
            now_us = self._database.now_us(connection)
            recent = exists().where(
                task.c.kind == TaskKind.COLLECT.value, task.c.ended_us > now_us - int(every_seconds * 1_000_000)
            )
            if not connection.execute(select(recent)).scalar():
                cause = "expire versions past their retention, delete files that nothing can reach"
                row = new_row(
                    kind=TaskKind.COLLECT, identity="collect", table_id=None, worker=Worker.RESIDENT, score=1.0,
                    cause=cause, now_us=now_us,
                )  # fmt: skip
                self._insert(connection, [row])

        self._database.run(work)

    def propose(
        self,
        spec: TableSpec,
        version: int,
        proposals: Iterable[Proposal],
        *,
        pause_seconds: float = 0.0,
        due_seconds: float | None = None,
    ) -> None:
        """Replace the waiting proposals of a table's last plan by those of a new one.

        The table was planned at ``version``; it is planned again when there is a newer version, but not before
        ``pause_seconds``, and in any case after ``due_seconds``.
        """

        def work(connection: Connection) -> None:
            now_us = self._database.now_us(connection)
            held = _upkeep(connection, spec.id)
            wrote = _written(connection, spec.id, held.planned_version, version)
            values = {
                "planned_version": version,
                "planned_us": now_us,
                "not_before_us": now_us + int(pause_seconds * 1_000_000),
                "due_us": None if due_seconds is None else now_us + int(due_seconds * 1_000_000),
                "appended_bytes": held.appended_bytes + wrote.appended_bytes,
                "rewritten_bytes": held.rewritten_bytes + wrote.rewritten_bytes,
            }
            _upsert(connection, upkeep, [upkeep.c.table_id], {"table_id": spec.id, **values})
            rows = {one.identity(spec): proposed_row(spec, one, now_us) for one in proposals}
            waiting = and_(
                task.c.table_id == spec.id, task.c.state == TaskState.WAITING.value, task.c.kind != TaskKind.PLAN.value
            )
            known = {
                row.identity: row.id for row in connection.execute(select(task.c.identity, task.c.id).where(waiting))
            }
            stale = [known[identity] for identity in known.keys() - rows.keys()]
            for some in _blocks(stale):
                connection.execute(delete(task).where(task.c.id.in_(some), waiting))
            for identity in known.keys() & rows.keys():
                news = {name: rows[identity][name] for name in ("score", "cause", "predicted")}
                connection.execute(update(task).where(task.c.id == known[identity], waiting).values(**news))
            self._insert(connection, [rows[identity] for identity in rows.keys() - known.keys()])

        self._database.run(work)

    def _insert(self, connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
        """Insert tasks, except those with the identity of an open one."""
        if rows:
            insert: Any = inserting(task, connection.dialect.name)
            connection.execute(insert.on_conflict_do_nothing(), list(rows))

    # Claims

    def claim(
        self,
        *,
        workers: Collection[Worker] = tuple(Worker),
        kinds: Collection[TaskKind] = tuple(TaskKind),
        table: TableId | None = None,
        most_bytes: int | None = None,
        quiet: Collection[TableId] = (),
        task_id: int | None = None,
    ) -> Claim | None:
        """Claim the runnable task with the highest score; None if there is none.

        Tasks with an expired lease count as waiting. Tasks that would lock chunks of a running task of the same table
        are skipped, as are elastic tasks of ``quiet`` tables.
        """
        owner = secrets.token_hex(8)

        def work(connection: Connection) -> Claim | None:
            now_us = self._database.now_us(connection)
            query = (
                select(task.c.id)
                .where(
                    task.c.state.in_(_OPEN),
                    task.c.not_before_us <= now_us,
                    or_(task.c.state == TaskState.WAITING.value, task.c.lease_until_us < now_us),
                    task.c.worker.in_([one.value for one in workers]),
                    task.c.kind.in_([one.value for one in kinds]),
                    ~_is_locked(now_us),
                )
                .order_by(task.c.score.desc(), task.c.id)
                .limit(1)
                .with_for_update(skip_locked=True)
            )
            if table is not None:
                query = query.where(task.c.table_id == table)
            if most_bytes is not None:
                query = query.where(task.c.budget_bytes <= most_bytes)
            if quiet:
                elastic = and_(task.c.table_id.in_(quiet), task.c.worker == Worker.ELASTIC.value)
                query = query.where(or_(task.c.table_id.is_(None), ~elastic))
            if task_id is not None:
                query = query.where(task.c.id == task_id)
            chosen: int | None = connection.execute(query).scalar()
            if chosen is None:
                return None
            connection.execute(
                update(task)
                .where(task.c.id == chosen)
                .values(
                    state=TaskState.RUNNING.value,
                    owner=owner,
                    attempts=task.c.attempts + 1,
                    started_us=now_us,
                    lease_until_us=now_us + self._lease_us,
                )
            )
            row = connection.execute(with_names().where(task.c.id == chosen)).one()
            return Claim(task_from_row(row), row.table_id, owner, ids_of(row.entries))

        return self._database.run(work)

    def renew(self, claim: Claim) -> bool:
        """Renew a claim; False if it was lost."""

        def work(connection: Connection) -> bool:
            until_us = self._database.now_us(connection) + self._lease_us
            return connection.execute(_held(claim).values(lease_until_us=until_us)).rowcount == 1

        return self._database.run(work)

    def note_operation(self, claim: Claim, operation_id: str) -> None:
        """Record the operation of a claimed task. Raises `LockLost` if the claim was lost."""
        noted = _held(claim).values(operation=operation_id)
        if self._database.run(lambda connection: connection.execute(noted).rowcount) != 1:
            raise LockLost("the task was cancelled or claimed by another worker", task=claim.task.id)

    def end(
        self,
        claim: Claim,
        state: TaskState,
        *,
        actual: Gain | None = None,
        version: int | None = None,
        error: str | None = None,
        details: dict[str, int] | None = None,
    ) -> bool:
        """End a claimed task; False if the claim was lost to another worker."""
        result = None if actual is None else json.dumps({**asdict(actual), **(details or {})})

        def work(connection: Connection) -> bool:
            ended = _held(claim).values(
                state=state.value,
                owner=None,
                lease_until_us=None,
                ended_us=self._database.now_us(connection),
                actual=result,
                version=version,
                error=error,
            )
            return connection.execute(ended).rowcount == 1

        return self._database.run(work)

    def put_back(self, claim: Claim, error: str, *, is_failure: bool = True) -> TaskState:
        """Let a claimed task wait for a retry, twice as long each time; fail it after `MOST_ATTEMPTS`.

        A task that gave way to a user's operation has not failed.
        """
        attempts = claim.task.attempts
        if is_failure and attempts >= MOST_ATTEMPTS:
            self.end(claim, TaskState.FAILED, error=error)
            return TaskState.FAILED
        pause_us = int(_FIRST_PAUSE_SECONDS * 2 ** min(attempts - 1, 6) * 1_000_000)

        def work(connection: Connection) -> None:
            values = {
                "state": TaskState.WAITING.value,
                "owner": None,
                "lease_until_us": None,
                "error": error,
                "not_before_us": self._database.now_us(connection) + pause_us,
                "attempts": attempts if is_failure else attempts - 1,
            }
            connection.execute(_held(claim).values(**values))

        self._database.run(work)
        return TaskState.WAITING

    def hurry(self, task_id: int) -> None:
        """Let a task that waits for a retry be tried now."""

        def work(connection: Connection) -> None:
            waiting = and_(task.c.id == task_id, task.c.state == TaskState.WAITING.value)
            connection.execute(update(task).where(waiting).values(not_before_us=self._database.now_us(connection)))

        self._database.run(work)

    def cancel(self, task_id: int) -> str | None:
        """Cancel a waiting or running task, whoever runs it; return its operation.

        Raises `InvalidInput` if it has ended.
        """

        def work(connection: Connection) -> Any:
            ended = (
                update(task)
                .where(task.c.id == task_id, task.c.state.in_(_OPEN))
                .values(
                    state=TaskState.CANCELLED.value,
                    owner=None,
                    lease_until_us=None,
                    ended_us=self._database.now_us(connection),
                )
                .returning(task.c.operation)
            )
            return connection.execute(ended).first()

        found = self._database.run(work)
        if found is None:
            raise UnknownTask("the task has ended", task=task_id, state=self.task(task_id).state.value)
        held: str | None = found.operation
        return held

    def forget(self, older_than_seconds: float) -> int:
        """Remove tasks that ended this long ago, and PLAN tasks, which change nothing, after a tenth of that."""

        def work(connection: Connection) -> int:
            now_us, age_us = self._database.now_us(connection), int(older_than_seconds * 1_000_000)
            is_plan = and_(task.c.kind == TaskKind.PLAN.value, task.c.ended_us < now_us - age_us // 10)
            gone = delete(task).where(or_(task.c.ended_us < now_us - age_us, is_plan))
            return connection.execute(gone).rowcount

        return self._database.run(work)


def _is_due(behind: ColumnElement[int], now_us: int, *, patient: bool) -> ColumnElement[bool]:
    """Whether a table has changed since its plan, or is due again, and (if that matters) its pause is over."""
    is_due = or_(behind > 0, upkeep.c.due_us <= now_us)
    return and_(is_due, func.coalesce(upkeep.c.not_before_us, 0) <= now_us) if patient else is_due


def _plan_identity(table_id: ColumnElement[Any]) -> ColumnElement[str]:
    return cast(table_id, Text) + ":plan"


def _is_locked(now_us: int) -> ColumnElement[bool]:
    """Whether a task would lock chunks that a running task of its table has locked."""
    other = task.alias()
    clashing = exists().where(
        other.c.table_id == task.c.table_id,
        other.c.id != task.c.id,
        other.c.state == TaskState.RUNNING.value,
        other.c.kind.in_(_LOCKING),
        other.c.lease_until_us >= now_us,
        other.c.start_us < task.c.end_us,
        other.c.end_us > task.c.start_us,
    )
    return and_(task.c.kind.in_(_LOCKING), clashing)


def _held(claim: Claim) -> Any:
    return update(task).where(task.c.id == claim.task.id, task.c.owner == claim.owner)


def _upkeep(connection: Connection, table: TableId) -> Upkeep:
    row = connection.execute(select(upkeep).where(upkeep.c.table_id == table)).first()
    return Upkeep() if row is None else Upkeep(row.planned_version, row.appended_bytes, row.rewritten_bytes)


def _written(connection: Connection, table: TableId, since: int, until: int) -> Amplification:
    is_rewrite = commit_table.c.operation.in_([kind.value for kind in REWRITES])
    query = (
        select(is_rewrite.label("rewrote"), func.sum(commit_table.c.bytes_added).label("bytes"))
        .where(commit_table.c.table_id == table, commit_table.c.version > since, commit_table.c.version <= until)
        .group_by(is_rewrite)
    )
    found = {bool(row.rewrote): int(row.bytes or 0) for row in connection.execute(query)}
    return Amplification(found.get(False, 0), found.get(True, 0))


def _upsert(connection: Connection, into: Any, keys: Sequence[Any], values: dict[str, Any]) -> None:
    insert: Any = inserting(into, connection.dialect.name)
    connection.execute(insert.values(**values).on_conflict_do_update(index_elements=keys, set_=values))


def _blocks(ids: Sequence[int], size: int = 500) -> Iterable[Sequence[int]]:
    return (ids[first : first + size] for first in range(0, len(ids), size))
