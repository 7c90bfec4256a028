"""NATURAL JOIN, UNION BY NAME and ORDER BY ALL: what a query says of columns by name alone."""

from __future__ import annotations

from typing import Any

import pytest

import lakehouse
from lakehouse.errors import InvalidInput
from tests.unit.sql.conftest import rows_of

LEFT: list[tuple[int | None, str, int | None]] = [(1, "a", 10), (2, "b", 20), (None, "c", 30), (1, "d", None)]
RIGHT: list[tuple[str, int | None]] = [("x", 1), ("y", 3), ("z", None), ("w", 1)]


def _values(rows: list[Any], names: str) -> str:
    written = ", ".join(f"({', '.join('NULL' if one is None else repr(one) for one in row)})" for row in rows)
    return f"(SELECT * FROM VALUES {written} AS v({names}))"


L, R = _values(LEFT, "K, a, n"), _values(RIGHT, "r, k")
MET = [(one, other) for one in LEFT for other in RIGHT if one[0] is not None and one[0] == other[1]]
ALONE = [one for one in LEFT if one not in [met for met, _ in MET]]
OTHERS = [one for one in RIGHT if one not in [met for _, met in MET]]
INNER = [(one[0], one[1], one[2], other[0]) for one, other in MET]


@pytest.mark.parametrize(
    ("join", "rows"),
    [
        ("NATURAL JOIN", INNER),
        ("NATURAL INNER JOIN", INNER),
        ("NATURAL LEFT JOIN", [*INNER, *((*one, None) for one in ALONE)]),
        ("NATURAL RIGHT OUTER JOIN", [*INNER, *((one[1], None, None, one[0]) for one in OTHERS)]),
        ("NATURAL FULL JOIN",
         [*INNER, *((*one, None) for one in ALONE), *((one[1], None, None, one[0]) for one in OTHERS)]),
        ("NATURAL LEFT SEMI JOIN", [one for one in LEFT if one not in ALONE]),
        ("NATURAL LEFT ANTI JOIN", ALONE),
    ],
)  # fmt: skip
def test_a_natural_join_is_by_all_names_that_both_have(still_lake: lakehouse.Lake, join: str, rows: list[Any]) -> None:
    assert sorted(rows_of(still_lake, f"SELECT * FROM {L} {join} {R}"), key=repr) == sorted(rows, key=repr)


def test_a_natural_join_reads_the_columns_that_it_joins_by(lake: lakehouse.Lake) -> None:
    lake.sql("CREATE TABLE other (id BIGINT, client STRING, note STRING)")
    lake.sql("INSERT INTO other VALUES (1, 'UA', 'x'), (2, 'UA', 'y'), (3, NULL, 'z')")
    assert rows_of(lake, "SELECT note FROM trips NATURAL JOIN other") == [("x",)]
    assert rows_of(lake, "SELECT note, price FROM other NATURAL LEFT JOIN trips WHERE note > 'x' ORDER BY ALL") == [
        ("y", None), ("z", None),
    ]  # fmt: skip
    assert rows_of(lake, "SELECT count(*) FROM trips NATURAL JOIN (SELECT 7 AS q)") == [(4,)]
    lake.sql("CREATE VIEW both AS SELECT id, note FROM trips NATURAL JOIN other")
    assert rows_of(lake, "SELECT * FROM both WHERE id = 1") == [(1, "x")]


def test_union_by_name_puts_columns_of_one_name_together(still_lake: lakehouse.Lake) -> None:
    text = f"SELECT * FROM {L} UNION ALL BY NAME SELECT * FROM {R}"
    expected = [(*one, None) for one in LEFT] + [(one[1], None, None, one[0]) for one in RIGHT]
    assert sorted(rows_of(still_lake, text), key=repr) == sorted(expected, key=repr)
    assert still_lake.sql(text, engine="duckdb").columns == ["K", "a", "n", "r"]
    text = "SELECT 1 AS a, 2 AS b UNION BY NAME SELECT 1 AS B, 2 AS A UNION BY NAME SELECT 2 AS b, 1 AS a ORDER BY ALL"
    assert rows_of(still_lake, text) == [(1, 2), (2, 1)]
    text = "SELECT 1 AS a UNION BY NAME SELECT 2 AS b UNION ALL BY NAME SELECT 3 AS a ORDER BY b, a"
    assert rows_of(still_lake, text) == [(1, None), (3, None), (None, 2)]
    assert rows_of(still_lake, f"SELECT r FROM ({L} UNION ALL BY NAME {R}) WHERE k = 3") == [("y",)]


def test_order_by_all_is_by_every_column_from_the_left(still_lake: lakehouse.Lake) -> None:
    def first(value: Any) -> tuple[bool, Any]:
        return value is not None, value or 0

    up = sorted(LEFT, key=lambda row: [first(one) for one in row])
    assert rows_of(still_lake, f"SELECT * FROM {L} ORDER BY ALL") == up
    assert rows_of(still_lake, f"SELECT * FROM {L} ORDER BY ALL DESC") == up[::-1]
    assert rows_of(still_lake, f"SELECT n FROM {L} ORDER BY ALL NULLS LAST LIMIT 3") == [(10,), (20,), (30,)]
    assert rows_of(still_lake, f"SELECT n FROM {L} UNION SELECT 5 ORDER BY ALL DESC LIMIT 2") == [(30,), (20,)]
    text = f"SELECT r, n FROM {L} RIGHT JOIN {R} USING (k) ORDER BY ALL LIMIT 3"
    assert rows_of(still_lake, text) == [("w", None), ("w", 10), ("x", None)]


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT * FROM {L} NATURAL JOIN {R} ON TRUE",
        f"SELECT * FROM {L} NATURAL JOIN (SELECT 1 AS k, 2 AS K)",
        f"SELECT * FROM {L} NATURAL JOIN LATERAL (SELECT 1 AS k)",
        "SELECT 1 AS a, 2 AS A UNION BY NAME SELECT 3 AS a",
        "SELECT 1 UNION BY NAME SELECT 1 AS a",
        "SELECT count(*), 1 AS a UNION BY NAME SELECT 1 AS a",
        "SELECT 1 AS a INTERSECT BY NAME SELECT 1 AS a",
        "WITH RECURSIVE r(n) AS (SELECT 1 AS n UNION ALL BY NAME SELECT n + 1 AS n FROM r WHERE n < 9) SELECT * FROM r",
        "SELECT 1 AS all ORDER BY ALL",
        "SELECT 1 AS a ORDER BY ALL, a",
        "SELECT sum(1) OVER (ORDER BY ALL)",
        "SELECT collect_list(1) WITHIN GROUP (ORDER BY ALL)",
    ],
)
def test_what_names_do_not_decide_is_refused(still_lake: lakehouse.Lake, text: str) -> None:
    with pytest.raises(InvalidInput):
        still_lake.sql(text, engine="duckdb")
