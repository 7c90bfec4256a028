"""Writes outputs to tables and reads inputs from tables, in the form that an asset's annotations request."""

import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field, PrivateAttr, ValidationInfo, field_validator

from lakehouse.arguments import read_fit
from lakehouse.core.interval import ALL_TIME
from lakehouse.dagster.cells import ALL, Cell, cells_of
from lakehouse.dagster.frames import Form, as_rows, form_of, load
from lakehouse.dagster.metadata import commit_metadata, data_version, partition_rows
from lakehouse.dagster.options import PREFIX, TableOptions
from lakehouse.dagster.partitions import require_time
from lakehouse.dagster.progress import logging_progress
from lakehouse.dagster.resource import LakeSettings
from lakehouse.dagster.retry import RUN_ID, marks_of, partition_text
from lakehouse.dagster.write import Mode, hull, write_rows
from lakehouse.errors import InvalidArgument, InvalidPartitions

if TYPE_CHECKING:
    from lakehouse.core.commit import Commit
    from lakehouse.lake import Lake
    from lakehouse.reading.scan import Scan
    from lakehouse.table.table import Table

_INPUT_NAMES = ("columns", "where", "as_of", "table")


class LakehouseIOManager(LakeSettings, dg.ConfigurableIOManager):
    """Assets as tables: an asset's output is written to the table of its name, its inputs are read from tables."""

    mode: str = Field(
        default="replace",
        description="How outputs are written, if their asset does not say it: append, replace or upsert.",
    )
    schema_mode: str = Field(
        default="strict",
        description="What becomes of outputs with other columns than the table's, if their asset does not say it: "
        "strict, merge or ignore.",
    )
    as_of: str | None = Field(
        default=None, description="The tag or time at which inputs are read (default: the newest version)."
    )
    form: str = Field(
        default="arrow",
        description="The form of inputs without an annotation: arrow, pandas, polars, lazy, reader, duckdb, spark or "
        "scan.",
    )
    _lake: Any = PrivateAttr(default=None)
    _guard: AbstractContextManager[Any] = PrivateAttr(default_factory=threading.Lock)
    _heads: dict[str, int] = PrivateAttr(default_factory=dict)

    @field_validator("mode", "schema_mode", "form", mode="before")
    @classmethod
    def _known(cls, value: Any, about: ValidationInfo) -> Any:
        """Refuse what no output or input could use; a variable of the environment is read when a run begins."""
        if not isinstance(value, dg.EnvVar):
            {"mode": _mode, "schema_mode": read_fit, "form": _form}[str(about.field_name)](value)
        return value

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        """Close the lake and leave the Spark session at the end of the run."""
        with self._guard:
            if self._lake is not None:
                self._lake.close()
                self._lake = None
        self._use.leave()

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Write an asset's rows and describe the commit to Dagster.

        Outputs are Spark, Arrow, pandas or polars tables, streams of Arrow batches or DuckDB relations. They replace
        the partitions of the run in one commit, whatever their number (without any: the whole table), or are appended
        or upserted, as ``table_metadata(mode=...)`` says. A replace fails for a row outside those partitions. Outputs
        with other columns than the table's fail, are fitted, or give the table columns in the same commit, as
        ``table_metadata(schema=...)`` or ``schema_mode`` says. A retry of a run that had committed writes nothing and
        reports that commit, so nothing is doubled; a new run writes again.

        Metadata of the materialization is that of `commit_metadata`; its data version is the lake's version.

        Examples
        --------
        >>> import tempfile, pyarrow as pa, dagster as dg
        >>> from lakehouse.dagster import LakehouseIOManager, chunk_partitions, table_metadata
        >>> days = chunk_partitions("day", "2013-01-01", "2014-01-01")
        >>> @dg.asset(partitions_def=days, metadata=table_metadata(time="at"))
        ... def trips(context: dg.AssetExecutionContext) -> pa.Table:
        ...     return pa.table({"at": [context.partition_time_window.start], "price": [1.5]})
        >>> @dg.asset(partitions_def=days)
        ... def dear_trips(trips: pa.Table) -> None:
        ...     print(trips["price"].to_pylist())
        >>> folder = tempfile.mkdtemp()
        >>> lake = LakehouseIOManager(catalog=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/warehouse")
        >>> done = dg.materialize(
        ...     [trips, dear_trips], partition_key="2013-01-05",
        ...     resources={"io_manager": lake},
        ...     run_config={"loggers": {"console": {"config": {"log_level": "ERROR"}}}},
        ... )
        [1.5]
        """
        rows = as_rows(obj)
        options = TableOptions.of(context.asset_key, dict(context.definition_metadata) | dict(context.output_metadata))
        partitions = context.asset_partitions_def if context.has_asset_partitions else None
        cells = _cells(partitions, _keys(context), options)
        lake = self._open()
        table = options.find_or_create(lake, rows, partitions)
        mode = options.mode or _mode(self.mode)
        started = time.monotonic()
        fit = options.schema or read_fit(self.schema_mode)
        marks = _marks(context, mode)
        with logging_progress(context.log, every_seconds=self.progress_seconds):
            commit = write_rows(table, rows, cells, mode=mode, newest=options.newest, schema=fit, **marks)
        self._report(context, table, commit, cells, time.monotonic() - started)

    def load_input(self, context: dg.InputContext) -> Any:
        """The rows of an upstream asset's partitions, in the form of the input's annotation.

        They are exactly the rows of the partitions that Dagster maps to those of the run.
        ``AssetIn(metadata={"columns": [...], "where": "...", "as_of": ...})`` reads fewer columns or rows, or a
        version, tag or time. All inputs of a step are read at one version of the lake, the head when the first of them
        was read.
        """
        form = form_of(context.dagster_type.typing_type, _form(self.form))
        return load(self._scan(context, self._open(spark=form == "spark")), form)

    def _scan(self, context: dg.InputContext, lake: "Lake") -> "Scan":
        upstream = context.upstream_output
        options = TableOptions.of(context.asset_key, None if upstream is None else upstream.definition_metadata)
        wanted = _wanted(context)
        table = lake.table(wanted.get("table") or options.table)
        as_of = wanted["as_of"] if wanted.get("as_of") is not None else self._version(context, lake)
        cells = [ALL]
        if context.has_asset_partitions:
            cells = list(_cells(context.asset_partitions_def, context.asset_partition_keys, options))
        if cells != [ALL]:
            require_time(table.spec)
        interval, where = _condition([cell.typed(table.spec) for cell in cells], table.spec.time, wanted.get("where"))
        return table.scan(columns=wanted.get("columns"), where=where, interval=interval, as_of=as_of)

    def _version(self, context: dg.InputContext, lake: "Lake") -> int | str:
        """The version of all inputs of a step: the manager's, or the head when the first of them was read."""
        if self.as_of is not None:
            return self.as_of
        step = f"{context.step_context.step.key} {context.step_context.previous_attempt_count}"
        with self._guard:
            if step not in self._heads:
                self._heads = {step: lake.head}
            return self._heads[step]

    def _report(
        self, context: dg.OutputContext, table: "Table", commit: "Commit", cells: Sequence[Cell], seconds: float
    ) -> None:
        by = commit.properties.get(RUN_ID)
        if by is not None and by != context.run_id:
            context.log.warning(
                "Nothing was written: run %s, of which this is a retry, committed this as version %s. "
                "To write it again, start a new run instead of re-executing one.",
                by,
                commit.version,
            )
        metadata = commit_metadata(table, commit, hull(cells), duration_seconds=seconds, console_url=self.console_url)
        context.add_output_metadata(metadata)
        step = context.step_context
        step.set_data_version(context.asset_key, data_version(commit))
        if context.has_asset_partitions:
            counted = partition_rows(context.asset_partitions_def, context.asset_partition_keys, table, commit)
            for key, rows in counted.items():
                step.add_asset_metadata({"dagster/partition_row_count": rows}, context.asset_key, key)

    def _open(self, *, spark: bool = False) -> "Lake":
        with self._guard:
            if self._lake is None:
                self._lake = self.open(spark=False)
            lake: Lake = self._lake
        if spark:
            lake.session.use_spark(self.get_spark())  # with the resource's settings, before one starts without
        return lake


def _keys(context: dg.OutputContext) -> Sequence[str]:
    if not context.has_asset_partitions:
        return ()
    keys = context.asset_partition_keys
    if not keys:
        raise InvalidPartitions(
            "the range of partitions is reversed or empty; give its first partition first", asset=context.asset_key
        )
    return keys


def _cells(partitions: Any, keys: Sequence[str], options: TableOptions) -> Sequence[Cell]:
    return (ALL,) if partitions is None else cells_of(partitions, keys, options.columns)


def _marks(context: dg.OutputContext, mode: Mode) -> dict[str, Any]:
    step = context.step_context
    keys = step.partition_key_range if context.has_asset_partitions else None
    asset = context.asset_key.to_user_string()
    if context.mapping_key is not None:
        asset = f"{asset}[{context.mapping_key}]"
    return marks_of(
        step.instance,
        step.dagster_run,
        asset=asset,
        partitions=partition_text(keys),
        step_key=step.step.key,
        mode=mode,
    )


def _condition(cells: Sequence[Cell], time_column: str, where: str | None) -> tuple[Any, str | None]:
    """The interval and the predicate that select the rows of cells."""
    if not cells:
        return None, "FALSE"
    conditions = [] if where is None else [f"({where})"]
    if len(cells) > 1 or cells[0].keys is not None:
        conditions.append("(" + " OR ".join(cell.predicate(time_column) for cell in cells) + ")")
    interval = hull(cells)
    return None if interval == ALL_TIME else interval, " AND ".join(conditions) or None


def _wanted(context: dg.InputContext) -> dict[str, Any]:
    """What an input's metadata requests, with or without the prefix."""
    given = {name.removeprefix(PREFIX): value for name, value in (context.definition_metadata or {}).items()}
    return {name: getattr(value, "value", value) for name, value in given.items() if name in _INPUT_NAMES}


def _mode(name: str) -> Mode:
    match name:
        case "append" | "replace" | "upsert":
            return name
        case _:
            raise InvalidArgument("no such mode; choose append, replace or upsert", mode=name)


def _form(name: str) -> Form:
    match name:
        case "arrow" | "reader" | "pandas" | "polars" | "lazy" | "duckdb" | "spark" | "scan":
            return name
        case _:
            raise InvalidArgument("no such form of rows; choose arrow, pandas, polars, duckdb or spark", form=name)
