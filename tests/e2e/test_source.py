"""What the source holds, as the assets rely on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from tests.e2e.conftest import NEW_YORK, Row, scheduled_at


def test_the_source_has_the_rows_that_are_documented(source: Callable[[str], list[Row]]) -> None:
    counts = {name: len(source(name)) for name in ("flights", "weather", "airlines", "airports", "planes")}
    assert counts == {"flights": 336_776, "weather": 26_115, "airlines": 16, "airports": 1_458, "planes": 3_322}


def test_time_hour_of_flights_is_utc_and_never_null(source: Callable[[str], list[Row]]) -> None:
    for row in source("flights"):
        at = datetime.fromisoformat(row["time_hour"])
        assert at + timedelta(minutes=int(row["minute"])) == scheduled_at(row)
        assert int(row["sched_dep_time"]) == int(row["hour"]) * 100 + int(row["minute"])
    assert sum(row["dep_time"] == "NA" for row in source("flights")) == 8_255


def test_time_hour_of_weather_distinguishes_the_two_hours_that_the_clock_of_new_york_does_not(
    source: Callable[[str], list[Row]],
) -> None:
    wrong: Counter[str] = Counter()
    for row in source("weather"):
        local = datetime(*(int(row[name]) for name in ("year", "month", "day", "hour")), tzinfo=NEW_YORK)
        if datetime.fromisoformat(row["time_hour"]) != local.astimezone(UTC):
            wrong[f"{local:%Y-%m-%d %H}"] += 1
    assert wrong == {"2013-11-03 01": 3}
    observations = Counter((row["origin"], row["time_hour"]) for row in source("weather"))
    assert max(observations.values()) == 1
    assert (
        max(Counter((row["origin"], row["month"], row["day"], row["hour"]) for row in source("weather")).values()) == 2
    )


def test_days_of_utc_reach_into_the_next_year(flights_by_day: dict[str, list[Row]]) -> None:
    assert (min(flights_by_day), max(flights_by_day), len(flights_by_day)) == ("2013-01-01", "2014-01-01", 366)
