"""Reading a table as a stream of Spark."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lakehouse.arguments import Spark
from lakehouse.core.interval import AsOf
from lakehouse.lake import Lake
from lakehouse.streaming.tasks import ASKING, require_spark
from lakehouse.table.table import Table

if TYPE_CHECKING:
    import pyspark.sql


def read(
    source: Lake | Spark,
    table: str | Table,
    *,
    since: AsOf | None = None,
    changes: bool = False,
    consumer: str | None = None,
    max_rows: int | None = None,
    max_bytes: int | None = None,
    max_versions: int | None = None,
    lease_seconds: float | None = None,
) -> pyspark.sql.DataFrame:
    """A table as a streaming DataFrame, as `Table.follow` reads it.

    ``source``: a lake, or a Spark session, whose driver and workers then find the lake by their environment. ``table``:
    one of its tables, or its name. Without ``since`` the query begins with all rows that there are; with a version, tag
    or time with what came after it. From then on Spark's checkpoint says where it is: neither ``since`` nor the place
    of ``consumer`` moves it. ``consumer`` names the reader, for which what it has yet to read is kept for
    ``lease_seconds`` after each batch (a week, if not given). ``max_rows``, ``max_bytes`` and ``max_versions`` bound a
    micro-batch, counted by the catalog: at least one file is read. With ``changes`` rows have the columns of
    `Table.changes`, but for ``_version``.

    Credentials of an object store are not among the options of the stream, which Spark shows: leave them to the
    environment. A catalog's address is.

    Raises `EngineUnavailable` before Spark 4.2, which does not ask a source how much to read.
    """
    options: dict[str, Any] = {
        "table": table if isinstance(table, str) else table.name,
        "changes": str(changes).lower(),
    }
    spark: Any = source
    if isinstance(source, Lake):
        spark = source.spark
        options |= {"catalog": source.catalog.address, "warehouse": source.session.warehouse.address}
    given = {
        "since": since,
        "consumer": consumer,
        "max_rows": max_rows,
        "max_bytes": max_bytes,
        "max_versions": max_versions,
        "lease_seconds": lease_seconds,
    }
    options |= {name: str(value) for name, value in given.items() if value is not None}
    require_spark(spark.version, ASKING, "a table as a streaming source")
    # By name: the format is above this package, whose reader it hands to Spark.
    import_module("lakehouse.spark_source").register(spark)
    frame: pyspark.sql.DataFrame = spark.readStream.format("lakehouse").options(**options).load()
    return frame
