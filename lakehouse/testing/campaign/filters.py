"""Filters by the hundred thousand against an evaluator in plain Python: translations, pruning, scans and writes."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import lakehouse
from lakehouse.core.prune import matching
from lakehouse.core.segments import Segments
from lakehouse.errors import InvalidInput
from lakehouse.predicate import ParsedPredicate, parse
from lakehouse.testing.campaign.evaluator import Node, OutOfRangeError, meaning, written
from lakehouse.testing.campaign.hostile import COLUMNS, SCHEMA, TEXTS, literal, make_rows, plain_rows, whole
from lakehouse.testing.campaign.outcome import Outcome

_BATCH = 40
"""How many filters are columns of one query."""
_PER_TABLE = 4_000
"""How many filters run over one table before another is made."""
_SCANNED, _WRITTEN = 20, 200
"""One filter in this many also runs through a scan, an update and a delete. The first of a batch is a whole scope."""
CLUSTERED = (("int", "tiny"), ("day", "day"), ("text", "text"))
"""Cluster columns, each with its family."""
NULL = Node("literal", "null", (None, "NULL"))
_OPERATORS = ("=", "==", "<>", "!=", "<", "<=", ">", ">=")
_FAMILIES = (*COLUMNS, "int", "int", "double", "text")


class Filters:
    """Draws conditions over every operator and function that a filter may use."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def condition(self, depth: int = 3) -> Node:
        """A condition of at most ``levels`` levels."""
        chance = self._chance
        if depth and chance.random() < 0.55:
            return self._joined(depth - 1)
        family = chance.choice(_FAMILIES)
        match chance.randrange(12):
            case 0 | 1 | 2 | 3:
                return self._compared(family, depth)
            case 4:
                value, other = self.value(family, depth), self._beside(family, depth)
                return Node(chance.choice(["same", "distinct", "not_distinct"]), "bool", (value, other))
            case 5 | 6:
                options = [self._option(family, depth) for _ in range(chance.randrange(1, 6))]
                return self._in(self.value(family, depth), options)
            case 7:
                ends = (self._beside(family, depth), self._beside(family, depth))
                return Node("between", "bool", (self.value(family, depth), chance.random() < 0.3, *ends))
            case 8:
                return Node("null", "bool", (self.value(family, depth), chance.random() < 0.5))
            case 9 | 10:
                return self._of_text(depth)
        if chance.random() < 0.5:
            return Node("isnan", "bool", (self.value("double", depth),))
        return chance.choice([self._column("bool"), literal(chance, "bool"), NULL])

    def scope(self) -> Node:
        """A condition on only the time and cluster columns, for which a delete may read no row."""
        chance = self._chance
        at = self._column("at")
        parts = [
            Node("compare", "bool", (at, chance.choice(_OPERATORS), literal(chance, "at")))
            for _ in range(chance.randrange(3))
        ]
        for family, name in chance.sample(CLUSTERED, chance.randrange(1, 3)):
            options = [literal(chance, family) for _ in range(chance.randrange(1, 5))]
            parts.append(self._in(Node("column", family, (name,)), options))
        return Node("and", "bool", tuple(parts)) if len(parts) > 1 else parts[0]

    def _in(self, value: Node, options: list[Node]) -> Node:
        is_double = any(one.kind == "double" and one.op != "literal" for one in (value, *options))
        is_double |= any(one.op == "literal" and isinstance(one.parts[0], float) for one in options)
        return Node("in", "bool", (value, self._chance.random() < 0.2, is_double, *options))

    def _joined(self, depth: int) -> Node:
        chance = self._chance
        match chance.randrange(8):
            case 0 | 1 | 2:
                parts = tuple(self.condition(depth) for _ in range(chance.randrange(2, 4)))
                return Node("and", "bool", parts)
            case 3 | 4:
                return Node("or", "bool", tuple(self.condition(depth) for _ in range(chance.randrange(2, 4))))
            case 5:
                return Node("is", "bool", (self.condition(depth), chance.random() < 0.5, chance.random() < 0.5))
        return Node("not", "bool", (self.condition(depth),))

    def _compared(self, family: str, depth: int) -> Node:
        one, other = self.value(family, depth), self._beside(family, depth)
        if self._chance.random() < 0.3:
            one, other = other, one
        return Node("compare", "bool", (one, self._chance.choice(_OPERATORS), other))

    def _beside(self, family: str, depth: int) -> Node:
        """Something that a value of a family may be compared with."""
        chance = self._chance
        if chance.random() < 0.7:
            return NULL if chance.random() < 0.05 else literal(chance, family)
        if family in ("int", "double"):
            family = chance.choice(["int", "double"])
        return self.value(family, depth)

    def _option(self, family: str, depth: int) -> Node:
        if self._chance.random() < 0.9:
            return NULL if self._chance.random() < 0.1 else literal(self._chance, family)
        return self._beside(family, depth)

    def _of_text(self, depth: int) -> Node:
        chance = self._chance
        value = self.value("text", depth)
        if chance.random() < 0.4:
            function = chance.choice(["startswith", "endswith", "contains"])
            return Node(
                function, "bool", (value, self._piece() if chance.random() < 0.8 else self.value("text", depth))
            )
        letters = list(chance.choice(TEXTS)[:4])
        tokens = tuple(chance.choice([one, one, one, "any", "one"]) for one in letters)
        tokens += chance.choice([(), (), ("any",), ("one",)])
        return Node("like", "bool", (value, tokens, chance.choice("\\\\$!a"), chance.random() < 0.4))

    def _piece(self) -> Node:
        return literal(self._chance, "text")

    def _column(self, family: str) -> Node:
        return Node("column", family, (self._chance.choice(COLUMNS[family]),))

    def value(self, family: str, depth: int) -> Node:
        """A value of a family that is not a literal."""
        chance = self._chance
        if not depth or chance.random() < 0.6:
            return self._column(family)
        found = self._calculated(family, depth - 1) if chance.random() < 0.6 else None
        return found or self._chosen(family, depth - 1)

    def _calculated(self, family: str, depth: int) -> Node | None:
        chance = self._chance
        match family:
            case "int":
                return self._whole(depth)
            case "double":
                return self._floating(depth)
            case "text":
                return Node("join", "text", (self.value("text", depth), self._piece()))
            case "bool":
                return self.condition(depth)
            case "day":
                if chance.random() < 0.5:
                    return Node("cast", "day", (self.value(chance.choice(["at", "local"]), depth), "DATE"))
                return Node(
                    "day_of",
                    "day",
                    (self.value(chance.choice(["at", "local"]), depth), chance.choice(["date", "to_date"])),
                )
        return None

    def _whole(self, depth: int) -> Node:
        chance = self._chance
        match chance.randrange(7):
            case 0 | 1:
                operator = chance.choice(["+", "-", "*", "%", "div"])
                small = Node("literal", "int", whole(chance)) if chance.random() < 0.7 else self.value("int", depth)
                return Node("calculate", "int", (self.value("int", depth), operator, small))
            case 2:
                return Node(chance.choice(["abs", "negative"]), "int", (self.value("int", depth),))
            case 3:
                return Node("length", "int", (self.value("text", depth),))
            case 4:
                return Node("cast", "int", (self.value("int", depth), "BIGINT"))
        of_time = chance.random() < 0.7
        parts = ["year", "quarter", "month", "dayofyear", "day", "dayofmonth"]
        part = chance.choice([*parts, "hour", "minute", "second"] if of_time else parts)
        family = chance.choice(["at", "local"]) if of_time else "day"
        return Node("part", "int", (self.value(family, depth), part, not of_time))

    def _floating(self, depth: int) -> Node:
        chance = self._chance
        match chance.randrange(4):
            case 0:
                return Node(chance.choice(["abs", "negative"]), "double", (self.value("double", depth),))
            case 1:
                return Node("cast", "double", (self.value(chance.choice(["int", "double"]), depth), "DOUBLE"))
        one, other = self.value("double", depth), self.value(chance.choice(["int", "double"]), depth)
        if chance.random() < 0.3:
            one, other = self.value("int", depth), self.value("int", depth)
            return Node("calculate", "double", (one, "/", other))
        return Node("calculate", "double", (one, chance.choice("+-*/%"), other))

    def _chosen(self, family: str, depth: int) -> Node:
        """A choice among several values of one family; whole numbers stay whole if all are."""
        chance = self._chance

        def branch() -> Node:
            if chance.random() < 0.1:
                return NULL
            if family == "int" and chance.random() < 0.3:
                return Node("literal", "int", whole(chance))
            if family == "double" and chance.random() < 0.4:
                return chance.choice([literal(chance, "double"), self.value("int", depth)])
            return self.value(family, depth)

        match chance.randrange(4):
            case 0:
                function = chance.choice(["coalesce", "nvl", "ifnull"])
                return Node(function, family, (self.value(family, depth), branch()))
            case 1:
                return Node("nullif", family, (self.value(family, depth), self._beside(family, depth)))
            case 2:
                return Node("if", family, (self.condition(depth), self.value(family, depth), branch()))
        tests = [self.condition(depth) for _ in range(chance.randrange(1, 3))]
        return Node("case", family, (tests, [self.value(family, depth) for _ in tests], branch()))


class Campaign:
    """One table, its rows in plain Python, and errors found with filters over it."""

    def __init__(self, folder: Path, chance: random.Random, spark: Any = None) -> None:
        self.refused = 0
        self.wrong: list[str] = []
        self._chance = chance
        self._spark = spark
        tables = make_rows(chance)
        self._rows = plain_rows(tables)
        self._lake = lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse", spark=spark)
        self._table = self._lake.create_table(
            "t", SCHEMA, time="at", grain="year", cluster_by=[name for _, name in CLUSTERED]
        )
        for one in tables:
            self._table.append(one)
        self._segments, self._lies = self._placed(folder / "warehouse")
        self._database = duckdb.connect()
        self._database.register("given", pa.concat_tables(tables))
        self._database.sql("CREATE TABLE held AS FROM given")

    def close(self) -> None:
        """Release the table."""
        self._database.close()
        self._lake.close()

    def _placed(self, warehouse: Path) -> tuple[Segments, dict[int, int]]:
        """The table's segments, and the place of the segment that holds each row."""
        segments, _ = self._lake.catalog.live(self._table.spec, self._table.version, None)
        lies = {}
        for place, segment in enumerate(segments):
            for number in pq.ParquetFile(warehouse / segment.path).read(["id"])["id"].to_pylist():
                lies[number] = place
        return segments, lies

    def run(self, count: int) -> None:
        """Try ``count`` filters."""
        drawn = Filters(self._chance)
        for first in range(0, count, _BATCH):
            batch = list(self._drawn(drawn, min(_BATCH, count - first)))
            if not batch:
                continue
            self._in_process(batch)
            for place, (where, _, outcomes) in enumerate(batch, first):
                if outcomes is not None and place % _SCANNED == 0:
                    self._scan(where, outcomes)
                if outcomes is not None and place % _WRITTEN in (0, 1):
                    self._write(where, outcomes)
            if self._spark is not None:
                self._by_spark(batch)

    def _drawn(self, drawn: Filters, count: int) -> Iterator[tuple[str, ParsedPredicate, list[bool | None] | None]]:
        """Filters with their values for every row, or without if a calculation exceeds 64 bits for some row."""
        for number in range(count):
            node = drawn.condition(self._chance.choice([1, 2, 2, 3])) if number % _BATCH else drawn.scope()
            where = written(node)
            try:
                parsed = parse(where, SCHEMA)
            except InvalidInput:
                self.refused += 1
                continue
            try:
                passes = meaning(node)
                outcomes: list[bool | None] | None = [passes(row) for row in self._rows]
            except OutOfRangeError:
                outcomes = None
            yield where, parsed, outcomes

    def _in_process(self, batch: list[tuple[str, ParsedPredicate, list[bool | None] | None]]) -> None:
        known = [(where, parsed, outcomes) for where, parsed, outcomes in batch if outcomes is not None]
        if not known:
            return
        conditions = ", ".join(f"({parsed.duckdb})" for _, parsed, _ in known)
        query = f"SELECT {conditions} FROM held"  # noqa: S608 written by the library
        try:
            rows = self._database.sql(query).fetchall()
        except duckdb.Error as error:
            if len(known) == 1:
                self.wrong.append(f"in process fails with {error}: {known[0][0]}")
            else:  # which of them it is
                for one in known:
                    self._in_process([one])
            return
        for place, (where, parsed, outcomes) in enumerate(known):
            self._note("in process", where, outcomes, [row[place] for row in rows])
            self._prune(where, parsed, outcomes)

    def _prune(self, where: str, parsed: ParsedPredicate, outcomes: list[bool | None]) -> None:
        # In columns and one by one: a plan may use either of these two implementations.
        segments = self._segments if self._chance.random() < 0.7 else Segments.of(list(self._segments))
        kept, inside = matching(parsed.tree, segments), parsed.interval("at")
        for row, outcome in zip(self._rows, outcomes, strict=True):
            if outcome and not kept[self._lies[row["id"]]]:
                self.wrong.append(f"pruned away id {row['id']}: {where}")
            if outcome and inside is not None and not inside.start_us <= row["at"] < inside.end_us:
                self.wrong.append(f"interval without id {row['id']}: {where}")

    def _scan(self, where: str, outcomes: list[bool | None]) -> None:
        self._compare("scan", where, outcomes, self._table.scan(columns=["id"], where=where).to_arrow())

    def _compare(self, reader: str, where: str, outcomes: list[bool | None], found: pa.Table) -> None:
        expected = sorted(row["id"] for row, outcome in zip(self._rows, outcomes, strict=True) if outcome)
        ids = sorted(found["id"].to_pylist())
        if ids != expected:
            self.wrong.append(f"{reader} finds {ids} and not {expected}: {where}")

    def _note(self, reader: str, where: str, outcomes: list[bool | None], found: list[bool | None]) -> None:
        for row, expected, outcome in zip(self._rows, outcomes, found, strict=True):
            if outcome is not expected:
                self.wrong.append(f"{reader} says {outcome} and not {expected} of {row}: {where}")
                return

    def _write(self, where: str, outcomes: list[bool | None]) -> None:
        """Update the matching rows, delete them, and restore."""
        before, count = self._table.version, sum(outcome is True for outcome in outcomes)
        updated = self._table.update({"id": "id"}, where)
        if updated.rows_deleted != count or updated.rows_added != count:
            self.wrong.append(f"update of {updated.rows_added} rows and not {count}: {where}")
        self._table.delete(where)
        left = [None if outcome is True else True for outcome in outcomes]
        self._compare("delete", where, left, self._table.scan(columns=["id"]).to_arrow())
        self._table.restore(before)

    def _by_spark(self, batch: list[tuple[str, ParsedPredicate, list[bool | None] | None]]) -> None:
        known = [(where, parsed, outcomes) for where, parsed, outcomes in batch if outcomes is not None]
        frame = self._table.scan().to_spark()
        texts = [f"{parsed.spark} AS c{place}" for place, (_, parsed, _) in enumerate(known)]
        found = frame.selectExpr("id AS number", *texts).toArrow().sort_by("number")
        order = sorted(range(len(self._rows)), key=lambda place: self._rows[place]["id"])
        for place, (where, _, outcomes) in enumerate(known):
            values = dict(zip(order, found[f"c{place}"].to_pylist(), strict=True))
            self._note("spark", where, outcomes, [values[row] for row in range(len(self._rows))])
        for where, _, outcomes in known[:4]:
            scan = self._table.scan(columns=["id"], where=where).to_spark()
            self._compare("scan by Spark", where, outcomes, scan.toArrow())


def run(count: int, seed: int, spark: Any = None) -> Outcome:
    """Try so many filters, in process and, given a session, by Spark too. Cost: about a millisecond a filter."""
    chance = random.Random(seed)  # noqa: S311 a seed repeats a run
    refused, wrong = 0, []
    for first in range(0, count, _PER_TABLE):
        with tempfile.TemporaryDirectory() as folder:
            campaign = Campaign(Path(folder), chance, spark)
            try:
                campaign.run(min(_PER_TABLE, count - first))
            finally:
                campaign.close()
            refused += campaign.refused
            wrong += campaign.wrong
    return Outcome("filters", count, refused, wrong)
