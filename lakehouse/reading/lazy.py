"""A scan as a lazy polars frame: polars says which rows and columns it needs, and no more is read."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from functools import reduce
from inspect import signature
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakehouse.predicate.polars_tree import conjuncts, filter_of

if TYPE_CHECKING:
    import polars as pl

Read = Callable[[tuple[str, ...], "str | None", "int | None"], pa.RecordBatchReader]
"""Reads rows: some columns, those that pass a filter, and how many in a batch."""
_LONGEST = 1_000_000
"""Bytes of a predicate that are looked through for what a scan can use."""


def lazy_frame(schema: pa.Schema, read: Read, name: str) -> pl.LazyFrame:
    """A lazy frame over rows of a schema, which `read` gives when the frame is collected; it may do so many times."""
    from polars.io.plugins import register_io_source  # noqa: PLC0415

    def source(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        """What polars asks for. It counts rows before it filters them, so a count leaves the filter to polars."""
        tree = None if predicate is None else _tree(predicate)
        real = predicate if predicate is None or tree is None else _without_hints(predicate, tree)
        wanted = schema.names if with_columns is None else with_columns
        needed = {*wanted, *(() if real is None else real.meta.root_names())}
        columns = tuple(column for column in schema.names if column in needed) or (schema.names[0],)
        where = None if tree is None or n_rows is not None else filter_of(tree, schema)
        reader = read(columns, where, batch_size)
        yield from _frames(reader, wanted, real, n_rows)

    types = _frame_of(schema.empty_table()).schema
    # polars 1 shows no name in its plans.
    shown = {"explain_name": name} if "explain_name" in signature(register_io_source).parameters else {}
    return register_io_source(source, schema=types, validate_schema=True, is_pure=True, **shown)


def _frames(
    reader: pa.RecordBatchReader, wanted: list[str], predicate: pl.Expr | None, n_rows: int | None
) -> Iterator[pl.DataFrame]:
    """The batches as frames, at least one. The whole predicate is applied, whatever of it the scan has applied."""
    left = n_rows
    for batch in _batches(reader):
        frame = _frame_of(batch)
        if left is not None:
            frame = frame.head(left)
            left -= frame.height
        yield (frame if predicate is None else frame.filter(predicate)).select(wanted)
        if left == 0:
            return


def _batches(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    yield reader.schema.empty_table()
    for batch in reader:
        yield pa.Table.from_batches([batch])


def _frame_of(rows: pa.Table) -> Any:
    import polars as pl  # noqa: PLC0415 - as above

    return pl.from_arrow(rows)


def _tree(predicate: pl.Expr) -> Any | None:
    """The predicate as polars' JSON; None for a long one, and for one that polars cannot write: functions of Python."""
    import polars as pl  # noqa: PLC0415 - as above

    try:
        if len(predicate.meta.serialize()) > _LONGEST:
            return None
        return json.loads(predicate.meta.serialize(format="json"))
    except pl.exceptions.PolarsError:
        return None


def _without_hints(predicate: pl.Expr, tree: Any) -> pl.Expr | None:
    """The predicate without what polars adds to end a read early, which is no expression that it can apply itself."""
    import polars as pl  # noqa: PLC0415 - as above

    parts = list(conjuncts(tree))
    kept = [one for one in parts if not (isinstance(one, dict) and "Display" in one)]
    if len(kept) == len(parts):
        return predicate
    found = [pl.Expr.deserialize(io.BytesIO(json.dumps(one).encode()), format="json") for one in kept]
    return reduce(lambda left, right: left & right, found) if found else None
