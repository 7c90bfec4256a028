"""How a materialization writes a table: append, replace or upsert of the cells of its partitions, in one commit."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.arguments import Fit
from lakehouse.core.interval import ALL_TIME, Interval
from lakehouse.core.spec import TableSpec
from lakehouse.dagster.cells import ALL, Cell
from lakehouse.dagster.partitions import require_time
from lakehouse.engine.frames import is_spark_frame
from lakehouse.errors import RowsOutside

if TYPE_CHECKING:
    from lakehouse.arguments import Txn
    from lakehouse.core.commit import Commit
    from lakehouse.table.table import Table

Mode = Literal["append", "replace", "upsert"]
MODES: tuple[Mode, ...] = ("append", "replace", "upsert")
_OUTSIDE = "rows lie outside the run's partitions"


def write_rows(
    table: "Table",
    rows: Any,
    cells: Sequence[Cell],
    *,
    mode: Mode = "replace",
    txn: "Txn | None" = None,
    newest: str | None = None,
    schema: Fit = "strict",
    message: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> "Commit":
    """Write rows in one commit, once for a ``txn``.

    ``replace`` replaces all rows in the cells by them; a row outside the cells fails the write and nothing is
    committed. Contiguous cells are one replace; scattered ones are dropped and written in one pass, with appends
    running beside as for a replace. ``append`` and ``upsert`` ignore cells: late rows may be of any time. ``schema``
    says what becomes of rows with other columns than the table's, as for `Table.append`.

    Raises `InvalidInput` for rows outside, and for partitions of a timeless table; `LockTimeout` if another
    replace holds a cell for too long.
    """
    if list(cells) != [ALL]:
        require_time(table.spec)
    marks: dict[str, Any] = {"message": message, "properties": properties, "schema": schema}
    if mode == "append":
        return table.append(rows, txn=txn, **marks)
    if mode == "upsert":
        return table.upsert(rows, newest=newest, txn=txn, **marks)
    typed = [cell.typed(table.spec) for cell in cells]
    if len(typed) == 1:
        return table.replace(rows, typed[0].interval, keys=typed[0].keys, txn=txn, **marks)
    del marks["schema"]
    return _replace_scattered(table, rows, typed, txn, schema, marks)


def _replace_scattered(
    table: "Table",
    rows: Any,
    cells: Sequence[Cell],
    txn: "Txn | None",
    schema: Fit,
    marks: Mapping[str, Any],
) -> "Commit":
    # DuckDB takes a second to import, for which loading a code location need not wait.
    from lakehouse.table.transaction import Transaction  # noqa: PLC0415

    with Transaction(table.session, **marks) as transaction:
        written = transaction.table(table.name)
        rows = written.fit(rows, schema, txn)  # columns that the rows need come before the drops
        spec = transaction.columns.get(table.spec.id, table.spec)
        for place, cell in enumerate(cells, start=1):
            written.replace(None, cell.interval, keys=cell.keys, txn=txn and (f"{txn[0]}/{place}", txn[1]))
        # One pass over the rows. An append's ordinal is its commit's: above those of the drops.
        written.append(
            _guarded(rows, spec, cells, schema), txn=txn, schema="strict" if schema == "strict" else "ignore"
        )
    commit = transaction.commit()
    assert commit is not None
    return commit


def _guarded(rows: Any, spec: TableSpec, cells: Sequence[Cell], schema: Fit) -> Any:
    """The rows, with an error while writing if one lies in none of the cells."""
    if is_spark_frame(rows):
        return _guarded_frame(rows, spec, cells)
    # DuckDB takes a second to import, for which loading a code location need not wait.
    from lakehouse.engine.conform import Fills, conform  # noqa: PLC0415
    from lakehouse.engine.duckdb.source import tables  # noqa: PLC0415

    fills = Fills(spec.defaults_for_new, is_lenient=schema != "strict")
    table = pa.concat_tables([conform(part, spec.schema, fills=fills) for part in tables(rows, spec.schema)])
    outside = table.filter(~_inside(spec, cells))
    if outside.num_rows:
        raise RowsOutside(
            f"{_OUTSIDE}; filter them", table=spec.name, rows=outside.num_rows, example=outside[spec.time][0].as_py()
        )
    return table


def _inside(spec: TableSpec, cells: Sequence[Cell]) -> pc.Expression:
    found = pc.scalar(False)
    time, kind = pc.field(spec.time), spec.schema.field(spec.time).type
    for cell in cells:
        start, end = (pa.scalar(at, kind) for at in (cell.interval.start, cell.interval.end))
        inside = (time >= start) & (time < end)
        for name, values in (cell.keys or {}).items():
            inside &= pc.field(name).isin(pa.array(values, spec.schema.field(name).type))
        found |= inside
    return found


def _guarded_frame(rows: Any, spec: TableSpec, cells: Sequence[Cell]) -> Any:
    # As above; and PySpark is loaded, since the rows are its own.
    from lakehouse.engine.conform import check_there  # noqa: PLC0415

    check_there([spec.time, *sorted({name for cell in cells for name in cell.keys or {}})], rows.columns)
    from pyspark.sql import functions  # noqa: PLC0415

    inside = functions.expr(" OR ".join(cell.predicate(spec.time) for cell in cells))
    message = functions.lit(f"{_OUTSIDE}; filter them (table={spec.name})")
    return rows.where(functions.when(inside, True).otherwise(functions.raise_error(message)))


def hull(cells: Sequence[Cell]) -> Interval:
    """The interval from the first cell to the last."""
    if not cells:
        return ALL_TIME
    return Interval(min(cell.interval.start for cell in cells), max(cell.interval.end for cell in cells))
