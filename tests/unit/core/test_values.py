"""Segments, tombstones, key scopes and cells check what they are given."""

from __future__ import annotations

import math

import pytest

from lakehouse.core import Interval, Segment, Tombstone
from lakehouse.core.conflict import Cell, locks_clash
from lakehouse.core.interval import MAX_TIME, MIN_TIME
from lakehouse.core.keys import key_scope, scope_matches, scopes_overlap
from lakehouse.errors import InvalidInput

DAY = Interval.of("2013-01-05")


def test_a_segment_reads_its_times_and_none_is_unbounded() -> None:
    assert Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=1).interval == DAY
    assert Segment(id=1, start=None, end=None, ordinal=1).interval == Interval(MIN_TIME, MAX_TIME)


@pytest.mark.parametrize("wrong", [{"end": "2013-01-05"}, {"rows": -1}, {"bytes": -1}])
def test_a_segment_without_time_or_with_negative_counts_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        Segment(**({"id": 1, "start": "2013-01-05", "end": "2013-01-06", "ordinal": 1} | wrong))  # type: ignore[arg-type]


def test_segments_are_equal_by_what_they_are_and_not_by_their_statistics() -> None:
    one = Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=1, rows=3, min={"client": 1})
    assert one == Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=1)
    assert len({one, Segment(id=1, start="2013-01-05", end="2013-01-06", ordinal=2)}) == 2


def test_a_tombstone_without_times_is_unbounded_and_only_one_without_keys_hides_an_interval() -> None:
    assert Tombstone(id=1, ordinal=1).interval == Interval(None, None)
    assert Tombstone(id=1, start=None, end=None, ordinal=1).hides_interval
    assert not Tombstone(id=1, ordinal=1, keys={"client": 1}).hides_interval
    assert not Tombstone(id=1, kind="key", ordinal=1).hides_interval
    assert not Tombstone(id=1, kind="row", ordinal=1).hides_interval


def test_an_unknown_kind_of_tombstone_is_refused() -> None:
    with pytest.raises(InvalidInput):
        Tombstone(id=1, kind="column", ordinal=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("keys", [{}, {"client": []}, {"client": [[1]]}, {"client": {"a": 1}}, "client", ["client"]])
def test_keys_that_name_nothing_are_refused(keys: object) -> None:
    with pytest.raises(InvalidInput):
        key_scope(keys)  # type: ignore[arg-type]


def test_keys_are_normalised() -> None:
    assert key_scope({"b": "UA", "a": [2, 1, 2, None]}) == {"a": (2, 1, None), "b": ("UA",)}
    assert list(key_scope({"b": 1, "a": 2}) or ()) == ["a", "b"]
    assert key_scope({"client": b"ab"}) == {"client": (b"ab",)}
    assert key_scope(None) is None


def test_a_null_is_a_key_of_its_own() -> None:
    assert scope_matches(key_scope({"client": [None]}), {"client": None})
    assert not scope_matches(key_scope({"client": [1]}), {"client": None})
    assert scopes_overlap(key_scope({"client": None}), key_scope({"client": [None, 2]}))


def test_nan_is_a_key_of_its_own() -> None:
    assert scope_matches(key_scope({"client": [float("nan")]}), {"client": float("nan")})
    assert scopes_overlap(key_scope({"client": float("nan")}), key_scope({"client": math.nan}))
    assert key_scope({"client": [float("nan"), -math.nan]}) == {"client": (math.nan,)}
    assert not scope_matches(key_scope({"client": [1.0]}), {"client": math.nan})


def test_every_column_of_a_scope_must_match() -> None:
    scope = key_scope({"client": [1, 2], "carrier": "UA"})
    assert scope_matches(scope, {"client": 2, "carrier": "UA", "other": 7})
    assert not scope_matches(scope, {"client": 2, "carrier": "AA"})


def test_locks_clash_only_where_chunks_and_keys_both_overlap() -> None:
    client, other = Cell(DAY, {"client": 1234}), Cell(DAY, {"client": [77, 78]})
    assert not locks_clash(client, other)
    assert locks_clash(client, Cell(DAY))
    assert locks_clash(client, Cell(DAY, {"client": [77, 1234]}))
    assert locks_clash(client, Cell(DAY, {"carrier": "UA"})), "a row may have both"
    assert not locks_clash(Cell(DAY), Cell(Interval.of("2013-01-06")))
    assert not locks_clash(Cell(DAY, {"client": 1, "carrier": "UA"}), Cell(DAY, {"client": 1, "carrier": "AA"}))
