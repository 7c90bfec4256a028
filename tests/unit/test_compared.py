"""Values compared by columns, against a comparison of one value after the other."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from lakehouse.reading.compared import same

NAN = float("nan")
PAIR = pa.struct([("x", pa.float64()), ("y", pa.list_(pa.string()))])
VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.float64(), [None, NAN, 0.0, -0.0, 1.5]),
    (pa.string(), [None, "", "a", "é", "e\u0301"]),
    (pa.bool_(), [None, True, False]),
    (pa.timestamp("us", "UTC"), [None, datetime(1, 1, 1, tzinfo=UTC), datetime(2013, 1, 5, tzinfo=UTC)]),
    (pa.list_(pa.float64()), [None, [], [None], [NAN], [0.0], [NAN, None], [None, NAN]]),
    (pa.list_(pa.float32(), 2), [None, [0.0, NAN], [NAN, 0.0], [None, 1.0]]),
    (PAIR, [None, {"x": None, "y": None}, {"x": NAN, "y": []}, {"x": NAN, "y": [None]}, {"x": 0.0, "y": ["a"]}]),
    (
        pa.map_(pa.string(), PAIR),
        [None, [], [("a", None)], [("a", {"x": NAN, "y": ["b"]})], [("b", None), ("a", None)]],
    ),
    (pa.list_(pa.list_(PAIR)), [None, [], [None], [[]], [[None]], [[{"x": NAN, "y": [None, "a"]}], []]]),
    (pa.null(), [None, None]),
]


def is_same(one: Any, other: Any) -> bool:
    """Null is null, not-a-number is itself, all else as Python has it."""
    if one is None or other is None:
        return one is None and other is None
    if isinstance(one, float):
        return bool(one == other or (one != one and other != other))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, dict):
        return all(is_same(one[name], other[name]) for name in one)
    return bool(one == other)


@pytest.mark.parametrize("number", range(len(VALUES)))
def test_each_pair_of_values_is_the_same_or_not(number: int) -> None:
    kind, values = VALUES[number]
    pairs = [(one, other) for one in values for other in values]
    one, other = (pa.array([pair[side] for pair in pairs], kind) for side in (0, 1))
    expected = [is_same(*pair) for pair in zip(one.to_pylist(), other.to_pylist(), strict=True)]
    assert same(one, other).tolist() == expected
    whole = pa.chunked_array([one, one]), pa.chunked_array([other, other])
    assert same(*whole).tolist() == expected * 2
    cut = len(pairs) // 3
    assert same(one.slice(cut), other.slice(cut)).tolist() == expected[cut:]
    assert same(one.slice(0, 0), other.slice(0, 0)).tolist() == []
