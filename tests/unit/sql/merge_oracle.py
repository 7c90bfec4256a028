"""Random MERGE statements of what only queries say, and what a loop over lists of rows makes of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import lakehouse

Row = tuple[Any, ...]
"""An id, an amount and a text."""
TEXTS = [None, "", "a", "A", "ä", "Ä", "it's", "日本", "😀", "%_", "a\\b"]
COLUMNS = ("id", "m", "x")


def _of(calculate: Callable[..., Any]) -> Callable[..., Any]:
    """A calculation that is null where one of its arguments is, by rows of target and source."""

    def null_or(*values: Any) -> Any:
        return None if any(one is None for one in values) else calculate(*values)

    return null_or


_plus, _times, _concat = _of(lambda a, b: a + b), _of(lambda a, b: a * b), _of(lambda a, b: a + b)
_above = _of(lambda value, limit: value > limit)
_upper, _length = _of(str.upper), _of(len)


def _cents(value: Decimal | None) -> Decimal | None:
    return None if value is None else value.quantize(Decimal("0.01"), ROUND_HALF_UP)


ON = [
    ("t.id = s.id", _of(lambda t, s: t == s), (0, 0)),
    ("upper(t.x) = upper(s.x)", _of(lambda t, s: t.upper() == s.upper()), (2, 2)),
    ("t.m * 2 = s.m * 2", _of(lambda t, s: t == s), (1, 1)),
    ("t.m + s.m > 4.5", _of(lambda t, s: t + s > Decimal("4.5")), (1, 1)),
]
VALUES = {
    "matched": [
        ("m", "t.m + s.m", lambda t, s: _plus(t[1], s[1])),
        ("m", "CAST(t.m * s.m / 3 AS DECIMAL(8, 2))", lambda t, s: _cents(_times(_times(t[1], s[1]), Decimal(1) / 3))),
        ("x", "concat(t.x, s.x)", lambda t, s: _concat(t[2], s[2])),
        ("x", "upper(s.x)", lambda t, s: _upper(s[2])),
        ("x", "NULL", lambda t, s: None),
        ("id", "(SELECT count(*) FROM source) + t.id", lambda t, s: ...),
    ],
    "not matched": [
        ("m", "s.m * 2", lambda t, s: _times(s[1], 2)),
        ("x", "concat(s.x, '!ß')", lambda t, s: _concat(s[2], "!ß")),
        ("id", "s.id", lambda t, s: s[0]),
    ],
    "left": [
        ("m", "t.m * -2", lambda t, s: _times(t[1], -2)),
        ("x", "concat('<', t.x)", lambda t, s: _concat("<", t[2])),
    ],
}
CONDITIONS = {
    "matched": [
        ("t.m + s.m > 3", lambda t, s: _above(_plus(t[1], s[1]), 3)),
        ("length(concat(t.x, s.x)) > 2", lambda t, s: _above(_length(_concat(t[2], s[2])), 2)),
    ],
    "not matched": [("s.m * 2 > 3", lambda t, s: _above(_times(s[1], 2), 3))],
    "left": [
        ("t.m * 2 > 3", lambda t, s: _above(_times(t[1], 2), 3)),
        ("upper(t.x) = 'A'", lambda t, s: t[2] in ("a", "A")),
    ],
}
WORDS = {"matched": "WHEN MATCHED", "not matched": "WHEN NOT MATCHED", "left": "WHEN NOT MATCHED BY SOURCE"}


@dataclass(frozen=True)
class Step:
    """One clause: its condition and values as text and as calculations; no values delete."""

    kind: str
    condition: tuple[str, Callable[..., Any]] | None
    values: list[tuple[str, str, Callable[..., Any]]]


@dataclass(frozen=True)
class Plan:
    """A statement with the rows that it is about."""

    target: list[Row]
    source: list[Row]
    on: tuple[str, Callable[..., Any], tuple[int, int]]
    steps: list[Step]

    @property
    def text(self) -> str:
        """The statement."""
        return " ".join([f"MERGE INTO target t USING source s ON {self.on[0]}", *map(_written, self.steps)])


def planned(chance: random.Random) -> Plan:
    """A statement of a few clauses over a few rows, with nulls and duplicates; the source may be empty."""
    kinds = [kind for kind in WORDS if chance.random() < 0.7] or ["matched"]
    steps = []
    for kind in kinds:
        count = chance.choice((1, 1, 2))
        for number in range(count):
            is_last = number == count - 1
            condition = None if is_last and chance.random() < 0.6 else chance.choice(CONDITIONS[kind])
            steps.append(Step(kind, condition, _values(chance, kind)))
    chance.shuffle(steps)
    ends = {one.kind: one for one in steps if one.condition is None}
    steps = [one for one in steps if ends.get(one.kind) is not one] + list(ends.values())
    return Plan(_rows(chance, 8), _rows(chance, chance.choice((0, 2, 5))), chance.choice(ON), steps)


def _values(chance: random.Random, kind: str) -> list[tuple[str, str, Callable[..., Any]]]:
    if kind != "not matched" and chance.random() < 0.3:
        return []
    chosen = {one[0]: one for one in chance.sample(VALUES[kind], len(VALUES[kind]))}
    return chance.sample(list(chosen.values()), chance.randint(1, len(chosen)))


def _rows(chance: random.Random, count: int) -> list[Row]:
    def amount() -> Decimal | None:
        return None if chance.random() < 0.2 else Decimal(chance.randint(-300, 400)) / 100

    return [(chance.choice((None, *range(8))), amount(), chance.choice(TEXTS)) for _ in range(count)]


def _written(step: Step) -> str:
    when = WORDS[step.kind] + ("" if step.condition is None else f" AND {step.condition[0]}")
    if not step.values:
        return f"{when} THEN DELETE"
    if step.kind == "not matched":
        names, values = (", ".join(one[place] for one in step.values) for place in (0, 1))
        return f"{when} THEN INSERT ({names}) VALUES ({values})"
    return f"{when} THEN UPDATE SET " + ", ".join(f"{name} = {value}" for name, value, _ in step.values)


def expected(plan: Plan) -> list[Row] | None:
    """The table's rows afterwards, in any order; None if several rows of the source would change one."""
    _, holds, (left, right) = plan.on
    is_matched, kept = [False] * len(plan.source), []
    for row in plan.target:
        pairs = [place for place, one in enumerate(plan.source) if holds(row[left], one[right])]
        for place in pairs:
            is_matched[place] = True
        kind = "matched" if pairs else "left"
        rows = [plan.source[place] for place in pairs] or [()]
        changes = [(step, one) for one in rows if (step := _met(plan, kind, row, one)) is not None]
        only = [step for step in plan.steps if step.kind == "matched"]
        deletes_all = kind == "matched" and len(only) == 1 and only[0].condition is None and not only[0].values
        if len(changes) > 1 and not deletes_all:
            return None
        if not changes:
            kept.append(row)
        elif changes[0][0].values:
            kept.append(_changed(plan, changes[0][0], row, changes[0][1]))
    for one, was in zip(plan.source, is_matched, strict=True):
        step = None if was else _met(plan, "not matched", (), one)
        if step is not None:
            kept.append(_changed(plan, step, (None, None, None), one))
    return kept


def _met(plan: Plan, kind: str, row: Row, one: Row) -> Step | None:
    steps = (step for step in plan.steps if step.kind == kind)
    return next((step for step in steps if step.condition is None or step.condition[1](row, one)), None)


def _changed(plan: Plan, step: Step, row: Row, one: Row) -> Row:
    new = dict(zip(COLUMNS, row, strict=True))
    for name, _, calculate in step.values:
        value = calculate(row, one)
        new[name] = _plus(row[0], len(plan.source)) if value is ... else value
    return tuple(new[name] for name in COLUMNS)


def run(lake: lakehouse.Lake, plan: Plan, engine: str | None) -> list[Row]:
    """Make the tables anew, run the statement, and give the rows of the table."""
    for name, rows in (("target", plan.target), ("source", plan.source)):
        if name in lake:
            lake.drop_table(name)
        lake.sql(f"CREATE TABLE {name} (id BIGINT, m DECIMAL(8, 2), x STRING)")
        if rows:
            lake.table(name).append([dict(zip(COLUMNS, row, strict=True)) for row in rows])
    lake.sql(plan.text, engine=engine)
    return [tuple(row.values()) for row in lake.table("target").to_arrow().select(COLUMNS).to_pylist()]
