"""Filters: what gets through, what pruning learns, and that nothing else gets through."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.core.interval import Interval
from lakehouse.core.predicate import And, Compare, In, IsNull, Or, Predicate, Unknown
from lakehouse.core.prune import matching
from lakehouse.core.segment import Segment
from lakehouse.core.segments import Segments
from lakehouse.engine.duckdb import DuckDBEngine
from lakehouse.errors import InvalidInput
from lakehouse.predicate import parse
from tests.unit.engine.harness import HOSTILE, Store, hostile_rows, spec_of
from tests.unit.predicate.filters import FILTERS

SCHEMA = spec_of(HOSTILE).schema
TIME = dt.datetime(2013, 1, 5, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    "where",
    [
        "",
        "   ",
        None,
        5,
        "id",
        "id + 1",
        "'text'",
        "nobody = 1",
        "t.id = 1",
        "a.b.id = 1",
        "id = 1; DROP TABLE t",
        "id = 1;",
        "id = 1; --",
        "id = 1 -- ; comment",
        "id = 1 /* comment */",
        "/* comment */ id = 1",
        "id = 1 AND",
        "id = 1)",
        "(id = 1",
        "id, tiny",
        "*",
        "id AS x",
        "id = (SELECT 1)",
        "id IN (SELECT id FROM t)",
        "EXISTS (SELECT 1)",
        "id IN ()",
        "SELECT 1",
        "DROP TABLE t",
        "id = 1 UNION SELECT 2",
        "sum(id) > 1",
        "count(*) > 1",
        "row_number() OVER (ORDER BY id) = 1",
        "sum(id) OVER () > 1",
        "explode(list)",
        "list[0] = 1",
        "struct.x = 1",
        "list = list",
        "exists(list, x -> x > 1)",
        "transform(list, x -> x) IS NULL",
        "aggregate(list, 0, (a, b) -> a + b) > 1",
        "reflect('java.lang.System', 'exit', 0) = 'x'",
        "java_method('java.lang.System', 'exit', 0) = 'x'",
        "try_reflect('java.lang.System', 'exit', 0) = 'x'",
        "REFLECT('java.lang.System', 'exit')",
        "`reflect`('java.lang.System', 'exit', 0) = 'x'",
        "x.y(1)",
        "system.builtin.reflect('a', 'b') = 'x'",
        "rand() < 0.5",
        "uuid() = 'x'",
        "current_timestamp() > ts",
        "current_date > day",
        "now() > ts",
        "current_user() = 'x'",
        "input_file_name() = 'x'",
        "monotonically_increasing_id() = 1",
        "spark_partition_id() = 0",
        "raise_error('x')",
        "assert_true(false)",
        "upper(text) = 'X'",
        "lower(text) = 'x'",
        "text RLIKE '.*'",
        "regexp_like(text, '.*')",
        "text ILIKE 'x'",
        "text LIKE text",
        "text LIKE 'a\\\\b'",
        "text LIKE 'a' ESCAPE 'ab'",
        "text = '\ud800'",
        "text LIKE '\ud800%'",
        "startswith(text, 'a\udfff')",
        "text LIKE ANY ('a', 'b')",
        "from_json(text, 'a INT') IS NULL",
        "ai_query('x', text) = 'y'",
        "id & 1 = 1",
        "id = :parameter",
        "id = ?",
        "id = ${spark.app.name}",
        "{{ jinja }} = 1",
        "ts + INTERVAL 1 DAY > '2013-01-01'",
        "CAST(text AS BIGINT) = 1",
        "CAST(id AS STRING) = '1'",
        "money + 1 = 2",
        "text = 1",
        "id = '1'",
        "double = 'x'",
        "flag = 1",
        "flag = 'true'",
        "day = 5",
        "day = 'yesterday'",
        "ts = 'noon'",
        "ts = 5",
        "ts = local",
        "local = '2013-01-05T00:00:00+01:00'",
        "bytes = 'x'",
        "id = text",
        "money = huge",
        "length(id) = 1",
        "contains(id, 'x')",
        "year(text) = 1",
        "hour(day) = 1",
        "isnan(id)",
        "coalesce(id, text) = 1",
        "(id, tiny) IN ((1, 2))",
        "(" * 300 + "id = 1" + ")" * 300,
        "NOT " * 5000 + "flag",
        "id = 1 OR " * 200_000 + "flag",
    ],
)
def test_what_is_not_listed_is_refused(where: Any) -> None:
    with pytest.raises(InvalidInput):
        parse(where, SCHEMA)


def test_an_unknown_column_is_named_beside_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"column=nobody columns=ts,id,tiny"):
        parse("nobody = 1", SCHEMA)


def test_a_filter_of_thousands_of_terms_is_fine() -> None:
    found = parse(" OR ".join(f"id = {number}" for number in range(5000)), SCHEMA)
    assert isinstance(found.tree, Or)
    assert len(found.tree.parts) == 5000
    assert parse(f"id IN ({','.join(map(str, range(50_000)))})", SCHEMA).columns == ("id",)


def test_text_that_grows_with_each_level_is_refused() -> None:
    where = "id"
    for _ in range(60):
        where = f"(CASE WHEN {where} BETWEEN 1 AND 2 THEN 1 ELSE 2 END)"
    with pytest.raises(InvalidInput):
        parse(f"{where} = 1", SCHEMA)


def test_no_written_text_reaches_an_engine() -> None:
    found = parse("text = 'x'' OR 1=1 --\\' \\\\ ${HOME} \x00'", SCHEMA)
    assert "HOME" not in found.spark
    assert "OR" not in found.spark
    assert "OR" not in found.duckdb
    assert found.tree == Compare("text", "=", "x' OR 1=1 --' \\ ${HOME} \x00")


@pytest.mark.parametrize(
    ("where", "tree"),
    [
        ("id = 1", Compare("id", "=", 1)),
        ("1 < id", Compare("id", ">", 1)),
        ("NOT id < 1", Compare("id", ">=", 1)),
        ("NOT (id < 1 AND tiny = 2)", Or((Compare("id", ">=", 1), Compare("tiny", "<>", 2)))),
        ("id = 1 OR text > 'a'", Or((Compare("id", "=", 1), Compare("text", ">", "a")))),
        ("id IN (1, NULL)", In("id", (1,))),
        ("id NOT IN (1, 2)", And((Compare("id", "<>", 1), Compare("id", "<>", 2)))),
        ("id NOT IN (1, NULL)", Or(())),
        ("id = NULL", Or(())),
        ("tiny IS NULL", IsNull("tiny")),
        ("NOT tiny IS NULL", IsNull("tiny", negated=True)),
        ("id > 1.5", Compare("id", ">", 1)),
        ("double > 1", Compare("double", ">", 1.0)),
        ("money = 1.5", Compare("money", "=", Decimal("1.5"))),
        (f"huge = -{'9' * 28}.{'9' * 10}", Compare("huge", "=", Decimal(f"-{'9' * 28}.{'9' * 10}"))),
        ("ts >= '2013-01-05'", Compare("ts", ">=", TIME)),
        ("ts = '2013-01-05T02:00:00+02:00'", Compare("ts", "=", TIME)),
        ("local < '2013-01-05'", Compare("local", "<", TIME.replace(tzinfo=None))),
        ("day = '2013-01-05'", Compare("day", "=", TIME.date())),
        ("flag", Compare("flag", "=", True)),
        ("NOT flag", Compare("flag", "=", False)),
        ("text LIKE 'UA%'", And((Compare("text", ">=", "UA"), Compare("text", "<", "UB")))),
        ("text LIKE 'UA'", Compare("text", "=", "UA")),
        ("length(text) = 1", Unknown()),
        ("id + 1 = 2", Unknown()),
        ("TRUE", And(())),
        ("FALSE", Or(())),
    ],
)
def test_what_pruning_learns(where: str, tree: Predicate) -> None:
    assert parse(where, SCHEMA).tree == tree


@pytest.mark.parametrize(
    ("where", "interval"),
    [
        ("ts >= '2013-01-05' AND ts < '2013-01-07'", "2013-01-05/2013-01-07"),
        ("ts BETWEEN '2013-01-05' AND '2013-01-06T23:59:59.999999'", "2013-01-05/2013-01-07"),
        ("date(ts) = '2013-01-05'", "2013-01-05/2013-01-06"),
        ("date(ts) BETWEEN '2013-01-05' AND '2013-01-06'", "2013-01-05/2013-01-07"),
        ("ts IN ('2013-01-05', '2013-01-08T23:59:59.999999')", "2013-01-05/2013-01-09"),
        ("date(ts) = '2013-01-05' OR date(ts) = '2013-01-08' AND id = 1", "2013-01-05/2013-01-09"),
        ("NOT (ts < '2013-01-05' OR ts >= '2013-01-06')", "2013-01-05/2013-01-06"),
        ("ts < '2013-01-05' AND id > 1", "0001-01-01/2013-01-05"),
        ("id = 1", None),
        ("ts <> '2013-01-05'", None),
        ("ts < '2013-01-05' OR id = 1", None),
        ("year(ts) = 2013", None),
    ],
)
def test_the_interval_that_a_filter_implies(where: str, interval: str | None) -> None:
    assert parse(where, SCHEMA).interval("ts") == (None if interval is None else Interval.of(interval))


def test_columns_are_listed_in_the_tables_order() -> None:
    assert parse("TEXT = 'x' AND id = 1 OR `id` = 2", SCHEMA).columns == ("id", "text")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, list[Segment]]:
    store = Store(tmp_path_factory.mktemp("warehouse"))
    return store, store.write(DuckDBEngine(), hostile_rows(), spec_of(HOSTILE, properties={"ragged": True}))


@pytest.mark.parametrize("where", FILTERS)
def test_pruning_keeps_every_row_that_passes(stored: tuple[Store, list[Segment]], where: str) -> None:
    store, segments = stored
    found = parse(where, SCHEMA)
    query = store.query(spec_of(HOSTILE), segments, where=found.sql("duckdb"))
    inside = found.interval("ts")
    for row in DuckDBEngine().read(query).to_arrow().to_pylist():
        assert matching(found.tree, Segments.of([_segment_of(row)])).all()
        assert inside is None or inside.contains(row["ts"])


def _segment_of(row: dict[str, Any]) -> Segment:
    """A segment that holds one row, with everything that a footer could say of it."""
    flat = {name: value for name, value in row.items() if not isinstance(value, list | dict)}
    known = {
        name: value
        for name, value in flat.items()
        if value is not None and not (isinstance(value, float) and math.isnan(value))
    }
    return Segment(
        id=1,
        start=row["ts"],
        end=row["ts"] + dt.timedelta(microseconds=1),
        ordinal=1,
        rows=1,
        min=known,
        max=known,
        nulls={name: int(value is None) for name, value in flat.items()},
    )


def test_a_sum_beyond_64_bits_fails_the_read_and_names_the_filter(tmp_path: Path) -> None:
    store, engine = Store(tmp_path), DuckDBEngine()
    segments = store.write(engine, hostile_rows(), spec_of(HOSTILE))
    where = parse("(id + 9000000000000000000) * (id + 2) > 0", SCHEMA).sql("duckdb")
    with pytest.raises(InvalidInput, match="fails on some row"):
        engine.read(store.query(spec_of(HOSTILE), segments, where=where)).to_arrow()


@pytest.mark.parametrize("divisor", ["-1", "n", "n + 0" + " + 0" * 20])
def test_the_least_integer_has_a_remainder(tmp_path: Path, divisor: str) -> None:
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("v", pa.int64()), ("n", pa.int64())])
    rows = {"ts": [TIME] * 4, "v": [-(2**63), 7, None, 0], "n": [-1, -1, -1, None]}
    with lakehouse.connect(f"sqlite:///{tmp_path}/lake.db", tmp_path / "warehouse") as lake:
        table = lake.create_table("t", schema, time="ts")
        table.append(pa.table(rows, schema=schema))
        assert table.scan(where=f"v % ({divisor}) = 0").count() == (3 if divisor == "-1" else 2)


def test_a_column_that_could_be_taken_for_code_is_refused() -> None:
    schema = pa.schema([("a${spark.x}", pa.int64())])
    with pytest.raises(InvalidInput, match="taken for code"):
        parse("`a${spark.x}` = 1", schema)
