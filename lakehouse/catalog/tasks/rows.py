"""Conversion between rows and values of tasks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from pyroaring import BitMap64
from sqlalchemy import select

from lakehouse.catalog.store.models import lake_table, task
from lakehouse.core.interval import Interval, from_us
from lakehouse.core.sets import decode_set, encode_set, row_id_array
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.core.task import Candidate, Gain, Ids, Task, TaskKind, TaskState, Worker


@dataclass(frozen=True, slots=True)
class Claim:
    """A task that this process runs until its lease ends: its inputs, and the token of the claim."""

    task: Task
    table_id: TableId | None
    owner: str
    entries: Ids
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties of the task's version, beside the task's number."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A candidate with its kind of worker."""

    candidate: Candidate
    worker: Worker

    def identity(self, spec: TableSpec) -> str:
        """The identity of the task."""
        found = hashlib.blake2b(digest_size=12)
        found.update(np.ascontiguousarray(self.candidate.segments).tobytes())
        found.update(np.ascontiguousarray(self.candidate.tombstones).tobytes())
        return f"{spec.id}:{self.candidate.kind.value}:{found.hexdigest()}"


def with_names() -> Any:
    """Tasks with the names of their tables."""
    return select(task, lake_table.c.name.label("table_name")).outerjoin(lake_table, lake_table.c.id == task.c.table_id)


def new_row(
    *, kind: TaskKind, identity: str, table_id: int | None, worker: Worker, score: float, cause: str, now_us: int
) -> dict[str, Any]:
    """The row of a waiting task without inputs."""
    return {
        "table_id": table_id,
        "kind": kind.value,
        "state": TaskState.WAITING.value,
        "worker": worker.value,
        "identity": identity,
        "score": score,
        "cause": cause,
        "start_us": None,
        "end_us": None,
        "segments": 0,
        "entries": b"",
        "budget_bytes": 0,
        "predicted": "{}",
        "attempts": 0,
        "created_us": now_us,
        "not_before_us": now_us,
    }


def proposed_row(spec: TableSpec, proposal: Proposal, now_us: int) -> dict[str, Any]:
    """The row of a task that a plan proposes; it covers whole chunks, as its lock will."""
    one = proposal.candidate
    locked = spec.grain.align(one.interval)
    entries = BitMap64(np.concatenate([one.segments, one.tombstones]).astype(np.uint64))
    row = new_row(
        kind=one.kind,
        identity=proposal.identity(spec),
        table_id=spec.id,
        worker=proposal.worker,
        score=one.score,
        cause=one.cause,
        now_us=now_us,
    )
    return row | {
        "start_us": locked.start_us,
        "end_us": locked.end_us,
        "segments": len(one.segments),
        "entries": encode_set(entries),
        "budget_bytes": one.bytes,
        "predicted": json.dumps(asdict(one.gain)),
    }


def ids_of(entries: bytes) -> Ids:
    """Ids of the segments and tombstones that are a task's inputs."""
    if not entries:
        return np.empty(0, dtype=np.int64)
    held = decode_set("row", bytes(entries))
    assert isinstance(held, BitMap64)
    return row_id_array(held)


def task_from_row(row: Any) -> Task:
    """A row of `with_names` as a value."""
    result = json.loads(row.actual) if row.actual else {}
    gain = {name: result.pop(name) for name in ("files", "bytes", "masked_rows", "entries") if name in result}
    return Task(
        id=row.id,
        table=row.table_name,
        kind=TaskKind(row.kind),
        state=TaskState(row.state),
        worker=Worker(row.worker),
        score=row.score,
        cause=row.cause,
        interval=None if row.start_us is None else Interval(from_us(row.start_us), from_us(row.end_us)),
        segments=row.segments,
        budget_bytes=row.budget_bytes,
        predicted=Gain(**json.loads(row.predicted)),
        actual=Gain(**gain) if row.actual else None,
        attempts=row.attempts,
        created_at=from_us(row.created_us),
        not_before=from_us(row.not_before_us),
        started_at=None if row.started_us is None else from_us(row.started_us),
        ended_at=None if row.ended_us is None else from_us(row.ended_us),
        lease_until=None if row.lease_until_us is None else from_us(row.lease_until_us),
        version=row.version,
        error=row.error,
        details=result,
    )
