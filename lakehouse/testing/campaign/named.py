"""Queries that say columns by name, comparisons with ANY and ALL, and series, with their rows by loops over lists."""
# ruff: noqa: S608 - every text is of this module's own making, and the same for one seed

from __future__ import annotations

import random
from calendar import monthrange
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

from lakehouse.testing.campaign.values import COMPARED, Row, Value, among

Given = tuple[str, dict[str, str], list[Row]]
"""A query's text, the kinds of its columns by name, and its rows."""
_EPOCH = date(1970, 1, 1).toordinal()


def natural(inner: Given, other: Given, key: str, alias: str) -> Given:
    """Two queries joined where a column of the first equals the first of the second, which gets its name."""
    text, columns, rows = inner
    place = list(columns).index(key)
    first, *rest = other[1]
    listed = ", ".join([f"{first} AS {key}", *rest])
    joined = f"SELECT * FROM ({text}) NATURAL JOIN (SELECT {listed} FROM ({other[0]}) AS {alias})"
    kept = [name for name in columns if name != key]
    found = [
        (row[place], *(value for at, value in enumerate(row) if at != place), *match[1:])
        for row in rows
        for match in other[2]
        if row[place] is not None and row[place] == match[0]
    ]
    kinds = {key: columns[key]} | {name: columns[name] for name in kept} | {name: other[1][name] for name in rest}
    return joined, kinds, found


def united(inner: Given, other: Given, chance: random.Random, alias: str) -> Given:
    """UNION BY NAME with a query of as many columns of the same kinds, which are in another order, or not all there."""
    text, columns, rows = inner
    names, own = list(columns), list(other[1])
    order = chance.sample(range(len(names)), chance.randrange(1, len(names) + 1))
    listed = ", ".join(f"{own[place]} AS {names[place].upper()}" for place in order)
    more: list[Row] = [tuple(value if place in order else None for place, value in enumerate(row)) for row in other[2]]
    is_all = chance.random() < 0.5
    made = f"({text}) UNION {'ALL ' * is_all}BY NAME (SELECT {listed} FROM ({other[0]}) AS {alias})"
    found = rows + more if is_all else list(dict.fromkeys(rows + more))
    return f"SELECT * FROM ({made})", columns, found


def quantified(number: Value, other: str, values: Sequence[Any], chance: random.Random) -> Value:
    """A comparison with all, or any, of the values that a query gives."""
    sign, word = chance.choice(list(COMPARED)), chance.choice(("ALL", "ANY", "SOME"))
    compared = COMPARED[sign]

    def of(row: Row) -> bool | None:
        value = number.of(row)
        tests = [None if value is None or one is None else compared(value, one) for one in values]
        if word != "ALL":
            return among(tests)
        return False if False in tests else None if None in tests else True

    return Value(f"({number.text} {sign} {word} ({other}))", of)


def series(chance: random.Random, name: str) -> Given:
    """Numbers in a row, or days months apart."""
    if chance.random() < 0.5:
        start, end, step = chance.choice(((1, 5, 1), (-2, 2, 2), (5, 1, -2), (3, 3, 1)))
        rows: list[Row] = [(one,) for one in range(start, end + (1 if step > 0 else -1), step)]
        return f"SELECT {name} FROM generate_series({start}, {end}, {step}) AS r({name})", {name: "i"}, rows
    first = chance.choice((date(2012, 2, 29), date(2013, 1, 31), date(2013, 3, 30), date(2011, 12, 1)))
    last = date.fromordinal(first.toordinal() + chance.randrange(-900, 900))
    months = chance.choice((1, 2, 5, 12)) * (1 if last >= first else -1)
    unit = f"{months // 12} YEAR" if months % 12 == 0 else f"{months} MONTH"
    days = f"sequence(DATE '{first}', DATE '{last}', INTERVAL {unit})"
    text = f"SELECT CAST(unix_date({name}) AS BIGINT) AS {name} FROM (SELECT explode({days}) AS {name})"
    return text, {name: "i"}, [(one.toordinal() - _EPOCH,) for one in _stepped(first, last, months)]


def _stepped(first: date, last: date, months: int) -> list[date]:
    """Days from one to another: each is the first one, months later."""
    is_within: Callable[[date], bool] = (lambda one: one <= last) if months > 0 else (lambda one: one >= last)
    found, count = [], 0
    while is_within(one := _later(first, count * months)):
        found.append(one)
        count += 1
    return found


def _later(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
