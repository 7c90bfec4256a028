"""Assets whose materialization is a replace: of the run's time chunks, or of several tables at once."""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

from lakehouse.arguments import Fit, Rows
from lakehouse.core.interval import Interval, IntervalLike
from lakehouse.core.spec import TableSpec
from lakehouse.dagster.cells import cells_of, run_cells
from lakehouse.dagster.metadata import add_partition_rows, commit_metadata, data_version
from lakehouse.dagster.partitions import keys_within, require_partitions, require_time, run_interval
from lakehouse.dagster.progress import logging_progress
from lakehouse.dagster.retry import marks_of, partition_text
from lakehouse.dagster.write import hull, write_rows
from lakehouse.progress import counted, step

if TYPE_CHECKING:
    from lakehouse.core.commit import Commit
    from lakehouse.lake import Lake
    from lakehouse.table.table import Table


def chunk_asset(
    *, partitions_def: dg.PartitionsDefinition[Any], max_partitions_per_run: int | None = None, **arguments: Any
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """`dagster.asset` partitioned by time chunk, whose backfill of a range is one run, so that it can be one version.

    Without that policy Dagster starts a run, and the lake makes a version, for each chunk of a backfill.
    ``max_partitions_per_run`` cuts a backfill into runs of at most as many: a failed run is then repeated alone.

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
        # Dagster marks the policy as beta; users of this factory need no warning each time their code is loaded.
        warnings.filterwarnings("ignore", "Parameter `backfill_policy`", dg.BetaWarning)
        if max_partitions_per_run is None:
            policy = dg.BackfillPolicy.single_run()
        else:
            policy = dg.BackfillPolicy.multi_run(max_partitions_per_run)
        decorate: Callable[[Callable[..., Any]], dg.AssetsDefinition] = dg.asset(
            partitions_def=partitions_def, backfill_policy=policy, **arguments
        )
        return decorate


def replace_chunks(
    context: dg.AssetExecutionContext,
    table: "Table",
    rows: Rows | None,
    *,
    schema: Fit = "strict",
    console_url: str | None = None,
) -> dg.MaterializeResult[None]:
    """Replace exactly the partitions of the run by rows, in one commit, and describe it to Dagster.

    ``rows`` is anything that `Table.replace` takes; a row outside the run's partitions fails the run and nothing is
    committed. ``schema`` is that of `Table.replace`: what becomes of rows with other columns than the table's. A retry
    of a run that had committed changes nothing and reports that commit; a new run replaces again.
    """
    cells = run_cells(context)
    started = time.monotonic()
    with logging_progress(context.log):
        commit = write_rows(table, rows, cells, schema=schema, **origin(context))
    seconds = time.monotonic() - started
    add_partition_rows(context, table, commit)
    metadata = commit_metadata(table, commit, hull(cells), duration_seconds=seconds, console_url=console_url)
    return dg.MaterializeResult(metadata=metadata, data_version=data_version(commit))


def replace_each_chunk(
    context: dg.AssetExecutionContext,
    table: "Table",
    rows_of: Callable[[Interval], Rows | None],
    *,
    schema: Fit = "strict",
    console_url: str | None = None,
) -> None:
    """Replace the partitions of the run one by one, with a commit each: these stay if a later one fails.

    ``rows_of`` returns the rows of one time chunk. The asset needs ``output_required=False``: each partition is
    reported as materialized when it is committed, and no others. A retry continues where the run failed: it calls
    ``rows_of`` again for committed chunks, but writes only the others. The price is one version for each chunk.
    ``schema`` is that of `Table.replace`.

    Examples
    --------
    >>> from lakehouse.dagster import LakehouseResource, chunk_partitions
    >>> days = chunk_partitions("day", "2013-01-01", "2014-01-01")
    >>> @chunk_asset(partitions_def=days, output_required=False)
    ... def weather(context: dg.AssetExecutionContext, lakehouse: LakehouseResource) -> None:
    ...     with lakehouse.get_lake() as lake:
    ...         replace_each_chunk(context, lake.table("weather"), lambda chunk: rows_within(chunk))
    """
    partitions = require_partitions(context)
    keys = context.partition_keys
    with logging_progress(context.log), step(f"replace {table.name}", "chunks", len(keys)) as chunks:
        for key in counted(keys, chunks):
            (cell,) = cells_of(partitions, [key])
            started = time.monotonic()
            commit = write_rows(table, rows_of(cell.interval), [cell], schema=schema, **origin(context, key=key))
            seconds = time.monotonic() - started
            metadata = commit_metadata(table, commit, cell.interval, duration_seconds=seconds, console_url=console_url)
            tags = {"dagster/data_version": str(commit.version), "dagster/data_version_is_user_provided": "true"}
            context.log_event(dg.AssetMaterialization(context.asset_key, partition=key, metadata=metadata, tags=tags))


def replace_together(
    context: dg.AssetExecutionContext,
    lake: "Lake",
    rows: Mapping[str, Any],
    interval: "IntervalLike | None" = None,
    *,
    schema: Fit = "strict",
    console_url: str | None = None,
) -> Iterator[dg.MaterializeResult[None]]:
    """Replace an interval of several tables in one commit: readers see all of it or none.

    ``rows`` maps each table to its new rows, or to a pair of rows and the interval that they replace: facts of a day
    together with look-ups of all time, say. ``interval`` is for tables without their own; by default the partitions of
    the run. In a timeless table all rows are replaced; in a run with partitions, give None as its interval. ``schema``
    is that of `Table.replace`. The materialized assets are named like the tables.
    """
    specs = {name: lake.table(name).spec for name in rows}
    has_partitions = context.assets_def.partitions_def is not None
    if interval is None and (has_partitions or any(spec.time for spec in specs.values())):
        interval = run_interval(context)
    spans = {name: _span(given, interval, specs[name]) for name, given in rows.items()}
    marks = origin(context)
    txn = marks.pop("txn")
    started = time.monotonic()
    with (
        logging_progress(context.log),
        step("replace together", "tables", len(spans)) as tables,
        lake.transaction(**marks) as transaction,
    ):
        for name, (frame, span) in counted(spans.items(), tables):
            transaction.table(name).replace(frame, span, txn=txn, schema=schema)
    seconds = time.monotonic() - started
    commit = transaction.commit()
    for name, (_, span) in spans.items():
        if commit is None:
            yield dg.MaterializeResult(asset_key=name)
        else:
            metadata = commit_metadata(
                lake.table(name), commit, span, duration_seconds=seconds, console_url=console_url
            )
            yield dg.MaterializeResult(asset_key=name, metadata=metadata, data_version=data_version(commit))


def report_commit(
    context: dg.AssetExecutionContext | dg.OpExecutionContext,
    asset: dg.AssetsDefinition,
    table: "Table",
    commit: "Commit",
    *,
    console_url: str | None = None,
) -> Sequence[str]:
    """Report a commit that no asset's step made, such as late rows or a restore, to Dagster. Returns the partitions.

    Each time chunk that the commit changed is one event: a materialization if Dagster has one of the chunk, so that
    downstream assets follow; else an observation, because a chunk that was only touched was never loaded as a whole.
    """
    partitions = asset.partitions_def
    if partitions is not None:
        require_time(table.spec)
    tags = {"dagster/data_version": str(commit.version), "dagster/data_version_is_user_provided": "true"}
    changed: list[tuple[str | None, Interval | None]] = [(None, None)]
    if isinstance(partitions, dg.TimeWindowPartitionsDefinition):
        changed = [
            (key, chunk)
            for chunk in table.diff(commit.version - 1, commit.version).chunks
            for key in keys_within(partitions, Interval(chunk.start, chunk.end))
        ]
    whole = _materialized(context.instance, asset.key, has_partitions=partitions is not None)
    for key, chunk in changed:
        metadata = commit_metadata(table, commit, chunk, console_url=console_url)
        event = dg.AssetMaterialization if key in whole else dg.AssetObservation
        context.log_event(event(asset.key, partition=key, metadata=metadata, tags=tags))
    return [key for key, _ in changed if key is not None]


def _materialized(instance: dg.DagsterInstance, asset: dg.AssetKey, *, has_partitions: bool) -> set[str | None]:
    """Partitions that were ever materialized; None for an asset without partitions."""
    if has_partitions:
        return set(instance.get_materialized_partitions(asset))
    return {None} if instance.get_latest_materialization_event(asset) is not None else set()


def _span(given: Any, default: Any, spec: TableSpec) -> tuple[Any, Interval]:
    """Rows, and the interval that they replace: their own if they have one."""
    rows, interval = given if isinstance(given, tuple) else (given, default)
    return rows, spec.interval_of(interval)


def origin(context: dg.AssetExecutionContext, *, key: str | None = None) -> dict[str, Any]:
    """Marks of a step's commit: who wrote it, for which partitions, and the ``txn`` of its retries."""
    ranged = context.has_partition_key or context.has_partition_key_range
    keys = key or partition_text(context.partition_key_range if ranged else None)
    asset = ",".join(sorted(one.to_user_string() for one in context.selected_asset_keys))
    return marks_of(
        context.instance,
        context.run,
        asset=asset,
        partitions=keys,
        step_key=str(context.op_execution_context.op_handle),
    )
