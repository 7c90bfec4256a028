"""One row for each day and carrier: how many left, how late, and how many never landed at their destination.

Chunks are months, since a day is sixteen rows. A month follows when all its days are there and one of them changes:
by late data, or by a re-statement of one carrier.
"""

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.nycflights.partitions import MONTHS
from lakehouse.dagster import chunk_asset, on_new_version, table_metadata

LATE_MINUTES = 15
SCHEMA = pa.schema(
    [
        ("day", pa.timestamp("us", "UTC")),
        ("carrier", pa.string()),
        ("airline", pa.string()),
        ("departures", pa.int64()),
        ("late", pa.int64()),
        ("mean_delay", pa.float64()),
    ]
)


@chunk_asset(
    partitions_def=MONTHS,
    ins={
        "departures": dg.AssetIn(metadata={"columns": ["scheduled_at", "carrier", "dep_delay"]}),
        "airlines": dg.AssetIn(metadata={"columns": ["carrier", "name"]}),
    },
    metadata=table_metadata(time="day", cluster_by=["carrier"]),
    automation_condition=on_new_version(),
    group_name="nycflights",
    kinds={"arrow"},
)
def daily_delays(departures: pa.Table, airlines: pa.Table) -> pa.Table:
    """Departures and delays of the run's months; facts and names are read at one version of the lake."""
    marked = pa.table(
        {
            "day": pc.floor_temporal(departures["scheduled_at"], unit="day"),
            "carrier": departures["carrier"],
            "dep_delay": departures["dep_delay"],
            "is_late": pc.greater(departures["dep_delay"], LATE_MINUTES).cast(pa.int64()),
        }
    )
    sums = [("carrier", "count"), ("is_late", "sum"), ("dep_delay", "mean")]
    days = marked.group_by(["day", "carrier"]).aggregate(sums).join(airlines, "carrier")
    names = ["day", "carrier", "name", "carrier_count", "is_late_sum", "dep_delay_mean"]
    return days.select(names).rename_columns(SCHEMA.names).cast(SCHEMA)
