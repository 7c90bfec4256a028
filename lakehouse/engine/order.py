"""The order in which a merge writes rows: by time, or by the Z-order of time and cluster keys; as SQL of both dialects.

Z-order (Morton, A computer oriented geodetic data base, 1966) interleaves the bits of several coordinates: what is near
in it is near in each. A coordinate is the place of a value among some cuts, which are quantiles of a sample: so it is
defined for every type, and each bit halves the rows however they are spread. In SQL it is a tree of comparisons whose
leaves are the coordinates with their bits spread already; the sum of the trees is the place in the Z-order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.core.plan import ReadPlan
from lakehouse.core.spec import TableSpec
from lakehouse.predicate.literals import literal_term

SAMPLE_ROWS = 20_000
"""Rows of which the cuts are quantiles: each slot of a coordinate has its share of all rows within some per cent."""
_BITS = 6
_MOST_CHUNKS = 1_024


@dataclass(frozen=True, slots=True)
class Order:
    """Expressions to sort by, in each dialect: whole numbers first, then the column of time."""

    duckdb: tuple[str, ...]
    spark: tuple[str, ...]


def plan_order(spec: TableSpec, plan: ReadPlan, by: Sequence[str], sample: pa.Table | None) -> Order:
    """How to sort a plan's rows by columns, of which the first is the time; ``sample`` has their values in some rows.

    One column, or a plan of very many chunks, is sorted by time alone. Without a time, cluster columns and primary key
    take its place; without those too there is nothing to sort by. In a table whose segments lie in one chunk each,
    the chunk comes before the Z-order.
    """
    plain = Order(*(tuple(map(quote, spec.order_columns)) for quote in (_duckdb_name, _spark_name)))
    if sample is None or len(by) < 2:
        return plain
    trees = []
    chunks = [] if spec.ragged or not spec.time else _chunk_starts(spec, plan)
    if len(chunks) > _MOST_CHUNKS:
        return plain
    if chunks:
        trees.append([_tree(spec, spec.time, chunks, list(range(len(chunks) + 1)))])
    bits = min(_BITS, 62 // len(by))
    places = []
    for number, name in enumerate(by):
        cuts = _cuts(sample.column(name), 1 << bits)
        leaves = [spread(slot, len(by), len(by) - 1 - number) for slot in (0, *cuts.values())]
        places.append(_tree(spec, name, list(cuts), leaves))
    trees.append(places)
    duckdb, spark = (tuple(" + ".join(tree[dialect] for tree in sum_) for sum_ in trees) for dialect in (0, 1))
    return Order((*duckdb, *plain.duckdb), (*spark, *plain.spark))


def spread(number: int, distance: int, shift: int) -> int:
    """A number with its bits so far from each other, the last one shifted left.

    >>> bin(spread(0b101, 2, 1))
    '0b100010'
    """
    bits = (number >> place & 1 for place in range(number.bit_length()))
    return sum(bit << (place * distance + shift) for place, bit in enumerate(bits))


def _chunk_starts(spec: TableSpec, plan: ReadPlan) -> list[Any]:
    """Where the plan's chunks start, but for the first."""
    starts, ends, _ = plan.segments.bounds
    numbers = spec.grain.number_of(int(starts.min())), spec.grain.number_of(int(ends.max()) - 1)
    if numbers[1] - numbers[0] > _MOST_CHUNKS:
        return [None] * (_MOST_CHUNKS + 1)
    kind = spec.schema.field(spec.time).type
    found = [spec.grain.start_of(number) for number in range(numbers[0] + 1, numbers[1] + 1)]
    return pa.array(found, pa.timestamp("us", "UTC")).cast(kind).to_pylist() if found else []


def _cuts(column: pa.ChunkedArray, slots: int) -> dict[Any, int]:
    """Values that cut a sample into so many parts of like size, in order, and the slot that begins with each.

    A value that is in many rows takes several slots, of which it has the first.
    """
    values = column.combine_chunks().drop_null()
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_floating(values.type):
        values = values.filter(pc.invert(pc.is_nan(values)))
    if not len(values):
        return {}
    ordered = values.take(pc.array_sort_indices(values))
    places = (np.arange(1, slots) * len(ordered)) // slots
    found: dict[Any, int] = {}
    for slot, value in enumerate(ordered.take(pa.array(places)).to_pylist(), start=1):
        found.setdefault(value, slot)
    found.pop(ordered[0].as_py(), None)  # nothing lies below it
    return found


def _tree(spec: TableSpec, column: str, cuts: Sequence[Any], leaves: Sequence[int]) -> tuple[str, str]:
    """A number for each value of a column by comparisons with cuts, in each dialect; the last one for nulls."""
    kind = spec.schema.field(column).type
    terms = [literal_term(one, kind) for one in cuts]
    texts = (_duckdb_name(column), [one.duckdb for one in terms]), (_spark_name(column), [one.spark for one in terms])
    duckdb, spark = (_branch(name, written, leaves, 0, len(cuts)) for name, written in texts)
    return duckdb, spark


def _branch(name: str, cuts: Sequence[str], leaves: Sequence[int], first: int, last: int) -> str:
    """The tree over the leaves from ``first`` to ``last``, both included, as deep as the logarithm of their number."""
    if first == last:
        return f"CAST({leaves[first]} AS BIGINT)"
    middle = (first + last) // 2
    below, above = (_branch(name, cuts, leaves, *part) for part in ((first, middle), (middle + 1, last)))
    return f"CASE WHEN {name} < {cuts[middle]} THEN {below} ELSE {above} END"


def _duckdb_name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _spark_name(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"
