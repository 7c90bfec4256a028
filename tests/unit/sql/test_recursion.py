"""Recursions, each beside a loop in plain Python, wherever in a statement they stand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import lakehouse
from lakehouse.errors import QueryLimitExceeded
from tests.unit.sql.test_constructs import EDGES, ROWS, fill, same

Row = tuple[Any, ...]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakehouse.Lake]:
    folder = tmp_path_factory.mktemp("recursion")
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse") as lake:
        fill(lake)
        yield lake


PATHS = """WITH RECURSIVE r(n, depth) AS (SELECT {}L, 0 UNION ALL
    SELECT e.b, r.depth + 1 FROM r JOIN edges e ON e.a = r.n WHERE r.depth < {}) SELECT * FROM r"""


def reached(start: int, steps: int) -> list[Row]:
    found, last = [(start, 0)], [start]
    for depth in range(1, steps + 1):
        last = [b for one in last for a, b in EDGES if a == one]
        found += [(one, depth) for one in last]
    return found


def test_a_recursion_repeats_its_step(lake: lakehouse.Lake) -> None:
    for start, steps in ((1, 5), (7, 100), (9, 2)):
        same(lake, PATHS.format(start, steps), reached(start, steps))
    same(lake, "WITH RECURSIVE r AS (SELECT a FROM edges WHERE a > 9 UNION ALL SELECT * FROM r) SELECT * FROM r", [])
    text = """WITH RECURSIVE o(n) AS (SELECT 1 UNION ALL SELECT x.n + 1 FROM o AS x WHERE x.n < 3),
        few AS (SELECT n FROM o WHERE n > 1) SELECT a.n, (SELECT max(n) FROM o), b.* FROM few a, few b WHERE b.n = 2"""
    same(lake, text, [(2, 3, 2), (3, 3, 2)])


EMPTY = "(SELECT a AS x FROM edges WHERE a > 90)"
COUNTED_UP = f"""WITH RECURSIVE r(n, m) AS (SELECT b.*, 0L FROM {EMPTY} AS b UNION ALL
    SELECT n + 2, m + 1 FROM r WHERE m < 0 AND n >= 2)"""
LATER = """CASE WHEN exists(array(w.k, json_array_length(concat('["', w.g, '", [', w.v, ']]'))), e -> e > 2) THEN -1L
    ELSE CASE WHEN exists(array(w.`w x`, -1L), e -> e > 0) THEN w.k ELSE -1L END END"""


@pytest.mark.parametrize(
    "inner",
    [
        f"WITH w AS (SELECT o.* FROM o WHERE NOT (o.k < ANY (SELECT n FROM ({COUNTED_UP} SELECT * FROM r) AS q)))",
        f"{COUNTED_UP}, w AS (SELECT o.* FROM o WHERE NOT (o.k < ANY (SELECT n FROM r)))",
        f"{COUNTED_UP}, few AS (SELECT n FROM r), w AS (SELECT o.* FROM o WHERE NOT (o.k < ANY (SELECT n FROM few)))",
    ],
)
def test_recursions_in_a_condition_of_a_lateral_query_lose_no_row(lake: lakehouse.Lake, inner: str) -> None:
    text = f"""SELECT s.id, l.x FROM (SELECT id FROM range(6, 0, -2)) AS s CROSS JOIN LATERAL
        (SELECT e.x FROM ({inner} SELECT {LATER} AS c, reverse('ab') AS x FROM w) AS e WHERE e.c = s.id) AS l"""

    def later(k: int | None, g: str | None, w_x: int | None) -> int | None:
        if k is not None and k > 2:  # the length of a list of two, where there is one, is never more
            return -1
        return k if w_x is not None and w_x > 0 else -1

    kept = ROWS  # no number is less than any of none
    found = [later(k, g, w_x) for k, g, _, w_x in kept]
    same(lake, text, [(number, "ba") for number in (6, 4, 2) for one in found if one == number])


ONES = "{} AS (SELECT {} AS n UNION ALL SELECT x.n + 1 FROM {} AS x WHERE x.n < {})"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (  # of each row of another query: its own recursion
            f"""SELECT e.a, l.n FROM edges e CROSS JOIN LATERAL (WITH RECURSIVE {ONES.format("r", "e.a", "r", "e.b")}
            SELECT max(n) AS n FROM r) AS l""",
            [(a, max(a, b)) for a, b in EDGES],
        ),
        (  # one that reads one of each row
            f"""SELECT e.a, l.n FROM edges e CROSS JOIN LATERAL (WITH RECURSIVE c AS (SELECT e.b AS n),
            {ONES.format("r", "(SELECT max(n) FROM c)", "r", 9)} SELECT min(n) AS n FROM r) AS l""",
            [(a, b) for a, b in EDGES],
        ),
        (  # one that reads what is named around it, in a query of WITH
            f"""WITH a AS (SELECT min(a) AS n FROM edges), b AS (SELECT e.b, (WITH RECURSIVE
            {ONES.format("r", "(SELECT n FROM a)", "r", 3)} SELECT sum(n) FROM r) AS s FROM edges e) SELECT * FROM b""",
            [(b, 6) for _, b in EDGES],
        ),
        (  # one within the first part of another, whose query of a row stays where it is
            f"""SELECT q.n FROM (WITH RECURSIVE r AS (SELECT l.n FROM edges e CROSS JOIN LATERAL (WITH c AS (SELECT
            e.a + (WITH RECURSIVE {ONES.format("i", 1, "i", 2)} SELECT max(n) FROM i) AS n) SELECT * FROM c) AS l
            UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT * FROM r) AS q""",
            [(n,) for a, _ in EDGES for n in range(a + 2, max(a + 2, 4) + 1)],
        ),
        (  # two of one name, in the parts of a set
            f"""(WITH RECURSIVE {ONES.format("r", 1, "r", 2)} SELECT n FROM r) UNION ALL
            (WITH RECURSIVE {ONES.format("r", 5, "r", 6)} SELECT n FROM r) ORDER BY n""",
            [(1,), (2,), (5,), (6,)],
        ),
        (  # one that nothing names
            f"SELECT * FROM (WITH RECURSIVE {ONES.format('r', 1, 'r', 2)} SELECT 7 AS n) AS q",
            [(7,)],
        ),
    ],
)
def test_recursions_may_stand_in_any_query(lake: lakehouse.Lake, text: str, expected: list[Row]) -> None:
    same(lake, text, expected)


@pytest.mark.parametrize("step", ["n + 1 FROM r", "e.b FROM r JOIN edges e ON e.a = r.n", "r.n FROM r, range(2)"])
def test_a_recursion_without_an_end_fails_by_name(lake: lakehouse.Lake, step: str) -> None:
    where = "" if "range" not in step else " WHERE id = 0"
    text = f"WITH RECURSIVE r(n) AS (SELECT 7L UNION ALL SELECT {step}{where}) SELECT count(*) FROM r"
    with pytest.raises(QueryLimitExceeded, match="100 steps"):
        lake.sql(f"CREATE TABLE never PARTITIONED BY (days(at)) AS {text.replace('count(*)', 'DATE(NULL) AS at')}",
                 engine="duckdb")  # fmt: skip
    assert "never" not in lake.tables()


def test_the_query_process_says_so_too(lake: lakehouse.Lake) -> None:
    with pytest.raises(QueryLimitExceeded, match="100 steps"):
        lake.query("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r")
