"""Look-ups for the codes in flights: airlines, airports and planes, always of one version.

Their rows have no time, so their tables have none: all rows are replaced each time, by those of the source. What a
look-up was before is in the older versions of its table.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import dagster as dg

from assets.nycflights.source import COLUMNS, landing_folder, read_source
from lakehouse.dagster import LakehouseResource, replace_together

if TYPE_CHECKING:  # loading the code location needs neither Spark nor SQLAlchemy
    from lakehouse import Lake, Table

LOOKUPS = ("airlines", "airports", "planes")


def lookup_table(lake: "Lake", name: str) -> "Table":
    """The table of a look-up, created if it is not there."""
    return lake.create_table(name, COLUMNS[name], if_not_exists=True)


@dg.multi_asset(
    specs=[dg.AssetSpec(name, group_name="nycflights", kinds={"spark"}) for name in LOOKUPS], can_subset=False
)
def lookups(context: dg.AssetExecutionContext, lakehouse: LakehouseResource) -> Iterator[dg.MaterializeResult[None]]:
    """All look-ups in one version: no reader sees a new airline beside old planes."""
    with lakehouse.get_lake() as lake:
        for name in LOOKUPS:
            lookup_table(lake, name)
        rows = {name: read_source(lake.spark, name, landing_folder(context)) for name in LOOKUPS}
        yield from replace_together(context, lake, rows)
