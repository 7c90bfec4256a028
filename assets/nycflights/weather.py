"""Hourly weather at the three airports, by day, in UTC.

`time_hour` is the table's time: the hour of the observation in UTC. The source's `hour` is New York's and says 1 twice
for the night of 3 November, when clocks were set back, so it could not serve. Chunks are days: the three rows of an
hour are too few for files of their own.
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


def weather_table(lake: "Lake") -> "Table":
    """The table, created if it is not there."""
    return lake.create_table("weather", COLUMNS["weather"], time="time_hour", grain="day", if_not_exists=True)


def read_weather(spark: "SparkSession", folder: Path) -> "DataFrame":
    """The source's observations."""
    return read_source(spark, "weather", folder)


@chunk_asset(partitions_def=DAYS, group_name="nycflights", kinds={"spark"})
def weather(context: dg.AssetExecutionContext, lakehouse: LakehouseResource) -> dg.MaterializeResult[None]:
    """Every observation of the days of the run: at most 24 an airport and day; some are missing."""
    interval = run_interval(context)  # wrong partitions are refused before Spark starts
    with lakehouse.get_lake() as lake:
        rows = within(read_weather(lake.spark, landing_folder(context)), "time_hour", interval)
        return replace_chunks(context, weather_table(lake), rows)
