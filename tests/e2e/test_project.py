"""The worked example: raw flights to clean departures to daily delays, late rows, and a carrier that states anew."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import dagster as dg
import pyarrow.compute as pc

import lakehouse
from assets.definitions import defs
from tests.e2e.conftest import Row, days

DAY = "2013-02-09"


def counts(table: lakehouse.Table, column: str = "carrier", **options: Any) -> Counter[str]:
    return Counter(table.scan(columns=[column], **options).to_arrow()[column].to_pylist())


def test_raw_rows_become_departures_and_daily_delays_and_changes_are_followed(
    materialize: Callable[..., dg.ExecuteInProcessResult],
    lake: lakehouse.Lake,
    flights_by_day: dict[str, list[Row]],
    address: dict[str, str],
    instance: dg.DagsterInstance,
    run_config: dict[str, Any],
) -> None:
    materialize("airlines", "airports", "planes")
    keys = days("2013-02-08", 3)
    loaded = materialize("flights", "departures", first=keys[0], last=keys[-1])
    rows = [row for key in keys for row in flights_by_day[key]]
    left = [row for row in rows if row["dep_time"] != "NA"]
    assert counts(lake.table("flights")) == Counter(row["carrier"] for row in rows)
    assert counts(lake.table("departures")) == Counter(row["carrier"] for row in left)
    assert all(one.passed for one in loaded.get_asset_check_evaluations())
    assert {one.check_name for one in loaded.get_asset_check_evaluations()} >= {"chunk_complete", "tombstone_debt"}

    materialize("daily_delays", first="2013-02")
    delays = lake.table("daily_delays").scan().to_arrow()
    assert sum(delays["departures"].to_pylist()) == len(left)
    assert sum(delays["late"].to_pylist()) == sum(int(row["dep_delay"]) > 15 for row in left)
    united = delays.filter(pc.equal(delays["carrier"], "UA"))
    assert set(united["airline"].to_pylist()) == {"United Air Lines Inc."}

    def run(name: str, **config: Any) -> Any:
        (op,) = defs.resolve_job_def(name).nodes
        ops = {"ops": {op.name: {"config": config}}}
        return defs.resolve_job_def(name).execute_in_process(instance=instance, run_config=run_config | ops)

    restated = run("restate_carrier", carrier="UA", interval=DAY)
    (event,) = restated.get_asset_materialization_events()
    assert (event.asset_key.to_user_string(), event.partition) == ("flights", DAY)
    cancelled = Counter(row["carrier"] for row in flights_by_day[DAY] if row["dep_time"] == "NA")
    assert cancelled["UA"]
    all_carriers = Counter(row["carrier"] for row in flights_by_day[DAY])
    assert counts(lake.table("flights"), interval=DAY) == all_carriers - Counter({"UA": cancelled["UA"]})

    late = run("late_flights")
    assert late.get_asset_materialization_events() == []  # some rows of a day are not the day
    (seen,) = late.get_asset_observation_events()
    assert seen.partition == "2013-04-01"
    assert "2013-04-01" not in instance.get_materialized_partitions(dg.AssetKey("flights"))
    evening = lake.table("flights").scan(interval="2013-04-01").count()
    assert 0 < evening < len(flights_by_day["2013-04-01"])
    materialize("departures", first="2013-04-01")
    assert 0 < lake.table("departures").scan(interval="2013-04-01").count() <= evening
