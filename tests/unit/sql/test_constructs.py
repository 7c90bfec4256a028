"""LATERAL, rows of lists, PIVOT, UNPIVOT, ranges, recursions and samples, each beside a loop in plain Python."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import lakehouse
from lakehouse.errors import InvalidInput
from tests.unit.sql.conftest import rows_of

Row = tuple[Any, ...]
ROWS: list[Row] = [
    (1, "ä", 1.5, 1),
    (1, "ä", 2.0, None),
    (1, "ä", 2.0, None),
    (2, None, None, 3),
    (None, "b'c", 4.0, 4),
    (3, "b", -1.0, 0),
]
"""``k``, ``g``, ``v`` and ``w x`` of the table `o`."""
EDGES = [(1, 2), (2, 3), (2, 4), (4, 5), (7, 7), (1, 2)]
"""Of the table `edges`."""
LIST = "CASE WHEN k = 3 THEN NULL ELSE filter(array(k, `w x`), e -> e IS NOT NULL) END"
MAP = "CASE WHEN g IS NOT NULL THEN map('k', k, 'v', CAST(v AS BIGINT)) END"


def listed(row: Row) -> list[Any] | None:
    return None if row[0] == 3 else [one for one in (row[0], row[3]) if one is not None]


def fill(lake: lakehouse.Lake) -> None:
    columns = "(at TIMESTAMP, k BIGINT, g STRING, v DOUBLE, `w x` INT) PARTITIONED BY (days(at))"
    lake.sql(f"CREATE TABLE o {columns}")
    lake.sql(f"CREATE TABLE nothing {columns}")
    for row in ROWS:
        lake.sql("INSERT INTO o VALUES ('2013-01-05', ?, ?, ?, ?)", args=row)
    lake.sql("CREATE TABLE edges (at TIMESTAMP, a BIGINT, b BIGINT) PARTITIONED BY (days(at))")
    lake.sql("INSERT INTO edges VALUES " + ", ".join(f"('2013-01-05', {a}, {b})" for a, b in EDGES))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakehouse.Lake]:
    folder = tmp_path_factory.mktemp("constructs")
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse") as lake:
        fill(lake)
        yield lake


def same(lake: lakehouse.Lake, text: str, expected: list[Row]) -> None:
    assert Counter(map(repr, rows_of(lake, text))) == Counter(map(repr, expected))


# Rows of lists, and queries of a row

EXPLODED: list[tuple[str, Callable[[Row], list[Row]]]] = [
    (
        f"SELECT k, y FROM o LATERAL VIEW explode({LIST}) x AS y",
        lambda row: [(row[0], one) for one in listed(row) or []],
    ),
    (
        f"SELECT o.k, x.y FROM o LATERAL VIEW OUTER explode({LIST}) x AS y",
        lambda row: [(row[0], one) for one in listed(row) or [None]],
    ),
    (f"SELECT k, explode_outer({LIST}) AS k FROM o", lambda row: [(row[0], one) for one in listed(row) or [None]]),
    (f"SELECT k, posexplode({LIST}) FROM o", lambda row: [(row[0], *one) for one in enumerate(listed(row) or [])]),
    (
        f"SELECT `a b`, k FROM o LATERAL VIEW OUTER posexplode({LIST}) AS k2, `a b`",
        lambda row: [(one, row[0]) for one in listed(row) or [None]],
    ),
    (
        f"SELECT o.k, x.* FROM o LEFT JOIN LATERAL posexplode({LIST}) AS x(k, y) ON x.k = 1",
        lambda row: [(row[0], *one) for one in [*enumerate(listed(row) or [])][1:] or [(None, None)]],
    ),
    (
        f"SELECT k, x.y FROM o, LATERAL explode_outer({LIST}) AS x(y) WHERE k < 3",
        lambda row: [(row[0], one) for one in listed(row) or [None] if row[0] is not None and row[0] < 3],
    ),
    (
        f"SELECT k, a, b FROM o LATERAL VIEW explode({MAP}) x AS a, b",
        lambda row: [] if row[1] is None else [(row[0], "k", row[0]), (row[0], "v", int(row[2] // 1))],
    ),
    (
        f"SELECT k, a.y, b.y FROM o LATERAL VIEW explode({LIST}) a AS y LATERAL VIEW explode(array(a.y, k)) b AS y",
        lambda row: [(row[0], one, other) for one in listed(row) or [] for other in (one, row[0])],
    ),
    (
        "SELECT k, a, b FROM o LATERAL VIEW inline(array(named_struct('x', g, 'y', v), NULL)) x AS a, b",
        lambda row: [(row[0], row[1], row[2]), (row[0], None, None)],
    ),
    ("SELECT * EXCEPT (at), explode(array(k, 7)) AS n FROM o", lambda row: [(*row, row[0]), (*row, 7)]),
    (
        "SELECT o.k, x.n FROM o, LATERAL (SELECT k + 1 AS n WHERE g = 'ä') AS x",
        lambda row: [(row[0], 2)] * (row[1] == "ä"),
    ),
    (
        "SELECT o.k, n FROM o JOIN LATERAL (SELECT count(*) AS n FROM o AS i WHERE i.k = o.k)",
        lambda row: [(row[0], sum(other[0] == row[0] for other in ROWS if row[0] is not None))],
    ),
    (
        "SELECT o.k, x.w FROM o LEFT JOIN LATERAL (SELECT max(i.`w x`) AS w FROM o AS i WHERE i.k > o.k) AS x ON w > 0",
        lambda row: [(row[0], 3 if row[0] == 1 else None)],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "made"), EXPLODED)
def test_rows_are_made_of_each_row(lake: lakehouse.Lake, text: str, made: Callable[[Row], list[Row]]) -> None:
    same(lake, text, [one for row in ROWS for one in made(row)])
    same(lake, re.sub(r"FROM o\b(?! AS i)", "FROM nothing AS o", text), [])


def test_numbers_come_from_ranges_and_sequences(lake: lakehouse.Lake) -> None:
    for bounds in ((3,), (2, 5), (5, 2), (5, -3, -2), (0, 7, 3), (1, 5, -1)):
        same(lake, f"SELECT id FROM range({', '.join(map(str, bounds))})", [(one,) for one in range(*bounds)])
    same(lake, "SELECT explode(sequence(5, 1, -2)) AS n", [(5,), (3,), (1,)])
    same(lake, "SELECT r.n, id FROM range(2) AS r(n) JOIN range(2) ON n = id", [(0, 0), (1, 1)])
    assert rows_of(lake, "SELECT count(*), sum(id) FROM range(1000000)") == [(1_000_000, 499_999_500_000)]


# PIVOT and UNPIVOT


def pivot(groups: Callable[[Row], Row], key: Callable[[Row], Any], values: list[Any], summed: Any) -> list[Row]:
    """A row of each group: what the rows of each value sum up to, null where there is none."""
    found: dict[Row, list[Row]] = {}
    for row in ROWS:
        found.setdefault(groups(row), []).append(row)
    made = []
    for group, rows in found.items():
        cells: list[Any] = []
        for value in values:
            own = [row for row in rows if key(row) == value]
            cells += summed(own) if own else [None] * len(summed(ROWS))
        made.append((*group, *cells))
    return made


def total(rows: list[Row]) -> Any:
    values = [row[2] for row in rows if row[2] is not None]
    return sum(values) if values else None


FEW = "(SELECT k, g, v FROM o)"
PIVOTS = [
    (
        f"SELECT * FROM {FEW} PIVOT (sum(v) FOR g IN ('ä', 'b''c' AS `c d`, NULL, 'none'))",
        ["k", "ä", "c d", "null", "none"],
        pivot(lambda row: row[:1], lambda row: row[1], ["ä", "b'c", None, "none"], lambda rows: [total(rows)]),
    ),
    (
        f"SELECT * FROM {FEW} AS f PIVOT (count(*) AS n, max(f.k) + 1 AS m FOR g IN ('ä', 'b'))",
        ["v", "ä_n", "ä_m", "b_n", "b_m"],
        pivot(lambda row: (row[2],), lambda row: row[1], ["ä", "b"], lambda rows: [len(rows), rows[0][0] + 1]),
    ),
    (
        "SELECT * FROM (SELECT k, v, g FROM o) PIVOT (count(DISTINCT v) FOR (k, g) IN ((1, 'ä') AS x, (2, 'b') AS y))",
        ["x", "y"],
        [(2, None)],
    ),
    (
        """SELECT p.`1`, `-1`, p.k FROM (SELECT k, `w x` AS w, v FROM o)
        PIVOT (coalesce(sum(v), -5) FOR w IN (1, -1, 3)) AS p""",
        ["1", "-1", "k"],
        [
            (one[1], one[2], one[0])
            for one in pivot(
                lambda row: row[:1], lambda row: row[3], [1, -1, 3],
                lambda rows: [-5 if total(rows) is None else total(rows)],
            )
        ],
    ),
    (
        f"SELECT * FROM {FEW} PIVOT (sum(v) FILTER (WHERE v > 1.6) AS s FOR g IN ('ä')) WHERE k = 1",
        ["k", "ä"],
        [(1, 4.0)],
    ),
    ("SELECT * FROM nothing PIVOT (sum(v) FOR g IN ('a'))", ["at", "k", "w x", "a"], []),
    ("SELECT * FROM (SELECT v, g FROM nothing) PIVOT (sum(v) + 0 FOR g IN ('a', 'b'))", ["a", "b"], [(None, None)]),
    (
        "SELECT * FROM (SELECT k, v, `w x` FROM o) UNPIVOT (c FOR n IN (V, `w x` AS `ü`))",
        ["k", "n", "c"],
        [
            (row[0], name, float(row[place]))
            for row in ROWS for place, name in ((2, "V"), (3, "ü")) if row[place] is not None
        ],
    ),
    (
        "SELECT u.* FROM (SELECT k, v, `w x` FROM o) UNPIVOT INCLUDE NULLS (c FOR n IN (v, `w x`)) AS u",
        ["k", "n", "c"],
        [
            (row[0], name, None if row[place] is None else float(row[place]))
            for row in ROWS for place, name in ((2, "v"), (3, "w x"))
        ],
    ),
    (
        "SELECT * FROM (SELECT g, v, `w x` AS w FROM o) UNPIVOT ((a, b) FOR n IN ((v, w), (w, v) AS x))",
        ["g", "n", "a", "b"],
        [
            (row[1], name, *pair)
            for row in ROWS
            for name, pair in (("v_w", row[2:4]), ("x", row[3:1:-1]))
            if pair != (None, None)
            for pair in [tuple(None if one is None else float(one) for one in pair)]
        ],
    ),
    (
        "SELECT * FROM (SELECT v, `w x` AS w FROM o) UNPIVOT (c FOR n IN (v, w)) PIVOT (sum(c) FOR n IN ('v', 'w'))",
        ["v", "w"],
        [(total(ROWS), 8.0)],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "names", "expected"), PIVOTS)
def test_values_become_columns_and_columns_values(
    lake: lakehouse.Lake, text: str, names: list[str], expected: list[Row]
) -> None:
    assert lake.sql(text, engine="duckdb").columns == names
    same(lake, text, expected)


def test_a_pivot_joins_and_is_joined(lake: lakehouse.Lake) -> None:
    text = f"""WITH p AS (SELECT * FROM {FEW} PIVOT (sum(v) FOR g IN ('ä' AS a)))
        SELECT o.k, p.a FROM p JOIN o USING (k) WHERE p.k < 3 AND a > 1"""
    same(lake, text, [(1, 5.5)] * 3)


# Samples


def hashes(lake: lakehouse.Lake, seed: int) -> tuple[dict[int, str], dict[int, int]]:
    """The hash of each row, and its number, by its id."""
    rows = lake.table("many").unheld_scan(columns=["n"], row_ids=True).to_arrow()
    numbers = dict(zip(*(rows.column(one).to_pylist() for one in ("_row_id", "n")), strict=True))
    return {one: hashlib.md5(f"{seed}:{one}".encode()).hexdigest() for one in numbers}, numbers


def test_a_sample_is_the_same_rows_whatever_became_of_the_files(lake: lakehouse.Lake) -> None:
    lake.sql("CREATE TABLE many (at TIMESTAMP, n BIGINT) PARTITIONED BY (days(at))")
    for turn in range(4):
        lake.sql(f"INSERT INTO many SELECT TIMESTAMP '2013-01-05', id FROM range({turn * 100}, {turn * 100 + 100})",
                 engine="duckdb")  # fmt: skip
    lake.sql("DELETE FROM many WHERE n % 5 = 0")
    found, by_id = hashes(lake, 42)
    version = lake.head
    below = {share: [by_id[one] for one, text in found.items() if int(text, 16) * 100 < share * 16**32]
             for share in (0, 12.5, 50, 100)}  # fmt: skip
    least = [by_id[one] for one in sorted(found, key=lambda one: found[one])]
    lake.table("many").compact()
    lake.sql("INSERT INTO many VALUES ('2013-01-05', 1000)")
    at = f"many VERSION AS OF {version} TABLESAMPLE"
    for share, numbers in below.items():
        same(lake, f"SELECT n FROM {at} ({share} PERCENT) REPEATABLE (42)", [(one,) for one in numbers])
    for rows in (0, 7, 500):
        same(lake, f"SELECT x.n FROM {at} ({rows} ROWS) REPEATABLE (42) AS x", [(one,) for one in least[:rows]])
    some = [(one,) for one in below[50] if one > 200]
    same(lake, f"SELECT n FROM {at} (50 PERCENT) REPEATABLE (42) WHERE n > 200", some)
    same(lake, f"SELECT n FROM {at} (9 ROWS) REPEATABLE (42) AS m WHERE m.n > 200",
         [(one,) for one in least[:9] if one > 200])  # fmt: skip
    ((when,),) = rows_of(lake, "SELECT max(at) FROM many")
    same(lake, f"SELECT * FROM {at} (5 ROWS) REPEATABLE (42) AS m(a, b) JOIN {at} (9 ROWS) REPEATABLE (42) ON b = n",
         [(when, one, when, one) for one in least[:5]])  # fmt: skip
    assert len(below[12.5]) in range(20, 60)


# What is refused

REFUSED = [
    ("SELECT explode(array(1)), explode(array(2))", "once"),
    ("SELECT explode(array(1)) + 1", "stands alone"),
    ("SELECT k, explode(array(1)) FROM o GROUP BY k", "LATERAL VIEW"),
    ("SELECT explode(array(k)), row_number() OVER (ORDER BY k) FROM o", "LATERAL VIEW"),
    ("SELECT explode(array(k)) AS n FROM o WHERE n > 1", "no such column"),
    ("SELECT k FROM o WHERE explode(array(1)) = 1", "stands alone"),
    ("SELECT explode((SELECT array(1)))", "not of a query"),
    ("SELECT 1 FROM o LATERAL VIEW explode(array(1)) x AS a, b, c", "as many names"),
    ("SELECT 1 FROM o LATERAL VIEW inline(array(struct(1))) x", "name the columns"),
    ("SELECT 1 FROM o LATERAL VIEW stack(2, 1, 2) x AS a", "not allowed|LATERAL VIEW one of"),
    ("SELECT 1 FROM o LATERAL VIEW json_tuple(g, 'a') x AS a", "not allowed|LATERAL VIEW one of"),
    ("SELECT 1 FROM o, LATERAL o", "a query in parentheses"),
    ("SELECT 1 FROM o RIGHT JOIN LATERAL (SELECT o.k) AS x ON TRUE", "LEFT JOIN"),
    ("SELECT 1 FROM o, (SELECT o.k AS n) AS x", "no such column"),
    ("SELECT 1 FROM o, explode(array(o.k)) AS x(y)", "no such column"),
    ("SELECT 1 FROM range(1000001)", "too many rows"),
    ("SELECT 1 FROM range(1, 5, 0)", "step"),
    ("SELECT 1 FROM range(k)", "whole numbers"),
    ("SELECT 1 FROM range(1, 2, 3, 4)", "whole numbers"),
    ("SELECT 1 FROM o, LATERAL (SELECT 1 FROM range(o.k))", "whole numbers"),
    ("SELECT range(3)", "not allowed"),
    ("SELECT * FROM o PIVOT (v FOR g IN ('a'))", "calculates a sum"),
    ("SELECT * FROM o PIVOT (sum(v) FOR g IN (k))", "stand in the statement"),
    ("SELECT * FROM o PIVOT (sum(v) FOR g IN (ANY))", "pivotany|values"),
    ("SELECT * FROM o PIVOT (sum(v), max(v) FOR g IN ('a'))", "need names"),
    ("SELECT * FROM o PIVOT (sum(v) FOR (g, k) IN (('a', 1)))", "AS name"),
    ("SELECT * FROM o PIVOT (sum(v) FOR g IN (TIMESTAMP '2013-01-05'))", "AS name"),
    ("SELECT * FROM o PIVOT (sum(nowhere) FOR g IN ('a'))", "no such column"),
    ("SELECT * FROM (SELECT k, k FROM o) PIVOT (count(*) FOR k IN (1))", "one name"),
    ("SELECT * FROM o JOIN o AS p ON TRUE PIVOT (sum(v) FOR g IN ('a'))", "pivots|PIVOT"),
    ("SELECT * FROM o UNPIVOT (v FOR n IN (k + 1))", "lists columns|not a statement"),
    ("SELECT * FROM o UNPIVOT (c FOR n IN (nowhere))", "no such column"),
    ("SELECT * FROM o UNPIVOT ((a, b) FOR n IN (k))", "as many"),
    ("WITH RECURSIVE r AS (SELECT 1 AS n UNION SELECT n + 1 FROM r) SELECT * FROM r", "UNION ALL"),
    ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT max(n) FROM r) SELECT * FROM r", "sums"),
    ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT a.n FROM r a, r b) SELECT * FROM r", "once"),
    ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n FROM (SELECT n FROM r)) SELECT * FROM r", "sub-query"),
    ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT k FROM o WHERE k IN (SELECT n FROM r)) SELECT 1", "sub-"),
    ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT r.n FROM o LEFT JOIN r ON TRUE) SELECT 1", "CROSS JOIN"),
    ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n, n FROM r) SELECT * FROM r", "as many columns"),
    ("WITH RECURSIVE r AS (SELECT * FROM r) SELECT * FROM r", "UNION ALL"),
    ("WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n FROM b), b AS (SELECT * FROM a) SELECT 1", "no such table"),
    ("WITH r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT * FROM r", "no such table"),
    ("SELECT * FROM o TABLESAMPLE (10 PERCENT)", "seed"),
    ("SELECT * FROM o TABLESAMPLE (101 PERCENT) REPEATABLE (1)", "0 to 100"),
    ("SELECT * FROM o TABLESAMPLE (BUCKET 1 OUT OF 2) REPEATABLE (1)", "bucket"),
    ("SELECT * FROM (SELECT 1) TABLESAMPLE (10 PERCENT) REPEATABLE (1)", "sample"),
    ("SELECT * FROM o.segments TABLESAMPLE (10 PERCENT) REPEATABLE (1)", "table of the lake"),
    ("WITH c AS (SELECT 1) SELECT * FROM c TABLESAMPLE (10 PERCENT) REPEATABLE (1)", "table of the lake"),
    ("SELECT _row_id FROM o TABLESAMPLE (10 PERCENT) REPEATABLE (1)", "no such column"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_what_spark_and_the_process_would_not_agree_on_is_refused_by_name(
    lake: lakehouse.Lake, text: str, said: str
) -> None:
    with pytest.raises((InvalidInput, lakehouse.TableNotFound), match=said):
        lake.sql(text, engine="duckdb")


def test_nested_pivots_cost_what_they_are_long(lake: lakehouse.Lake) -> None:
    text = "(SELECT k, g FROM o)"
    for depth in range(25):
        text = f"(SELECT * FROM {text} PIVOT (count(*) FOR g IN ('a' AS g{depth})))".replace("count(*)", "max(g)")
        text = f"(SELECT k, 'a' AS g FROM {text})"
    assert len(rows_of(lake, f"SELECT * FROM {text}")) == 4


def test_no_totals_of_no_rows(lake: lakehouse.Lake) -> None:
    for group in ("ROLLUP (g)", "CUBE (g)", "g WITH ROLLUP", "GROUPING SETS ((g), ())"):
        assert rows_of(lake, f"SELECT g, count(*) FROM nothing GROUP BY {group}") == []
        assert rows_of(lake, f"SELECT g, count(*) FROM o GROUP BY {group} HAVING count(*) > 4") == [(None, 6)]


SETS = ["()", "(g)", "(g), ()", "(), ()", "ROLLUP (g)", "GROUPING SETS (())", "GROUPING SETS ((g), ())"]


@pytest.mark.parametrize("sets", SETS)
@pytest.mark.parametrize("before", ["", "g "])
@pytest.mark.parametrize("table", ["o", "nothing"])
def test_one_set_of_everything_alone_is_a_sum_of_no_rows_too(
    lake: lakehouse.Lake, sets: str, before: str, table: str
) -> None:
    values = [row[0] for row in rows_of(lake, f"SELECT g FROM {table}")]
    per_group = [values.count(one) for one in set(values)]
    total = [len(values)] * bool(values)
    expected = {
        "()": total if before else [len(values)],
        "(g)": per_group,
        "(), ()": 2 * total,
        "GROUPING SETS (())": total if before else [len(values)],
    }.get(sets, per_group + total)
    found = rows_of(lake, f"SELECT count(*) FROM {table} GROUP BY {before}GROUPING SETS ({sets})")
    assert sorted(one for (one,) in found) == sorted(expected)


def test_nulls_are_left_out_of_joined_lists_and_of_filtered_maps(lake: lakehouse.Lake) -> None:
    texts = [None, "", "a", "ab"]
    pairs = [(one, other) for one in texts for other in texts]
    listed = ", ".join(f"({place}, {_text(one)}, {_text(other)})" for place, (one, other) in enumerate(pairs))
    text = f"""SELECT place, array_join(array_repeat(CAST(a AS STRING), 2), '-'),
        array_join(map_values(map_filter(map(1, a, 2, b), (k, e) -> e > 'a')), ','),
        array_join(map_keys(map_filter(map('x', a, 'y', b), (k, e) -> e IS NULL)), ',')
        FROM VALUES {listed} AS v(place, a, b) ORDER BY place"""
    assert rows_of(lake, text) == [
        (
            place,
            "" if a is None else f"{a}-{a}",
            ",".join(one for one in (a, b) if one is not None and one > "a"),
            ",".join(name for name, one in (("x", a), ("y", b)) if one is None),
        )
        for place, (a, b) in enumerate(pairs)
    ]


def _text(value: str | None) -> str:
    return "CAST(NULL AS STRING)" if value is None else f"'{value}'"


@pytest.mark.parametrize(
    "made",
    [
        "map(g, 1)", "map('x', 1, g, 2)", "map_from_arrays(array(g), array(1))",
        "map_from_entries(array(struct(g, 1)))", "transform_keys(map('x', 1), (k, e) -> g)",
    ],
)  # fmt: skip
def test_a_null_is_no_key_of_a_map(lake: lakehouse.Lake, made: str) -> None:
    keys = "SELECT {} AS m FROM VALUES ('a'), ({}) AS v(g)"
    assert len(rows_of(lake, keys.format(made, "'b'"))) == 2
    with pytest.raises(InvalidInput, match="Map keys can not be NULL"):
        lake.query(keys.format(made, "NULL"))


def test_a_row_that_fails_after_thousands_is_bad_input_in_a_query_process(lake: lakehouse.Lake) -> None:
    text = "SELECT CASE WHEN id < 400000 THEN id ELSE CAST('a' || CAST(id AS STRING) AS INT) END FROM range(500000)"
    with pytest.raises(InvalidInput, match="a400000"):
        lake.query(text, most_rows=500_000)
