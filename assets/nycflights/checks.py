"""What must be true of the tables of this source."""

import csv
from typing import TYPE_CHECKING

import dagster as dg

from assets.nycflights.departures import departures
from assets.nycflights.flights import flights
from assets.nycflights.lookups import LOOKUPS
from assets.nycflights.source import COLUMNS, open_source
from assets.nycflights.weather import weather
from lakehouse.dagster import build_checks, checks

if TYPE_CHECKING:
    from lakehouse import Table


def source_rows(table: "Table") -> int:
    """Rows of the source's file that is named like a table."""
    with open_source(table.name) as lines:
        return sum(1 for _ in csv.reader(lines)) - 1


KEYS = {"airlines": ["carrier"], "airports": ["faa"], "planes": ["tailnum"]}

CHECKS: list[dg.AssetChecksDefinition] = [
    *build_checks(
        flights,
        [
            checks.chunk_complete(),
            checks.no_null_time(),
            checks.schema_is(f"{COLUMNS['flights']}, scheduled_at TIMESTAMP"),
            checks.tombstone_debt(),
        ],
    ),
    *build_checks(
        weather,
        [checks.chunk_complete(), checks.primary_key_unique(["origin", "time_hour"]), checks.tombstone_debt()],
    ),
    *build_checks(departures, [checks.chunk_complete(), checks.no_null_time(), checks.tombstone_debt()]),
    *(
        one
        for name in LOOKUPS
        for one in build_checks(
            dg.AssetKey(name),
            [checks.row_count(source_rows), checks.primary_key_unique(KEYS[name])],
            blocking=["primary_key_unique"],
        )
    ),
]
