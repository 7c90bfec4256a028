"""Distinguishes a retry from a new run: finds the run for which a write is committed, once."""

from typing import Any

import dagster as dg
from dagster._core.storage.tags import BACKFILL_ID_TAG, PARENT_BACKFILL_ID_TAG, PARTITION_NAME_TAG

from lakehouse.dagster.write import Mode

RUN_ID = "dagster_run_id"
"""Property of a commit: the run that made it."""
_MOST_ANCESTORS = 100


def first_attempt(instance: dg.DagsterInstance, run: dg.DagsterRun, *, step_key: str | None = None) -> str:
    """The id of the run that this one repeats, or its own.

    A run that re-executes an unsuccessful one is its retry; so is a retry of a step inside a run, which keeps the run's
    id. A run that re-executes a successful one is a new run, like every run that somebody starts. With ``step_key``,
    success is that of the step: executing a successful step again is then new, whatever happened to the rest of its
    run.

    Cost: one query of Dagster's storage for each retry.
    """
    oldest = run
    for _ in range(_MOST_ANCESTORS):
        before = _attempt_before(instance, oldest)
        if before is None or _succeeded(instance, before, step_key):
            break
        oldest = before
    return oldest.run_id


def marks_of(
    instance: dg.DagsterInstance,
    run: dg.DagsterRun,
    *,
    asset: str,
    partitions: str,
    step_key: str,
    mode: Mode = "replace",
) -> dict[str, Any]:
    """Marks of a commit: a message, a link back to the run, and the ``txn`` that all its retries share.

    For an append, retries are those of the run, since appending twice doubles rows. For other modes they are those of
    the step: somebody who executes a successful step again wants it written again.
    """
    first = first_attempt(instance, run, step_key=None if mode == "append" else step_key)
    return {
        "txn": (f"dagster/{first}/{asset}/{partitions}", 0),
        "message": f"materialize {asset}" + (f" {partitions}" if partitions else ""),
        "properties": {RUN_ID: run.run_id},
    }


def partition_text(keys: dg.PartitionKeyRange | None) -> str:
    """Partitions of a run, as text: a key, or the first and the last.

    >>> partition_text(dg.PartitionKeyRange("2013-01-01", "2013-01-05")), partition_text(None)
    ('2013-01-01...2013-01-05', '')
    """
    if keys is None:
        return ""
    return keys.start if keys.start == keys.end else f"{keys.start}...{keys.end}"


def _attempt_before(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dg.DagsterRun | None:
    if run.parent_run_id is not None:
        return instance.get_run_by_id(run.parent_run_id)
    backfill, partition = run.tags.get(PARENT_BACKFILL_ID_TAG), run.tags.get(PARTITION_NAME_TAG)
    if backfill is None or partition is None:
        return None
    # A re-executed backfill starts new runs without a parent: the newest run of the partition is taken.
    filters = dg.RunsFilter(tags={BACKFILL_ID_TAG: backfill, PARTITION_NAME_TAG: partition})
    return next((one for one in instance.get_runs(filters) if _share_assets(run, one)), None)


def _share_assets(run: dg.DagsterRun, other: dg.DagsterRun) -> bool:
    """Whether both materialize an asset; a run without a selection materializes all of its job."""
    if run.asset_selection is None or other.asset_selection is None:
        return True
    return bool(run.asset_selection & other.asset_selection)


def _succeeded(instance: dg.DagsterInstance, run: dg.DagsterRun, step_key: str | None) -> bool:
    if run.status is dg.DagsterRunStatus.SUCCESS:
        return True
    if step_key is None:
        return False
    steps = instance.get_run_step_stats(run.run_id, [step_key])
    return any(step.status is not None and step.status.value == "SUCCESS" for step in steps)
