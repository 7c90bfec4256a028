"""Statements come from anyone: nothing runs that is not on the list."""

import ast
from pathlib import Path

import pyspark
import pytest
import sqlglot
from sqlglot import exp

import lakehouse
from lakehouse.errors import InvalidInput
from lakehouse.sql.allowed import NODES, check_allowed
from lakehouse.sql.functions import FUNCTIONS, NAMED, NAMES
from lakehouse.sql.parse import parse_statement

OUTSIDE = (
    "reflect('java.lang.Runtime', 'getRuntime')", "java_method('java.lang.System', 'exit', 1)", "try_reflect('a', 'b')",
    "input_file_name()", "input_file_block_start()", "input_file_block_length()", "current_user()", "session_user()",
    "user()", "current_schema(1)", "version()", "spark_partition_id()",
    "monotonically_increasing_id()", "uuid()", "rand()", "randn()", "random()", "shuffle(array(1))", "raise_error('x')",
    "assert_true(false)", "sleep(1)", "from_csv('1', 'a INT')", "schema_of_csv('1')", "to_csv(struct(1))",
    "from_json('1', id)", "from_json('1', 'a INT', map('mode', 'FAILFAST'))", "from_json('1', schema_of_json('1'))",
    "schema_of_json('{}')", "to_json(struct(1), map('a', 'b'))", "get_json_object('{}', id)",
    "get_json_object('{}', '$.*')", "get_json_object('{}', '$..a')", "get_json_object('{}', '$[?(@.a)]')",
    "json_tuple('{}', 'a')", "from_xml('<a/>', 'a INT')", "schema_of_xml('<a/>')", "xpath('<a/>', 'a')",
    "xpath_string('<a/>', 'a')", "parse_url('http://a', 'HOST')", "try_parse_url('a', 'b')", "url_decode('a')",
    "url_encode('a')", "aes_encrypt('a', 'b')", "aes_decrypt('a', 'b')", "try_aes_decrypt('a', 'b')",
    "from_avro('a', 'b')", "to_avro('a')", "from_protobuf('a', 'b')", "repeat('x', 1000000000)", "space(1000000000)",
    "sequence(1, 1000000000)", "lpad('x', 1000000000, 'y')", "rpad('x', 1000000000, 'y')",
    "array_repeat(1, 1000000000)", "array_repeat(1, id)",
    "array_repeat(array_repeat(1, 1000), 1000)", "array_repeat(transform(array_repeat(1, 500), x -> x + 1), 201)",
    "map_filter(map(1, 2), (k, k) -> true)",
    "map_filter(map(1, 2), k -> true)", "transform_values(map(1, 2), (k, v) -> rand())", "transform_keys(map(1, 2), 1)",
    "next_day(day, client)", "next_day(day, 'noday')", "regexp_instr('a', 'b*')", "regexp_extract_all('a', 'b')",
    "regexp_extract_all('a', '(b)*')", "regexp_instr('a', client)", "levenshtein('a', 'b', 1)",
    "sequence(DATE '0001-01-01', DATE '9999-12-31', INTERVAL -1 MONTH)",
    "sequence(DATE '2013-01-01', DATE '2013-02-01', INTERVAL 0 MONTH)",
    "explode(array(1)) + 1", "abs(posexplode(array(1)))", "inline(array(struct(1)))",
    "explode((SELECT array(1)))", "explode(sequence(1, 1000000000))", "range(3)", "stack(2, 1, 2)",
    "regexp_replace('a', 'b*', 'c')", "regexp_replace(client, client, 'c')",
    "regexp_replace('a', 'b', client)", "regexp_replace('a', 'b', 'c', 2)", "'a' RLIKE client", "'a' RLIKE '(?=a)'",
    "'a' RLIKE '(a)\\\\1'", "'a' RLIKE 'a++'", "'a' RLIKE '(a|a)*b'", "regexp_extract('a', 'a', 1)",
    "split('a', client)", "split('a', 'b', 2)", "regexp_extract('a', 'b')", "'a' RLIKE '(a+)+$'",
    "regexp('a', '(a+)+')", "transform(array(1), x -> uuid())", "transform(array(1), x -> (SELECT 1))",
    "aggregate(array(1), 0, a -> a)", "transform(array(1), (x, x) -> x)",
    "transform(array(1), x -> transform(array(1), x -> x))", "transform(array(1), lake_x -> lake_x)",
    "transform(array(1), x -> sum(x))", "transform(array(1), id)", "abs(x -> x)", "forall(array(1), 1)",
    "exists(array(1), x -> rand() > x)", "filter(array(1), (x, y, z) -> x)", "sequence(1, id)", "sequence(id, 3)",
    "sequence(1, 5, -1)", "sequence(1, 5, 0)", "sequence(DATE '0001-01-01', DATE '9999-12-31')",
    "sort_array(array(1), id)",
    "ai_query('a', 'b')", "http_request('a')",
    "read_files('/')", "read_kafka('a')", "event_log('a')", "call_udf('f', 1)", "my_udf(1)", "default.my_udf(1)",
    "system.builtin.abs(1)", "try_variant_get(1, '$')", "parse_json('{}')", "secret('a', 'b')", "getenv('HOME')",
    "grouping(id, at)", "percentile_cont(0.5)", "repeat('x', id)", "listagg(client, client)", "(id, at) = 1",
    "first_value(id) IGNORE NULLS", "(id, at)", "(id, at) = (1, 2, 3)",
    "read_text('/etc/passwd')", "current_setting('threads')", "window(at, '1 hour')", "struct(*)", "concat(*)",
    "count(trips.*)", "array(*)", "IDENTIFIER('trips')", ":name", "?", "@variable", "$1", "at::VARIANT",
    "CAST(1 AS INTERVAL DAY)", "id COLLATE UNICODE", "date_trunc('day''; DROP', at)", "date_format(at, 'yyyy''; DROP')",
    "INTERVAL '1; DROP' DAY", "INTERVAL id DAY", "extract(epoch_x FROM at)",
)  # fmt: skip
SHAPES = (
    "SELECT * FROM range(1000001)", "SELECT * FROM range(0, 9, 0)", "SELECT * FROM read_files('/')",
    "SELECT * FROM read_parquet('/etc/passwd')",
    "SELECT * FROM stack(1, 2)", "SELECT * FROM IDENTIFIER('trips')", "SELECT * FROM trips, LATERAL trips",
    "SELECT * FROM trips LATERAL VIEW stack(1, 2) x AS y", "SELECT * FROM trips LATERAL VIEW json_tuple(client, 'a') x",
    "SELECT TRANSFORM(id) USING 'cat' AS (b) FROM trips",
    "FROM trips MAP id USING 'cat' AS b", "FROM trips REDUCE id USING 'cat' AS b",
    "SELECT /*+ BROADCAST(trips) */ * FROM trips", "SELECT * FROM trips TABLESAMPLE (10 PERCENT)",
    "SELECT * FROM trips NATURAL JOIN clients USING (id)", "SELECT * FROM trips PIVOT (id FOR client IN ('a'))",
    "SELECT id FROM trips SORT BY id", "SELECT id FROM trips DISTRIBUTE BY id", "SELECT id FROM trips CLUSTER BY id",
    "SELECT id INTO other FROM trips", "SELECT id FROM trips FOR UPDATE", "SELECT * REPLACE (1 AS id) FROM trips",
    "WITH RECURSIVE r AS (SELECT 1 UNION SELECT * FROM r) SELECT * FROM r", "SELECT [x FOR x IN client] FROM trips",
    "SELECT * FROM trips VERSION BETWEEN 1 AND 2", "SELECT id FROM trips WHERE id = (DELETE FROM trips)",
    "WITH c AS (DELETE FROM trips) SELECT 1", "SELECT * FROM (DELETE FROM trips)", "SELECT * FROM STREAM trips",
    "SELECT * FROM trips@v1", "SELECT 1; SELECT 2", "SELECT 1; DROP TABLE trips", "SELECT 1 /* */; DROP TABLE trips --",
    "SET spark.sql.ansi.enabled = false", "RESET", "ADD JAR '/tmp/x.jar'", "ADD FILE '/etc/passwd'", "LIST JARS",
    "CACHE TABLE trips", "UNCACHE TABLE trips", "CLEAR CACHE", "REFRESH TABLE trips", "REFRESH '/path'",
    "ANALYZE TABLE trips COMPUTE STATISTICS", "MSCK REPAIR TABLE trips", "LOAD DATA INPATH '/x' INTO TABLE trips",
    "USE other", "SHOW FUNCTIONS trips", "SHOW TABLES IN other", "SHOW CREATE VIEW trips", "SHOW CURRENT TABLE",
    "DESCRIBE FUNCTION abs", "DESCRIBE QUERY DELETE FROM trips", "DESCRIBE DELETE FROM trips",
    "CREATE FUNCTION f AS 'a.B'",
    "CREATE TEMPORARY FUNCTION f AS 'a.B' USING JAR '/x'", "CREATE VIEW v AS SELECT 1", "CREATE DATABASE d",
    "DROP VIEW v", "DROP FUNCTION f", "DROP DATABASE d CASCADE",
    "GRANT SELECT ON trips TO me", "BEGIN", "BEGIN SELECT 1; END", "COMMIT", "DECLARE x INT",
    "EXECUTE IMMEDIATE 'SELECT 1'", "CALL system.f()", "COPY INTO trips FROM '/x'", "COMMENT ON SCHEMA default IS 'x'",
    "EXPLAIN DROP TABLE trips", "EXPLAIN EXPLAIN SELECT 1", "EXPLAIN", "ATTACH '/x.db'", "PRAGMA database_list",
    "INSTALL httpfs", "COPY trips TO '/tmp/x'", "INSERT INTO trips",
    "INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT 1", "INSERT INTO trips PARTITION (id = 1) SELECT 1",
    "INSERT INTO trips TABLE clients", "SELECT id FROM trips GROUP BY id WITH TOTALS",
    "SELECT * FROM trips JOIN clients ON true ASOF JOIN trips x ON true",
)  # fmt: skip


@pytest.mark.parametrize("called", OUTSIDE)
def test_what_reaches_outside_or_has_no_bound_is_refused_in_every_clause(
    still_lake: lakehouse.Lake, called: str
) -> None:
    for text in (
        f"SELECT {called} FROM trips",
        f"SELECT id FROM trips WHERE {called} IS NULL",
        f"SELECT id FROM trips ORDER BY {called}",
        f"SELECT * FROM clients WHERE name IN (SELECT {called} FROM trips)",
        f"WITH c AS (SELECT {called} FROM trips) SELECT 1",
        f"INSERT INTO clients SELECT at, client, {called} FROM trips",
    ):
        with pytest.raises(InvalidInput):
            check(text)
        with pytest.raises(InvalidInput):
            still_lake.sql(text, engine="duckdb")


def check(text: str) -> None:
    """Parse and check a statement's query; no engine has a say."""
    tree = parse_statement(text).tree
    assert tree is not None
    check_allowed(tree.expression if isinstance(tree, exp.Insert) else tree, "spark")


@pytest.mark.parametrize("text", SHAPES)
def test_constructs_that_are_not_listed_are_refused(still_lake: lakehouse.Lake, text: str) -> None:
    head = still_lake.head
    with pytest.raises((InvalidInput, lakehouse.TableNotFound)):
        still_lake.sql(text, engine="duckdb")
    assert still_lake.head == head
    assert still_lake.tables() == ["Clients", "trips"]


def _spark_functions() -> set[str]:
    """Every function that PySpark wraps, read from its source: no session is needed."""
    source = Path(pyspark.__file__).with_name("sql") / "functions" / "builtin.py"
    tree = ast.parse(source.read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) if not node.name.startswith("_")}


def test_of_sparks_functions_only_listed_ones_pass() -> None:
    functions = _spark_functions()
    assert {"reflect", "java_method", "from_csv", "xpath", "aes_encrypt"} <= functions
    passed = set()
    for name in functions:
        for arguments in ("", "a", "a, 1", "a, 'x'", "a, 1, 2"):
            try:
                tree = parse_statement(f"SELECT {name}({arguments}) FROM t").tree
                assert tree is not None
                check_allowed(tree, "spark")
            except InvalidInput:
                continue
            passed.add(name)
    assert len(passed) > 100
    dangerous = {
        "reflect", "java_method", "try_reflect", "input_file_name", "url_encode", "parse_url", "aes_encrypt",
        "from_csv", "raise_error", "current_user", "version", "rand", "uuid", "stack",
        "regexp_replace", "udf", "call_function", "hash", "encode",
    }  # fmt: skip
    assert passed & dangerous == set()


def test_functions_that_an_error_names_can_be_called() -> None:
    assert NAMES.split() == sorted(NAMES.split())
    page = (Path(__file__).resolve().parents[3] / "docs/sql.md").read_text()
    assert [word for line in page.splitlines() if line.startswith("    ") for word in line.split()] == NAMES.split()
    for name in NAMES.split():
        assert any(_passes(f"SELECT {name}{arguments} FROM t") for arguments in _ARGUMENTS), name


_ARGUMENTS = (
    "(a, b -> c)",
    "(a, (c, d) -> c)",
    "(a, 'MON')",
    "(a, b, (c, d) -> c)",
    "(1, 3)",
    "(a, '$.a')",
    "(a, '(x)')",
    "(a, 'x', 'y')",
    "(0.5) WITHIN GROUP (ORDER BY a)",
    "(a, 1, 'x')",
    "(a)",
    "(a, b)",
    "()",
    "(year FROM a)",
    "(HOUR, a, b)",
    "(a, b, 'c')",
    "(a, 'yyyy')",
    "('DAY', a)",
    "(a, 1)",
)


def _passes(text: str) -> bool:
    try:
        check(text)
    except InvalidInput:
        return False
    return True


def test_what_the_list_names_exists_in_the_parser() -> None:
    assert all(set(parts) <= set(kind.arg_types) for kind, parts in NODES.items())
    assert all(issubclass(kind, exp.Expr) for kind in FUNCTIONS)
    assert all(isinstance(sqlglot.parse_one(f"{name}(a)", dialect="spark"), exp.Anonymous) for name in NAMED)


def test_what_is_nested_too_deeply_is_refused(still_lake: lakehouse.Lake) -> None:
    for text in (
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        "SELECT " + "-" * 900 + "1",
        "SELECT " + "abs(" * 250 + "1" + ")" * 250,
    ):
        with pytest.raises(InvalidInput):
            still_lake.sql(text, engine="duckdb")


def test_a_long_chain_is_no_nesting(still_lake: lakehouse.Lake) -> None:
    text = "SELECT id FROM trips WHERE " + " OR ".join(f"id = {number}" for number in range(2, 600))
    assert len(still_lake.sql(text, engine="duckdb").fetchall()) == 3


def test_the_longest_statement_is_a_million_characters(still_lake: lakehouse.Lake) -> None:
    with pytest.raises(InvalidInput, match="too long"):
        still_lake.sql("SELECT 1" + " " * 1_000_000)


def test_a_column_name_with_dollar_and_brace_is_no_setting_for_spark(still_lake: lakehouse.Lake) -> None:
    with pytest.raises(InvalidInput, match="cannot take this name"):
        still_lake.sql("SELECT 1 AS `${env:HOME}`", engine="spark")


@pytest.mark.parametrize(
    "text", ["SHOW CREATE TABLE trips", "CREATE TABLE x PARTITIONED BY (days(at)) AS SELECT 1.5D a b, at FROM trips"]
)
def test_the_parser_tells_the_log_nothing(
    still_lake: lakehouse.Lake, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    try:
        still_lake.sql(text)
    except InvalidInput:
        assert "SHOW" not in text
    assert [one.getMessage() for one in caplog.records if one.name == "sqlglot"] == []
