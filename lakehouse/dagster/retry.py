"""Distinguishes a retry from a new run: finds the run for which a write is committed, once."""

from typing import Any

import dagster as dg
from dagster._core.storage.tags import BACKFILL_ID_TAG, PARENT_BACKFILL_ID_TAG, PARTITION_NAME_TAG

from lakehouse.dagster.write import Mode

RUN_ID = "dagster_run_id"
"""Property of a commit: the run that made it."""
_MOST_ANCESTORS = 100


def first_attempt(instance: dg.DagsterInstance, run: dg.DagsterRun, *, step_key: str | None = None) -> str:
    """The id of the run whose work this one does again, or its own.

    A run that re-executes one that did not succeed is its retry, as is a retry of a step inside a run, which keeps the
    run's id. A run that re-executes one that succeeded is a new run, and so is every run that somebody started anew.
    With ``step_key``, success is that step's: a step that is executed again although it had succeeded is then a new
    one, whatever became of the rest of its run.

    Cost: one look at Dagster's storage a retry.
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
    """What a commit carries: a message, the run that leads back to, and the ``txn`` that all its retries share.

    An append's retries are those of the run, since appending twice doubles rows; another mode's those of the step,
    since writing it twice is what somebody who executes it again wants.
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
    # A backfill that is re-executed starts runs anew, which know no parent: that of a partition is the newest there.
    filters = dg.RunsFilter(tags={BACKFILL_ID_TAG: backfill, PARTITION_NAME_TAG: partition})
    return next((one for one in instance.get_runs(filters) if _share_assets(run, one)), None)


def _share_assets(run: dg.DagsterRun, other: dg.DagsterRun) -> bool:
    """Whether both are about an asset; a run without a selection is about all of its job."""
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
