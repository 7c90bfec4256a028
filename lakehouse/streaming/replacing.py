"""Rows in the place of what the time chunks have that they lie in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.arguments import Fit, Txn
from lakehouse.core.chunk import Grain, chunk_from_us
from lakehouse.core.commit import Commit
from lakehouse.core.interval import Interval
from lakehouse.core.spec import TableSpec
from lakehouse.engine.conform import Fills, check_there
from lakehouse.engine.spark.columns import conformed, microseconds
from lakehouse.table.table import Table
from lakehouse.table.transaction import Transaction, committed_once

_UNIT = "_unit"
_HOUR_US, _DAY_US = 3_600_000_000, 86_400_000_000


def replace_touched(
    table: Table,
    frame: Any,
    keys: Sequence[str] = (),
    *,
    txn: Txn,
    properties: Mapping[str, str],
    schema: Fit = "strict",
) -> Commit:
    """Replace the time chunks that rows of a Spark frame lie in, for the values of cluster columns that they have.

    All chunks are locked, in order of time, before rows are written; an append of others meanwhile is kept. Cost: the
    frame is computed twice, unless it is cached; it is cached here.
    """
    frame = frame.persist()
    try:
        commit = committed_once(
            table, txn, lambda transaction: _replace(transaction, table, frame, keys, schema), properties=properties
        )
    finally:
        frame.unpersist()
    assert commit is not None
    return commit


def _replace(transaction: Transaction, table: Table, frame: Any, keys: Sequence[str], schema: Fit) -> None:
    written = transaction.table(table.name)
    frame = written.fit(frame, schema)
    spec = transaction.columns.get(table.spec.id, table.spec)
    check_there([*spec.times, *keys], frame.columns)
    for interval, scope in _touched(spec, frame, keys):
        written.replace(None, interval, keys=scope)
    # One pass over the rows. An append's ordinal is its commit's: above those of the replaces.
    written.append(frame, schema="strict" if schema == "strict" else "ignore")


def _touched(spec: TableSpec, frame: Any, keys: Sequence[str]) -> list[tuple[Interval | None, dict[str, Any] | None]]:
    """Chunks that have rows, in order of time, each with the values of the keys there."""
    from pyspark.sql import functions  # noqa: PLC0415 - the rows are its own, so that it is loaded

    names = [*spec.times, *keys]
    if not names:
        return [(None, None)] if frame.take(1) else []
    rows = conformed(frame, pa.schema([spec.schema.field(one) for one in names]), Fills({}, is_lenient=True))
    unit = _HOUR_US if spec.grain is Grain.HOUR else _DAY_US
    wanted = [functions.col(f"c{place}").alias(name) for place, name in enumerate(names)]
    if spec.times:
        wanted[0] = functions.floor(microseconds("c0", spec.schema.field(spec.time).type) / unit).alias(_UNIT)
    listed = rows.select(*wanted).distinct().toArrow()
    if not spec.times:
        return [(None, scope) for scope in _scopes(listed, keys)]
    listed = listed.filter(pc.is_valid(listed.column(_UNIT)))  # the write refuses rows without a time
    starts = spec.grain.floor_us(listed.column(_UNIT).to_numpy() * unit)
    found: list[tuple[Interval | None, dict[str, Any] | None]] = []
    for start in np.unique(starts).tolist():
        there = listed.filter(pa.array(starts == start))
        found += [(chunk_from_us(spec.grain, start), scope) for scope in _scopes(there, keys)]
    return found


def _scopes(rows: pa.Table, keys: Sequence[str]) -> list[dict[str, Any] | None]:
    if not keys:
        return [None]
    names = list(keys)
    return [dict(one) for one in rows.select(names).group_by(names).aggregate([]).to_pylist()]
