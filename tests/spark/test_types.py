"""Types of columns by Spark: what docs/types.md says of each, and columns nested to any depth."""

from __future__ import annotations

import datetime as dt
import functools
import random
from datetime import UTC, datetime
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import lakehouse
from lakehouse.errors import InvalidRows
from tests.unit.engine.documents import DOCUMENTS, PARTS, STATEMENT, part, selected
from tests.unit.engine.nested import nested, value
from tests.unit.engine.typed import AT, CONDITIONS, DOES, IS, KINDS, OUT, SAMPLES, cells, same

DAY = datetime(2013, 1, 5, tzinfo=UTC)
REFUSALS = (PySparkException, Py4JJavaError)


@pytest.fixture
def catalog_url(sqlite_url):
    """One catalog is enough: nothing here depends on it."""
    return sqlite_url


def rows(values, kind):
    return pa.table(
        {"at": pa.array([DAY] * len(values), AT), "id": list(range(len(values))), "x": pa.array(values, kind)}
    )


def seen(frame):
    return frame.toArrow().sort_by("id")["x"].to_pylist()


def made(lake, name, columns):
    return lake.create_table(name, pa.schema([("at", AT), ("id", pa.int64()), *columns]), time="at")


def test_spark_reads_filters_and_writes_every_type_as_the_page_says(lake, spark):
    columns = {name: [*SAMPLES[name].shared, *SAMPLES[name].own] for name in IS}
    most = max(map(len, columns.values()))
    held = {name: [*values, *[None] * (most - len(values))] for name, values in columns.items()}
    table = made(lake, "t", KINDS.items())
    given = rows([None] * most, pa.int64()).drop_columns("x")
    for name, values in held.items():
        given = given.append_column(name, pa.array(values, OUT[name]))
    table.append(given)
    frame = table.read()
    told = {field.name: field.dataType.simpleString() for field in frame.schema}
    assert {name: told[name] for name in IS} == {name: row["Spark"].strip("`") for name, row in IS.items()}
    found = frame.toArrow().sort_by("id")
    assert all(same(found[name].to_pylist(), values) for name, values in held.items())
    again = made(lake, "again", KINDS.items())
    again.append(frame)
    back = again.scan().to_arrow().sort_by("id")
    assert back.schema.types == table.scan().to_arrow().schema.types
    assert all(same(back[name].to_pylist(), values) for name, values in held.items())
    check_format(lake, spark, held)
    check_conditions(lake, table, held)


def check_format(lake, spark, held):
    """The format `lakehouse` reads and appends every type."""
    lakehouse.register(spark)
    options = {"catalog": lake.catalog.url, "warehouse": str(lake.warehouse)}
    frame = spark.read.format("lakehouse").options(**options, table="t").load()
    made(lake, "third", KINDS.items())
    frame.write.format("lakehouse").options(**options, table="third").mode("append").save()
    found = lake.table("third").scan().to_arrow().sort_by("id")
    assert all(same(found[name].to_pylist(), values) for name, values in held.items())


def check_conditions(lake, table, held):
    """What Spark finds by the conditions of the page is what Python finds: all in a statement, = as a filter too."""
    wanted, asked, filtered = {}, [], []
    for name, values in held.items():
        literal = (cells(DOES[name]["literal"]) or [""])[0]
        for what in cells(DOES[name]["filter"]):
            condition, passes = CONDITIONS[what]
            asked.append(condition.format(literal).replace("x ", f"`{name}` ", 1))
            wanted[name, what] = [place for place, one in enumerate(values) if passes(one, SAMPLES[name].literal)]
            if what == "=":
                filtered.append(table.read(where=asked[-1]).selectExpr(f"'{name}' AS name", "id"))
    listed = ", ".join(f"{condition} AS p{place}" for place, condition in enumerate(asked))
    found = lake.sql(f"SELECT id, {listed} FROM t", engine="spark").toArrow().sort_by("id")
    for place, (case, places) in enumerate(wanted.items()):
        assert [one for one, passed in enumerate(found[f"p{place}"].to_pylist()) if passed] == places, case
    rows = functools.reduce(lambda one, other: one.unionAll(other), filtered).toArrow().to_pylist()
    for (name, what), places in wanted.items():
        if what == "=":
            assert sorted(row["id"] for row in rows if row["name"] == name) == places, name


def test_spark_reads_and_writes_eight_levels(lake, spark):
    dice = random.Random(7)
    kinds = [(f"x{number}", nested(dice, 8)) for number in range(4)]
    table, again = made(lake, "t", kinds), made(lake, "again", kinds)
    values = {name: [value(dice, kind) for _ in range(20)] for name, kind in kinds}
    given = rows([None] * 20, pa.int64()).drop_columns("x")
    for name, kind in kinds:
        given = given.append_column(name, pa.array(values[name], kind))
    table.append(given)
    frame = table.read()
    again.append(frame)
    for found in (frame.toArrow().sort_by("id"), again.scan().to_arrow().sort_by("id")):
        assert all(same(found[name].to_pylist(), values[name]) for name, _ in kinds)


def test_spark_writes_vectors_of_the_tables_size_only(lake, spark):
    kind = pa.list_(pa.float32(), 2)
    table = made(lake, "t", [("x", kind)])
    frame = spark.createDataFrame([(DAY, 0, [1.0, None]), (DAY, 1, None)], "at TIMESTAMP, id BIGINT, x ARRAY<FLOAT>")
    table.append(frame)
    table.update({"id": "id + 10"}, "id = 1", engine="spark")
    table.compact(engine="spark")
    found = table.scan().to_arrow().sort_by("id")
    assert (found["x"].type, found["x"].to_pylist()) == (kind, [[1.0, None], None])
    assert seen(table.read()) == [[1.0, None], None]
    with pytest.raises(InvalidRows, match="column=x"):
        table.append(spark.createDataFrame([(DAY, 2, [1.0])], "at TIMESTAMP, id BIGINT, x ARRAY<FLOAT>"))


def test_spark_writes_uuids_and_no_other_text_into_their_column(lake, spark):
    uuid = "0f8fad5b-d9cb-469f-a165-70867728950e"
    table = made(lake, "t", [("x", pa.uuid())])
    table.append(spark.createDataFrame([(DAY, 0, uuid), (DAY, 1, None)], "at TIMESTAMP, id BIGINT, x STRING"))
    assert seen(table.read(where=f"x = '{uuid}'")) == [uuid]
    for engine in ("spark", "duckdb"):
        with pytest.raises(InvalidRows, match="column=x"):
            table.update({"x": "x || 'a'"}, "id = 0", engine=engine)
    with pytest.raises(InvalidRows, match=r"column=x.*row="):
        table.append(spark.createDataFrame([(DAY, 2, uuid.upper())], "at TIMESTAMP, id BIGINT, x STRING"))
    table.add_column("y", pa.uuid(), default=uuid)
    table.add_column("z", pa.list_(pa.float32(), 2))
    more = [(DAY, 2, None, uuid, [0.5, 1.0])]
    table.append(spark.createDataFrame(more, "at TIMESTAMP, id BIGINT, x STRING, y STRING, z ARRAY<FLOAT>"))
    for found in (table.read(where=f"y = '{uuid}'").toArrow(), table.scan(where=f"y = '{uuid}'").to_arrow()):
        by_id = found.sort_by("id")
        assert by_id["x"].to_pylist() == [uuid, None, None]
        assert by_id["z"].to_pylist() == [None, None, [0.5, 1.0]]


def test_spark_reads_json_by_path_as_the_page_says(lake, spark):
    table = made(lake, "events", [("doc", pa.string())])
    table.append(rows(DOCUMENTS, pa.string()).rename_columns(["at", "id", "doc"]))
    found = lake.sql(STATEMENT, engine="spark").collect()
    assert sorted(map(tuple, found)) == selected()
    listed = ", ".join(f"get_json_object(doc, '{path}') AS p{place}" for place, path in enumerate(PARTS))
    found = lake.sql(f"SELECT id, {listed} FROM events", engine="spark").toArrow().sort_by("id")
    for place, path in enumerate(PARTS):
        assert found[f"p{place}"].to_pylist() == [part(one, path) for one in DOCUMENTS], path


def test_what_refuses_types_is_still_so(spark, tmp_path):
    """The reasons of docs/types.md, one by one; where this fails, look at the page anew."""
    held = pa.table(
        {
            "t": pa.array([dt.time(7)], pa.time64("us")),
            "n": pa.array([1], pa.timestamp("ns")),
            "u": pa.array([UUID(int=7)], pa.uuid()),
        }
    )
    for name in held.column_names:
        pq.write_table(held.select([name]), tmp_path / f"{name}.parquet", store_schema=False)
    with duckdb.connect() as connection:
        kinds = [connection.sql(f"FROM '{tmp_path}/{name}.parquet'").types[0] for name in held.column_names]
        assert list(map(str, kinds)) == ["TIME", "TIMESTAMP_NS", "UUID"]
        written, again = tmp_path / "v.parquet", tmp_path / "again.parquet"
        connection.sql(f"""COPY (SELECT '{{"a": 0.1000000000000000055}}'::JSON::VARIANT AS v) TO '{written}'""")
        pq.write_table(pq.read_table(written), again)
        assert str(connection.sql(f"FROM '{written}'").types[0]) == "VARIANT"
        assert str(connection.sql(f"FROM '{again}'").types[0]).startswith("STRUCT(metadata BLOB")
    assert spark.conf.get("spark.sql.timeType.enabled") == "false"
    assert spark.conf.get("spark.sql.timestampNanosTypes.enabled") == "false"
    for text in ("SELECT hour(TIME '07:00:00')", "SELECT CAST('2013-01-05' AS TIMESTAMP_NTZ(9))"):
        with pytest.raises(REFUSALS, match=r"UNSUPPORTED_TIME_TYPE|FEATURE_NOT_ENABLED"):
            spark.sql(text).collect()
    for name in ("t", "n"):
        with pytest.raises(REFUSALS, match=r"UNSUPPORTED_TIME_TYPE|PARQUET_TYPE_ILLEGAL"):
            spark.read.parquet(str(tmp_path / f"{name}.parquet")).collect()
    read = spark.read.schema("u BINARY").parquet(str(tmp_path / "u.parquet"))
    assert read.toArrow()["u"].to_pylist() == [UUID(int=7).bytes]
    variants = spark.read.schema("v VARIANT").parquet(str(written))
    assert variants.selectExpr("to_json(v) AS v").toArrow()["v"].to_pylist() == ['{"a":0.1}']
