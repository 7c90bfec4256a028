"""Changes of flights besides loading: late rows arrive, and a carrier re-states its flights.

Neither is an asset: both change some rows of `flights` and report the touched chunks to Dagster, so that derived assets
follow by themselves. A chunk that was never loaded is not marked as materialized.
"""

import csv

import dagster as dg
from pydantic import Field, field_validator

from assets.nycflights.flights import flights, flights_table, read_flights
from assets.nycflights.partitions import DAYS
from assets.nycflights.source import landing_folder, open_source, within
from lakehouse import Interval, InvalidInput
from lakehouse.dagster import LakehouseResource, report_commit


def _within_source(text: str) -> str:
    """Refuse an interval of which the source has nothing."""
    interval = Interval.of(text)
    first, last = DAYS.get_first_partition_window(), DAYS.get_last_partition_window()
    assert first is not None
    assert last is not None
    if not interval.overlaps(Interval(first.start, last.end)):
        raise InvalidInput(
            "the source has no flights of this time; choose one from its first to its last day",
            interval=interval,
            first=DAYS.get_first_partition_key(),
            last=DAYS.get_last_partition_key(),
        )
    return text


class Late(dg.Config):
    """Which flights arrive late."""

    interval: str = Field(
        default="2013-04-01T00:00/2013-04-01T04:00",
        description="The flights that arrive, by a period of UTC such as 2013-04-01 or start/end (default: the evening "
        "of 31 March in New York).",
    )

    _read_interval = field_validator("interval")(_within_source)


class Restated(dg.Config):
    """Which carrier states which of its flights anew."""

    carrier: str = Field(default="UA", description="The carrier's code, one of those of the asset airlines.")
    interval: str = Field(
        default="2013-02-09", description="The flights to state anew, by a period of UTC such as 2013-02 or start/end."
    )
    with_cancelled: bool = Field(default=False, description="Whether cancelled flights are among them.")

    _read_interval = field_validator("interval")(_within_source)

    @field_validator("carrier")
    @classmethod
    def _read_carrier(cls, code: str) -> str:
        """Refuse a carrier that the source does not have: a run that replaces nothing would look like a success."""
        with open_source("airlines") as lines:
            codes = [row["carrier"] for row in csv.DictReader(lines)]
        if code not in codes:
            raise InvalidInput("no such carrier; choose one of the source", carrier=code, carriers=",".join(codes))
        return code


@dg.op
def append_late_rows(context: dg.OpExecutionContext, config: Late, lakehouse: LakehouseResource) -> None:
    """Append flights, concurrently with anything else."""
    with lakehouse.get_lake() as lake:
        table = flights_table(lake)
        rows = within(read_flights(lake.spark, landing_folder(context)), "scheduled_at", Interval.of(config.interval))
        commit = table.append(rows, message=f"late flights of {config.interval}", txn=(f"late/{context.run_id}", 0))
        report_commit(context, flights, table, commit)


@dg.op
def replace_carrier(context: dg.OpExecutionContext, config: Restated, lakehouse: LakehouseResource) -> None:
    """Replace the flights of one carrier only; other carriers of the same days may be written meanwhile."""
    with lakehouse.get_lake() as lake:
        table, span = flights_table(lake), Interval.of(config.interval)
        rows = within(read_flights(lake.spark, landing_folder(context)), "scheduled_at", span)
        rows = rows.where(rows["carrier"] == config.carrier)
        if not config.with_cancelled:
            rows = rows.where(rows["dep_time"].isNotNull())
        message = f"{config.carrier} states {config.interval} anew"
        commit = table.replace(rows, span, keys={"carrier": config.carrier}, message=message)
        report_commit(context, flights, table, commit)


@dg.job
def late_flights() -> None:
    """Late rows arrive."""
    append_late_rows()


@dg.job
def restate_carrier() -> None:
    """One carrier re-states its flights."""
    replace_carrier()
