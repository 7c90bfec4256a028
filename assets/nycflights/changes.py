"""Changes of flights besides loading: late rows arrive, and a carrier re-states its flights.

Neither is an asset: both change some rows of `flights` and report the touched chunks to Dagster, so that derived assets
follow by themselves. A chunk that was never loaded is not marked as materialized.
"""

import dagster as dg

from assets.nycflights.flights import flights, flights_table, read_flights
from assets.nycflights.source import landing_folder, within
from lakehouse import Interval
from lakehouse.dagster import LakehouseResource, report_commit


class Late(dg.Config):
    """Which flights arrive late: by default those of the evening of 31 March in New York, which is April in UTC."""

    interval: str = "2013-04-01T00:00/2013-04-01T04:00"


class Restated(dg.Config):
    """Which carrier re-states flights of which time, and whether cancelled ones are still among them."""

    carrier: str = "UA"
    interval: str = "2013-02-09"
    with_cancelled: bool = False


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
