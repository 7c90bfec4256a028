"""The code location: which assets there are, and what they run on."""

import dagster as dg

from assets.nycflights.flights import flights
from assets.nycflights.lookups import lookups
from assets.nycflights.weather import weather
from resources.lake import lakehouse

defs = dg.Definitions(
    assets=[flights, weather, lookups],
    resources={"lakehouse": lakehouse},
    # One process a run: a Spark session takes longer to start than most of these assets to materialize.
    executor=dg.in_process_executor,
)
