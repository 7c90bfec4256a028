"""Hypothesis strategies for times, keys, rows and intervals, crowded where time arithmetic goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from lakehouse.core.chunk import Grain
from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope
from lakehouse.testing.rows import Row

MICROSECOND = timedelta(microseconds=1)

EDGES = tuple(
    datetime.fromisoformat(text).replace(tzinfo=UTC)
    for text in (
        "2012-02-28T00:00:00",
        "2012-02-29T00:00:00",  # a leap day
        "2012-02-29T23:00:00",
        "2012-03-01T00:00:00",
        "2012-12-31T00:00:00",  # Monday of 2013-W01: an ISO week and a year that begin in the year before
        "2013-01-01T00:00:00",
        "2013-01-06T23:00:00",
        "2013-01-07T00:00:00",
        "2015-12-28T00:00:00",  # Monday of 2015-W53
        "2016-01-01T00:00:00",
        "2016-01-04T00:00:00",
        "1969-12-31T23:00:00",  # before 1970, where rounding down is not cutting off
        "1970-01-01T00:00:00",
    )
)
"""Instants at which a chunk of some grain begins."""

CLIENTS: tuple[str | None, ...] = (None, "a", "b", "UA", "", "a b", "100%", "ü/ñ", "O'Hare; --", "null")


def edges(near: tuple[datetime, ...] = EDGES) -> st.SearchStrategy[datetime]:
    """Instants on, just before and just after the edges of chunks, and some between."""
    shifts = st.sampled_from([timedelta(0), -MICROSECOND, MICROSECOND, timedelta(minutes=30), timedelta(hours=13)])
    return st.builds(lambda edge, shift: edge + shift, st.sampled_from(near), shifts)


def grains() -> st.SearchStrategy[Grain]:
    """Every grain."""
    return st.sampled_from(list(Grain))


def clients() -> st.SearchStrategy[str | None]:
    """Values of a cluster column: null, empty, and text that needs quoting in paths and SQL."""
    return st.sampled_from(CLIENTS)


def key_scopes() -> st.SearchStrategy[KeyScope]:
    """Scopes of one to three clients; null may be listed."""
    return st.builds(lambda found: {"client": tuple(found)}, st.lists(clients(), min_size=1, max_size=3, unique=True))


def intervals(near: tuple[datetime, ...] = EDGES) -> st.SearchStrategy[Interval]:
    """Intervals between edges: whole chunks, parts of chunks, and single microseconds."""
    pairs = st.tuples(edges(near), edges(near)).filter(lambda pair: pair[0] != pair[1])
    short = edges(near).map(lambda start: Interval(start, start + MICROSECOND))
    return st.one_of(pairs.map(lambda pair: Interval(min(pair), max(pair))), short)


def rows(
    times: st.SearchStrategy[datetime] | None = None,
    keys: st.SearchStrategy[str | None] | None = None,
    *,
    min_size: int = 0,
    max_size: int = 8,
) -> st.SearchStrategy[list[Row]]:
    """Rows of `lakehouse.testing.rows`, duplicates included."""
    one = st.tuples(
        edges() if times is None else times, clients() if keys is None else keys, st.integers(-(2**63), 2**63 - 1)
    )
    return st.lists(one, min_size=min_size, max_size=max_size)


@st.composite
def rows_within(draw: st.DrawFn, interval: Interval, keys: KeyScope | None, *, max_size: int = 6) -> list[Row]:
    """Rows that a replace of the interval and keys accepts; its first and last microsecond are likely."""
    ends = st.sampled_from([interval.start, interval.end - MICROSECOND])
    naive = st.datetimes(interval.start.replace(tzinfo=None), (interval.end - MICROSECOND).replace(tzinfo=None))
    times = st.one_of(ends, naive.map(lambda found: found.replace(tzinfo=UTC)))
    listed = clients() if keys is None else st.sampled_from(keys["client"])
    return draw(rows(times, listed, max_size=max_size))


@dataclass(frozen=True, slots=True)
class Condition:
    """A predicate on `lakehouse.testing.rows`, as the library and as the model takes it."""

    sql: str
    holds: Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class Assignment:
    """What an update does, as the library and as the model takes it."""

    sql: dict[str, str]
    change: Callable[[Mapping[str, Any]], dict[str, Any]]


def reading(near: tuple[datetime, ...] = EDGES) -> st.SearchStrategy[Condition]:
    """Predicates that no interval and values of the cluster column say, so that rows have to be read."""
    values = st.integers(-(2**63), 2**63 - 1)
    return st.one_of(
        st.builds(_from_value, values), st.builds(_from_value_and_time, values, edges(near)), st.builds(_even)
    )


def conditions(near: tuple[datetime, ...] = EDGES) -> st.SearchStrategy[Condition]:
    """Predicates, among them some that no row has to be read for."""
    plain = clients().filter(lambda client: client is not None and "'" not in client and "\\" not in client)
    return st.one_of(reading(near), st.builds(_of_client, plain), st.builds(_from_time, edges(near)))


def assignments(near: tuple[datetime, ...] = EDGES) -> st.SearchStrategy[Assignment]:
    """Updates of the client, and of the time."""
    return st.one_of(st.builds(_to_client), st.builds(_to_time, edges(near)))


def keyed_rows(near: tuple[datetime, ...], known: list[int]) -> st.SearchStrategy[list[Row]]:
    """One to four rows of different values, some of them known."""
    values = st.sampled_from([*known, 0, 1, 2])
    one = st.tuples(edges(near), clients(), values)
    return st.lists(one, min_size=1, max_size=4, unique_by=lambda row: row[2])


def _literal(time: datetime) -> str:
    return f"TIMESTAMP '{time:%Y-%m-%d %H:%M:%S.%f}'"


def _from_value(value: int) -> Condition:
    return Condition(f"value >= {value}", lambda row: bool(row["value"] >= value))


def _from_value_and_time(value: int, time: datetime) -> Condition:
    sql = f"value < {value} AND time >= {_literal(time)}"
    return Condition(sql, lambda row: bool(row["value"] < value and row["time"] >= time))


def _even() -> Condition:
    return Condition("client IS NOT NULL AND value <> 0", lambda row: row["client"] is not None and row["value"] != 0)


def _of_client(client: str) -> Condition:
    return Condition(f"client = '{client}'", lambda row: bool(row["client"] == client))


def _from_time(time: datetime) -> Condition:
    return Condition(f"time >= {_literal(time)}", lambda row: bool(row["time"] >= time))


def _to_client() -> Assignment:
    return Assignment({"client": "'moved'"}, lambda _: {"client": "moved"})


def _to_time(time: datetime) -> Assignment:
    return Assignment({"time": _literal(time)}, lambda _: {"time": time})
