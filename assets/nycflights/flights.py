"""Flights by day of scheduled departure, in UTC.

The source has the scheduled departure on New York's clock (`year` ... `minute`) and `time_hour`, its hour in UTC:
05:15 on 1 January is `2013-01-01T10:00:00Z` and `minute` 15. For all 336,776 flights the two agree under
America/New_York and none is null, unlike the actual departure, which the 8,255 cancelled flights lack. So the table's
time is `scheduled_at` = `time_hour` + `minute`. A day of UTC is not a day of New York: what leaves there on the evening
of 31 March lies in the chunk of 1 April.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

from assets.nycflights.partitions import DAYS
from assets.nycflights.source import COLUMNS, landing_folder, read_source, within
from lakehouse.dagster import LakehouseResource, chunk_asset, replace_chunks, run_interval

if TYPE_CHECKING:  # loading the code location needs neither Spark nor SQLAlchemy
    from pyspark.sql import DataFrame, SparkSession

    from lakehouse import Lake, Table


def flights_table(lake: "Lake") -> "Table":
    """The table, created if it is not there. Clustered by carrier, so that one carrier of a day can be replaced."""
    schema = f"{COLUMNS['flights']}, scheduled_at TIMESTAMP"
    return lake.create_table(
        "flights", schema, time="scheduled_at", grain="day", cluster_by=("carrier",), if_not_exists=True
    )


def read_flights(spark: "SparkSession", folder: Path) -> "DataFrame":
    """The source's flights with the table's time."""
    minutes = "time_hour + make_dt_interval(0, 0, minute, 0)"
    return read_source(spark, "flights", folder).selectExpr("*", f"{minutes} AS scheduled_at")


@chunk_asset(partitions_def=DAYS, group_name="nycflights", kinds={"spark"})
def flights(context: dg.AssetExecutionContext, lakehouse: LakehouseResource) -> dg.MaterializeResult[None]:
    """Every flight that was to leave JFK, LGA or EWR on the days of the run, cancelled ones too."""
    interval = run_interval(context)  # wrong partitions are refused before Spark starts
    with lakehouse.get_lake() as lake:
        rows = within(read_flights(lake.spark, landing_folder(context)), "scheduled_at", interval)
        return replace_chunks(context, flights_table(lake), rows)
