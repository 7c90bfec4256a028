"""What Spark gives for LATERAL, rows of lists, PIVOT, UNPIVOT, ranges, recursions and samples: the oracle's rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import lakehouse
from lakehouse.engine.spark.statement import read_frame_rows
from lakehouse.errors import QueryLimitExceeded
from tests.unit.sql.conftest import rows_of
from tests.unit.sql.test_constructs import EXPLODED, PIVOTS, ROWS, Row, fill
from tests.unit.sql.test_recursion import PATHS, reached

MORE = (
    "SELECT s.* EXCEPT (at) FROM o TABLESAMPLE (30 PERCENT) REPEATABLE (7) AS s WHERE s.k IS NOT NULL",
    "SELECT s.k, s.g FROM o TABLESAMPLE (4 ROWS) REPEATABLE (3) AS s WHERE k = 1",
    "SELECT r.n, id, explode(sequence(3, 1, -2)) AS e FROM range(4) AS r(n) JOIN range(5, 1, -1) ON n = id",
    "SELECT g, count(*), grouping(g) FROM nothing GROUP BY CUBE (g)",
    """SELECT * FROM (SELECT k, g, v FROM o)
        NATURAL FULL JOIN (SELECT k, a, b FROM edges JOIN range(4) AS r(k) ON a = k)""",
    "SELECT k, g FROM o UNION BY NAME SELECT a AS K, b AS h FROM edges ORDER BY ALL DESC NULLS LAST LIMIT 4",
    "SELECT k, k > ALL (SELECT k FROM o), v <> ANY (SELECT v FROM o), 'a' < SOME (SELECT g FROM o) FROM o",
    "SELECT id FROM o JOIN range(3) ON TRUE WHERE v <= ALL (SELECT p.v FROM o p WHERE p.k = o.k)",
    """SELECT s.n, unix_date(d) FROM generate_series(5, 1, -2) AS s(n),
        LATERAL explode(sequence(DATE '2013-01-31', DATE '2013-05-01', INTERVAL 1 MONTH)) AS e(d)""",
    "SELECT g, sum(v), count(*) FROM o GROUP BY GROUPING SETS ((g), ()) HAVING count(*) > 1",
)


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakehouse.Lake]:
    folder = tmp_path_factory.mktemp("constructs")
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse", spark=spark) as lake:
        fill(lake)
        yield lake


def of_frame(frame: Any) -> Counter[str]:
    return Counter(repr(tuple(row)) for row in frame.collect())


@pytest.mark.parametrize(("text", "made"), EXPLODED[::3])
def test_rows_are_made_of_each_row(lake: lakehouse.Lake, text: str, made: Callable[[Row], list[Row]]) -> None:
    assert of_frame(lake.sql(text, engine="spark")) == Counter(repr(one) for row in ROWS for one in made(row))


def test_pivots_are_what_sparks_own_are(lake: lakehouse.Lake, spark: Any) -> None:
    """Spark runs the text as it is over views, and ours over the lake."""
    for name in ("o", "nothing"):
        rows = lake.table(name).scan().to_arrow()
        spark.createDataFrame(rows).coalesce(1).createOrReplaceTempView(name)
    try:
        for place, (text, names, expected) in enumerate(PIVOTS):
            own = spark.sql(text)
            assert (own.columns, of_frame(own)) == (names, Counter(map(repr, expected))), text
            if place in (1, 9):
                found = lake.sql(text, engine="spark")
                assert (found.columns, of_frame(found)) == (names, Counter(map(repr, expected))), text
    finally:
        for name in ("o", "nothing"):
            spark.catalog.dropTempView(name)


@pytest.mark.parametrize("text", MORE)
def test_both_engines_give_the_same(lake: lakehouse.Lake, text: str) -> None:
    assert Counter(tuple(row) for row in lake.sql(text, engine="spark").collect()) == Counter(rows_of(lake, text))


def test_a_recursion_has_the_limit_of_the_process(lake: lakehouse.Lake) -> None:
    assert of_frame(lake.sql(PATHS.format(1, 5), engine="spark")) == Counter(map(repr, reached(1, 5)))
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 102) SELECT n FROM r"
    with pytest.raises(QueryLimitExceeded, match="100 steps"):
        read_frame_rows(lake.sql(endless, engine="spark"))
