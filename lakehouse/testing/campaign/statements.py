"""Random statements over a lake, compared with plain DuckDB over tables of the same rows, made from Python lists.

This checks the lake's own parts: names, versions, columns and conditions pushed to scans, masks of deleted and changed
rows, and what DML writes. Functions are checked elsewhere, because both sides share DuckDB.
"""
# ruff: noqa: S311, S608 - every text is of this module's own making, and the same for one seed

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import lakehouse
from lakehouse.errors import InvalidInput, LakehouseError
from lakehouse.testing.campaign.outcome import Outcome

_ROUND = 150
"""How many queries run between changes of the tables."""
_START = datetime(2013, 1, 1, tzinfo=UTC)
_COLUMNS = {
    "t": {"ts": "TIMESTAMP", "k": "BIGINT", "v": "INT", "s": "STRING", "x": "DOUBLE"},
    "u": {"ts": "TIMESTAMP", "k": "BIGINT", "w": "INT", "s": "STRING"},
}
_ARROW = {
    "TIMESTAMP": pa.timestamp("us", "UTC"), "BIGINT": pa.int64(), "INT": pa.int32(), "STRING": pa.string(),
    "DOUBLE": pa.float64(),
}  # fmt: skip
_PIECES = {
    "BIGINT": [None, *range(-2, 8)],
    "INT": [None, 0, 1, 1, 2, 3, -1],
    "STRING": [None, "", "a", "ab", "b%", "A", "ü"],
    "DOUBLE": [None, 0.0, -0.5, 1.5, 2.5, 1e6],
}
_Rows = list[dict[str, Any]]


def run(count: int, seed: int) -> Outcome:
    """Try ``count`` statements: queries, with a change now and then. About 10 a second."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="statements-") as folder, _Pair(Path(folder)) as pair:
        return pair.run(chance, count)


class _Pair:
    """A lake, and a plain database that runs the same, with versions as separate tables."""

    def __init__(self, folder: Path) -> None:
        self.lake = lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse")
        self.plain = duckdb.connect(":memory:")
        self.plain.execute("SET TimeZone = 'UTC'")
        self.rows: dict[str, _Rows] = {name: [] for name in _COLUMNS}
        self.versions: list[int] = []
        self.wrong: list[str] = []
        self.refused = 0

    def __enter__(self) -> _Pair:
        for name, columns in _COLUMNS.items():
            listed = ", ".join(f"{one} {kind}" for one, kind in columns.items())
            self.lake.sql(f"CREATE TABLE {name} ({listed}) PARTITIONED BY (days(ts)) CLUSTER BY (k)")
        return self

    def __exit__(self, *_: object) -> None:
        self.plain.close()
        self.lake.close()

    def run(self, chance: random.Random, count: int) -> Outcome:
        tried = 0
        while tried < count:
            for _ in range(6):
                tried += 1
                self.change(chance)
            self.remember()
            for _ in range(min(_ROUND, max(0, count - tried))):
                tried += 1
                self.query(chance)
        return Outcome("statements", tried, self.refused, self.wrong)

    # Changes

    def change(self, chance: random.Random) -> None:
        """Change one table on both sides: the plain side by a loop over its rows."""
        name = chance.choice(list(_COLUMNS))
        kind = chance.choice(["insert", "insert", "delete", "update", "copy", "compact"])
        expected = list(self.rows[name])
        match kind if expected else "insert":
            case "insert":
                made = [_row(chance, name) for _ in range(chance.randrange(1, 30))]
                values = ", ".join("(" + ", ".join(_written(one) for one in row.values()) + ")" for row in made)
                text, expected = f"INSERT INTO {name} VALUES {values}", expected + made
            case "copy":
                test, passes = _test(chance, name)
                text = f"INSERT INTO {name} SELECT * FROM {name} WHERE {test}"
                expected += [row for row in expected if passes(row) is True]
            case "delete":
                test, passes = _test(chance, name)
                text = f"DELETE FROM {name} WHERE {test}"
                expected = [row for row in expected if passes(row) is not True]
            case "update":
                test, passes = _test(chance, name)
                text = f"UPDATE {name} SET s = 'new', k = k + 1 WHERE {test}"
                expected = [_updated(row) if passes(row) is True else row for row in expected]
            case _:
                self.lake.table(name).compact()
                return
        try:
            self.lake.sql(text, engine="duckdb")
        except InvalidInput as error:
            self.wrong.append(f"{text}: {error}")
            return
        self.rows[name] = expected
        found = self.lake.table(name).scan().to_arrow().to_pylist()
        if _counted(found) != _counted(expected):
            self.wrong.append(f"{text}: the table's rows are others")
            self.rows[name] = found

    def remember(self) -> None:
        """Store the current rows on the plain side, also as a version."""
        self.versions.append(self.lake.head)
        for name, columns in _COLUMNS.items():
            schema = pa.schema([(one, _ARROW[kind]) for one, kind in columns.items()])
            self.plain.register("given", pa.Table.from_pylist(self.rows[name], schema))
            for table in (name, f"{name}_{self.lake.head}"):
                self.plain.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM given")

    # Queries

    def query(self, chance: random.Random) -> None:
        """Run one query on both sides and compare their rows, in order if the query has one."""
        text = _Writer(chance, self.versions).query()
        plain = text
        for version in self.versions:
            plain = plain.replace(f" VERSION AS OF {version}", f"_{version}")
        if " GROUP BY ROLLUP" in text or " GROUP BY CUBE" in text:  # of no rows Spark makes no total, DuckDB one
            plain += " AND count(*) > 0" if " HAVING " in text else " HAVING count(*) > 0"
        try:
            found = self.lake.sql(text, engine="duckdb").fetchall()
        except LakehouseError as error:
            found, refusal = None, str(error)
        try:
            expected = self.plain.sql(plain).fetchall()
        except duckdb.Error as error:
            expected = None
            if found is not None:
                self.wrong.append(f"{text}: only the lake takes it: {error}")
        if found is None:
            self.refused += 1
            if expected is not None and "ambiguous" not in refusal:
                self.wrong.append(f"{text}: only the lake refuses it: {refusal}")
        elif expected is not None and Counter(map(repr, found)) != Counter(map(repr, expected)):
            self.wrong.append(f"{text}: {sorted(map(repr, found))[:5]} instead of {sorted(map(repr, expected))[:5]}")


def _counted(rows: _Rows) -> Counter[Any]:
    return Counter(tuple(row.values()) for row in rows)


def _row(chance: random.Random, name: str) -> dict[str, Any]:
    at = _START + timedelta(hours=chance.randrange(24 * 6))
    return {one: at if kind == "TIMESTAMP" else chance.choice(_PIECES[kind]) for one, kind in _COLUMNS[name].items()}


def _updated(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "s": "new", "k": None if row["k"] is None else row["k"] + 1}


def _written(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case datetime():
            return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S}'"
        case str():
            return f"'{value}'"
    return str(value)


def _test(chance: random.Random, name: str) -> tuple[str, Callable[[dict[str, Any]], bool | None]]:
    """A condition on a table's rows, as text and as a function of a row."""
    column = chance.choice([one for one, kind in _COLUMNS[name].items() if kind != "DOUBLE"])
    kind = _COLUMNS[name][column]
    value = _START + timedelta(hours=chance.randrange(150)) if kind == "TIMESTAMP" else chance.choice(_PIECES[kind][1:])
    operator = chance.choice(["=", "<", ">=", "IS NULL"])
    if operator == "IS NULL":
        return f"{column} IS NULL", lambda row: row[column] is None

    def passes(row: dict[str, Any]) -> bool | None:
        held = row[column]
        if held is None:
            return None
        return bool({"=": held == value, "<": held < value, ">=": held >= value}[operator])

    return f"{column} {operator} {_written(value)}", passes


class _Writer:
    """Writes one random query, whose meaning is the same in Spark's SQL and in DuckDB's."""

    def __init__(self, chance: random.Random, versions: list[int]) -> None:
        self._chance = chance
        self._versions = versions
        self._used = 0

    def query(self) -> str:
        """A query: plain, aggregated, with WITH, or a combination of several."""
        kind = self._chance.choice(["plain", "plain", "plain", "grouped", "with", "set", "window", "limit"])
        match kind:
            case "grouped":
                return self._grouped()
            case "with":
                inner, columns = self._picked()
                test = self._condition({"c": columns})
                return f"WITH c AS ({inner}) SELECT * FROM c WHERE {test}"
            case "set":
                word = self._chance.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT"])
                return f"SELECT k, s FROM {self._table('t')} {word} SELECT k, s FROM {self._table('u')}"
            case "window":
                source, names = self._source()
                first = next(iter(names))
                over = f"OVER (PARTITION BY {first}.s ORDER BY {first}.k NULLS FIRST, {first}.ts NULLS FIRST)"
                return f"SELECT {first}.k, rank() {over}, count(*) {over} FROM {source}{self._where(names)}"
            case "limit":
                source, names = self._source()
                return f"SELECT count(*) FROM (SELECT * FROM {self._table('t')} LIMIT {self._chance.randrange(20)})"
        return self._plain()

    def _plain(self) -> str:
        source, names = self._source()
        listed = ", ".join(f"{alias}.{column}" for alias, columns in names.items() for column in columns)
        distinct = "DISTINCT " if self._chance.random() < 0.2 else ""
        return f"SELECT {distinct}{listed} FROM {source}{self._where(names)}"

    def _grouped(self) -> str:
        source, names = self._source()
        alias = self._chance.choice(list(names))
        having = self._chance.choice(["", " HAVING count(*) > 2", f" HAVING max({alias}.k) > 1"])
        group, also = self._chance.choice(
            [(f"{alias}.s", ""), (f"ROLLUP ({alias}.s)", f", grouping({alias}.s)"),
             (f"CUBE ({alias}.s, {alias}.k)", f", grouping({alias}.s) + grouping({alias}.k), bit_or({alias}.k)")]
        )  # fmt: skip
        return (
            f"SELECT {alias}.s, count(*), sum({alias}.k), min({alias}.ts), count(DISTINCT {alias}.k){also} "
            f"FROM {source}{self._where(names)} GROUP BY {group}{having}"
        )

    def _source(self) -> tuple[str, dict[str, list[str]]]:
        """The text of a FROM, and the columns that can be used with it, by alias."""
        text, names = self._item()
        for _ in range(self._chance.choice([0, 0, 1, 1, 2])):
            right, more = self._item()
            (one, other) = (next(iter(names)), next(iter(more)))
            kind = self._chance.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"])
            on = f"{one}.k = {other}.k"
            if self._chance.random() < 0.5 and kind != "FULL JOIN":
                on += f" AND {self._simple({**names, **more})}"
            text += f" {kind} {right} ON {on}"
            if kind not in ("SEMI JOIN", "ANTI JOIN"):
                names = {**names, **more}
        return text, names

    def _item(self) -> tuple[str, dict[str, list[str]]]:
        self._used += 1
        alias = f"a{self._used}"
        if self._chance.random() < 0.3:
            inner, columns = self._picked()
            return f"({inner}) AS {alias}", {alias: columns}
        name = self._chance.choice(list(_COLUMNS))
        return f"{self._table(name)} AS {alias}", {alias: list(_COLUMNS[name])}

    def _picked(self) -> tuple[str, list[str]]:
        """A query of one table, with some columns renamed to other columns' names."""
        name = self._chance.choice(list(_COLUMNS))
        own = [one for one, kind in _COLUMNS[name].items() if kind in ("BIGINT", "INT")]
        first, second = self._chance.sample(own, 2)
        items = self._chance.choice(
            [
                ("ts, k, s", ["ts", "k", "s"]),
                (f"ts, {first} AS {second}, {second} AS {first}, s", ["ts", second, first, "s"]),
                (f"{first} AS k, ts, s", ["k", "ts", "s"]),
                ("k + 1 AS k, ts, s", ["k", "ts", "s"]),
            ]
        )
        test, _ = _test(self._chance, name)
        where = f" WHERE {test}" if self._chance.random() < 0.6 else ""
        group = ""
        if self._chance.random() < 0.2:
            return f"SELECT max(ts) AS ts, k, s FROM {self._table(name)}{where} GROUP BY k, s{group}", ["ts", "k", "s"]
        return f"SELECT {items[0]} FROM {self._table(name)}{where}", items[1]

    def _table(self, name: str) -> str:
        if self._chance.random() < 0.2:
            return f"{name} VERSION AS OF {self._chance.choice(self._versions)}"
        return name

    def _where(self, names: dict[str, list[str]]) -> str:
        return f" WHERE {self._condition(names)}" if self._chance.random() < 0.8 else ""

    def _condition(self, names: dict[str, list[str]], depth: int = 0) -> str:
        kind = self._chance.choice(["simple", "simple", "simple", "and", "or", "not", "in", "exists"])
        if depth > 2 or kind == "simple":
            return self._simple(names)
        match kind:
            case "and" | "or":
                parts = [self._condition(names, depth + 1) for _ in range(2)]
                return "(" + f" {kind.upper()} ".join(parts) + ")"
            case "not":
                return f"NOT ({self._condition(names, depth + 1)})"
        alias = self._chance.choice(list(names))
        word = self._chance.choice(["", "NOT "])
        table, (inner, _) = self._table("u"), _test(self._chance, "u")
        if kind == "in" and self._chance.random() < 0.3:
            return f"({alias}.k, {alias}.s) {word}IN (SELECT k, s FROM {table} WHERE {inner})"
        if kind == "in":
            return f"{alias}.k {word}IN (SELECT k FROM {table} WHERE {inner})"
        return f"{word}EXISTS (SELECT 1 FROM {table} AS q WHERE q.k = {alias}.k AND q.s = 'a')"

    def _simple(self, names: dict[str, list[str]]) -> str:
        alias = self._chance.choice(list(names))
        column = self._chance.choice(names[alias])
        name = f"{alias}.{column}"
        word = self._chance.choice(["", "NOT "])
        match column:
            case "ts":
                bound = _written(_START + timedelta(hours=self._chance.randrange(150)))
                return f"{name} {self._chance.choice(['<', '>=', '=', '<>'])} {bound}"
            case "s":
                return self._chance.choice(
                    [
                        f"{name} {word}LIKE 'a%'",
                        f"{name} = 'a'",
                        f"{name} IS {word}NULL",
                        f"{name} {word}IN ('a', 'ü', NULL)",
                    ]
                )
            case "x":
                return f"{name} {self._chance.choice(['<', '>=', '='])} {self._chance.choice(['0.0', '1.5', '1e6'])}"
        number = self._chance.randrange(-1, 6)
        return self._chance.choice(
            [f"{name} {self._chance.choice(['=', '<', '>=', '<>'])} {number}", f"{name} IS {word}NULL",
             f"{name} {word}BETWEEN {number} AND {number + 2}", f"{name} {word}IN ({number}, 3, 9)",
             f"{name} + 1 > {number}", f"coalesce({name}, 0) = {number}"]
        )  # fmt: skip


def texts(count: int, seed: int) -> Iterator[str]:
    """Print ``count`` queries."""
    chance = random.Random(seed)
    for _ in range(count):
        yield _Writer(chance, [1]).query()
