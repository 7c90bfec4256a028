"""An index never leaves out a segment that holds a row which passes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.core.hashing import Hashes, hash_values
from lakehouse.core.lookup import asks, matching_indexed
from lakehouse.core.predicate import And, Compare, In, IsNull, Or, Predicate, Unknown
from lakehouse.core.prune import Mask
from lakehouse.core.segment import Segment
from lakehouse.core.segments import Segments
from lakehouse.testing.pruning import may_match
from tests.property.core.test_prune import KINDS, VALUES

INDEXED = pa.schema([(name, kind) for name, (kind, _) in KINDS.items() if name not in ("date", "bytes")])
HOSTILE = {
    "single": st.sampled_from([0.1, -0.0, 0.0, math.nan, math.inf, 16777217.0]),
    "double": st.sampled_from([0.1, float(np.float32(0.1)), -0.0, 0.0, math.nan, 5e-324]),
}


def values_of(name: str) -> st.SearchStrategy[Any]:
    return KINDS[name][1] | HOSTILE.get(name, st.nothing())


@st.composite
def stored(draw: st.DrawFn) -> dict[str, pa.Array]:
    """A segment's columns, nulls among the values."""
    return {
        name: pa.array(draw(st.lists(st.none() | values_of(name), max_size=4)), kind)
        for name, (kind, _) in KINDS.items()
    }


@st.composite
def conditions(draw: st.DrawFn) -> Predicate:
    """Conditions of every kind, most of them such as an index serves."""
    column = draw(st.sampled_from(sorted(KINDS)))
    value = draw(values_of(column) | VALUES)
    match draw(st.sampled_from(["=", "=", "=", "in", "in", "<", "null", "unknown"])):
        case "=":
            return Compare(column, "=", value)
        case "in":
            return In(column, (value, *draw(st.lists(values_of(column) | st.none(), max_size=2))))
        case "<":
            return Compare(column, "<", value)
        case "null":
            return IsNull(column)
        case _:
            return Unknown()


TREES = st.recursive(
    conditions(),
    lambda parts: (
        st.lists(parts, max_size=3).map(lambda held: And(tuple(held)))
        | st.lists(parts, max_size=3).map(lambda held: Or(tuple(held)))
    ),
    max_leaves=6,
)


def is_equal(held: Any, value: Any) -> bool:
    """Whether some engine could hold the two equal; NaN is, and a literal may be rounded to single precision."""
    if held is None or type(held) is not type(value):
        return False
    if isinstance(value, float):
        with np.errstate(over="ignore"):
            single = float(np.float32(value))
        return held in (value, single) or (math.isnan(held) and math.isnan(value))
    return bool(held == value)


def may_pass(predicate: Predicate, columns: dict[str, pa.Array], segment: Segment) -> bool:
    """What has to be kept: by bounds, and by a look at every value of the indexed columns."""
    match predicate:
        case And(parts):
            return all(may_pass(part, columns, segment) for part in parts)
        case Or(parts):
            return any(may_pass(part, columns, segment) for part in parts)
        case Compare(column, "=", value) if column in INDEXED.names:
            return any(is_equal(held, value) for held in columns[column].to_pylist())
        case In(column, values) if column in INDEXED.names:
            return any(is_equal(held, value) for held in columns[column].to_pylist() for value in values)
        case _:
            return may_match(predicate, segment)


@given(TREES, st.lists(stored(), min_size=1, max_size=4))
def test_no_segment_that_holds_a_passing_row_is_left_out(tree: Predicate, held: list[dict[str, pa.Array]]) -> None:
    segments = [Segment(id=n, start="2013-01-05", end="2013-01-06", ordinal=1) for n in range(len(held))]  # type: ignore[arg-type]
    looked: list[tuple[str, int]] = []

    def look(column: str, asked: Segments, hashes: Hashes) -> Mask:
        assert len(asked), "nothing is asked of nothing"
        assert len(hashes)
        looked.extend((column, one.id) for one in asked)
        return np.array([bool(np.isin(hashes, hash_values(held[one.id][column])).any()) for one in asked])

    found = matching_indexed(tree, Segments.of(segments), INDEXED, look)
    needed = [may_pass(tree, columns, one) for columns, one in zip(held, segments, strict=True)]
    assert all(kept or not need for kept, need in zip(found.tolist(), needed, strict=True))
    assert asks(tree, INDEXED) or not looked


@given(st.sampled_from(sorted(INDEXED.names)), st.data())
def test_a_value_that_is_there_is_found_and_another_is_not(name: str, data: st.DataObject) -> None:
    kind = KINDS[name][0]
    there = pa.array(data.draw(st.lists(values_of(name), min_size=1, max_size=4)), kind)
    hashes = set(hash_values(there).tolist())
    segment = Segments.of([Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=1)])  # type: ignore[arg-type]

    def look(column: str, asked: Segments, wanted: Hashes) -> Mask:
        return np.array([not hashes.isdisjoint(wanted.tolist())])

    for value in there.to_pylist():
        assert matching_indexed(Compare(name, "=", value), segment, INDEXED, look).all()
    other = data.draw(values_of(name))
    if not any(is_equal(one, other) for one in there.to_pylist()) and name != "single":
        assert not matching_indexed(Compare(name, "=", other), segment, INDEXED, look).any()
