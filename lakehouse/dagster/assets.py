"""Assets whose materialization is a replace: of the run's time chunks, or of several tables at once."""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import dagster as dg

from lakehouse.core.interval import Interval
from lakehouse.dagster.metadata import add_partition_rows, commit_metadata
from lakehouse.dagster.partitions import run_interval

if TYPE_CHECKING:
    from lakehouse.lake import Lake
    from lakehouse.table import Table


def chunk_asset(
    *, partitions_def: dg.TimeWindowPartitionsDefinition, **arguments: Any
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """`dagster.asset` partitioned by time chunk, whose backfill of a range is one run, so that it can be one version.

    Without that policy Dagster starts a run, and the lake makes a version, for each chunk of a backfill.

    Examples
    --------
    >>> from lakehouse.dagster import LakehouseResource, chunk_partitions, replace_chunks
    >>> @chunk_asset(partitions_def=chunk_partitions("day", "2013-01-01", "2014-01-01"))
    ... def flights(context: dg.AssetExecutionContext, lakehouse: LakehouseResource) -> dg.MaterializeResult:
    ...     with lakehouse.get_lake() as lake:
    ...         return replace_chunks(context, lake.table("flights"), rows_of(run_interval(context)))
    >>> flights.backfill_policy.max_partitions_per_run is None
    True
    """
    with warnings.catch_warnings():
        # Dagster marks the policy as beta; who uses this factory need not hear so each time their code is loaded.
        warnings.filterwarnings("ignore", "Parameter `backfill_policy`", dg.BetaWarning)
        policy = dg.BackfillPolicy.single_run()
        decorate: Callable[[Callable[..., Any]], dg.AssetsDefinition] = dg.asset(
            partitions_def=partitions_def, backfill_policy=policy, **arguments
        )
        return decorate


def replace_chunks(context: dg.AssetExecutionContext, table: "Table", rows: Any) -> dg.MaterializeResult[None]:
    """Replace exactly the time chunks of the run by rows, in one commit, and describe it to Dagster.

    ``rows`` is anything that `Table.replace` takes; a row outside the run's chunks fails the run and nothing is
    committed. Run again with the same rows, it leaves the same rows.
    """
    interval = run_interval(context)
    span = context.partition_key_range
    keys = span.start if span.start == span.end else f"{span.start}...{span.end}"
    started = time.monotonic()
    commit = table.replace(
        rows, interval, message=f"materialize {context.asset_key.to_user_string()} {keys}", properties=_origin(context)
    )
    seconds = time.monotonic() - started
    add_partition_rows(context, table, commit)
    return dg.MaterializeResult(metadata=commit_metadata(table, commit, interval, duration_seconds=seconds))


def replace_together(
    context: dg.AssetExecutionContext, lake: "Lake", rows: Mapping[str, Any], interval: Any
) -> Iterator[dg.MaterializeResult[None]]:
    """Replace an interval of several tables in one commit: readers see all of it or none.

    ``rows`` maps each table to its new rows; the assets that are materialized are named like the tables.
    """
    span = Interval.of(interval)
    started = time.monotonic()
    with lake.transaction(message=f"materialize {', '.join(rows)}", properties=_origin(context)) as transaction:
        for name, frame in rows.items():
            transaction.table(name).replace(frame, span)
    seconds = time.monotonic() - started
    commit = transaction.commit()
    for name in rows:
        metadata = {} if commit is None else commit_metadata(lake.table(name), commit, span, duration_seconds=seconds)
        yield dg.MaterializeResult(asset_key=name, metadata=metadata)


def _origin(context: dg.AssetExecutionContext) -> Mapping[str, str]:
    """What leads from a version back to the run that made it."""
    return {"dagster_run_id": context.run.run_id}
