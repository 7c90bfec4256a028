"""Time chunks as Dagster partitions: one partition is one chunk, a range of partitions is one interval."""

from typing import Any

import dagster as dg

from lakehouse.core.chunk import Grain
from lakehouse.core.interval import Interval, to_utc
from lakehouse.errors import InvalidInput

_CRON = {
    Grain.HOUR: "0 * * * *",
    Grain.DAY: "0 0 * * *",
    Grain.WEEK: "0 0 * * 1",
    Grain.MONTH: "0 0 1 * *",
    Grain.YEAR: "0 0 1 1 *",
}
# Keys are the periods that `Interval.of` reads, except a week's: Dagster reads keys back by `strptime`, which cannot
# find the day that 2013-W02 begins on, so a week's key is its Monday.
_KEY_FORMAT = {
    Grain.HOUR: "%Y-%m-%dT%H",
    Grain.DAY: "%Y-%m-%d",
    Grain.WEEK: "%Y-%m-%d",
    Grain.MONTH: "%Y-%m",
    Grain.YEAR: "%Y",
}


def chunk_partitions(
    grain: Grain | str, start: Any, end: Any = None, *, end_offset: int = 0
) -> dg.TimeWindowPartitionsDefinition:
    """Partitions that are the time chunks of a grain, one to one, from the chunk of ``start`` on.

    The last one is the chunk that holds the instant before ``end``, or the newest chunk that is over if that is
    earlier or ``end`` is left out; ``end_offset`` adds as many after the newest (1: the chunk that is being filled).
    Times are UTC, whatever the zone of the machine. Dagster stays quick up to some 100,000 partitions an asset: eleven
    years of hours.

    Raises
    ------
    InvalidInput
        For an unknown grain, a time that cannot be read, or an ``end`` that is not after ``start``.

    Examples
    --------
    >>> chunk_partitions("day", "2012-02-28", "2012-03-02").get_partition_keys()
    ['2012-02-28', '2012-02-29', '2012-03-01']
    >>> chunk_partitions("week", "2013-01-01", "2013-01-08").get_partition_keys()
    ['2012-12-31', '2013-01-07']
    """
    unit = Grain.of(grain)
    first = unit.floor(to_utc(start))
    last = None if end is None else unit.align(Interval(start, end)).end
    return dg.TimeWindowPartitionsDefinition(
        start=first,
        end=last,
        fmt=_KEY_FORMAT[unit],
        cron_schedule=_CRON[unit],
        timezone="UTC",
        end_offset=end_offset,
    )


def key_range_interval(partitions: dg.PartitionsDefinition[str], keys: dg.PartitionKeyRange) -> Interval:
    """The one interval that a range of partitions covers, first and last included.

    Raises
    ------
    InvalidInput
        If the range is reversed or leaves the partitions (Dagster itself runs a reversed range over no partition and
        reports success), or if the partitions are not contiguous windows of time.

    Examples
    --------
    >>> days = chunk_partitions("day", "2013-01-01", "2014-01-01")
    >>> key_range_interval(days, dg.PartitionKeyRange("2013-01-30", "2013-02-02"))
    Interval('2013-01-30', '2013-02-03')
    """
    if not isinstance(partitions, dg.TimeWindowPartitionsDefinition):
        raise InvalidInput("partitions are not windows of time; use chunk_partitions", partitions=repr(partitions))
    if partitions.exclusions:
        raise InvalidInput("partitions leave out times, so a range of them is no interval; use chunk_partitions")
    for key in (keys.start, keys.end):
        if not partitions.has_partition_key(key):
            raise InvalidInput(
                "no such partition; choose one from first to last",
                partition=key,
                first=partitions.get_first_partition_key(),
                last=partitions.get_last_partition_key(),
            )
    first = partitions.time_window_for_partition_key(keys.start)
    last = partitions.time_window_for_partition_key(keys.end)
    return Interval(first.start, last.end)


def run_interval(context: dg.AssetExecutionContext) -> Interval:
    """The interval that a run is to materialize: that of its partition, or of its whole range of partitions.

    Raises `InvalidInput` as `key_range_interval` does.
    """
    return key_range_interval(context.assets_def.partitions_def or _unpartitioned(context), context.partition_key_range)


def _unpartitioned(context: dg.AssetExecutionContext) -> Any:
    raise InvalidInput(
        "the asset has no partitions; give it partitions_def=chunk_partitions(...)", asset=context.asset_key
    )
