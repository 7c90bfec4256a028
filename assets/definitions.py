"""The code location: its assets and resources."""

import dagster as dg

from assets.nycflights.changes import late_flights, restate_carrier
from assets.nycflights.checks import CHECKS
from assets.nycflights.delays import daily_delays
from assets.nycflights.departures import departures
from assets.nycflights.flights import flights
from assets.nycflights.lookups import lookups
from assets.nycflights.weather import weather
from lakehouse.dagster import build_compaction_sensor, build_maintenance_jobs
from resources.lake import io_manager
from resources.lake import lakehouse as lake

# Follows materializations, appends and re-statements; it is on by default.
follow = dg.AutomationConditionSensorDefinition(
    "follow_new_versions", target=dg.AssetSelection.all(), default_status=dg.DefaultSensorStatus.RUNNING
)

maintenance = build_maintenance_jobs()

defs = dg.Definitions(
    assets=[flights, weather, lookups, departures, daily_delays],
    asset_checks=CHECKS,
    jobs=[late_flights, restate_carrier, *maintenance],
    sensors=[follow, build_compaction_sensor(maintenance, default_status=dg.DefaultSensorStatus.RUNNING)],
    resources={"lakehouse": lake, "io_manager": io_manager},
    # One process a run: a Spark session takes longer to start than most of these assets to materialize.
    executor=dg.in_process_executor,
)
