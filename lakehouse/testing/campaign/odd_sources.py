"""Items of a FROM that may be wrong: LATERAL, rows of lists, PIVOT, ranges, recursions and samples."""
# ruff: noqa: S608 - hostile on purpose

from __future__ import annotations

import random
from collections.abc import Callable

GENERATORS = ("explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "stack", "json_tuple")
_COUNTS = ("0", "3", "-1", "1000000", "1000001", "99999999999999999999", "1.5", "NULL", "'a'", "id")
_LISTS = ("array(1, 2)", "array()", "NULL", "id", "map('a', 1)", "array(named_struct('a', 1))", "sequence(1, 5)")


def odd_source(pick: random.Random, expression: Callable[[int], str], query: Callable[[int], str], depth: int) -> str:
    """An item of a FROM, right or wrong, over expressions and queries that are made for it."""
    inner = f"({query(depth - 1)})" if depth > 0 and pick.random() < 0.5 else pick.choice(("t", "u", "c", "gone"))
    call, value, several = pick.choice(GENERATORS), pick.choice(_LISTS), pick.randrange(1, 5)
    count, other = pick.choice(_COUNTS), pick.choice(_COUNTS)
    listed = ", ".join(expression(0) for _ in range(several))
    return pick.choice(
        (
            f"{inner}, LATERAL {pick.choice((inner, f'({query(0)})'))} AS l",
            f"{inner} LEFT JOIN LATERAL (SELECT {expression(1)} AS w) AS l ON {expression(1)}",
            f"{inner} LATERAL VIEW {pick.choice(('', 'OUTER '))}{call}({value}) x AS {', '.join('yzwv'[:several])}",
            f"{call}({value}) AS x(y)",
            f"range({', '.join(pick.choice(_COUNTS) for _ in range(several))}) AS r",
            f"{inner} PIVOT ({expression(1)} AS a FOR {pick.choice(('s', 'id', '(s, id)'))} IN ({listed}))",
            f"{inner} PIVOT (count(*) AS a, sum(v) FOR s IN ('a', NULL AS b, {listed}))",
            f"{inner} UNPIVOT {pick.choice(('', 'INCLUDE NULLS '))}(p FOR q IN ({listed}))",
            f"{inner} UNPIVOT ((p, r) FOR q IN ((id, v) AS x, ({listed})))",
            f"(WITH RECURSIVE r(n) AS (SELECT {expression(1)} UNION ALL SELECT {expression(1)} FROM r) SELECT 1)",
            f"(WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r, {inner} LIMIT {count}) SELECT 1 FROM r)",
            f"{inner} TABLESAMPLE ({count} {pick.choice(('PERCENT', 'ROWS'))}) REPEATABLE ({other})",
        )
    )
