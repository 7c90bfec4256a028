"""Time chunks as Dagster partitions: one partition is one chunk, a range of partitions is one interval."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import dagster as dg

from lakehouse.core.chunk import Grain
from lakehouse.core.interval import Instant, Interval, to_utc
from lakehouse.core.spec import TableSpec
from lakehouse.errors import InvalidPartitions

if TYPE_CHECKING:
    from lakehouse.table.table import Table

FIRST_YEAR = 1000
TIME = "time"
"""The name of the time dimension, if there is another one."""
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


@overload
def chunk_partitions(
    grain: "Grain | str | Table",
    start: Instant | None = None,
    end: Instant | None = None,
    *,
    end_offset: int = 0,
    keys: None = None,
) -> dg.TimeWindowPartitionsDefinition: ...


@overload
def chunk_partitions(
    grain: "Grain | str | Table",
    start: Instant | None = None,
    end: Instant | None = None,
    *,
    end_offset: int = 0,
    keys: Mapping[str, Sequence[Any] | dg.PartitionsDefinition[str]],
) -> dg.MultiPartitionsDefinition: ...


def chunk_partitions(
    grain: "Grain | str | Table",
    start: Instant | None = None,
    end: Instant | None = None,
    *,
    end_offset: int = 0,
    keys: Mapping[str, Sequence[Any] | dg.PartitionsDefinition[str]] | None = None,
) -> dg.TimeWindowPartitionsDefinition | dg.MultiPartitionsDefinition:
    """The time chunks of a grain as partitions, one to one, from the chunk of ``start`` on.

    The last one is the chunk that holds the instant before ``end``, or the newest finished chunk if that is earlier or
    ``end`` is omitted; ``end_offset`` adds that many after the newest (1: the chunk being filled). Times are UTC,
    whatever the machine's zone. Dagster stays fast up to some 100,000 partitions of an asset: eleven years of hours.

    A table may be given instead of a grain; it provides the grain, and ``start`` may be omitted if it holds rows.

    ``keys`` names one cluster column and its values (or Dagster's own definition of them): partitions are then cells
    of time and key, such as yesterday for client 1234, and their materialization replaces just those rows.

    Raises
    ------
    InvalidInput
        For an unknown grain, a time that cannot be read or is before the year 1000, or an ``end`` that is not after
        ``start``.

    Examples
    --------
    >>> chunk_partitions("day", "2012-02-28", "2012-03-02").get_partition_keys()
    ['2012-02-28', '2012-02-29', '2012-03-01']
    >>> chunk_partitions("week", "2013-01-01", "2013-01-08").get_partition_keys()
    ['2012-12-31', '2013-01-07']
    >>> chunk_partitions("month", "2013-01", "2013-02", keys={"client": [77, 1234]}).get_partition_keys()
    ['77|2013-01', '1234|2013-01']
    """
    if not isinstance(grain, str):
        require_time(grain.spec)
        start = _first_row(grain) if start is None else start
        grain = grain.grain
    if start is None:
        raise InvalidPartitions("partitions need a start; pass the time of the first chunk", grain=grain)
    unit = Grain.of(grain)
    first = unit.floor(to_utc(_period_start(start)))
    if first.year < FIRST_YEAR:
        raise InvalidPartitions(
            "Dagster drops leading zeros of years and cannot read them; start later, and write older rows by hand",
            start=start,
            least=f"{FIRST_YEAR}-01-01",
        )
    last = None if end is None else unit.align(Interval(first, _period_start(end))).end
    times = dg.TimeWindowPartitionsDefinition(
        start=first,
        end=last,
        fmt=_KEY_FORMAT[unit],
        cron_schedule=_CRON[unit],
        timezone="UTC",
        end_offset=end_offset,
    )
    return times if keys is None else _with_keys(times, keys)


def _with_keys(
    times: dg.TimeWindowPartitionsDefinition, keys: Mapping[str, Sequence[Any] | dg.PartitionsDefinition[str]]
) -> dg.MultiPartitionsDefinition:
    if len(keys) != 1 or TIME in keys:
        raise InvalidPartitions(
            f"Dagster's partitions have two dimensions: name one cluster column beside {TIME}", keys=list(keys)
        )
    ((column, values),) = keys.items()
    known = values if isinstance(values, dg.PartitionsDefinition) else dg.StaticPartitionsDefinition(
        [str(value) for value in values]
    )  # fmt: skip
    return dg.MultiPartitionsDefinition({TIME: times, column: known})


def _first_row(table: "Table") -> Any:
    segments = table.segments()
    if not segments:
        raise InvalidPartitions("the table is empty; pass the time of the first chunk", table=table.name)
    return min(segment.start for segment in segments)


def _period_start(value: Any) -> Any:
    """The start of a period such as ``2013-01``; anything else unchanged."""
    if isinstance(value, str) and (len(value) < len("2013-01-01") or "W" in value):
        return Interval.of(value).start
    return value


def partitions_grain(partitions: dg.PartitionsDefinition[Any] | None) -> Grain | None:
    """The grain of which partitions (or their time dimension) are chunks; None if they are not chunks."""
    match partitions:
        case dg.MultiPartitionsDefinition():
            found = [partitions_grain(one.partitions_def) for one in partitions.partitions_defs]
            return next((grain for grain in found if grain is not None), None)
        case dg.TimeWindowPartitionsDefinition(timezone="UTC", cron_schedule=cron):
            return next((grain for grain, text in _CRON.items() if text == cron), None)
        case _:
            return None


def keys_within(partitions: dg.TimeWindowPartitionsDefinition, span: Interval) -> Sequence[str]:
    """Keys of the partitions in an interval; none before the first or after the last partition.

    Dagster counts its windows from the interval's start, and fails near the years 1 and 9999.

    >>> days = chunk_partitions("day", "2013-01-01", "2014-01-01")
    >>> keys_within(days, Interval("2012-12-31", "2013-01-03")), keys_within(days, Interval("9999-12-31", None))
    (['2013-01-01', '2013-01-02'], [])
    """
    first, last = partitions.get_first_partition_window(), partitions.get_last_partition_window()
    there = None if first is None or last is None else span.intersect(Interval(first.start, last.end))
    if there is None:
        return []
    return partitions.get_partition_keys_in_time_window(dg.TimeWindow(there.start, there.end))


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
        raise InvalidPartitions("partitions are not windows of time; use chunk_partitions", partitions=repr(partitions))
    if partitions.exclusions:
        raise InvalidPartitions("partitions leave out times, so a range of them is no interval; use chunk_partitions")
    for key in (keys.start, keys.end):
        if not partitions.has_partition_key(key):
            raise InvalidPartitions(
                "no such partition; choose one from first to last",
                partition=key,
                first=partitions.get_first_partition_key(),
                last=partitions.get_last_partition_key(),
            )
    first = partitions.time_window_for_partition_key(keys.start)
    last = partitions.time_window_for_partition_key(keys.end)
    return Interval(first.start, last.end)


def run_interval(context: dg.AssetExecutionContext) -> Interval:
    """The interval that a run materializes: that of its partition, or of its whole range of partitions.

    If partitions have keys too, that of their times. Raises `InvalidInput` as `key_range_interval` does.
    """
    partitions, keys = require_partitions(context), context.partition_key_range
    if isinstance(partitions, dg.MultiPartitionsDefinition):
        (times,) = (one for one in partitions.partitions_defs if one.name == partitions.time_window_dimension.name)
        start, end = (partitions.get_partition_key_from_str(key).keys_by_dimension[times.name] for key in keys)
        return key_range_interval(times.partitions_def, dg.PartitionKeyRange(start, end))
    return key_range_interval(partitions, keys)


def require_time(spec: TableSpec) -> None:
    """Refuse partitions of a timeless table, whose rows all lie in one chunk."""
    if not spec.time:
        raise InvalidPartitions(
            "the table has no time, so that its asset has no partitions; leave partitions_def out, or create the table "
            "with time=",
            table=spec.name,
        )


def require_partitions(context: dg.AssetExecutionContext) -> dg.PartitionsDefinition[Any]:
    """The partitions of the asset that a step materializes, after checking the run's range of them.

    Raises `InvalidInput` if it has none, or the range is reversed.
    """
    found: dg.PartitionsDefinition[Any] | None = context.assets_def.partitions_def
    if found is None:
        raise InvalidPartitions(
            "the asset has no partitions; give it partitions_def=chunk_partitions(...)",
            asset=",".join(sorted(key.to_user_string() for key in context.selected_asset_keys)),
        )
    if not context.partition_keys:
        raise InvalidPartitions(
            "the range of partitions is reversed or empty; give its first partition first",
            keys=context.partition_key_range,
        )
    return found
