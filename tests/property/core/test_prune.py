"""Pruning many segments in columns says of each what pruning one says."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from lakehouse.catalog.store.encoding import encode_statistics
from lakehouse.catalog.store.rows import SegmentsForm, decode_page, encode_page, segments_from_rows
from lakehouse.core.bucket import BucketSet
from lakehouse.core.chunk import Grain
from lakehouse.core.interval import Interval, from_us
from lakehouse.core.keys import KeyScope
from lakehouse.core.plan import plan_read
from lakehouse.core.predicate import And, Compare, In, IsNull, Operator, Or, Predicate, Unknown
from lakehouse.core.prune import holding, matching
from lakehouse.core.pruned import Reason, why_pruned
from lakehouse.core.segment import Segment
from lakehouse.core.segments import Segments
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.core.tombstone import Tombstone
from lakehouse.testing.pruning import may_hold, may_match

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "boolean": (pa.bool_(), st.booleans()),
    "small": (pa.int8(), st.integers(-5, 5)),
    "whole": (pa.int64(), st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)),
    "single": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "double": (pa.float64(), st.floats(allow_nan=False) | st.sampled_from([0.1, 0.5, -0.0, 3.0])),
    "decimal": (pa.decimal128(20, 2), st.decimals(-9, 9, places=2)),
    "text": (pa.string(), st.text(max_size=2) | st.sampled_from(["a", "é", "\U0001f600", "\uffff"])),
    "bytes": (pa.binary(), st.binary(max_size=2)),
    "date": (pa.date32(), st.dates(date(1969, 12, 1), date(1970, 2, 1))),
    "instant": (pa.timestamp("us", tz="UTC"), st.integers(-9, 9).map(lambda hours: EPOCH + timedelta(hours=hours))),
    "local": (
        pa.timestamp("us"),
        st.integers(-9, 9).map(lambda n: EPOCH.replace(tzinfo=None) + timedelta(n)),
    ),
}
VALUES = st.one_of(*(values for _, values in KINDS.values())) | st.sampled_from(
    [float("nan"), float("inf"), 2**70, Decimal("1e30"), 0.1]
)
SPEC = TableSpec(
    id=TableId(1),
    name="t",
    folder="f",
    schema=pa.schema([(name, kind) for name, (kind, _) in KINDS.items()]),
    time="instant",
    grain=Grain.DAY,
    cluster_by={"whole": 16, "text": 16, "instant": 16, "date": 16, "boolean": 16, "bytes": 16, "small": 0},
)


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    """A row of the catalog's segments: bounds in order, or missing, and null counts that may be anything."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    buckets: dict[str, bytes] = {}
    for name in draw(st.sets(st.sampled_from(sorted(KINDS)))):
        bounds = sorted([draw(KINDS[name][1]), draw(KINDS[name][1])])
        if draw(st.integers(0, 9)):
            low[name] = bounds[0]
        if draw(st.integers(0, 9)):
            high[name] = bounds[1]
        if draw(st.integers(0, 3)):
            nulls[name] = draw(st.integers(0, 3))
        if name in SPEC.cluster_by and draw(st.booleans()):
            seen = BucketSet(16)
            seen.add(bounds)
            buckets[name] = seen.to_bytes()
    return {
        "id": draw(st.integers(0, 10**9)), "start_us": (start := draw(st.integers(0, 9))),
        "end_us": start + draw(st.integers(1, 5)), "ordinal": draw(st.integers(1, 5)), "rows": draw(st.integers(1, 3)),
        "bytes": 1, "first_row_id": 0, "has_row_ids": 0, "path": "p", "rewrites": draw(st.integers(0, 2)),
        "schema_number": draw(st.integers(0, 2)),
        "checksum": draw(st.sampled_from([b"", b"\x01" * 17])), "codec": draw(st.sampled_from([None, 1, 4])),
        "statistics": encode_statistics(low, high, nulls, buckets),
    }  # fmt: skip


OPERATORS: st.SearchStrategy[Operator] = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
NAMES = st.sampled_from([*sorted(KINDS), "unknown"])
SAME_KIND = st.sampled_from(sorted(KINDS)).flatmap(
    lambda name: st.builds(Compare, st.just(name), OPERATORS, KINDS[name][1])
)
WHOLE = st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1)
SOME = st.sampled_from(["small", "whole"])
MANY: st.SearchStrategy[Predicate] = st.one_of(
    st.builds(In, SOME, st.lists(WHOLE | st.none(), max_size=12).map(tuple)),
    st.builds(
        lambda name, values: Or(tuple(Compare(name, "=", one) for one in values)), SOME, st.lists(WHOLE, max_size=12)
    ),
)
"""What is looked for together."""
LEAVES: st.SearchStrategy[Predicate] = st.one_of(
    SAME_KIND,
    st.builds(Compare, NAMES, OPERATORS, VALUES),
    st.builds(In, NAMES, st.lists(VALUES | st.none(), max_size=3).map(tuple)),
    MANY,
    st.builds(IsNull, NAMES, st.booleans()),
    st.just(Unknown()),
)
PREDICATES = st.recursive(
    LEAVES,
    lambda parts: (
        st.builds(And, st.lists(parts, max_size=3).map(tuple)) | st.builds(Or, st.lists(parts, max_size=3).map(tuple))
    ),
    max_leaves=4,
)


@given(st.lists(rows(), max_size=5), PREDICATES, st.booleans())
def test_many_segments_are_pruned_as_each_alone(held: list[dict[str, Any]], predicate: Predicate, stored: bool) -> None:
    form = SegmentsForm.of(SPEC)
    body = segments_from_rows(form, held)
    if stored:
        body, _ = decode_page(form, encode_page(body, [], {}))
    segments = Segments.in_columns(body)
    alone = [may_match(predicate, one) for one in segments]
    together = matching(predicate, segments).tolist()
    assert together == alone
    reverse = segments.take(np.arange(len(held))[::-1].copy())
    assert matching(predicate, reverse).tolist() == alone[::-1]
    assert matching(predicate, Segments.of(list(segments))).tolist() == alone


SCOPES = st.dictionaries(NAMES, st.lists(VALUES | st.none(), min_size=1, max_size=3).map(tuple), max_size=2)


@given(st.lists(rows(), max_size=5), st.none() | SCOPES)
def test_many_segments_hold_keys_as_each_alone(held: list[dict[str, Any]], keys: KeyScope | None) -> None:
    segments = Segments.in_columns(segments_from_rows(SegmentsForm.of(SPEC), held))
    alone = [may_hold(keys, one) for one in segments]
    assert holding(keys, segments).tolist() == alone
    assert holding(keys, Segments.of(list(segments))).tolist() == alone


ODD = st.one_of(
    VALUES,
    st.integers(),
    st.floats(),
    st.decimals(),
    st.text(st.characters(), max_size=2),
    st.datetimes(),
    st.just(object()),
    st.lists(st.integers(), max_size=1),
)


@example([(2**70, 2**71), (1, 2)], Compare("x", "=", 2**70))
@example([("a", "b"), (b"a", b"b")], Compare("x", "=", "c"))
@example([(1, 2.5)], Compare("x", "=", 2))
@example([("\ud800", "\ud801")], Compare("x", "=", "a"))
@given(
    st.lists(st.tuples(st.none() | ODD, st.none() | ODD), max_size=4),
    st.builds(Compare, st.just("x"), OPERATORS, ODD),
)
def test_values_of_any_types_leave_nothing_out_that_may_pass(bounds: list[tuple[Any, Any]], tree: Predicate) -> None:
    """Values that no one column holds are not known together, and leave out less than each alone."""
    segments = [
        Segment(
            id=f"{place}",
            start=EPOCH,
            end=EPOCH + timedelta(days=1),
            ordinal=1,
            rows=3,
            min={} if low is None else {"x": low},
            max={} if high is None else {"x": high},
        )
        for place, (low, high) in enumerate(bounds)
    ]
    found = matching(tree, Segments.of(segments)).tolist()
    assert all(found[place] for place, one in enumerate(segments) if may_match(tree, one))


@given(st.lists(rows(), max_size=5), st.data())
def test_columns_of_a_table_and_of_its_values_say_the_same(held: list[dict[str, Any]], data: st.DataObject) -> None:
    table = Segments.in_columns(segments_from_rows(SegmentsForm.of(SPEC), held))
    places = np.array(data.draw(st.lists(st.sampled_from(range(len(held))))) if held else [], dtype=np.int64)
    for one, other in ((table, Segments.of(list(table))), (table.take(places), Segments.of(list(table)).take(places))):
        for name in ("id", "start_us", "end_us", "ordinal", "first_row_id", "rewrites", "codec", "schema_number"):
            assert one.numbers(name).tolist() == other.numbers(name).tolist()
        assert one.flags("has_row_ids").tolist() == other.flags("has_row_ids").tolist()
        assert [ids.tolist() for ids in one.row_ids] == [ids.tolist() for ids in other.row_ids]
        assert one.paths == other.paths
        assert list(one) == list(other)
        for name in (prefix + column for prefix in ("min:", "max:", "nulls:", "buckets:") for column in KINDS):
            there = one.statistics(name)
            known = [None] * len(one) if there is None else there.to_pylist()
            found = other.statistics(name)
            assert ([None] * len(other) if found is None else found.to_pylist()) == known


@given(st.lists(rows(), min_size=1, max_size=40))
def test_a_page_gives_back_what_was_put_in(held: list[dict[str, Any]]) -> None:
    form = SegmentsForm.of(SPEC)
    whole = segments_from_rows(form, held)
    segments = Segments.in_columns(whole)
    covers = [
        Tombstone(id=1, start="2013-01-05", end="2013-01-06", ordinal=3, keys={"text": ["a", None]}),  # type: ignore[arg-type]
        Tombstone(id=2, start="2013-01-07", end="2013-01-08", ordinal=4),  # type: ignore[arg-type]
    ]
    body, tombstones = decode_page(form, encode_page(whole, covers, {}))
    assert tombstones == covers
    assert decode_page(form, encode_page(whole, [], {}))[1] == []
    for one, two in zip(segments, Segments.in_columns(body), strict=True):
        assert (one, one.rows, one.bytes, one.path, one.codec) == (two, two.rows, two.bytes, two.path, two.codec)
        assert (dict(one.min), dict(one.max), dict(one.nulls)) == (dict(two.min), dict(two.max), dict(two.nulls))
        assert dict(one.buckets) == dict(two.buckets)


def span(start_us: int, length_us: int) -> Interval:
    return Interval(from_us(start_us), from_us(start_us + length_us))


SPANS = st.builds(span, st.integers(0, 12), st.integers(1, 6))
TOMBSTONES = st.builds(
    lambda number, span, ordinal, keys: Tombstone(
        id=number, start=span.start, end=span.end, ordinal=ordinal, keys=keys
    ),
    st.integers(1, 99),
    SPANS,
    st.integers(1, 7),
    st.none() | st.just({"text": ("a",)}),
)


NOTHING_KNOWN = {
    "start_us": 0, "end_us": 1, "ordinal": 1, "rows": 1, "bytes": 1, "first_row_id": 0, "has_row_ids": 0, "path": "p",
    "rewrites": 0, "checksum": b"", "codec": None, "schema_number": 0,
}  # fmt: skip


@example(
    [
        {**NOTHING_KNOWN, "id": 1, "statistics": "{}"},
        {**NOTHING_KNOWN, "id": 0, "statistics": '{"small": [null, 0, null]}'},
    ],
    [], None, Compare("small", "=", 1.0), True,
)  # fmt: skip
@given(
    st.lists(rows(), max_size=8, unique_by=lambda one: one["id"]),
    st.lists(TOMBSTONES, max_size=4),
    st.none() | SPANS,
    st.none() | PREDICATES,
    st.booleans(),
)
def test_every_segment_is_read_or_has_one_reason_why_not(
    held: list[dict[str, Any]],
    tombstones: list[Tombstone],
    interval: Interval | None,
    predicate: Predicate | None,
    in_columns: bool,
) -> None:
    segments = Segments.in_columns(segments_from_rows(SegmentsForm.of(SPEC), held))
    if not in_columns:
        segments = Segments.of(list(segments))
    plan = plan_read(segments, tombstones, version=1, interval=interval, predicate=predicate)
    pruned = why_pruned(segments, tombstones, interval=interval, predicate=predicate)
    read = [one.id for one in plan.segments]
    left_out = [segment.id for one in pruned for segment in one.segments]
    assert sorted(read + left_out) == sorted(one.id for one in segments)
    assert all(len(one.segments) for one in pruned)
    for one in pruned:
        assert (one.reason is Reason.OVERSHADOWED) == (not one.condition)
        if one.reason is Reason.BUCKET:
            assert all(set(one.columns) & set(segment.buckets) for segment in one.segments)
