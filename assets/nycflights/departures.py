"""Flights that left, with their delays: without cancelled ones and redundant columns.

Made of the same chunks as `flights`, in process: a day is a thousand rows, and Spark would take longer to start.
"""

import dagster as dg
import pyarrow as pa

from assets.nycflights.partitions import DAYS
from lakehouse.dagster import chunk_asset, on_new_version, table_metadata

COLUMNS = ["scheduled_at", "carrier", "flight", "tailnum", "origin", "dest", "dep_delay", "arr_delay", "distance"]


@chunk_asset(
    partitions_def=DAYS,
    ins={"flights": dg.AssetIn(metadata={"columns": COLUMNS, "where": "dep_time IS NOT NULL"})},
    metadata=table_metadata(time="scheduled_at", cluster_by=["carrier"]),
    automation_condition=on_new_version(),
    group_name="nycflights",
    kinds={"arrow"},
)
def departures(flights: pa.Table) -> pa.Table:
    """Every flight of the days of the run that left."""
    return flights
