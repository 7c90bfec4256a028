"""Random queries of every construct over a lake that changes, each held against plain Python over lists of rows.

A query runs in a query process under a limit of seconds: one that reaches it is wrong, as is any error, but for those
that docs/sql.md names, and for a recursion without an end, whose error is the answer.
"""
# ruff: noqa: S311, S608 - every text is of this module's own making, and the same for one seed

from __future__ import annotations

import hashlib
import random
import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lakehouse
from lakehouse.errors import LakehouseError, QueryLimitExceeded
from lakehouse.testing.campaign.outcome import Outcome
from lakehouse.testing.campaign.relations import Relation, Relations
from lakehouse.testing.campaign.values import TEXTS

MOST_SECONDS = 20.0
_ROUND = 400
"""How many queries run between changes of the table."""
_KINDS = {"o": "i", "k": "i", "v": "i", "s": "s"}
_DEFECT = "BindBuiltinScalarFunction"
"""How DuckDB 2.0.0 fails on a CASE of literal texts that no row can meet (docs/sql.md)."""
_REFUSED = ("ALL and ANY read their query several times", "a comparison with ALL or ANY is too long")
"""What is said of LIMIT in a query beside ALL or ANY, and of a long one (docs/sql.md)."""
_START = datetime(2013, 1, 1, tzinfo=UTC)
_ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + {} FROM r WHERE n IS NOT NULL) SELECT max(n) FROM r"


def run(count: int, seed: int) -> Outcome:
    """Try ``count`` queries. About a hundred a second."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="constructs-") as folder, _Lake(Path(folder), chance) as lake:
        while lake.tried < count:
            lake.change()
            for _ in range(min(_ROUND, count - lake.tried)):
                lake.query()
        return Outcome("constructs", lake.tried, lake.refused, lake.wrong)


class _Lake:
    """A table of a lake, and its rows as lists, at several versions."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self._lake = lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse")
        self._chance = chance
        self._rows: dict[int, tuple[Any, ...]] = {}
        self._next = 0
        self._tables: list[Relation] = []
        self.tried = self.refused = 0
        self.wrong: list[str] = []

    def __enter__(self) -> _Lake:
        self._lake.sql(
            "CREATE TABLE t (at TIMESTAMP, o BIGINT, k BIGINT, v BIGINT, s STRING) PARTITIONED BY (days(at))"
        )
        self._tables.append(Relation("t VERSION AS OF 1", _KINDS, []))
        return self

    def __exit__(self, *_: object) -> None:
        self._lake.close()

    def change(self) -> None:
        """Add, delete, update and rewrite rows on both sides, and note what a few versions and samples hold."""
        pick = self._chance
        for _ in range(3):
            made = {}
            for _ in range(pick.randrange(1, 12)):
                self._next += 1
                made[self._next] = (
                    self._next,
                    pick.choice((None, 0, 1, 2, 3)), pick.choice((None, -1, 1, 2)), pick.choice((None, *TEXTS)),
                )  # fmt: skip
            values = ", ".join(f"({self._time()}, {', '.join(map(_written, row))})" for row in made.values())
            self._lake.sql(f"INSERT INTO t VALUES {values}")
            self._rows |= made
        if len(self._rows) > 60:
            self._lake.sql(f"DELETE FROM t WHERE o % 3 = 0 OR o < {self._next - 120}")
            self._rows = {o: row for o, row in self._rows.items() if o % 3 and o >= self._next - 120}
        self._lake.sql("UPDATE t SET k = k + 1 WHERE v = 1 AND k < 3")
        self._rows = {
            o: (o, row[1] + 1, *row[2:]) if row[2] == 1 and row[1] is not None and row[1] < 3 else row
            for o, row in self._rows.items()
        }
        if pick.random() < 0.5:
            self._lake.table("t").compact()
        self._note()

    def _time(self) -> str:
        return f"'{_START + timedelta(hours=self._chance.randrange(24 * 5)):%Y-%m-%d %H:%M:%S}'"

    def _note(self) -> None:
        rows = list(self._rows.values())
        whole = Relation(f"t VERSION AS OF {self._lake.head}", _KINDS, rows)
        stored = self._lake.table("t").unheld_scan(columns=["o"], row_ids=True).to_arrow()
        ids = dict(zip(stored.column("o").to_pylist(), stored.column("_row_id").to_pylist(), strict=True))
        if ids.keys() != self._rows.keys():
            self.wrong.append(f"the table has other rows at {self._lake.head}")
        seed, share, size = self._chance.randrange(100), self._chance.randrange(10, 90), self._chance.randrange(9)
        by_hash = {o: hashlib.md5(f"{seed}:{one}".encode()).hexdigest() for o, one in ids.items()}  # noqa: S324
        below = [row for row in rows if int(by_hash.get(row[0], "0"), 16) * 100 < share * 16**32]
        least = [self._rows[o] for o in sorted(by_hash, key=lambda o: by_hash[o])[:size] if o in self._rows]
        at = f"{whole.text} TABLESAMPLE"
        samples = [
            Relation(f"{at} ({share} PERCENT) REPEATABLE ({seed})", _KINDS, below),
            Relation(f"{at} ({size} ROWS) REPEATABLE ({seed})", _KINDS, least),
        ]
        self._tables = [*self._tables[:1], *self._tables[-3:], whole, *samples]

    def query(self) -> None:
        """Run one query, and compare its rows."""
        self.tried += 1
        if self._chance.random() < 0.002:
            self._endless()
            return
        wanted = Relations(self._chance, self._tables).query()
        try:
            found = self._lake.query(wanted.text, most_rows=20_000, most_seconds=MOST_SECONDS).rows
        except LakehouseError as error:
            if any(one in str(error) for one in (_DEFECT, *_REFUSED)):
                self.refused += 1
                return
            self.wrong.append(f"{wanted.text}: {type(error).__name__} {error}")
            return
        rows = list(zip(*(column.to_pylist() for column in found.columns), strict=True))
        if Counter(rows) != Counter(wanted.rows):
            more, less = Counter(rows) - Counter(wanted.rows), Counter(wanted.rows) - Counter(rows)
            self.wrong.append(f"{wanted.text}: {list(more)[:3]} instead of {list(less)[:3]}")

    def _endless(self) -> None:
        try:
            self._lake.query(_ENDLESS.format(self._chance.randrange(1, 9)), most_seconds=MOST_SECONDS)
        except QueryLimitExceeded as error:
            self.refused += 1
            if "steps" not in str(error):
                self.wrong.append(f"a recursion without an end: {error}")
            return
        self.wrong.append("a recursion without an end gives rows")


def _written(value: Any) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)
