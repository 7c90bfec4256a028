"""Small states of a table in every shape, with their rows, and the rule of visibility asked row by row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from lakehouse.core import Interval, Segment, Tombstone, is_visible
from lakehouse.core.spec import ROW_ID
from lakehouse.testing.strategies import key_scopes

MICROSECOND = timedelta(microseconds=1)
HOUR = timedelta(hours=1)
START = Interval.of("2013-01-05").start
"""A Saturday: days, a week's end and hours lie near."""

ORDINALS = st.integers(0, 7)
CLIENTS = st.sampled_from([None, "a", "b", "c"])
SPREAD = [0, 1, 23, 24, 25, 36, 48, 49, 72, 73]


@dataclass(frozen=True)
class Row:
    """A row as the rule sees it."""

    time: datetime
    client: str | None
    number: int

    @property
    def row_id(self) -> int:
        return self.number

    @property
    def primary_key(self) -> tuple[int]:
        return (self.number % 5,)


@dataclass(frozen=True)
class State:
    """What is live, and the rows of each segment by its id."""

    segments: tuple[Segment, ...]
    tombstones: tuple[Tombstone, ...]
    rows: dict[Any, tuple[Row, ...]]

    def visible(
        self,
        segments: Iterable[Segment] | None = None,
        tombstones: Iterable[Tombstone] | None = None,
        within: Interval | None = None,
    ) -> set[Row]:
        """The rows that can be seen, one by one; of this state, or with other segments or tombstones in it."""
        masks = list(self.tombstones if tombstones is None else tombstones)
        return {
            row
            for segment in (self.segments if segments is None else segments)
            for row in self.rows[segment.id]
            if (within is None or within.contains(row.time)) and seen(row, segment.ordinal, masks)
        }


def seen(row: Row, ordinal: int, tombstones: Iterable[Tombstone]) -> bool:
    return is_visible(row.time, {"client": row.client}, row.row_id, row.primary_key, ordinal, tombstones)


def times() -> st.SearchStrategy[datetime]:
    """Instants at the edges of hours and days, just before and just after."""
    shifts = st.sampled_from([-MICROSECOND, timedelta(0), timedelta(0), MICROSECOND])
    return st.builds(lambda hours, shift: START + hours * HOUR + shift, st.sampled_from(SPREAD), shifts)


def spans() -> st.SearchStrategy[Interval]:
    """Intervals between those instants, and unbounded ones."""
    pairs = st.tuples(times(), times()).filter(lambda pair: pair[0] != pair[1])
    bounded = pairs.map(lambda pair: Interval(min(pair), max(pair)))
    return st.one_of(
        bounded, bounded, bounded, times().map(lambda start: Interval(start, None)), st.just(Interval(None, None))
    )


@st.composite
def segments(draw: st.DrawFn, number: int, with_rows: bool = True) -> tuple[Segment, tuple[Row, ...]]:
    """A segment that fits its rows tightly, with statistics of its clients or without."""
    ordinal = draw(ORDINALS)
    if not with_rows:
        span = draw(spans())
        return Segment(id=number, start=span.start, end=span.end, ordinal=ordinal), ()
    found = draw(st.lists(st.tuples(times(), CLIENTS), min_size=1, max_size=4))
    rows = tuple(Row(time, client, 10 * number + place) for place, (time, client) in enumerate(found))
    clients = [row.client for row in rows if row.client is not None]
    segment = Segment(
        id=number,
        start=min(row.time for row in rows),
        end=max(row.time for row in rows) + MICROSECOND,
        ordinal=ordinal,
        rows=len(rows),
        first_row_id=10 * number,
    )
    if draw(st.booleans()):
        segment = replace(
            segment,
            min={"client": min(clients)} if clients else {},
            max={"client": max(clients)} if clients else {},
            nulls={"client": len(rows) - len(clients)},
        )
    return segment, rows


@st.composite
def tombstones(draw: st.DrawFn, number: int, kinds: tuple[str, ...] = ("hiding", "keyed", "key", "row")) -> Tombstone:
    """A tombstone of any kind; one of rows sometimes says which ids it has."""
    kind = draw(st.sampled_from(kinds))
    ordinal = draw(ORDINALS)
    span = draw(spans()) if kind in ("hiding", "keyed") else Interval(None, None)
    match kind:
        case "key":
            keys = draw(st.sets(st.integers(0, 4).map(lambda key: (key,)), max_size=3))
            return Tombstone(number, "key", span.start, span.end, ordinal=ordinal, primary_keys=keys)
        case "row":
            row_ids = draw(
                st.sets(st.sampled_from([10 * n + place for n in range(6) for place in range(4)]), max_size=6)
            )
            bounded = bool(row_ids) and draw(st.booleans())
            low, high = ({ROW_ID: min(row_ids)}, {ROW_ID: max(row_ids)}) if bounded else ({}, {})
            return Tombstone(number, "row", ordinal=ordinal, row_ids=row_ids, min=low, max=high)
        case _:
            scope = draw(client_scopes()) if kind == "keyed" else None
            return Tombstone(number, "interval", span.start, span.end, ordinal=ordinal, keys=scope)


def client_scopes() -> st.SearchStrategy[dict[str, tuple[str | None, ...]]]:
    """Scopes of clients that rows have, and now and then of any other."""
    own = st.lists(CLIENTS, min_size=1, max_size=2, unique=True).map(lambda found: {"client": tuple(found)})
    return st.one_of(own, own, key_scopes().map(dict))


@st.composite
def states(draw: st.DrawFn, with_rows: bool = True) -> State:
    """Up to six segments under up to six tombstones; ordinals repeat."""
    found = [draw(segments(number, with_rows)) for number in range(draw(st.integers(0, 6)))]
    masks = tuple(draw(tombstones(100 + number)) for number in range(draw(st.integers(0, 6))))
    return State(tuple(one for one, _ in found), masks, {one.id: rows for one, rows in found})


def instants(state: State) -> list[datetime]:
    """An instant of each kind: every edge, and just before and after it; between two edges nothing changes."""
    edges = {edge for one in (*state.segments, *state.tombstones) for edge in (one.start, one.end)}
    found = set()
    for edge in edges:
        for shift in (-MICROSECOND, timedelta(0), MICROSECOND):
            try:
                found.add(edge + shift)
            except OverflowError:
                continue
    return sorted(found)
