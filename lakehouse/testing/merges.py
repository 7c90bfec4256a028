"""Random merges and their expected results, by a plain loop over two lists of rows with SQL's three truth values.

Columns are called ``source`` and ``target``, and names differ by case between the sides: neither may matter.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

import pyarrow as pa

from lakehouse.operations.clauses import When, Whens

Row: TypeAlias = dict[str, Any]
Value: TypeAlias = Callable[[Row, Row], Any]
TIME = datetime(2013, 1, 5, tzinfo=UTC)
LATER = datetime(2013, 1, 6, tzinfo=UTC)
TARGET = pa.schema(
    [
        pa.field("time", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("k", pa.int64()),
        pa.field("source", pa.int64()),
        pa.field("target", pa.string()),
    ]
)
SOURCE = pa.schema([("Time", pa.timestamp("us", "UTC")), ("K", pa.int64()), ("Source", pa.int64()), ("v", pa.int64())])


class Ambiguous(Exception):
    """Two rows of the source would change one row."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A value or condition: its text, over ``target.x`` and ``source.x``, and its value for a row of each side."""

    text: str
    of: Value


@dataclass(frozen=True, slots=True)
class Clause:
    """What happens to rows that meet a condition. ``values`` is None for a delete, True for all of the source's."""

    condition: Expression | None
    values: dict[str, Expression] | bool | None


@dataclass(frozen=True, slots=True)
class Planned:
    """A merge: rows of both sides, the condition, and the clauses."""

    target: list[Row]
    source: list[Row]
    on: Expression
    matched: list[Clause]
    not_matched: list[Clause]
    left: list[Clause]
    """About rows of the target that no row of the source matches."""

    def whens(self) -> Whens:
        """The clauses as `Table.merge_when` takes them."""
        return Whens(*(tuple(map(_when, listed)) for listed in (self.matched, self.not_matched, self.left)))

    def sql(self, target: str, source: str) -> str:
        """The merge of two tables as a statement, whose sides are called ``T`` and ``s``."""
        parts = [f"MERGE INTO {target} AS T USING {source} AS s ON {_aliased(self.on.text)}"]
        parts += [_clause(one, "WHEN MATCHED") for one in self.matched]
        parts += [_clause(one, "WHEN NOT MATCHED") for one in self.not_matched]
        parts += [_clause(one, "WHEN NOT MATCHED BY SOURCE") for one in self.left]
        return "\n".join(parts)

    def expected(self) -> tuple[list[Row], dict[str, int]]:
        """The rows afterwards, and how many were changed in each way: ``update`` counts rows with different values.

        Raises `Ambiguous`.
        """
        found: list[Row] = []
        counted = {"insert": 0, "update": 0, "delete": 0, "rewritten": 0}
        deletes_all = [(one.condition, one.values) for one in self.matched] == [(None, None)]
        met: set[int] = set()
        for row in self.target:
            pairs = [place for place, other in enumerate(self.source) if self.on.of(row, other) is True]
            met.update(pairs)
            meets = [(self.matched, self.source[place]) for place in pairs] or [(self.left, {})]
            chosen = [(_first(clauses, row, other), other) for clauses, other in meets]
            changes = [_changed(clause, row, other) for clause, other in chosen if clause is not None]
            if len(changes) > 1 and not deletes_all:
                raise Ambiguous
            if not changes:
                found.append(row)
            elif changes[0] is None:
                counted["delete"] += 1
            else:
                counted["rewritten"] += 1
                counted["update"] += changes[0] != row
                found.append(changes[0])
        for place, other in enumerate(self.source):
            clause = None if place in met else _first(self.not_matched, {}, other)
            if clause is not None:
                counted["insert"] += 1
                made = _changed(clause, dict.fromkeys(TARGET.names), other)
                assert made is not None
                found.append(made)
        return found, counted


def _first(clauses: Sequence[Clause], row: Row, other: Row) -> Clause | None:
    return next((one for one in clauses if one.condition is None or one.condition.of(row, other) is True), None)


def _changed(clause: Clause, row: Row, other: Row) -> Row | None:
    if clause.values is None:
        return None
    if isinstance(clause.values, bool):
        return {**row, "time": other["Time"], "k": other["K"], "source": other["Source"]}
    return {**row, **{name: value.of(row, other) for name, value in clause.values.items()}}


def _when(clause: Clause) -> When:
    condition = None if clause.condition is None else clause.condition.text
    if isinstance(clause.values, dict):
        return When(condition, {name: value.text for name, value in clause.values.items()})
    return When(condition, None if clause.values is None else True)


def _clause(clause: Clause, beginning: str) -> str:
    condition = "" if clause.condition is None else f" AND {_aliased(clause.condition.text)}"
    inserts = beginning == "WHEN NOT MATCHED"
    if clause.values is None:
        action = "DELETE"
    elif isinstance(clause.values, bool):
        action = "INSERT *" if inserts else "UPDATE SET *"
    elif inserts:
        values = ", ".join(_aliased(one.text) for one in clause.values.values())
        action = f"INSERT ({', '.join(clause.values)}) VALUES ({values})"  # noqa: S608 - of this module's own making
    else:
        action = "UPDATE SET " + ", ".join(f"{name} = {_aliased(one.text)}" for name, one in clause.values.items())
    return f"{beginning}{condition} THEN {action}"


def _aliased(text: str) -> str:
    return text.replace("target.", "t.").replace("source.", "S.")


def planned(chance: random.Random) -> Planned:
    """A merge of some rows, many of whose keys are null or repeated."""
    return Planned(
        [_target_row(chance) for _ in range(chance.randrange(6))],
        [_source_row(chance) for _ in range(chance.randrange(5))],
        _on(chance),
        *_clauses(chance),
    )


def _clauses(chance: random.Random) -> tuple[list[Clause], list[Clause], list[Clause]]:
    matched, not_matched, left = [], [], []
    for place in range(chance.choice([0, 1, 1, 2, 3])):
        condition = None if place == 0 and chance.random() < 0.3 else _condition(chance, "both")
        matched.append(Clause(condition, chance.choice([None, True, _assigned(chance)])))
        if condition is None:
            break
    for place in range(chance.choice([0, 0, 1, 2])):
        condition = None if place == 0 and chance.random() < 0.3 else _condition(chance, "target")
        left.append(Clause(condition, chance.choice([None, _assigned(chance, "target")])))
        if condition is None:
            break
    for place in range(chance.choice([0, 1, 1, 2]) or (0 if matched or left else 1)):
        condition = None if place == 0 and chance.random() < 0.5 else _condition(chance, "source")
        values: Any = True if chance.random() < 0.3 else _inserted(chance)
        not_matched.append(Clause(condition, values))
        if condition is None:
            break
    return matched, not_matched, left


def _number(chance: random.Random) -> int | None:
    return chance.choice([None, 0, 1, 1, 2, 3])


def _target_row(chance: random.Random) -> Row:
    return {
        "time": chance.choice([TIME, LATER]),
        "k": _number(chance),
        "source": _number(chance),
        "target": chance.choice([None, "", "x", "it's"]),
    }


def _source_row(chance: random.Random) -> Row:
    return {"Time": chance.choice([TIME, LATER]), "K": _number(chance), "Source": _number(chance), "v": _number(chance)}


def _on(chance: random.Random) -> Expression:
    keys = Expression("target.k = source.K", lambda t, s: _compared("=", t["k"], s["K"]))
    folded = Expression("TARGET.K = source.k".replace("TARGET", "target"), keys.of)
    both = _and(keys, _condition(chance, "both"))
    return chance.choice([keys, folded, both, _condition(chance, "both")])


def _compared(operator: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    return bool({"=": left == right, "<>": left != right, "<": left < right, ">=": left >= right}[operator])


def _columns(side: str) -> list[Expression]:
    source = [
        Expression("source.K", lambda _, s: s["K"]),
        Expression("source.source", lambda _, s: s["Source"]),
        Expression("source.V", lambda _, s: s["v"]),
    ]
    target = [Expression("target.k", lambda t, _: t["k"]), Expression("target.Source", lambda t, _: t["source"])]
    return {"source": source, "target": target, "both": [*source, *target, *target]}[side]


def _condition(chance: random.Random, side: str, depth: int = 0) -> Expression:
    kind = chance.choice(["=", "<>", "<", ">=", "null", "false", "and", "or", "not"][: 9 if depth < 2 else 5])
    left, right = chance.choice(_columns(side)), chance.choice([*_columns(side), _constant(chance.randrange(4))])
    match kind:
        case "null":
            return Expression(f"({left.text} IS NULL)", lambda t, s: left.of(t, s) is None)
        case "false":
            return Expression("(1 = 0)", lambda _, __: False)
        case "not":
            inner = _condition(chance, side, depth + 1)
            return Expression(f"(NOT {inner.text})", lambda t, s: _not(inner.of(t, s)))
        case "and":
            return _and(_condition(chance, side, depth + 1), _condition(chance, side, depth + 1))
        case "or":
            one, other = (_not_of(_condition(chance, side, depth + 1)) for _ in range(2))
            return _not_of(_and(one, other))
    return Expression(f"({left.text} {kind} {right.text})", lambda t, s: _compared(kind, left.of(t, s), right.of(t, s)))


def _constant(number: int) -> Expression:
    return Expression(str(number), lambda _, __: number)


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _not_of(one: Expression) -> Expression:
    return Expression(f"(NOT {one.text})", lambda t, s: _not(one.of(t, s)))


def _and(one: Expression, other: Expression) -> Expression:
    def both(t: Row, s: Row) -> bool | None:
        found = (one.of(t, s), other.of(t, s))
        return False if False in found else None if None in found else True

    return Expression(f"({one.text} AND {other.text})", both)


def _value(chance: random.Random, side: str) -> Expression:
    one, other = chance.choice(_columns(side)), chance.choice(_columns(side))

    def added(t: Row, s: Row) -> int | None:
        left, right = one.of(t, s), other.of(t, s)
        return None if left is None or right is None else left + right

    return chance.choice([one, Expression("NULL", lambda _, __: None), Expression(f"{one.text} + {other.text}", added)])


def _assigned(chance: random.Random, side: str = "both") -> dict[str, Expression]:
    found = {"source": _value(chance, side)}
    if chance.random() < 0.5:
        found["k"] = _value(chance, side)
    if chance.random() < 0.5:
        found["target"] = Expression("'new'", lambda _, __: "new")
    if chance.random() < 0.3 and side == "both":
        found["time"] = Expression("source.Time", lambda _, s: s["Time"])
    return found


def _inserted(chance: random.Random) -> dict[str, Expression]:
    found = {"time": Expression("source.time", lambda _, s: s["Time"]), "source": _value(chance, "source")}
    if chance.random() < 0.7:
        found["k"] = _value(chance, "source")
    return found
