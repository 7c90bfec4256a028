"""PLAN: what is worth doing with a table, by every strategy."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lakehouse.catalog.tasks.rows import Proposal
from lakehouse.core.policy import Policy
from lakehouse.core.spec import TableSpec
from lakehouse.core.strategy import TableState, checked, combine
from lakehouse.core.strategy.clean import clean
from lakehouse.core.strategy.cooled import next_cooling
from lakehouse.core.strategy.open_segments import next_end
from lakehouse.core.task import Candidate, TaskKind, Worker
from lakehouse.service.registry import strategies
from lakehouse.service.summaries import summaries
from lakehouse.session.session import Session

if TYPE_CHECKING:
    from lakehouse.table.table import Table

logger = logging.getLogger(__name__)
RESIDENT_BYTES = 64 << 20
"""The most that a RESOLVE may read for the service to run it itself."""
_RESIDENT = {TaskKind.CLEAN}
_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What is worth doing with a table at a version, best first, and how long planning took.

    ``due_seconds``: when thresholds next grow stricter for unchanged segments, or some of these have cooled or
    are old enough to be joined; None if never.
    """

    spec: TableSpec
    version: int
    proposals: tuple[Proposal, ...]
    failed: tuple[str, ...]
    seconds: float
    due_seconds: float | None


def plan_table(session: Session, table: Table) -> TablePlan:
    """Run every strategy on a table. Cost: its live segments, in columns; only the catalog is read.

    A failing strategy of another package is named and left out; the others count.
    """
    began = time.monotonic()
    spec, policy, version = table.spec, table.policy, table.version
    if not policy.enabled:
        return TablePlan(spec, version, (), (), time.monotonic() - began, None)
    state = _state(session, spec, policy, version)
    candidates: list[Candidate] = []
    failed: list[str] = []
    for name, strategy in strategies().items():
        try:
            candidates.extend(checked(state, strategy(state)))
        except Exception as error:  # third-party code may fail in any way, and must not stop the other strategies
            logger.exception("strategy %s failed on table %s", name, spec.name)
            failed.append(f"{name}: {error}")
    written = table.amplification()
    left = policy.write_amplification * written.appended_bytes - written.rewritten_bytes
    compactions = combine(state, candidates, rewritable_bytes=max(0.0, left))
    taken = np.concatenate([np.empty(0, dtype=np.int64), *(one.segments for one in compactions)])
    tasks = [*compactions, *clean(state), *summaries(session, state, taken)]
    proposals = sorted((Proposal(one, _worker(one)) for one in tasks), key=lambda one: -one.candidate.score)
    return TablePlan(spec, version, tuple(proposals), tuple(failed), time.monotonic() - began, _due_seconds(state))


def _due_seconds(state: TableState) -> float | None:
    to_come = [age for age in state.policy.ages if state.settled.get(age, -1) < state.version]
    stricter = min(_HOUR, *to_come) if to_come else None
    due = [one for one in (stricter, next_cooling(state), next_end(state)) if one is not None]
    return min(due, default=None)


def _state(session: Session, spec: TableSpec, policy: Policy, version: int) -> TableState:
    segments, tombstones = session.catalog.live(spec, version)
    busy = session.catalog.tasks().busy(spec.id)
    if busy:
        segments = segments.where(~np.isin(segments.ids, list(busy)))
        tombstones = [one for one in tombstones if one.id not in busy]
    return TableState(
        spec=spec,
        policy=policy,
        version=version,
        now=session.catalog.now(),
        segments=segments,
        tombstones=tuple(tombstones),
        settled=session.catalog.versions_at(policy.ages),
        scans=session.catalog.plan_rates(spec),
    )


def _worker(candidate: Candidate) -> Worker:
    is_small = candidate.kind is TaskKind.RESOLVE and candidate.bytes <= RESIDENT_BYTES
    return Worker.RESIDENT if is_small or candidate.kind in _RESIDENT else Worker.ELASTIC
