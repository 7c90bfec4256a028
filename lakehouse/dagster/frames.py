"""Rows in users' types: which one an annotation requests, and the schema of a value."""

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import pyarrow as pa

from lakehouse.arguments import is_of
from lakehouse.engine.frames import is_spark_frame
from lakehouse.errors import InvalidRows

if TYPE_CHECKING:
    from lakehouse.reading.scan import Scan

Form = Literal["arrow", "reader", "pandas", "polars", "lazy", "duckdb", "spark", "scan"]
"""``reader`` is a stream of Arrow batches, ``lazy`` a polars LazyFrame, ``scan`` a `lakehouse.Scan` itself."""

_FORMS: tuple[tuple[str, str, Form], ...] = (
    ("pyarrow", "Table", "arrow"),
    ("pyarrow", "RecordBatchReader", "reader"),
    ("pandas", "DataFrame", "pandas"),
    ("polars", "DataFrame", "polars"),
    ("polars", "LazyFrame", "lazy"),
    ("duckdb", "DuckDBPyRelation", "duckdb"),
    ("_duckdb", "DuckDBPyRelation", "duckdb"),
    ("pyspark", "DataFrame", "spark"),
    ("lakehouse", "Scan", "scan"),
)
"""Package, class and form: distinguished by name, so unused packages are not imported."""

_LOADERS: Mapping[Form, "Callable[[Scan], Any]"] = {
    "arrow": lambda scan: scan.to_arrow(),
    "reader": lambda scan: scan.to_reader(),
    "pandas": lambda scan: scan.to_pandas(),
    "polars": lambda scan: scan.to_polars(),
    "lazy": lambda scan: scan.to_polars().lazy(),
    "duckdb": lambda scan: scan.to_duckdb(),
    "spark": lambda scan: scan.to_spark(),
    "scan": lambda scan: scan,
}


def form_of(annotation: Any, default: Form = "arrow") -> Form:
    """The form that a type annotation requests; ``default`` without one, or for Any.

    Raises `InvalidInput` for any other type.

    >>> import polars
    >>> form_of(pa.Table), form_of(polars.LazyFrame), form_of(Any)
    ('arrow', 'lazy', 'arrow')
    """
    if annotation in (None, inspect.Parameter.empty, Any, object):
        return default
    if get_origin(annotation) is not None:
        named = [one for one in get_args(annotation) if one is not type(None)]
        if len(named) == 1:
            return form_of(named[0], default)
    for base in getattr(annotation, "__mro__", ()):
        package = base.__module__.partition(".")[0]
        for where, name, form in _FORMS:
            if (package, base.__name__) == (where, name):
                return form
    raise InvalidRows(
        "rows cannot come in this type; annotate a Spark, Arrow, pandas or polars table, a DuckDB relation or a Scan",
        type=annotation,
    )


def load(scan: "Scan", form: Form) -> Any:
    """The rows of a scan in a form. Spark, DuckDB and Scan are lazy, a reader is a stream, the rest in memory."""
    return _LOADERS[form](scan)


def as_rows(value: Any) -> Any:
    """An output as rows that a table takes. Raises `InvalidInput` for None, most likely a forgotten return."""
    if value is None:
        raise InvalidRows("the asset returned None; return rows, or a table without rows")
    if is_of(value, "polars", "LazyFrame"):
        return value.collect()
    if (
        not is_spark_frame(value)
        and not hasattr(value, "__arrow_c_stream__")
        and not is_of(value, "pandas", "DataFrame")
    ):
        raise InvalidRows(
            "this is not a table; return a Spark, Arrow, pandas or polars table or a DuckDB relation",
            found=type(value).__name__,
        )
    return value


def schema_of(rows: Any) -> Any:
    """The schema of rows, in a form that `Lake.create_table` takes, without reading them."""
    if is_spark_frame(rows):
        return rows.schema
    if is_of(rows, "pandas", "DataFrame"):
        return pa.Schema.from_pandas(rows, preserve_index=False)
    if isinstance(getattr(rows, "schema", None), pa.Schema):
        return rows.schema
    few = rows.limit(0) if hasattr(rows, "limit") else rows
    return pa.RecordBatchReader.from_stream(few).schema
