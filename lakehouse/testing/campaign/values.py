"""Random expressions of SQL with what they are in plain Python, of a row as a tuple: numbers, texts and conditions."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lakehouse.testing.campaign.calls import NUMBERS, WORDS, Call

Row = tuple[Any, ...]
Of = Callable[[Row], Any]
TEXTS = ("", "a", "ab", "b,a", "ü", "aab")
COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda one, other: one == other,
    "<>": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    ">=": lambda one, other: one >= other,
}
"""What signs say of two values that are there."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of what a query reads: how it is written, its kind (``i`` or ``s``), and its place in the row."""

    text: str
    kind: str
    place: int


@dataclass(frozen=True, slots=True)
class Value:
    """An expression, and its value of a row."""

    text: str
    of: Of


class Values:
    """Makes random expressions over columns."""

    def __init__(self, chance: random.Random, columns: Sequence[Column]) -> None:
        self._chance = chance
        self._columns = columns

    def value(self, kind: str, depth: int = 2) -> Value:
        """A number or text."""
        return self.number(depth) if kind == "i" else self.word(depth)

    def number(self, depth: int = 2) -> Value:
        """A whole number, null at times."""
        pick = self._chance
        literal = pick.randrange(-2, 5)
        if depth <= 0 or pick.random() < 0.4:
            return self._column("i") or Value(f"CAST({literal} AS BIGINT)", lambda _: literal)
        if pick.random() < 0.3:
            return self._call(NUMBERS, depth)
        a, b = self.number(depth - 1), self.number(depth - 1)
        match pick.randrange(9):
            case 0:
                return Value(f"({a.text} + {b.text})", lambda row: _both(a, b, row, lambda x, y: x + y))
            case 1:
                return Value(f"({a.text} - {b.text})", lambda row: _both(a, b, row, lambda x, y: x - y))
            case 2:
                return Value(f"coalesce({a.text}, {b.text})", lambda row: b.of(row) if a.of(row) is None else a.of(row))
            case 3:
                return Value(f"nullif({a.text}, {literal})", lambda row: None if a.of(row) == literal else a.of(row))
            case 4:
                test = self.condition(1)
                return Value(
                    f"CASE WHEN {test.text} THEN {a.text} ELSE {b.text} END",
                    lambda row: a.of(row) if test.of(row) is True else b.of(row),
                )
            case 5:
                return Value(
                    f"size(filter(array({a.text}, {b.text}), e -> e > {literal}))",
                    lambda row: sum(one is not None and one > literal for one in (a.of(row), b.of(row))),
                )
            case 6:
                return Value(
                    f"aggregate(transform(array({a.text}, {b.text}), e -> coalesce(e, {literal})), "
                    "CAST(0 AS BIGINT), (p, e) -> p + e)",
                    lambda row: sum(literal if one is None else one for one in (a.of(row), b.of(row))),
                )
            case 7:
                return Value(f"pmod({a.text}, 3)", lambda row: None if a.of(row) is None else a.of(row) % 3)
        word = self.word(depth - 1)
        return Value(f"length({word.text})", lambda row: None if word.of(row) is None else len(word.of(row)))

    def word(self, depth: int = 2) -> Value:
        """A text, null at times."""
        pick = self._chance
        literal = pick.choice(TEXTS)
        if depth <= 0 or pick.random() < 0.4:
            return self._column("s") or Value(f"'{literal}'", lambda _: literal)
        if pick.random() < 0.4:
            return self._call(WORDS, depth)
        a = self.word(depth - 1)
        match pick.randrange(5):
            case 0:
                return _of_text(a, f"concat({a.text}, '{literal}')", lambda text: text + literal)
            case 1:
                return _of_text(
                    a,
                    f"regexp_replace({a.text}, '(a+)(b?)', '$2<$1>')",
                    lambda text: re.sub("(a+)(b?)", r"\2<\1>", text),
                )
            case 2:
                return _of_text(a, f"array_join(split({a.text}, 'a'), '-')", lambda text: "-".join(text.split("a")))
            case 3:
                return _of_text(a, f"reverse({a.text})", lambda text: text[::-1])
        number = self.number(depth - 1)
        return Value(
            f"CASE WHEN {number.text} > 1 THEN {a.text} END",
            lambda row: a.of(row) if (number.of(row) or 0) > 1 else None,
        )

    def _call(self, calls: Sequence[Call], depth: int) -> Value:
        """A call of a function."""
        call = self._chance.choice(calls)
        given = [self._argument(kind, depth - 1) for kind in call.kinds]

        def of(row: Row) -> Any:
            found = [one.of(row) for one in given]
            return None if None in found and not call.takes_nulls else call.of(*found)

        return Value(call.text.format(*(one.text for one in given)), of)

    def _argument(self, kind: str, depth: int) -> Value:
        if kind != "k":
            return self.value(kind, depth)
        number = self._chance.choice((-1, 0, 1, 2, 3, 62, 63, 64, 65))
        return Value(str(number), lambda _: number)

    def condition(self, depth: int = 2) -> Value:
        """A condition: true, false or null."""
        pick = self._chance
        if depth > 0 and pick.random() < 0.5:
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            match pick.randrange(3):
                case 0:
                    return Value(f"({a.text} AND {b.text})", lambda row: _and(a.of(row), b.of(row)))
                case 1:
                    return Value(f"({a.text} OR {b.text})", lambda row: _not(_and(_not(a.of(row)), _not(b.of(row)))))
            return Value(f"(NOT {a.text})", lambda row: _not(a.of(row)))
        return self._of_numbers() if pick.random() < 0.6 else self._of_texts()

    def _of_numbers(self) -> Value:
        pick = self._chance
        a, literal, sign = self.number(1), pick.randrange(-1, 4), pick.choice(list(COMPARED))
        match pick.randrange(5):
            case 0 | 1:
                compared = COMPARED[sign]
                return Value(
                    f"({a.text} {sign} {literal})",
                    lambda row: None if a.of(row) is None else compared(a.of(row), literal),
                )
            case 2:
                return Value(f"({a.text} IS NULL)", lambda row: a.of(row) is None)
            case 3:
                return Value(
                    f"({a.text} BETWEEN {literal} AND {literal + 2})",
                    lambda row: None if a.of(row) is None else literal <= a.of(row) <= literal + 2,
                )
        b = self.number(1)
        return Value(
            f"exists(array({a.text}, {b.text}), e -> e > {literal})",
            lambda row: among(None if one is None else one > literal for one in (a.of(row), b.of(row))),
        )

    def _of_texts(self) -> Value:
        pick = self._chance
        a, literal = self.word(1), pick.choice(TEXTS)
        tests: list[tuple[str, Callable[[str], bool]]] = [
            (f"({a.text} LIKE 'a%')", lambda text: text.startswith("a")),
            (f"({a.text} NOT LIKE '%b')", lambda text: not text.endswith("b")),
            (f"({a.text} RLIKE '^a|b$')", lambda text: re.search(r"^a|b\Z", text) is not None),
            (f"({a.text} IN ('a', '{literal}'))", lambda text: text in ("a", literal)),
            (f"({a.text} < '{literal}')", lambda text: text < literal),
        ]  # fmt: skip
        text, test = pick.choice(tests)
        return _of_text(a, text, test)

    def _column(self, kind: str) -> Value | None:
        own = [one for one in self._columns if one.kind == kind]
        if not own or self._chance.random() < 0.15:
            return None
        one = self._chance.choice(own)
        return Value(one.text, lambda row: row[one.place])


def among(found: Any) -> bool | None:
    """Whether any of these is true; null where none is and one is null."""
    seen = list(found)
    return True if True in seen else None if None in seen else False


def _of_text(value: Value, text: str, of: Callable[[str], Any]) -> Value:
    return Value(text, lambda row: None if value.of(row) is None else of(value.of(row)))


def _both(a: Value, b: Value, row: Row, put: Callable[[Any, Any], Any]) -> Any:
    one, other = a.of(row), b.of(row)
    return None if one is None or other is None else put(one, other)


def _and(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _not(one: bool | None) -> bool | None:
    return None if one is None else not one
