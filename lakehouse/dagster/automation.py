"""Assets that follow tables: conditions for downstream assets, and observation of tables that others write."""

import warnings
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import dagster as dg

from lakehouse.core.interval import Interval
from lakehouse.dagster.partitions import keys_within, require_time
from lakehouse.dagster.resource import LakehouseResource


def on_new_version(*, all_partitions: bool = True) -> dg.AutomationCondition[Any]:
    """Materialize an asset when one of its inputs has a new version and none of them is missing or running.

    Unlike Dagster's ``eager``, it follows late data and re-statements into every partition, not only the newest
    (``all_partitions=False``: only the newest). As with ``eager``, a change in the same tick of the sensor as the
    materialization of the asset counts as followed.

    Examples
    --------
    >>> @dg.asset(automation_condition=on_new_version())
    ... def daily_delays(flights): ...
    """
    condition = dg.AutomationCondition.eager()
    if all_partitions:
        condition = condition.without(dg.AutomationCondition.in_latest_time_window())
    return condition.with_label("a new version upstream")


def observe_table(
    table: str,
    *,
    key: dg.AssetKey | None = None,
    partitions_def: dg.TimeWindowPartitionsDefinition | None = None,
    every: timedelta | None = None,
    lakehouse_key: str = "lakehouse",
    **arguments: Any,
) -> dg.SourceAsset:
    """A table written outside Dagster, as an observable source asset that reports its versions.

    An observation reports the newest version of the table; with partitions by the table's chunks, also the newest
    version that changed each chunk, so that only assets made from those chunks are out of date. ``every``: how often
    Dagster's daemon observes it by itself. It reads only versions, from the catalog.

    Examples
    --------
    >>> from lakehouse.dagster import chunk_partitions
    >>> days = chunk_partitions("day", "2013-01-01", "2014-01-01")
    >>> observe_table("sensors", partitions_def=days, every=timedelta(minutes=5)).key.to_user_string()
    'sensors'
    """

    def observed(context: Any) -> dg.DataVersion | dg.DataVersionsByPartition:
        lake_resource: LakehouseResource = getattr(context.resources, lakehouse_key)
        with lake_resource.get_lake(spark=False) as lake:
            found = lake.table(table)
            if partitions_def is None:
                return dg.DataVersion(str(found.version))
            return dg.DataVersionsByPartition(data_versions(found, partitions_def))

    if every is not None:
        arguments["automation_condition"] = dg.AutomationCondition.on_cron(cron_of(every))
    with warnings.catch_warnings():
        # Dagster marks it as beta; users of this factory need no warning each time their code is loaded.
        warnings.filterwarnings("ignore", "Function `observable_source_asset`", dg.BetaWarning)
        source: dg.SourceAsset = dg.observable_source_asset(
            name=None if key is not None else table,
            key=key,
            partitions_def=partitions_def,
            required_resource_keys={lakehouse_key},
            **arguments,
        )(observed)
        return source


def data_versions(table: Any, partitions: dg.TimeWindowPartitionsDefinition) -> Mapping[str, str]:
    """The version of each partition whose chunks hold or held anything."""
    require_time(table.spec)
    found: dict[str, str] = {}
    for chunk in table.chunks():
        for key in keys_within(partitions, Interval(chunk.start, chunk.end)):
            found[key] = str(max(chunk.version, int(found.get(key, 0))))
    return found


def cron_of(every: timedelta) -> str:
    """The cron schedule nearest to a period between a minute and a day.

    >>> cron_of(timedelta(minutes=5)), cron_of(timedelta(hours=6)), cron_of(timedelta(days=1))
    ('*/5 * * * *', '0 */6 * * *', '0 0 * * *')
    """
    minutes = max(1, round(every.total_seconds() / 60))
    if minutes < 60:
        return f"*/{minutes} * * * *"
    hours = round(minutes / 60)
    return f"0 */{hours} * * *" if hours < 24 else "0 0 * * *"
