"""Shorthand of statements means what it is short for, and what has no such meaning is refused."""

from __future__ import annotations

from itertools import product
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import pytest

import lakehouse
from lakehouse.errors import InvalidInput
from lakehouse.sql.functions import NAMES
from tests.unit.sql.conftest import rows_of


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT id FROM trips WHERE client LIKE ANY ('U%', 'it%') ORDER BY id", [(1,), (2,), (4,)]),
        ("SELECT id FROM trips WHERE client NOT LIKE ALL ('U%', 'x%')", [(2,)]),
        ("SELECT id FROM trips WHERE client NOT LIKE ANY ('U%', 'it%') ORDER BY id", [(1,), (2,), (4,)]),
        ("SELECT id FROM trips WHERE upper(client) ILIKE SOME ('ua') AND client LIKE ALL ('%A', 'U%') AND id < 3",
         [(1,)]),
        ("SELECT client LIKE ANY ('x', NULL) FROM trips WHERE id = 1", [(None,)]),
        ("SELECT id FROM trips WHERE client = ANY (SELECT name FROM clients) ORDER BY id", [(1,), (4,)]),
        ("SELECT id FROM trips t WHERE id <> ALL (SELECT u.id FROM trips u WHERE u.id > t.id - 1 AND u.id < 4)",
         [(4,)]),
        ("SELECT id FROM trips ORDER BY id FETCH FIRST 2 ROWS ONLY", [(1,), (2,)]),
        ("SELECT id FROM trips ORDER BY id OFFSET 1 ROWS FETCH NEXT ROW ONLY", [(2,)]),
        ("SELECT client, grouping_id() FROM trips WHERE id <> 3 GROUP BY CUBE (client) ORDER BY 2, 1",
         [("UA", 0), ("it's", 0), (None, 1)]),
        ("SELECT id % 2, client, grouping_id() FROM trips WHERE id = 1 GROUP BY ROLLUP (id % 2, client) ORDER BY 3",
         [(1, "UA", 0), (1, None, 1), (None, None, 3)]),
        ("SELECT regexp(client, 'U.'), regexp_substr(client, 'A+'), regexp_substr(client, 'x') FROM trips WHERE id = 1",
         [(True, "A", None)]),
        ("SELECT 'a' || space(2) || 'b', try_divide(NULL, 0), positive(7), negative(7 - 3)", [("a  b", None, 7, -4)]),
        ("SELECT try_divide(price + 1, id - 1), try_divide(price, id) FROM trips WHERE id < 3 ORDER BY id",
         [(None, 1.5), (3.0, 1.0)]),
        ("SELECT try_mod(-7, 3), try_mod(7, 0), try_mod(NULL, 1)", [(-1, None, None)]),
        ("SELECT * FROM generate_series(3, 1, -1)", [(3,), (2,), (1,)]),
        ("SELECT g.n + generate_series FROM generate_series(1, 2), generate_series(1, 1) AS g(n) ORDER BY 1",
         [(2,), (3,)]),
        ("SELECT date_part('year', at), date_part('MONTH', day) FROM trips WHERE id = 1", [(2013, 1)]),
        ("SELECT extract(DOW FROM at), date_part('dayofweek', at), extract(DOW_ISO FROM at) FROM trips WHERE id = 1",
         [(7, 7, 6)]),
        ("SELECT current_database(), current_schema() AS s, current_catalog() || '!'",
         [("default", "default", "lakehouse!")]),
    ],
)  # fmt: skip
def test_it_means_what_it_is_short_for(still_lake: lakehouse.Lake, text: str, rows: list[Any]) -> None:
    assert rows_of(still_lake, text) == rows


COMPARED = {"=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
LISTS: tuple[list[int | None], ...] = ([], [1], [1, 3], [None], [2, None], [2, 2])


@pytest.mark.parametrize("word", ["ALL", "ANY", "SOME"])
@pytest.mark.parametrize("sign", COMPARED)
def test_a_comparison_with_a_query_is_one_with_each_of_its_values(
    still_lake: lakehouse.Lake, sign: str, word: str
) -> None:
    for held in LISTS:
        values = ", ".join(f"({'NULL' if one is None else one})" for one in held) or "(0)"
        query = f"SELECT y FROM VALUES {values} AS w(y){'' if held else ' WHERE FALSE'}"
        text = f"SELECT x, x {sign} {word} ({query}) FROM VALUES (1), (2), (3), (NULL) AS v(x)"
        for x, found in rows_of(still_lake, text):
            tests = [None if x is None or one is None else COMPARED[sign](x, one) for one in held]
            decisive = word != "ALL"
            expected = decisive if decisive in tests else None if None in tests else not decisive
            assert found is expected, (text, x)


def test_a_comparison_with_a_query_may_be_about_the_row(still_lake: lakehouse.Lake) -> None:
    text = "SELECT id FROM trips t WHERE id >= ALL (SELECT u.id FROM trips u WHERE u.client = t.client) ORDER BY id"
    assert rows_of(still_lake, text) == [(2,), (3,), (4,)]
    assert still_lake.sql("SELECT id > ALL (SELECT 1) FROM trips", engine="duckdb").columns == ["id > ALL (SELECT 1)"]


def test_shorthand_stands_on_both_sides_of_a_comparison_with_a_query(still_lake: lakehouse.Lake) -> None:
    text = "SELECT id FROM trips WHERE try_mod(id, 3) {} (SELECT try_mod(u.id, 2) FROM trips u) ORDER BY id"
    ids, rests = range(1, 5), [one % 2 for one in range(1, 5)]
    for sign, word in product(COMPARED, ("ALL", "ANY")):
        among = all if word == "ALL" else any
        expected = [(one,) for one in ids if among(COMPARED[sign](one % 3, rest) for rest in rests)]
        assert rows_of(still_lake, text.format(f"{sign} {word}")) == expected
    text = "SELECT id FROM trips WHERE regexp_substr(client, '[A-Z]+') LIKE ANY ('U%', 'x')"
    assert rows_of(still_lake, text + " ORDER BY id") == [(1,), (4,)]


def test_patterns_stand_in_conditions_of_changes(lake: lakehouse.Lake) -> None:
    assert lake.sql("DELETE FROM trips WHERE client LIKE ANY ('U%', 'x')").rows_deleted == 2
    assert lake.sql("SELECT current_schema()", engine="duckdb").columns == ["current_schema()"]


def test_show_tells_the_catalog_the_schema_and_the_functions(still_lake: lakehouse.Lake) -> None:
    assert still_lake.sql("SHOW CATALOGS").to_pylist() == [{"catalog": "lakehouse"}]
    assert still_lake.sql("SHOW CURRENT NAMESPACE").to_pylist() == [{"catalog": "lakehouse", "namespace": "default"}]
    assert still_lake.sql("SHOW FUNCTIONS").column("function").to_pylist() == NAMES.split()
    assert still_lake.sql("SHOW FUNCTIONS LIKE 'regr_s*y'").column("function").to_pylist() == ["regr_sxy", "regr_syy"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM trips WHERE id > ALL (SELECT 1 LIMIT 1)",
        "SELECT id FROM trips WHERE id > ALL (SELECT id, price FROM trips)",
        "SELECT id FROM trips WHERE id > ALL (1, 2)",
        "SELECT id FROM trips WHERE id <=> ALL (SELECT 1)",
        f"SELECT id FROM trips WHERE id > ALL (SELECT {' + '.join(['id'] * 700)} FROM trips)",
        "SELECT * FROM generate_series(1, 2000000)",
        "SELECT * FROM generate_series(1, 5, 0)",
        "SELECT * FROM trips, generate_series(1, id)",
        "SELECT * FROM generate_series(DATE '2013-01-01', DATE '2013-02-01', INTERVAL 1 DAY)",
        "SELECT id FROM trips WHERE 1 = ANY (1, 2)",
        "SELECT id FROM trips WHERE client LIKE ANY (SELECT name FROM clients)",
        "SELECT id FROM trips WHERE client LIKE ANY ('a', 'b') ESCAPE '!'",
        "SELECT id FROM trips ORDER BY id FETCH FIRST 2 ROWS WITH TIES",
        "SELECT id FROM trips FETCH FIRST 2 PERCENT ROWS ONLY",
        "SELECT grouping_id() FROM trips",
        "SELECT client, grouping_id() FROM trips GROUP BY ROLLUP (1)",
        "SELECT current_schema(1)",
        "SELECT regexp(client) FROM trips",
        "SELECT regexp(client, name) FROM trips, clients",
        "SELECT regexp_substr(client, '(a+)+') FROM trips",
        "SELECT regexp_substr(client, 'a', 2) FROM trips",
        "SELECT date_part(year, at) FROM trips",
        "SELECT date_part(concat('ye', 'ar'), at) FROM trips",
        "SELECT date_part('x y', at) FROM trips",
        "SELECT space(id) FROM trips",
        "SELECT space(1000000000)",
        "SHOW CURRENT TABLE",
        f"SELECT {' || '.join(['client'] * 150)} LIKE ANY ({', '.join(['client'] * 150)}) FROM trips",
    ],
)
def test_what_is_short_for_nothing_is_refused(still_lake: lakehouse.Lake, text: str) -> None:
    with pytest.raises(InvalidInput):
        still_lake.sql(text, engine="duckdb" if text.startswith("SELECT") else None)
