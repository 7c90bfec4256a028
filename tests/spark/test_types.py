"""Types of columns by Spark: what docs/types.md says of each, and columns nested to any depth."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from lakehouse.errors import InvalidRows
from tests.unit.engine.nested import nested, value
from tests.unit.engine.typed import ARROW, AT, DOES, IS, SAMPLES, cells, same

DAY = datetime(2013, 1, 5, tzinfo=UTC)


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
    kinds = {name: ARROW[row["Arrow out"].strip("`")] for name, row in IS.items()}
    columns = {name: [*SAMPLES[name].shared, *SAMPLES[name].own] for name in IS}
    most = max(map(len, columns.values()))
    held = {name: [*values, *[None] * (most - len(values))] for name, values in columns.items()}
    table = made(lake, "t", kinds.items())
    given = rows([None] * most, pa.int64()).drop_columns("x")
    for name, values in held.items():
        given = given.append_column(name, pa.array(values, kinds[name]))
    table.append(given)
    frame = table.read()
    told = {field.name: field.dataType.simpleString() for field in frame.schema}
    assert {name: told[name] for name in IS} == {name: row["Spark"].strip("`") for name, row in IS.items()}
    found = frame.toArrow().sort_by("id")
    assert all(same(found[name].to_pylist(), values) for name, values in held.items())
    again = made(lake, "again", kinds.items())
    again.append(frame)
    back = again.scan().to_arrow().sort_by("id")
    assert back.schema.types == table.scan().to_arrow().schema.types
    assert all(same(back[name].to_pylist(), values) for name, values in held.items())
    for name, values in held.items():
        if literal := cells(DOES[name]["literal"]):
            wanted = [place for place, one in enumerate(values) if one is not None and one == SAMPLES[name].literal]
            passed = table.read(where=f"`{name}` = {literal[0]}").toArrow()["id"].to_pylist()
            assert sorted(passed) == wanted, name


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
