"""Hostile statements and command lines: each ends in an answer or a documented error, within its limits.

Statements are grown from the grammar with wrong numbers and types of arguments, odd names, huge literals, deep nests
and missing aliases, then cut and shuffled. Queries run in query processes and are observed from outside: their
duration, and their peak memory by the kernel's count. Changes run in this process, on a throw-away lake.
"""
# ruff: noqa: E501, S608 - a grammar: its rules stand on a line each, and its texts are hostile on purpose

from __future__ import annotations

import contextlib
import io
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import lakehouse
from lakehouse.errors import InternalError, LakehouseError
from lakehouse.sql.functions import NAMES
from lakehouse.testing.campaign.odd_sources import GENERATORS, odd_source
from lakehouse.testing.campaign.outcome import Outcome

MOST_SECONDS = 5.0
MOST_MEMORY = 1_000_000_000
_GRACE_SECONDS = 25.0
"""What starting a process, and a busy machine, may add to measurements from outside."""
_TABLES = """
CREATE TABLE t (at TIMESTAMP, id BIGINT, s STRING, v DOUBLE, d DATE, b BOOLEAN, n DECIMAL(12, 2)) PARTITIONED BY (days(at));
CREATE TABLE u (ts TIMESTAMP, id INT, name STRING) PARTITIONED BY (months(ts));
INSERT INTO t VALUES ('2013-01-05 07:00', 1, 'a', 1.5, '2013-01-05', true, 1.25), ('2013-01-06', 2, 'ü', NULL, NULL, NULL, NULL),
    ('9999-12-31', 3, '', -1e300, '0001-01-01', false, 0);
INSERT INTO u VALUES ('2013-02-01', 1, 'a'), ('2013-03-01', NULL, NULL)
"""
_COLUMNS = (
    *("id", "s", "v", "d", "b", "n", "at") * 3, "t.id", "u.id", "gone", "`no such`", "t.gone", "x.y.z", "*", "t.*", "?", ":a",
)  # fmt: skip
_ODD = (
    "\ud800",
    "\0",
    "\u202e",
    "\U0001f600",
    "é",
    "\ufeff",
    "'",
    '"',
    "`",
    "\\",
    ";",
    "--",
    "/*",
    "*/",
    "$$",
    "${a}",
    "\x1b[31m",
    "\n",
)
_NUMBERS = (
    "0",
    "-1",
    "1e400",
    "9223372036854775808",
    "1" * 40,
    "1" * 5000,
    "0.1",
    "1e-400",
    "007",
    "1.5D",
    "X'0'",
    "1e30",
    "NaN",
)
_VALUES = (None, True, -1, 10**30, float("nan"), Decimal("-0.1"), "'", "\0", b"'", date(1, 1, 1), object(), [1])
_TYPES = (
    "INT",
    "BIGINT",
    "DOUBLE",
    "STRING",
    "DATE",
    "TIMESTAMP",
    "DECIMAL(38, 10)",
    "DECIMAL(99, 99)",
    "ARRAY<INT>",
    "BINARY",
    "gone",
)
_TIMES = (
    "'2013-01-05'",
    "DATE '2013-01-05'",
    "TIMESTAMP '9999-12-31 23:59:59'",
    "DATE 'never'",
    "INTERVAL '1' DAY",
    "INTERVAL 1 fortnight",
)
_OPERATORS = (
    "+",
    "-",
    "*",
    "/",
    "%",
    "||",
    "=",
    "<>",
    "<",
    "<=>",
    "AND",
    "OR",
    "LIKE",
    "NOT LIKE",
    "ILIKE",
    "IN",
    "IS",
    "&",
    "div",
    "BETWEEN",
)
_JOINS = (
    ",",
    "JOIN",
    "LEFT JOIN",
    "FULL OUTER JOIN",
    "CROSS JOIN",
    "LEFT SEMI JOIN",
    "LEFT ANTI JOIN",
    "NATURAL JOIN",
    "LATERAL JOIN",
)
_WORDS = (
    "SELECT", "FROM", "WHERE", "GROUP", "BY", "HAVING", "ORDER", "LIMIT", "OFFSET", "WITH", "AS", "(", ")", ",", "*", "VALUES", "UNION",
    "ALL", "JOIN", "ON", "USING", "CASE", "WHEN", "THEN", "END", "OVER", "PARTITION", "NULL",
)  # fmt: skip


class Grown:
    """Grows random statements from the grammar, one for each call."""

    def __init__(self, chance: random.Random, most_repeats: int = 2000) -> None:
        self._chance = chance
        self._most_repeats = most_repeats

    def query(self, depth: int = 3) -> str:
        """A query, right or wrong."""
        pick, expression = self._chance, self.expression
        if pick.random() < 0.04:
            return self._long()
        text = f"SELECT {'DISTINCT ' if pick.random() < 0.1 else ''}{self._several(lambda: self._item(depth))}"
        if pick.random() < 0.9:
            text += f" FROM {self._source(depth)}"
            while pick.random() < 0.3:
                text += f" {pick.choice(_JOINS)} {self._source(depth)}{self._on(depth)}"
        for clause, likely in (
            ("WHERE", 0.5),
            ("GROUP BY", 0.2),
            ("HAVING", 0.1),
            ("QUALIFY", 0.05),
            ("ORDER BY", 0.2),
        ):
            if pick.random() < likely:
                text += f" {clause} {expression(depth)}"
        if pick.random() < 0.2:
            text += f" {pick.choice(('LIMIT', 'OFFSET'))} {pick.choice((*_NUMBERS, '5', 'id', 'NULL'))}"
        if depth and pick.random() < 0.15:
            text += f" {pick.choice(('UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT'))} {self.query(depth - 1)}"
        if depth and pick.random() < 0.15:
            text = f"WITH {pick.choice('ctu')} AS ({self.query(depth - 1)}) {text}"
        return f"EXPLAIN {text}" if pick.random() < 0.02 else text

    def change(self) -> str:
        """A statement that changes rows or tables, right or wrong."""
        pick, expression = self._chance, self.expression
        return pick.choice(
            (
                lambda: f"INSERT INTO {pick.choice('tux')} {self.query(1)}",
                lambda: (
                    f"INSERT INTO t ({self._several(lambda: pick.choice(_COLUMNS))}) VALUES ({self._several(lambda: expression(1))})"
                ),
                lambda: f"INSERT INTO t REPLACE WHERE {expression(2)} {self.query(0)}",
                lambda: f"INSERT OVERWRITE {pick.choice(('TABLE ', ''))}{pick.choice('tux')} {self.query(0)}",
                lambda: f"TRUNCATE TABLE {pick.choice(('u', 'x', self._name()))}",
                lambda: (
                    f"CREATE TABLE {self._name()} PARTITIONED BY (days({pick.choice(_COLUMNS)})) AS {self.query(0)}"
                ),
                lambda: f"DELETE FROM {pick.choice('tu')} WHERE {expression(2)}",
                lambda: f"DELETE FROM t WHERE {pick.choice(_COLUMNS)} IN ({self.query(0)})",
                lambda: f"UPDATE u SET {pick.choice(_COLUMNS)} = ({self.query(0)}) WHERE {expression(1)}",
                lambda: f"UPDATE t SET {pick.choice(_COLUMNS)} = {expression(2)} WHERE {expression(2)}",
                lambda: f"MERGE INTO t USING {self._source(1)} AS s ON {expression(1)} WHEN MATCHED THEN DELETE",
                lambda: (
                    f"CREATE TABLE {self._name()} (ts {pick.choice(_TYPES)}, a {pick.choice(_TYPES)}) PARTITIONED BY (days(ts)) "
                    f"TBLPROPERTIES ('{self._name()}' = '{self._name()}')"
                ),
                lambda: f"BEGIN; {'; '.join(self.change() for _ in range(pick.randrange(1, 4)))}; COMMIT",
                lambda: (
                    f"MERGE INTO t USING {self._source(0)} AS s ON {expression(1)} "
                    f"WHEN NOT MATCHED BY SOURCE AND {expression(1)} THEN UPDATE SET v = {expression(1)}"
                ),
                lambda: f"CREATE {pick.choice(('', 'OR REPLACE '))}VIEW {pick.choice('tvw')} AS {self.query(1)}",
                lambda: f"CREATE VIEW {self._name()} ({self._name()}, a) AS SELECT id, {expression(1)} FROM t, w",
                lambda: f"DROP {pick.choice(('TABLE', 'VIEW'))} IF EXISTS {self._name()}",
                lambda: f"DESCRIBE {self._name()}",
                lambda: f"SHOW {pick.choice(('COLUMNS IN', 'CREATE TABLE', 'TBLPROPERTIES'))} {self._name()}",
                lambda: (
                    f"SHOW {pick.choice(('TABLES', 'SCHEMAS', 'VIEWS'))} LIKE '{pick.choice(_ODD)}*{pick.choice(_ODD)}'"
                ),
            )
        )()

    def mangled(self, text: str) -> str:
        """The same with some words lost, doubled, swapped or replaced, and odd characters inserted."""
        pick = self._chance
        words = re.findall(r"\w+|\s+|.", text, re.DOTALL)
        for _ in range(pick.randrange(1, 4)):
            place = pick.randrange(len(words))
            match pick.randrange(5):
                case 0:
                    words[place] = ""
                case 1:
                    words[place] *= 2
                case 2:
                    other = pick.randrange(len(words))
                    words[place], words[other] = words[other], words[place]
                case 3:
                    words[place] = f" {pick.choice(_WORDS)} "
                case _:
                    words[place] += pick.choice(_ODD)
        return "".join(words)

    def expression(self, depth: int) -> str:
        """A value, right or wrong."""
        pick = self._chance
        if depth <= 0 or pick.random() < 0.2:
            return pick.choice(
                (pick.choice(_COLUMNS), pick.choice(_NUMBERS), pick.choice(_TIMES), "NULL", "true", "'a'", "''")
            )
        match pick.randrange(12):
            case 0 | 1 | 2 | 3 | 4:
                arguments = ", ".join(self.expression(depth - 1) for _ in range(pick.choice((0, 1, 1, 2, 2, 3, 4, 7))))
                over = pick.choice(
                    ("", "", "", f" OVER (ORDER BY {self.expression(0)})", " OVER ()", " FILTER (WHERE b)")
                )
                return f"{pick.choice(_FUNCTIONS)}({arguments}){over}"
            case 5 | 6:
                return f"{self.expression(depth - 1)} {pick.choice(_OPERATORS)} {self.expression(depth - 1)}"
            case 7:
                return f"CAST({self.expression(depth - 1)} AS {pick.choice(_TYPES)})"
            case 8:
                return f"CASE WHEN {self.expression(depth - 1)} THEN {self.expression(depth - 1)} END"
            case 9:
                return f"{pick.choice(('', 'EXISTS ', 'NOT EXISTS ', 'id IN '))}({self.query(depth - 2)})"
            case 10:
                return f"{pick.choice(('NOT ', '-', '~', ''))}({self.expression(depth - 1)})"
            case _:
                return f"{self.expression(depth - 1)} {pick.choice(('IS NULL', 'BETWEEN 1 AND 2', 'IN (1, NULL)', '[0]', '.a'))}"

    def _item(self, depth: int) -> str:
        return self.expression(depth) + self._chance.choice(("", "", " AS a", f" AS {self._name()}", " a b"))

    def _source(self, depth: int) -> str:
        pick = self._chance
        if pick.random() < 0.1:
            return odd_source(pick, self.expression, self.query, depth)
        named = pick.choice(("", "", " AS a", " a", f" AS {self._name()}", " AS a(x, y)"))
        if depth > 0 and pick.random() < 0.2:
            return f"({self.query(depth - 1)}){named}"
        version = pick.choice(
            (
                "",
                "",
                "",
                "",
                f" VERSION AS OF {pick.choice((*_NUMBERS, '3', chr(39) + 'x' + chr(39)))}",
                " TIMESTAMP AS OF 'x'",
            )
        )
        return (
            pick.choice(
                (
                    "t",
                    "t",
                    "u",
                    "c",
                    "gone",
                    "a.b",
                    "t.segments",
                    "u.history",
                    "information_schema.columns",
                    "VALUES (1), (2)",
                    "range(9)",
                    "'file.csv'",
                )
            )
            + version
            + named
        )

    def _on(self, depth: int) -> str:
        return self._chance.choice(
            ("", " ON t.id = u.id", " USING (id)", f" ON {self.expression(depth)}", f" ON ({self.query(0)})")
        )

    def _several(self, one: Callable[[], str]) -> str:
        return ", ".join(one() for _ in range(self._chance.choice((1, 1, 2, 3))))

    def _name(self) -> str:
        return self._chance.choice(("t", "T", "`t`", "x", "new", "select", f"`{self._chance.choice(_ODD)}`", "a" * 300))

    def _long(self) -> str:
        pick = self._chance
        call, end, count = (
            pick.choice(_NESTS),
            pick.choice((")", "", " END", " AS INT)")),
            min(pick.choice((5, 30, 200, 2000)), self._most_repeats),
        )
        one, by = self.expression(1), pick.choice((", ", " OR ", " + ", " UNION ALL SELECT ", " || "))
        return pick.choice(
            (
                f"SELECT {call * count}1{end * count} FROM t",
                f"SELECT {by.join([one] * min(count, 300))} FROM t",
                f"SELECT max(length({'concat(' * 4}s{', s, s, s, s, s, s, s)' * 4})) FROM t a, t b, t c, t d, t e",
                f"SELECT replace(replace('{'a' * 1000}', 'a', '{'b' * count}'), 'b', '{'c' * count}') FROM t",
                f"SELECT count(*) FROM {', '.join(f't a{place}' for place in range(min(count, 30)))}",
                "WITH " + ", ".join(f"c{place} AS (SELECT * FROM {f'c{place - 1}' if place else 't'})" for place in range(min(count, 250)))
                + " SELECT count(*) FROM c4",
                f"SELECT '{pick.choice(_ODD) * count}' AS a",
            )
        )  # fmt: skip


_NESTS = (
    "(",
    "ln(",
    "CAST(",
    "abs(",
    "NOT ",
    "- ",
    "(SELECT ",
    "CASE WHEN true THEN ",
    "coalesce(",
    "array(",
    "EXISTS (SELECT ",
)
_FUNCTIONS = (*NAMES.split(), *GENERATORS, "repeat", "gone", "read_csv", "reflect")


def run(count: int, seed: int) -> Outcome:
    """Grow and run ``count`` statements, three quarters of them queries."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    grown, wrong, refused = Grown(chance), list[str](), 0
    changing = Grown(chance, most_repeats=200)  # nothing limits what a change may need
    with small_lake() as lake:
        for _ in range(count):
            is_query = chance.random() < 0.75
            text = grown.query() if is_query else changing.change()
            text = grown.mangled(text) if chance.random() < 0.3 else text
            begun = time.monotonic()
            try:
                value, is_named = chance.choice(_VALUES), ":a" in text
                args: Any = {"a": value} if is_named else [value] * text.count("?") or None
                if is_query:
                    lake.query(
                        text, args=args, most_seconds=MOST_SECONDS, most_memory=MOST_MEMORY, most_bytes=16_000_000
                    )
                else:
                    lake.sql(text, args=args, engine="duckdb")
            except InternalError as error:
                wrong.append(f"{error}: {text[:2000]!r}")
            except LakehouseError:
                refused += 1
            except Exception as error:  # noqa: BLE001 - what is looked for
                wrong.append(f"{type(error).__name__} {str(error)[:200]}: {text[:2000]!r}")
            if time.monotonic() - begun > MOST_SECONDS + _GRACE_SECONDS:
                wrong.append(f"took {time.monotonic() - begun:.0f} s: {text[:2000]!r}")
            wrong += [f"had {peak:,} bytes: {text[:2000]!r}" for peak in _peaks(lake) if peak > MOST_MEMORY]
    return Outcome("hostile statements", count, refused, wrong)


def run_commands(count: int, seed: int) -> Outcome:
    """Grow ``count`` command lines and run them in this process: each must end with its exit code and nothing else."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    grown, wrong, refused = Grown(chance), list[str](), 0
    with small_lake() as lake:
        places = ["--catalog", lake.catalog.address, "--warehouse", str(lake.warehouse)]
        for _ in range(count):
            line = _line(chance, grown)
            code, said = _ended([*line, *places] if chance.random() < 0.9 else line)
            refused += code != 0
            if code not in (0, 1, 2) or "Traceback" in said or "bug of lakehouse" in said:
                wrong.append(f"exit {code} {said[-300:]!r}: {line}")
    return Outcome("hostile command lines", count, refused, wrong)


_COMMANDS: dict[str, tuple[str, ...]] = {
    "tables": (), "log": ("t", "--limit"), "show": ("t", "--as-of"), "diff": ("t", "1", "2"), "timeline": ("t", "--interval"),
    "sql": ("SELECT 1", "--as-of", "--limit", "--seconds", "--memory", "--rows"), "append": ("t", "rows.csv"),
    "create": ("made", "rows.csv", "--time", "--grain"), "count": ("t", "--where", "--as-of"),
    "replace": ("t", "2013-01-05", "rows.csv"), "delete": ("t", "--where"), "update": ("t", "--set", "--where"),
    "compact": ("t", "--interval"), "restore": ("t", "1"), "tag": ("x", "1"), "locks": ("--release",), "consumers": ("drop", "x"), "serving": ("--json",), "resolve": ("t",),
    "expire": ("--older-than", "--keep-last"), "collect": ("--grace",), "cache": ("--clear",), "alter": ("t", "--set"), "tasks": ("--limit", "--state"),
    "erase": ("t", "--verify", "--value"), "upsert": ("t", "rows.csv", "--schema"), "new": ("x", "--data", "--time", "--grain"), "gone": (), "-h": (), "": (),
}  # fmt: skip


def _line(chance: random.Random, grown: Grown) -> list[str]:
    name = chance.choice(list(_COMMANDS))
    values = (
        *_ODD,
        *_NUMBERS,
        *_COLUMNS,
        "t",
        "u",
        "2013-01",
        "9999-12-31",
        "0001",
        "a/b",
        "2013-01-05/2013-01-01",
        "-",
        "--",
        "30d",
        "1e10",
        "",
        "a=b",
        "=",
        "\udcff",
    )
    line = [name]
    for one in _COMMANDS[name]:
        if chance.random() < 0.15:
            continue
        odd = chance.choice((chance.choice(values), grown.expression(1), grown.query(1), "\udcff"))
        line += (
            [one] if chance.random() < 0.5 and not one.startswith("-") else [one, odd] if one.startswith("-") else [odd]
        )
    if chance.random() < 0.3:
        line.append(chance.choice(("--json", "--dry-run", "--yes", "-n", "--as-of", "--gone", *values)))
    return [one.replace("\0", "") for one in line]  # no command line has it


@contextlib.contextmanager
def _called_with(line: list[str]) -> Iterator[None]:
    """Act as a process that was called with some arguments and an empty standard input."""
    argv, stdin = sys.argv, sys.stdin
    sys.argv, sys.stdin = ["lakehouse", *line], io.StringIO("")
    try:
        yield
    finally:
        sys.argv, sys.stdin = argv, stdin


def _ended(line: list[str]) -> tuple[object, str]:
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    code: object = 0
    with (
        _called_with(line),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
    ):
        try:
            import_module("lakehouse.cli").main()  # stands above this module, as all that is tested by commands
        except SystemExit as end:
            code = end.code or 0
        except BaseException as error:  # noqa: BLE001 - what is looked for
            code = f"{type(error).__name__}: {error}"[:300]
    said.flush()
    held = said.buffer
    assert isinstance(held, io.BytesIO)
    return code, held.getvalue().decode("utf-8", "replace")


@contextlib.contextmanager
def small_lake() -> Iterator[lakehouse.Lake]:
    """A lake with a table or two, for mangled statements and commands."""
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        lakehouse.connect(f"sqlite:///{folder}/catalog.db", f"{folder}/warehouse") as lake,
    ):
        Path("rows.csv").write_text("at,id\n2013-01-05,1\n", "utf-8")
        for statement in _TABLES.split(";"):
            lake.sql(statement)
        yield lake


def _peaks(lake: lakehouse.Lake) -> list[int]:
    """Peak memory of each query process, by the kernel's count."""
    peaks = []
    for process in lake.session.query_processes.idle():
        with contextlib.suppress(FileNotFoundError):
            status = Path(f"/proc/{process.pid}/status").read_text("ascii", "replace")
            peaks += [1024 * int(one) for one in re.findall(r"VmHWM:\s+(\d+) kB", status)]
    return peaks
