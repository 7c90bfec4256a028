"""A name in a query means one column, the one that Spark takes; a name that could mean two is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakehouse
from lakehouse.errors import InvalidInput, UnknownColumn
from lakehouse.sql.parse import parse_statement
from lakehouse.sql.query import bind
from tests.unit.sql.conftest import rows_of

AMBIGUOUS = (
    "SELECT v FROM (SELECT a AS v, b AS v FROM t)",
    "SELECT v FROM (SELECT a AS v, b AS V FROM t)",
    "SELECT q.v FROM (SELECT a AS v, b AS v FROM t) q",
    "SELECT 1 FROM (SELECT a AS v, b AS v FROM t) WHERE v = 10",
    "SELECT sum(v) FROM (SELECT a AS v, b AS v FROM t)",
    "SELECT row_number() OVER (ORDER BY v) FROM (SELECT a AS v, b AS v FROM t)",
    "SELECT a FROM (SELECT *, b AS a FROM t)",
    "SELECT a FROM (SELECT b AS a, * FROM t) WHERE a = 10",
    "WITH c AS (SELECT a AS v, b AS v FROM t) SELECT v FROM c",
    "WITH c AS (SELECT a AS v, b AS v FROM t), d AS (SELECT v FROM c) SELECT 1 FROM d",
    "WITH c(x, X) AS (SELECT 1, 2) SELECT x FROM c",
    "SELECT x FROM (SELECT 1, 2) AS v(x, x)",
    "SELECT x FROM VALUES (1, 2) AS v(x, X)",
    "SELECT a FROM t JOIN u ON t.a = u.a",
    "SELECT 1 FROM t JOIN u ON a = c",
    "SELECT at FROM t JOIN u USING (a)",
    "SELECT a FROM t JOIN u USING (a) JOIN t AS w ON w.b = c",
    "SELECT 1 FROM t JOIN u USING (a) JOIN t AS w USING (at)",
    "SELECT a FROM (SELECT * FROM t JOIN u ON t.a = u.a)",
    "SELECT q.a FROM (SELECT t.*, u.* FROM t JOIN u USING (a)) q",
    "SELECT 1 FROM t, (SELECT 1 AS a) WHERE a = 1",
    "SELECT t.a FROM t JOIN u AS t ON true",
    "SELECT a AS v, b AS v FROM t ORDER BY v",
    "SELECT a AS v, b AS V FROM t ORDER BY -v",
    "SELECT a AS v, b AS v FROM t GROUP BY v",
    "SELECT a AS v, b AS v, v + 1 AS w FROM t",
    "SELECT a AS v, b AS v FROM t UNION ALL SELECT 1, 2 ORDER BY v",
    "SELECT v FROM (SELECT a AS v, b AS v FROM t UNION ALL SELECT 1, 2)",
    "SELECT a, -b AS b FROM t GROUP BY a, b HAVING b > 0",
    "SELECT -sum(a) AS a FROM t HAVING a > 1",
    "SELECT a, -b AS b FROM t QUALIFY b > 0 AND row_number() OVER (ORDER BY a) = 1",
    "SELECT * EXCEPT (a) FROM t JOIN u ON t.a = u.a",
    "SELECT (SELECT max(c) FROM u WHERE u.at = v) FROM (SELECT at AS v, at + INTERVAL 1 DAY AS v FROM t)",
    "SELECT a FROM t WHERE a IN (SELECT v FROM (SELECT a AS v, c AS v FROM u))",
    "INSERT INTO t SELECT at, v, v FROM (SELECT at, a AS v, b AS v FROM t)",
    "INSERT INTO t BY NAME SELECT at, a, b AS A FROM t",
    "MERGE INTO t USING (SELECT a, c AS a FROM u) AS s ON t.a = s.a WHEN MATCHED THEN DELETE",
    "MERGE INTO t USING (SELECT a, c AS A FROM u) AS s ON t.b = s.a WHEN MATCHED THEN DELETE",
)
UNKNOWN = (
    "SELECT nothing FROM t",
    "SELECT t.c FROM t",
    "SELECT a AS z FROM t WHERE z > 1",
    "SELECT 1 FROM t JOIN u ON a0 = 1",
    "SELECT b AS z FROM t JOIN u ON z = 1",
    "SELECT t.a FROM t AS x",
    "SELECT u.a FROM t SEMI JOIN u ON t.a = u.a",
    "SELECT c FROM t SEMI JOIN u ON t.a = u.a",
    "SELECT * FROM t, (SELECT t.a + 1 AS n)",
    "SELECT * FROM t JOIN (SELECT c FROM u WHERE u.a = t.a) AS q ON true",
    "SELECT * EXCEPT (c) FROM t",
    "SELECT 1 FROM t JOIN u USING (c)",
    "SELECT x FROM (SELECT a FROM t) AS q(y)",
    "SELECT a FROM t UNION ALL SELECT a FROM u ORDER BY b",
    "SELECT z + 1 AS y, a AS z FROM t",
)
MEANT: tuple[tuple[str, list[tuple[Any, ...]]], ...] = (
    ("SELECT b AS a FROM t ORDER BY a", [(10,), (20,)]),
    ("SELECT -a AS b FROM t ORDER BY b", [(-2,), (-1,)]),
    ("SELECT -a AS b FROM t ORDER BY b + 0", [(-2,), (-1,)]),
    ("SELECT -a AS b FROM t ORDER BY -b", [(-1,), (-2,)]),
    ("SELECT -a AS b FROM t ORDER BY t.b + 0", [(-1,), (-2,)]),
    ("SELECT -sum(a) AS n FROM t GROUP BY b ORDER BY n + 1", [(-2,), (-1,)]),
    ("SELECT b AS a, a + 1 AS w FROM t ORDER BY 1", [(10, 2), (20, 3)]),
    ("SELECT a AS x, b AS y, x + y AS z FROM t ORDER BY x", [(1, 10, 11), (2, 20, 22)]),
    ("SELECT a % 2 AS odd, count(*) FROM t GROUP BY odd ORDER BY odd", [(0, 1), (1, 1)]),
    ("SELECT sum(b) AS z FROM t HAVING z > 1", [(30,)]),
    ("SELECT a, a FROM t ORDER BY a", [(1, 1), (2, 2)]),
    ("SELECT a FROM (SELECT a, a FROM t) ORDER BY a", [(1,), (2,)]),
    ("SELECT count(*) FROM (SELECT a AS v, b AS v FROM t)", [(2,)]),
    ("SELECT b FROM (SELECT a, b FROM t) AS s(b, a) ORDER BY 1", [(1,), (2,)]),
    ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = a) ORDER BY a", [(1,), (2,)]),
    ("SELECT b FROM t WHERE EXISTS (SELECT 1 FROM u WHERE c = b * 10)", [(10,)]),
    ("SELECT b, (SELECT count(*) FROM (SELECT c AS b FROM u) WHERE b > 150) FROM t ORDER BY b", [(10, 1), (20, 1)]),
    ("SELECT b, (SELECT max(-c) AS b FROM u WHERE b = 10) AS m FROM t ORDER BY b", [(10, -100), (20, None)]),
    ("SELECT * EXCEPT (at) FROM t JOIN u USING (at, a)", [(1, 10, 100)]),
    ("SELECT * FROM (SELECT a, b FROM t) JOIN (SELECT c, a FROM u) USING (a)", [(1, 10, 100)]),
    ("SELECT * FROM (SELECT b, a FROM t) JOIN (SELECT c, a FROM u) USING (a)", [(1, 10, 100)]),
    (
        "SELECT * FROM (SELECT b, a FROM t) FULL JOIN (SELECT c, a FROM u) USING (a) ORDER BY a",
        [(1, 10, 100), (2, 20, None), (3, None, 300)],
    ),
    (
        "SELECT a, x.a, y.a FROM (SELECT b, a FROM t) x RIGHT JOIN (SELECT c, a FROM u) y USING (a) ORDER BY 3",
        [(1, 1, 1), (3, None, 3)],
    ),
    ("SELECT q.* FROM (SELECT b, a FROM t) q JOIN (SELECT c, a FROM u) USING (a)", [(10, 1)]),
    ("SELECT b, a FROM t LEFT SEMI JOIN u USING (a)", [(10, 1)]),
    ("SELECT s.x, s.y.z FROM (SELECT named_struct('x', a, 'y', named_struct('z', b)) AS s FROM t) ORDER BY 1",
     [(1, 10), (2, 20)]),
    ("SELECT `a.b`.x FROM (SELECT a AS x FROM t) AS `a.b` ORDER BY x", [(1,), (2,)]),
)  # fmt: skip


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakehouse.Lake]:
    folder: Path = tmp_path_factory.mktemp("columns")
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse") as lake:
        lake.sql("CREATE TABLE t (at TIMESTAMP, a BIGINT, b BIGINT) PARTITIONED BY (days(at))")
        lake.sql("CREATE TABLE u (at TIMESTAMP, a BIGINT, c BIGINT) PARTITIONED BY (days(at))")
        lake.sql("INSERT INTO t VALUES ('2013-01-05', 1, 10), ('2013-01-06', 2, 20)")
        lake.sql("INSERT INTO u VALUES ('2013-01-05', 1, 100), ('2013-01-06', 3, 300)")
        yield lake


@pytest.mark.parametrize("text", [*AMBIGUOUS, *UNKNOWN])
def test_a_name_that_means_no_column_or_two_is_refused(lake: lakehouse.Lake, text: str) -> None:
    head = lake.head
    with pytest.raises(InvalidInput):
        lake.sql(text, engine="duckdb")
    assert lake.head == head


@pytest.mark.parametrize("text", [text for text in (*AMBIGUOUS, *UNKNOWN) if text.startswith(("SELECT", "WITH"))])
def test_it_is_refused_before_any_engine_sees_it(lake: lakehouse.Lake, text: str) -> None:
    tree = parse_statement(text).tree
    assert tree is not None
    with pytest.raises(InvalidInput, match=r"ambiguous|no such column|a name that is|a \* "):
        bind(lake.session, tree, as_of=None, engine="spark")


@pytest.mark.parametrize(("text", "expected"), MEANT)
def test_a_name_means_what_spark_takes_it_for(lake: lakehouse.Lake, text: str, expected: list[Any]) -> None:
    found = rows_of(lake, text)
    assert found == expected


def test_a_star_over_a_name_that_is_there_twice_is_left_to_spark(lake: lakehouse.Lake) -> None:
    text = "SELECT * FROM (SELECT a AS v, b AS v FROM t)"
    with pytest.raises(InvalidInput, match="names of their own"):
        lake.sql(text, engine="duckdb")
    tree = parse_statement(text).tree
    assert tree is not None
    assert "SELECT * FROM" in bind(lake.session, tree, as_of=None, engine="spark").text


def test_columns_of_a_join_by_using_stand_first_whatever_the_engine(lake: lakehouse.Lake) -> None:
    assert lake.sql("SELECT * FROM t JOIN u USING (a)", engine="duckdb").columns == ["a", "at", "b", "at", "c"]


def test_what_a_statement_selects_by_place_may_share_a_name(lake: lakehouse.Lake) -> None:
    assert lake.sql("SELECT a AS v, b AS v FROM t", engine="duckdb").columns == ["v", "v"]
    before = lake.head
    assert lake.sql("INSERT INTO t SELECT at, a AS v, b AS v FROM t", engine="duckdb").rows_added == 2
    lake.table("t").restore(before)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELECT nowhere FROM VALUES (1, 2) v(a, b)", "a,b"),
        ("SELECT v.nowhere FROM VALUES (1) v(a), (SELECT 1 AS one) x", "v.a,x.one"),
        (
            "SELECT 1 FROM (SELECT 1 AS one) x WHERE EXISTS (SELECT 1 FROM (SELECT 2 AS two) y WHERE nowhere = 1)",
            "two,one",
        ),
    ],
)
def test_an_unknown_column_names_those_that_there_are(tmp_path: Path, text: str, named: str) -> None:
    with (
        lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse") as lake,
        pytest.raises(UnknownColumn) as refused,
    ):
        lake.sql(text, engine="duckdb")
    assert refused.value.facts["columns"] == named


def test_for_spark_a_column_of_a_query_further_out_is_refused(tmp_path: Path) -> None:
    inner = "EXISTS (SELECT 1 FROM VALUES (1) AS c(z) WHERE c.z = {})"
    text = "SELECT x FROM VALUES (1), (2) AS a(x) WHERE EXISTS (SELECT 1 FROM VALUES (1), (3) AS b(y) WHERE {})"
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse") as lake:
        further = text.format(inner.format("a.x"))
        assert rows_of(lake, further) == [(1,)]
        tree = parse_statement(further).tree
        assert tree is not None
        with pytest.raises(InvalidInput, match=r"further out.*a\.x"):
            bind(lake.session, tree, as_of=None, engine="spark")
        tree = parse_statement(text.format(inner.format("b.y") + " AND y = a.x")).tree
        assert tree is not None
        bind(lake.session, tree, as_of=None, engine="spark")
