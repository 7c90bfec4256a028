"""What the parser can say and nobody here knows is refused: kinds of nodes, and parts of those that are listed."""

from __future__ import annotations

import inspect
import logging
import re
from typing import Any

import pytest
from sqlglot import exp

import lakehouse
from lakehouse.errors import InvalidInput
from lakehouse.sql.allowed import NODES, check_allowed
from lakehouse.sql.functions import FUNCTIONS, NAMES
from lakehouse.sql.normal import normalized
from lakehouse.sql.parse import parse_statement
from lakehouse.sql.written import write
from tests.unit.sql.conftest import rows_of

LISTED = {**NODES, **FUNCTIONS}
KINDS = sorted(
    (kind for _, kind in inspect.getmembers(exp, inspect.isclass) if issubclass(kind, exp.Expr)),
    key=lambda kind: kind.__name__,
)


def made(kind: type[exp.Expr], parts: dict[str, Any]) -> exp.Expr:
    """A node with something in each part that it must have."""
    needed = {part: exp.column("a") for part, is_needed in kind.arg_types.items() if is_needed}
    return exp.Select(expressions=[kind(**{**needed, **parts})])


def test_every_kind_of_node_of_the_parser_that_is_not_listed_is_refused() -> None:
    assert len(KINDS) > 900
    passed = []
    for kind in KINDS:
        if kind in LISTED:
            continue
        try:
            check_allowed(made(kind, {}), "spark")
        except (InvalidInput, NotImplementedError):  # the latter of kinds that stand for others only
            continue
        passed.append(kind.__name__)
    assert passed == []


def test_every_part_of_a_listed_node_that_is_not_listed_is_refused() -> None:
    tried, passed = 0, []
    for kind, parts in LISTED.items():
        for part in set(kind.arg_types) - set(parts):
            for value in (True, exp.Literal.number(1), [exp.Literal.number(1)], "x", 0):
                tried += 1
                try:
                    check_allowed(made(kind, {part: value}), "spark")
                except InvalidInput as error:
                    if part.rstrip("_") in str(error):
                        continue
                passed.append((kind.__name__, part, value))
    assert tried > 500
    assert passed == []


def test_what_the_list_names_are_parts_that_the_parser_knows() -> None:
    assert {
        kind: set(parts) - set(kind.arg_types) for kind, parts in LISTED.items() if set(parts) - set(kind.arg_types)
    } == {}


def written(name: str, arguments: list[str], engine: str) -> exp.Expr | None:
    """The tree of a call, if it is taken and can be written for an engine."""
    try:
        tree = parse_statement(f"SELECT {name}({', '.join(arguments)})").tree
        assert tree is not None
        check_allowed(tree, engine)
        write(normalized(tree.copy()), engine)
    except InvalidInput:
        return None
    return tree


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_no_argument_of_a_function_is_passed_over(engine: str, caplog: pytest.LogCaptureFixture) -> None:
    taken, lost = 0, []
    for name in NAMES.split():
        for count in range(6):
            tree = written(name, [f"c{place} + 1" for place in range(count)], engine)
            taken += tree is not None
            found = {column.name for column in tree.find_all(exp.Column)} if tree is not None else set()
            if tree is not None and len(found) < count:
                lost.append((name, count))
    assert taken > 150
    assert lost == []
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == []


@pytest.mark.parametrize(
    "call",
    ["approx_count_distinct(price, 0.1)", "max_by(id, price, 2)", "min_by(id, price, 2)", "percentile(price, 0.5, 2)",
     "ceil(price, 1, 2)", "date(at, 'x', id)", "position('a', client, 1, 2)", "first(id, price)", "trunc(at, id)"],
)  # fmt: skip
def test_a_call_with_an_argument_that_nobody_reads_is_refused(still_lake: lakehouse.Lake, call: str) -> None:
    with pytest.raises(InvalidInput):
        still_lake.sql(f"SELECT {call} FROM trips", engine="duckdb")


WORDS = ("keep", "keeper", "k%p", "drop", "KEEP", "", None)
TESTS = (
    ("{} NOT LIKE 'keep%'", "keep.*", False),
    ("NOT {} NOT LIKE 'keep%'", "keep.*", True),
    ("{} NOT LIKE 'k!%p' ESCAPE '!'", "k%p", False),
    ("NOT ({} NOT LIKE 'k!%p' ESCAPE '!')", "k%p", True),
    ("({} NOT LIKE 'k_%') = TRUE", "k..*", False),
    ("{} NOT LIKE ''", "", False),
)


@pytest.fixture
def words(lake: lakehouse.Lake) -> lakehouse.Lake:
    lake.sql("CREATE TABLE words (at TIMESTAMP, id BIGINT, word STRING) PARTITIONED BY (days(at))")
    values = ", ".join(
        f"('2013-01-05', {place}, {'NULL' if word is None else repr(word)})" for place, word in enumerate(WORDS)
    )
    lake.sql(f"INSERT INTO words VALUES {values}")
    return lake


def passing(pattern: str, wanted: bool) -> list[int]:
    """Places of words that pass, by a pattern of Python's; what is not there passes nothing."""
    return [
        place
        for place, word in enumerate(WORDS)
        if word is not None and bool(re.fullmatch(pattern, word, re.DOTALL)) is wanted
    ]


def kept(lake: lakehouse.Lake, where: str = "TRUE") -> list[int]:
    return [row[0] for row in rows_of(lake, f"SELECT id FROM words WHERE {where} ORDER BY id")]


@pytest.mark.parametrize(("test", "pattern", "wanted"), TESTS)
def test_not_like_is_the_opposite_of_like_in_every_statement(
    words: lakehouse.Lake, test: str, pattern: str, wanted: bool
) -> None:
    found = passing(pattern, wanted)
    others = [place for place in range(len(WORDS)) if place not in found]
    assert kept(words, test.format("word")) == found
    assert rows_of(words, f"SELECT count_if({test.format('word')}) FROM words") == [(len(found),)]
    words.sql(f"UPDATE words SET id = CASE WHEN {test.format('word')} THEN id + 100 ELSE id END")
    assert kept(words) == sorted([*others, *(place + 100 for place in found)])
    words.sql(f"UPDATE words SET id = id - 100 WHERE {test.format('words.word')}")
    assert kept(words) == list(range(len(WORDS)))
    words.sql(
        f"""MERGE INTO words w USING (SELECT id, word FROM words) AS s ON w.id = s.id
        WHEN MATCHED AND {test.format("s.word")} THEN UPDATE SET id = w.id + 200""",
        engine="duckdb",
    )
    assert kept(words) == sorted([*others, *(place + 200 for place in found)])
    words.sql(f"DELETE FROM words WHERE {test.format('word')}")
    assert kept(words) == others


def test_not_ilike_and_not_like_of_a_column_are_the_opposite_too(still_lake: lakehouse.Lake) -> None:
    text = """SELECT a, a NOT ILIKE b, a NOT LIKE b
        FROM VALUES ('aB', 'Ab'), ('x', 'y'), (NULL, 'a'), ('ab', 'ab') AS v(a, b)"""
    table: dict[Any, Any] = {row[0]: row[1:] for row in rows_of(still_lake, text)}
    assert table == {
        "aB": (False, True),
        "x": (True, True),
        None: (None, None),
        "ab": (False, False),
    }


MERGE = "MERGE INTO trips t USING clients s ON t.client = s.name "


@pytest.mark.parametrize(
    "text",
    [
        MERGE + "WHEN MATCHED THEN UPDATE SET * EXCEPT (price)",
        MERGE + "WHEN MATCHED THEN UPDATE SET price = 1 WHERE id = 2",
        MERGE + "WHEN NOT MATCHED THEN INSERT * EXCEPT (price)",
        MERGE + "WHEN NOT MATCHED THEN INSERT (at) VALUES (s.since) WHERE s.score = 1",
        MERGE + "WHEN MATCHED THEN DO NOTHING",
        MERGE + "WHEN MATCHED THEN DELETE RETURNING *",
        "MERGE INTO trips t USING clients s USING (client) WHEN MATCHED THEN DELETE",
        "MERGE INTO trips t USING (SELECT 'UA' AS name) AS s TABLESAMPLE (1 ROWS) ON true WHEN MATCHED THEN DELETE",
        "MERGE INTO trips AS t(a, b, c, d, e, f) USING clients s ON t.c = s.name WHEN MATCHED THEN DELETE",
        "MERGE INTO trips t USING clients s ON t.client LIKE ANY (SELECT 'U%') WHEN MATCHED THEN DELETE",
        "DELETE FROM trips AS t(id, at) WHERE id = 1",
        "DELETE FROM trips TABLESAMPLE (1 ROWS) WHERE id = 1",
        "DELETE FROM trips WHERE client NOT LIKE ANY ('U%', 'x') ESCAPE '!'",
        "DELETE FROM trips WHERE id = 1 LIMIT 1",
        "UPDATE trips AS t(price, id) SET id = 1",
        "UPDATE trips SET price = 1 WHERE client LIKE ALL (SELECT 'x')",
        "INSERT INTO trips (id BIGINT, at TIMESTAMP) SELECT 1, at FROM trips",
        "INSERT INTO trips (id, at) BY NAME SELECT id, at FROM trips",
        "INSERT INTO trips REPLACE WHERE id = 1 SELECT * FROM trips",
        "DESCRIBE trips VERSION AS OF 1",
        "DROP TABLE trips VERSION AS OF 1",
        "CREATE TABLE x (at TIMESTAMP, id INT) PARTITIONED BY (days(at, 2))",
        "CREATE TABLE x (at DATE, id INT) PARTITIONED BY (days(at)) CLUSTERED BY (id) SORTED BY (at) INTO 4 BUCKETS",
    ],
)
def test_a_part_of_a_statement_that_would_be_passed_over_is_refused(still_lake: lakehouse.Lake, text: str) -> None:
    head = still_lake.head
    with pytest.raises(InvalidInput):
        still_lake.sql(text, engine="duckdb")
    assert (still_lake.head, still_lake.tables()) == (head, ["Clients", "trips"])


def test_a_merge_reads_its_query_under_the_names_that_it_is_given(lake: lakehouse.Lake) -> None:
    merge = "MERGE INTO trips t USING {} ON t.id = s.b WHEN MATCHED THEN UPDATE SET price = s.a"
    for number, source in enumerate(("(SELECT {0}, 1) AS s(a, b)", "(VALUES ({0}, 1)) AS s(a, b)",
                                     "(SELECT {0} AS b, 1 AS a) AS s(a, b)")):  # fmt: skip
        lake.sql(merge.format(source.format(number)), engine="duckdb")
        assert rows_of(lake, "SELECT price FROM trips WHERE id = 1") == [(float(number),)]
