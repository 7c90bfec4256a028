"""Random queries with their rows: each is grown over others, and its rows are worked out by loops over lists.

Every clause and construct of statements is in it: joins, sub-queries, sets, totals, windows, lists, PIVOT, ranges,
recursions, samples. Nothing here knows how an engine, or the library, does any of it.
"""
# ruff: noqa: S608 - every text is of this module's own making

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from lakehouse.testing.campaign.named import Given, natural, quantified, series, united
from lakehouse.testing.campaign.values import TEXTS, Column, Row, Value, Values, among

MOST_ROWS = 300
"""Beyond these a query is not grown any further: what it means takes loops in Python."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A query: its text, the kinds of its columns by name, and its rows."""

    text: str
    columns: Mapping[str, str]
    rows: list[Row]


class Relations:
    """Grows random queries over tables, whose rows are given."""

    def __init__(self, chance: random.Random, tables: Sequence[Relation]) -> None:
        self._chance = chance
        self._tables = tables
        self._used = 0

    def query(self, depth: int = 3) -> Relation:
        """A query of some depth, over the rest of which others are grown."""
        if depth <= 0:
            return self._base()
        inner = self.query(depth - self._chance.choice((1, 1, 2)))
        if len(inner.rows) > MOST_ROWS:
            return inner
        grow = self._chance.choice(
            (
                self._picked, self._picked, self._summed, self._windowed, self._joined, self._combined, self._exploded,
                self._pivoted, self._unpivoted, self._limited, self._asked, self._lateral, self._repeated,
            )
        )  # fmt: skip
        return grow(inner) or self._picked(inner)

    # What queries are grown over

    def _base(self) -> Relation:
        pick = self._chance
        match pick.randrange(9):
            case 8:
                return Relation(*series(pick, self._name()))
            case 0:
                bounds = pick.choice(((5,), (2, 6), (6, 1, -2), (3, 3)))
                n = self._name()
                written = ", ".join(map(str, bounds))
                return Relation(
                    f"SELECT {n} FROM range({written}) AS r({n})", {n: "i"}, [(one,) for one in range(*bounds)]
                )
            case 1:
                n, end = self._name(), pick.randrange(1, 6)
                return Relation(
                    f"SELECT explode(sequence(1, {end})) AS {n}",
                    {n: "i"},
                    [(one,) for one in range(1, end + 1)],
                )
            case 2:
                a, b = self._name(), self._name()
                rows = [(pick.choice((None, 1, 2)), pick.choice((None, *TEXTS))) for _ in range(pick.randrange(1, 5))]
                listed = ", ".join(f"(CAST({_written(one)} AS BIGINT), {_written(two)})" for one, two in rows)
                return Relation(f"SELECT * FROM VALUES {listed} AS v({a}, {b})", {a: "i", b: "s"}, rows)
        table = pick.choice(self._tables)
        names = {name: self._name() for name in table.columns}
        listed = ", ".join(f"{name} AS {new}" for name, new in names.items())
        text = f"SELECT {listed} FROM {table.text}"
        return Relation(text, {names[one]: kind for one, kind in table.columns.items()}, table.rows)

    def _name(self) -> str:
        self._used += 1
        return f"c{self._used}"

    def _from(self, inner: Relation) -> tuple[str, str, str, Values]:
        """What stands before a query over another, its FROM, what it is called there, and expressions over it."""
        alias = f"q{self._name()}"
        columns = [Column(f"{alias}.{name}", kind, place) for place, (name, kind) in enumerate(inner.columns.items())]
        values = Values(self._chance, columns)
        if self._chance.random() < 0.25:
            return f"WITH {alias} AS ({inner.text}) ", alias, alias, values
        return "", f"({inner.text}) AS {alias}", alias, values

    # One query over another

    def _picked(self, inner: Relation) -> Relation:
        """Columns and expressions of the rows that pass a condition."""
        with_, source, _, values = self._from(inner)
        pick, test = self._chance, values.condition()
        kinds = {self._name(): pick.choice("is") for _ in range(pick.randrange(1, 4))}
        made = [(name, values.value(kind)) for name, kind in kinds.items()]
        rows = [tuple(one.of(row) for _, one in made) for row in inner.rows if test.of(row) is True]
        is_distinct = pick.random() < 0.2
        listed = ", ".join(f"{one.text} AS {name}" for name, one in made)
        text = f"{with_}SELECT {'DISTINCT ' if is_distinct else ''}{listed} FROM {source} WHERE {test.text}"
        return Relation(text, kinds, list(dict.fromkeys(rows)) if is_distinct else rows)

    def _limited(self, inner: Relation) -> Relation:
        """The first rows in an order in which only equal rows are at one place."""
        with_, source, alias, _ = self._from(inner)
        count, skipped = self._chance.randrange(6), self._chance.randrange(3)
        order = ", ".join(f"{alias}.{name}" for name in inner.columns) if self._chance.random() < 0.7 else "ALL"
        text = f"{with_}SELECT * FROM {source} ORDER BY {order} LIMIT {count} OFFSET {skipped}"
        return Relation(text, inner.columns, sorted(inner.rows, key=_key)[skipped : skipped + count])

    def _summed(self, inner: Relation) -> Relation:
        """Sums by groups: by columns, by totals of several kinds, or of everything."""
        with_, source, alias, values = self._from(inner)
        pick = self._chance
        places = pick.sample(range(len(inner.columns)), min(len(inner.columns), pick.randrange(3)))
        names = [list(inner.columns)[place] for place in places]
        keys = [f"{alias}.{name}" for name in names]
        every = [frozenset(one) for size in range(len(places) + 1) for one in combinations(places, size)]
        kind = pick.choice(("plain", "ROLLUP", "CUBE", "sets")) if places else "none"
        by: dict[str, tuple[str, list[frozenset[int]]]] = {
            "none": ("", [frozenset()]),
            "plain": (f" GROUP BY {', '.join(keys)}", [frozenset(places)]),
            "ROLLUP": (f" GROUP BY ROLLUP ({', '.join(keys)})",
                       [frozenset(places[:size]) for size in range(len(places) + 1)]),
            "CUBE": (f" GROUP BY CUBE ({', '.join(keys)})", every),
            "sets": (f" GROUP BY GROUPING SETS (({', '.join(keys)}), ())", [frozenset(places), frozenset()]),
        }  # fmt: skip
        clause, sets = by[kind]
        sums = [(self._name(), *self._sum(values)) for _ in range(2)]
        has_marks = kind in ("ROLLUP", "CUBE", "sets")
        marks = [(self._name(), f"CAST(grouping({key}) AS BIGINT)") for key in keys] if has_marks else []
        rows: list[Row] = []
        for one in sets:
            groups: dict[Row, list[Row]] = {}
            for row in inner.rows:
                groups.setdefault(tuple(row[place] if place in one else None for place in places), []).append(row)
            if kind == "none":
                groups.setdefault((), [])
            rows += [
                (*key, *(int(place not in one) for place in places if has_marks), *(of(held) for _, _, of in sums))
                for key, held in groups.items()
            ]
        least = pick.choice((0, 0, 2))
        if least and kind != "none":
            clause += f" HAVING count(*) >= {least}"
            rows = self._at_least(inner, places, sets, rows, least)
        new = {self._name(): inner.columns[name] for name in names}
        listed = [f"{key} AS {name}" for key, name in zip(keys, new, strict=True)]
        listed += [f"{text} AS {name}" for name, text in marks] + [f"{text} AS {name}" for name, text, _ in sums]
        columns = new | {name: "i" for name, _ in marks} | {name: "i" for name, _, _ in sums}
        return Relation(f"{with_}SELECT {', '.join(listed)} FROM {source}{clause}", columns, rows)

    def _at_least(
        self, inner: Relation, places: list[int], sets: list[frozenset[int]], rows: list[Row], least: int
    ) -> list[Row]:
        """The rows of groups that have so many."""
        counts: list[int] = []
        for one in sets:
            groups: dict[Row, int] = {}
            for row in inner.rows:
                key = tuple(row[place] if place in one else None for place in places)
                groups[key] = groups.get(key, 0) + 1
            counts += groups.values()
        return [row for row, count in zip(rows, counts, strict=True) if count >= least]

    def _sum(self, values: Values) -> tuple[str, Callable[[list[Row]], Any]]:
        """A sum over rows, as text and as a function of them."""
        number = values.number(1)
        test = values.condition(1)

        def of(rows: list[Row]) -> list[Any]:
            return [found for found in map(number.of, rows) if found is not None]

        return self._chance.choice(
            [
                ("count(*)", len),
                (f"count({number.text})", lambda rows: len(of(rows))),
                (f"count(DISTINCT {number.text})", lambda rows: len(set(of(rows)))),
                (f"CAST(sum({number.text}) AS BIGINT)", lambda rows: sum(of(rows)) if of(rows) else None),
                (f"max({number.text})", lambda rows: max(of(rows), default=None)),
                (f"min({number.text})", lambda rows: min(of(rows), default=None)),
                (f"count(*) FILTER (WHERE {test.text})", lambda rows: sum(test.of(row) is True for row in rows)),
                (f"CAST(size(collect_list({number.text})) AS BIGINT)", lambda rows: len(of(rows))),
            ]
        )

    def _windowed(self, inner: Relation) -> Relation:
        """A number of each row among those of its part, and at times only the first ones."""
        with_, source, alias, _ = self._from(inner)
        names, new = list(inner.columns), self._name()
        part = self._chance.randrange(len(names))
        order = ", ".join(f"{alias}.{name}" for name in names)
        over = f"OVER (PARTITION BY {alias}.{names[part]} ORDER BY {order})"
        parts: dict[Any, list[Row]] = {}
        for row in sorted(inner.rows, key=_key):
            parts.setdefault(row[part], []).append(row)
        kinds: dict[str, Callable[[list[Row], int], int]] = {
            "row_number()": lambda _, place: place + 1,
            "rank()": lambda rows, place: rows.index(rows[place]) + 1,
            "dense_rank()": lambda rows, place: len(set(rows[: place + 1])),
            "count(*)": lambda rows, place: sum(_key(one) <= _key(rows[place]) for one in rows),
            "lag(1, 1, 0)": lambda _, place: int(place > 0),
        }
        call = self._chance.choice(list(kinds))
        rows = [(*row, kinds[call](held, place)) for held in parts.values() for place, row in enumerate(held)]
        text = f"{with_}SELECT {alias}.*, CAST({call} {over} AS BIGINT) AS {new} FROM {source}"
        if self._chance.random() < 0.3:
            text += f" QUALIFY {new} <= 2"
            rows = [row for row in rows if row[-1] <= 2]
        return Relation(text, {**inner.columns, new: "i"}, rows)

    def _exploded(self, inner: Relation) -> Relation:
        """A row for each element of a list that is made of each row."""
        with_, source, alias, values = self._from(inner)
        pick = self._chance
        first, second, test, empty = values.number(1), values.number(1), pick.randrange(3), values.condition(0)
        text = f"CASE WHEN {empty.text} THEN filter(array({first.text}, {second.text}), e -> e <> {test}) END"
        is_outer, has_places = pick.random() < 0.5, pick.random() < 0.5
        call = "posexplode" if has_places else "explode"
        names = [self._name() for _ in range(1 + has_places)]

        def elements(row: Row) -> list[Row]:
            if empty.of(row) is not True:
                held: list[Any] = []
            else:
                held = [one for one in (first.of(row), second.of(row)) if one is not None and one != test]
            made: list[Row] = [(place, one) if has_places else (one,) for place, one in enumerate(held)]
            return made or [(None,) * len(names)] * is_outer

        rows = [(*row, *made) for row in inner.rows for made in elements(row)]
        listed, outer = ", ".join(names), "OUTER " * is_outer
        query = pick.choice(
            (
                f"{with_}SELECT {alias}.*, {listed} FROM {source} LATERAL VIEW {outer}{call}({text}) x AS {listed}",
                f"{with_}SELECT *, {call}{'_outer' * is_outer}({text}) AS ({listed}) FROM {source}",
                f"{with_}SELECT * FROM {source} {'LEFT ' * is_outer}JOIN LATERAL {call}({text}) AS x({listed}) ON TRUE",
            )
        )
        return Relation(query, {**inner.columns, **dict.fromkeys(names, "i")}, rows)

    def _pivoted(self, inner: Relation) -> Relation | None:
        """Values of a column as columns of sums."""
        pick = self._chance
        if len(inner.columns) < 2:
            return None
        with_, source, _, _ = self._from(inner)
        names = list(inner.columns)
        key, summed = pick.sample(range(len(names)), 2)
        choice: list[Any] = [None, *TEXTS] if inner.columns[names[key]] == "s" else [None, *range(-1, 4)]
        values = pick.sample(choice, 3)
        new = [self._name() for _ in values]
        call = pick.choice(("count(*)", f"count({names[summed]})", f"max({names[summed]})"))
        used = {key} if call == "count(*)" else {key, summed}
        kept = [place for place in range(len(names)) if place not in used]
        groups: dict[Row, list[Row]] = {} if kept else {(): []}
        for row in inner.rows:
            groups.setdefault(tuple(row[place] for place in kept), []).append(row)

        def of(rows: list[Row]) -> Any:
            held = [row[summed] for row in rows if row[summed] is not None]
            if not rows:
                return None
            return (
                len(rows) if call == "count(*)" else len(held) if call.startswith("count") else max(held, default=None)
            )

        rows = [
            (*group, *(of([row for row in held if row[key] == value]) for value in values))
            for group, held in groups.items()
        ]
        listed = ", ".join(f"{_written(value)} AS {name}" for value, name in zip(values, new, strict=True))
        kind = inner.columns[names[summed]] if call.startswith("max") else "i"
        columns = {names[place]: inner.columns[names[place]] for place in kept} | dict.fromkeys(new, kind)
        return Relation(f"{with_}SELECT * FROM {source} PIVOT ({call} FOR {names[key]} IN ({listed}))", columns, rows)

    def _unpivoted(self, inner: Relation) -> Relation | None:
        """Columns of one kind as rows."""
        pick = self._chance
        names = list(inner.columns)
        kind = pick.choice("is")
        own = [place for place, name in enumerate(names) if inner.columns[name] == kind]
        if not own:
            return None
        with_, source, _, _ = self._from(inner)
        chosen = pick.sample(own, min(len(own), 2))
        kept = [place for place in range(len(names)) if place not in chosen]
        name, value, with_nulls = self._name(), self._name(), pick.random() < 0.5
        rows = [
            (*(row[one] for one in kept), names[place], row[place])
            for row in inner.rows
            for place in chosen
            if with_nulls or row[place] is not None
        ]
        listed = ", ".join(names[place] for place in chosen)
        columns = {names[place]: inner.columns[names[place]] for place in kept} | {name: "s", value: kind}
        word = "INCLUDE NULLS " if with_nulls else pick.choice(("", "EXCLUDE NULLS "))
        return Relation(
            f"{with_}SELECT * FROM {source} UNPIVOT {word}({value} FOR {name} IN ({listed}))", columns, rows
        )

    # Two queries

    def _joined(self, inner: Relation) -> Relation | None:
        """Two queries by a condition on both."""
        other = self.query(1)
        if len(inner.rows) * len(other.rows) > 20 * MOST_ROWS:
            return None
        key = self._chance.choice(list(inner.columns))
        if self._chance.random() < 0.2:
            other = self._picked_as(other, f"{inner.columns[key]}s")
            return Relation(*natural(_given(inner), _given(other), key, f"q{self._name()}"))
        _, left, one, _ = self._from(inner)
        left = left if left != one else f"({inner.text}) AS {one}"
        second = f"q{self._name()}"
        places = [(name, kind, f"{one}.{name}") for name, kind in inner.columns.items()]
        places += [(name, kind, f"{second}.{name}") for name, kind in other.columns.items()]
        columns = [Column(text, kind, place) for place, (_, kind, text) in enumerate(places)]
        test = Values(self._chance, columns).condition(1)
        kind = self._chance.choice(
            ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN", "CROSS JOIN")
        )
        if kind == "FULL JOIN":
            test = _equal(columns, len(inner.columns)) or test
        rows = _join(inner, other, kind, test)
        on = "" if kind == "CROSS JOIN" else f" ON {test.text}"
        text = f"SELECT * FROM {left} {kind} ({other.text}) AS {second}{on}"
        given = dict(inner.columns) if kind in ("SEMI JOIN", "ANTI JOIN") else {**inner.columns, **other.columns}
        return Relation(text, given, rows)

    def _combined(self, inner: Relation) -> Relation | None:
        """Rows of two queries as sets."""
        other = self.query(1)
        kinds = list(inner.columns.values())
        if list(other.columns.values()) != kinds:
            other = self._picked_as(other, kinds)
        if self._chance.random() < 0.3:
            return Relation(*united(_given(inner), _given(other), self._chance, f"q{self._name()}"))
        word = self._chance.choice(("UNION ALL", "UNION", "INTERSECT", "EXCEPT"))
        second = set(other.rows)
        rows = {
            "UNION ALL": inner.rows + other.rows,
            "UNION": list(dict.fromkeys(inner.rows + other.rows)),
            "INTERSECT": [row for row in dict.fromkeys(inner.rows) if row in second],
            "EXCEPT": [row for row in dict.fromkeys(inner.rows) if row not in second],
        }[word]
        return Relation(f"SELECT * FROM (({inner.text}) {word} ({other.text}))", inner.columns, rows)

    def _picked_as(self, inner: Relation, kinds: Sequence[str]) -> Relation:
        """Expressions of the kinds that are asked for."""
        with_, source, _, values = self._from(inner)
        made = [(self._name(), values.value(kind)) for kind in kinds]
        rows = [tuple(one.of(row) for _, one in made) for row in inner.rows]
        listed = ", ".join(f"{one.text} AS {name}" for name, one in made)
        return Relation(
            f"{with_}SELECT {listed} FROM {source}", dict(zip((n for n, _ in made), kinds, strict=True)), rows
        )

    def _asked(self, inner: Relation) -> Relation | None:
        """Rows by a sub-query: IN, EXISTS, or a value of its own."""
        other = self._picked_as(self.query(1), "i")
        with_, source, alias, values = self._from(inner)
        number, column = values.number(1), next(iter(other.columns))
        found = [row[0] for row in other.rows]
        word, wanted = self._chance.choice((("", True), ("NOT ", False)))
        match self._chance.randrange(4):
            case 3:
                compared = quantified(number, other.text, found, self._chance)
                test = f"{word}{compared.text}"

                def passes(row: Row) -> bool:
                    return compared.of(row) is wanted
            case 0:
                test = f"{number.text} {word}IN ({other.text})"

                def passes(row: Row) -> bool:
                    value = number.of(row)
                    held = among(None if value is None or one is None else one == value for one in found)
                    return held is wanted
            case 1:
                test = f"{word}EXISTS (SELECT 1 FROM ({other.text}) AS e WHERE e.{column} = {number.text})"

                def passes(row: Row) -> bool:
                    value = number.of(row)
                    return any(value is not None and one == value for one in found) is wanted
            case _:
                test = f"{number.text} >= (SELECT max({column}) FROM ({other.text}) AS e)"
                most = max((one for one in found if one is not None), default=None)

                def passes(row: Row) -> bool:
                    value = number.of(row)
                    return value is not None and most is not None and bool(value >= most)

        text = f"{with_}SELECT {alias}.* FROM {source} WHERE {test}"
        return Relation(text, inner.columns, [row for row in inner.rows if passes(row)])

    def _lateral(self, inner: Relation) -> Relation | None:
        """What a query says of each row of another."""
        other = self._picked_as(self.query(1), "is")
        if len(inner.rows) * len(other.rows) > 20 * MOST_ROWS:
            return None
        with_, source, _, values = self._from(inner)
        number, (column, word) = values.number(0), list(other.columns)
        a = self._name()
        found = [[one for one in other.rows if _is_same(number.of(row), one[0])] for row in inner.rows]
        made: list[list[Row]]
        where = f"FROM ({other.text}) AS e WHERE e.{column} = {number.text}"
        is_left = self._chance.random() < 0.5
        if self._chance.random() < 0.2:  # a recursion of each row's own
            name, most, kind = f"r{self._name()}", self._chance.randrange(5), "i"
            steps = (
                f"SELECT {number.text}, 0 UNION ALL SELECT n + 1, d + 1 FROM {name} WHERE d < {most} AND n IS NOT NULL"
            )
            query = f"WITH RECURSIVE {name}(n, d) AS ({steps}) SELECT max(n) AS {a} FROM {name}"
            made = [[(None if value is None else value + most,)] for value in map(number.of, inner.rows)]
        elif self._chance.random() < 0.5:
            query, kind = f"SELECT count(*) AS {a} {where}", "i"
            made = [[(len(rows),)] for rows in found]
        else:
            query, kind = f"SELECT e.{word} AS {a} {where}", "s"
            made = [[(one[1],) for one in rows] or [(None,)] * is_left for rows in found]
        join = f"LEFT JOIN LATERAL ({query}) AS l ON TRUE" if is_left else f"CROSS JOIN LATERAL ({query}) AS l"
        rows = [(*row, *one) for row, own in zip(inner.rows, made, strict=True) for one in own]
        return Relation(f"{with_}SELECT * FROM {source} {join}", {**inner.columns, a: kind}, rows)

    def _repeated(self, inner: Relation) -> Relation:
        """A recursion that begins with rows of a query."""
        begun = self._picked_as(inner, "i")
        name, n, depth = f"r{self._name()}", self._name(), self._name()
        steps, least = self._chance.randrange(4), self._chance.randrange(3)
        last: list[Row] = [(row[0], 0) for row in begun.rows]
        rows = list(last)
        for _ in range(steps):
            last = [(value + 2, taken + 1) for value, taken in last if value is not None and value >= least]
            rows += last
        text = (
            f"WITH RECURSIVE {name}({n}, {depth}) AS (SELECT b.*, CAST(0 AS BIGINT) FROM ({begun.text}) AS b UNION ALL "
            f"SELECT x.{n} + 2, x.{depth} + 1 FROM {name} AS x WHERE x.{depth} < {steps} AND x.{n} >= {least}) "
            f"SELECT * FROM {name}"
        )
        return Relation(text, {n: "i", depth: "i"}, rows)


def _given(query: Relation) -> Given:
    return query.text, dict(query.columns), query.rows


def _is_same(one: Any, other: Any) -> bool:
    return one is not None and other is not None and one == other


def _equal(columns: Sequence[Column], left: int) -> Value | None:
    """A condition by which DuckDB can join both sides in full: two columns are equal."""
    for one, other in product(columns[:left], columns[left:]):
        if one.kind == other.kind:
            return Value(f"{one.text} = {other.text}", _test_of(one.place, other.place))
    return None


def _test_of(one: int, other: int) -> Callable[[Row], bool | None]:
    return lambda row: None if row[one] is None or row[other] is None else row[one] == row[other]


def _join(left: Relation, right: Relation, kind: str, test: Value) -> list[Row]:
    pairs = [
        (a, b)
        for a, one in enumerate(left.rows)
        for b, other in enumerate(right.rows)
        if kind == "CROSS JOIN" or test.of((*one, *other)) is True
    ]
    met, seen = {a for a, _ in pairs}, {b for _, b in pairs}
    if kind in ("SEMI JOIN", "ANTI JOIN"):
        return [row for place, row in enumerate(left.rows) if (place in met) is (kind == "SEMI JOIN")]
    rows = [(*left.rows[a], *right.rows[b]) for a, b in pairs]
    if kind in ("LEFT JOIN", "FULL JOIN"):
        rows += [(*row, *[None] * len(right.columns)) for place, row in enumerate(left.rows) if place not in met]
    if kind in ("RIGHT JOIN", "FULL JOIN"):
        rows += [(*[None] * len(left.columns), *row) for place, row in enumerate(right.rows) if place not in seen]
    return rows


def _key(row: Row) -> tuple[Any, ...]:
    """Where a row stands in an order by all of its columns: nulls come first."""
    return tuple((one is not None, one if one is not None else 0) for one in row)


def _written(value: Any) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)
