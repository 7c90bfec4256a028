"""Filters that say nothing but an interval and values of cluster columns: whole scopes, which need no look at rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope, key_scope
from lakehouse.core.predicate import And, Compare, In, Predicate
from lakehouse.core.spec import TableSpec
from lakehouse.predicate.bounds import time_bounds


def whole_scope(tree: Predicate, spec: TableSpec) -> tuple[Interval, KeyScope | None] | None:
    """The interval and keys whose rows are exactly those that a filter lets through; None if it says anything else.

    >>> from lakehouse.predicate import parse
    >>> from lakehouse.schema import define_table
    >>> schema = pa.schema([pa.field("ts", pa.timestamp("us", "UTC"), False), pa.field("client", pa.int64())])
    >>> spec = define_table("t", schema, time="ts", grain="day", primary_key=(), cluster_by=("client",),
    ...                     write_order="commit", properties=None, folder="f")
    >>> found = whole_scope(parse("ts >= '2013-01-05' AND ts < '2013-01-06' AND client IN (1, 2)", schema).tree, spec)
    >>> str(found[0]), found[1]
    ('2013-01-05/2013-01-06', {'client': (1, 2)})
    >>> whole_scope(parse("client > 1", schema).tree, spec)
    """
    times: list[Predicate] = []
    keys: dict[str, tuple[Any, ...]] = {}
    for part in _parts(tree):
        match part:
            case Compare(column, operator, value) if column == spec.time:
                if operator == "<>" or not isinstance(value, datetime):
                    return None
                times.append(part)
            case Compare(column, "=", value):
                if column in keys or not _is_key(column, (value,), spec):
                    return None
                keys[column] = (value,)
            case In(column, values):
                if column in keys or not _is_key(column, tuple(values), spec):
                    return None
                keys[column] = tuple(values)
            case _:
                return None
    interval = time_bounds(And(tuple(times)), spec.time) if times else Interval(None, None)
    if interval is None:
        return None
    return interval, key_scope(keys) if keys else None


def _parts(tree: Predicate) -> Iterator[Predicate]:
    """The parts of a conjunction; one that has none stands for what is true unless something is null."""
    if isinstance(tree, And) and tree.parts:
        for part in tree.parts:
            yield from _parts(part)
    else:
        yield tree


def _is_key(column: str, values: tuple[Any, ...], spec: TableSpec) -> bool:
    """Whether the column is a cluster column that compares equal exactly where the values are."""
    if column not in spec.cluster_by:
        return False
    kind = spec.schema.field(column).type
    expected: tuple[type, ...] = ()
    if pa.types.is_integer(kind):
        expected = (int,)
    elif pa.types.is_string(kind):
        expected = (str,)
    elif pa.types.is_date(kind):
        expected = (date,)
    return bool(values) and all(type(value) in expected for value in values)
