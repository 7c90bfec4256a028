"""Look-ups for the codes in flights: airlines, airports and planes, always of one version.

Look-ups have no time of their own, so they are kept as editions, a chunk of a year each: `valid_from` says from when an
edition holds, for the only one there is the start of 2013. It comes from the source and not from the clock (when rows
were loaded is in the log of versions), so loading an edition again replaces it and nothing else, and a later edition
will lie beside it. The edition in force at a time is the last that began before it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

from assets.nycflights.source import COLUMNS, landing_folder, read_source
from lakehouse import Interval
from lakehouse.dagster import LakehouseResource, replace_together

if TYPE_CHECKING:  # loading the code location needs neither Spark nor SQLAlchemy
    from pyspark.sql import DataFrame, SparkSession

    from lakehouse import Lake, Table

LOOKUPS = ("airlines", "airports", "planes")
EDITION = Interval.of("2013")


def lookup_table(lake: "Lake", name: str) -> "Table":
    """The table of a look-up, created if it is not there."""
    schema = f"{COLUMNS[name]}, valid_from TIMESTAMP"
    return lake.create_table(name, schema, time="valid_from", grain="year", if_not_exists=True)


def read_lookup(spark: "SparkSession", name: str, folder: Path) -> "DataFrame":
    """The source's rows with the edition that they are of."""
    valid_from = f"TIMESTAMP '{EDITION.start.isoformat()}' AS valid_from"
    return read_source(spark, name, folder).selectExpr("*", valid_from)


@dg.multi_asset(
    specs=[dg.AssetSpec(name, group_name="nycflights", kinds={"spark"}) for name in LOOKUPS], can_subset=False
)
def lookups(context: dg.AssetExecutionContext, lakehouse: LakehouseResource) -> Iterator[dg.MaterializeResult[None]]:
    """All look-ups in one version: no reader sees a new airline beside old planes."""
    with lakehouse.get_lake() as lake:
        for name in LOOKUPS:
            lookup_table(lake, name)
        rows = {name: read_lookup(lake.spark, name, landing_folder(context)) for name in LOOKUPS}
        yield from replace_together(context, lake, rows, EDITION)
