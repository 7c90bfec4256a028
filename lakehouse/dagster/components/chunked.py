"""A table made chunk by chunk from a statement or a function, as an asset partitioned by time chunk."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Literal, cast

import dagster as dg
from pydantic import Field, model_validator

from lakehouse.core.interval import Interval
from lakehouse.dagster.assets import chunk_asset, replace_chunks
from lakehouse.dagster.automation import on_new_version
from lakehouse.dagster.components.scaffold import Attributes
from lakehouse.dagster.frames import as_rows, schema_of
from lakehouse.dagster.options import table_metadata
from lakehouse.dagster.partitions import chunk_partitions, run_interval
from lakehouse.errors import InvalidArgument
from lakehouse.lake import Lake

RowsOf = Callable[[Lake, Interval], Any]
"""Makes the rows of an interval, from the tables of a lake or from elsewhere."""
_SAMPLE = """\
SELECT date_trunc('DAY', at) AS day, client, sum(price) AS paid
FROM trips
WHERE at >= :start AND at < :end
GROUP BY ALL
"""


class ChunkedScaffolder(Attributes):
    """Writes the statement into a file of its own, where editors know its language."""

    attributes: Mapping[str, Any] = {
        "table": "daily_trips",
        "time": "day",
        "start": "2013-01-01",
        "sql_file": "daily_trips.sql",
        "deps": ["trips"],
    }

    def scaffold(self, request: dg.ScaffoldRequest[Any]) -> None:
        """Write the component's file and its statement."""
        super().scaffold(request)
        folder = request.target_path.parent if request.append else request.target_path
        (folder / str(self.attributes["sql_file"])).write_text(_SAMPLE)


@dg.scaffold_with(ChunkedScaffolder)
class LakehouseChunkedAssetComponent(dg.Component, dg.Model, dg.Resolvable):
    """A table made from a statement or a function, as an asset partitioned by time chunk.

    A run over any number of partitions replaces their interval, in one commit. The table is created by the first run,
    with the columns of its rows.
    """

    table: str = Field(description="The table, which is also the asset's name.", examples=["daily_trips"])
    time: str = Field(description="The column of a row's time.", examples=["day"])
    start: str = Field(description="The time of the first chunk.", examples=["2013-01-01", "2013-W02"])
    end: str | None = Field(default=None, description="Where the last chunk ends; by default there are ever new ones.")
    grain: Literal["hour", "day", "week", "month", "year"] = Field(
        default="day", description="The length of a time chunk."
    )
    sql: str | None = Field(
        default=None,
        description="A query of the rows from :start until before :end, which are the run's.",
        examples=["SELECT * FROM trips WHERE at >= :start AND at < :end"],
    )
    sql_file: str | None = Field(default=None, description="A file with that query, in the component's folder.")
    function: str | None = Field(
        default=None,
        description="Or a function of lake and interval that returns rows, by its dotted name; with a leading dot it "
        "is of a module in the component's folder.",
        examples=["shop.rows.daily", ".rows.daily"],
    )
    engine: Literal["duckdb", "spark"] | None = Field(
        default=None, description="What runs the query; by default DuckDB, in process, unless the query needs Spark."
    )
    cluster_by: list[str] = Field(default=[], description="Columns by which rows of a chunk can be replaced alone.")
    primary_key: list[str] = Field(default=[], description="Columns by which upserts match rows.")
    deps: list[str] = Field(default=[], description="Keys of the assets that it reads, with / between their parts.")
    follow: bool = Field(default=True, description="Whether a new version of one of these starts a run by itself.")
    max_partitions_per_run: int | None = Field(default=None, ge=1, description="Cuts a backfill into runs of as many.")
    description: str | None = Field(default=None, description="Of the asset.")
    group_name: str | None = Field(default=None, description="The group of the asset.")
    lakehouse_key: str = Field(default="lakehouse", description="The resource by which it reads and writes.")

    @model_validator(mode="after")
    def _one_source(self) -> "LakehouseChunkedAssetComponent":
        given = [name for name in ("sql", "sql_file", "function") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"rows come from one of sql, sql_file and function; given: {', '.join(given) or 'none'}")
        return self

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """The asset."""
        rows_of = self._rows_of(context)

        @chunk_asset(
            partitions_def=chunk_partitions(self.grain, self.start, self.end),
            max_partitions_per_run=self.max_partitions_per_run,
            name=self.table,
            deps=[dg.AssetKey.from_user_string(key) for key in self.deps],
            automation_condition=on_new_version() if self.follow and self.deps else None,
            description=self.description,
            group_name=self.group_name,
            kinds={self.engine or "duckdb"} if self.function is None else {"python"},
            metadata=table_metadata(time=self.time, grain=self.grain),
            required_resource_keys={self.lakehouse_key},
        )
        def made(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
            resource = getattr(context.resources, self.lakehouse_key)
            with resource.get_lake(spark=self.engine == "spark") as lake:
                rows = as_rows(rows_of(lake, run_interval(context)))
                table = lake.create_table(
                    self.table,
                    schema_of(rows),
                    time=self.time,
                    grain=self.grain,
                    cluster_by=self.cluster_by,
                    primary_key=self.primary_key,
                    if_not_exists=True,
                )
                return replace_chunks(context, table, rows)

        return dg.Definitions(assets=[made])

    def _rows_of(self, context: dg.ComponentLoadContext) -> RowsOf:
        """What makes the rows of an interval. Raises `InvalidArgument` for a file or function that is not there."""
        if self.function is not None:
            return _imported(self.function, context)
        if self.sql_file is None:
            text = str(self.sql)
        else:
            try:
                text = (_folder(context) / self.sql_file).read_text()
            except OSError as error:
                raise InvalidArgument(
                    "cannot read the component's query; name a file in its folder", sql_file=self.sql_file, cause=error
                ) from error
        return lambda lake, interval: lake.sql(
            text, args={"start": interval.start, "end": interval.end}, engine=self.engine
        )


def _folder(context: dg.ComponentLoadContext) -> Any:
    return context.path.parent if context.path.is_file() else context.path


def _imported(name: str, context: dg.ComponentLoadContext) -> RowsOf:
    dotted = f"{context.defs_relative_module_name(_folder(context))}{name}" if name.startswith(".") else name
    module, _, attribute = dotted.rpartition(".")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidArgument(
            "there is no such function; write module.function, or .module.function for one in the component's folder",
            function=name,
            cause=error,
        ) from error
    return cast("RowsOf", found)
