"""Columns nested to any depth: what is read is what was written, as plain Python values."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from uuid import UUID

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.errors import InvalidRows
from tests.unit.engine.nested import nested, other, value
from tests.unit.engine.typed import AT, same

DAY = datetime(2013, 1, 5, tzinfo=UTC)


@pytest.fixture
def catalog_url(sqlite_url):
    """One catalog is enough: nothing here depends on it."""
    return sqlite_url


def rows(values, kind, first=0):
    ids = pa.array(range(first, first + len(values)), pa.int64())
    return pa.table({"at": pa.array([DAY] * len(values), AT), "id": ids, "x": pa.array(values, kind)})


def seen(table, **scan):
    return table.scan(**scan).to_arrow().sort_by("id")["x"].to_pylist()


@pytest.mark.parametrize("seed", range(8))
def test_eight_levels_are_read_as_they_were_written(lake, seed):
    dice = random.Random(seed)
    kind = nested(dice, 1 + seed)
    table = lake.create_table("t", pa.schema([("at", AT), ("id", pa.int64()), ("x", kind)]), time="at")
    values = [value(dice, kind) for _ in range(30)]
    for first, given in ((0, kind), (10, other(kind)), (20, kind)):
        part = rows(values[first : first + 12], given, first)
        table.append(part.slice(0, 10) if first < 20 else part)  # a slice holds more than it shows
    assert same(seen(table), values)
    assert same(seen(table, where="x IS NULL"), [one for one in values if one is None])
    table.delete("id % 2 = 1")
    table.compact()
    assert same(seen(table), values[::2])
    assert same(table.scan().to_reader().read_all().sort_by("id")["x"].to_pylist(), values[::2])
    lake.create_table("u", pa.schema([("at", AT), ("id", pa.int64()), ("x", kind)]), time="at")
    lake.sql("INSERT INTO u SELECT * FROM t")
    assert same(seen(lake.table("u")), values[::2])
    assert not lake.check(deep=True).findings


def test_uuids_are_text_at_any_depth_and_in_slices(lake):
    given = pa.list_(pa.struct([("u", pa.uuid())]))
    uuids = [UUID(int=place * 0x1234567) for place in range(8)]
    pairs = pa.array([one for uuid in uuids for one in (uuid, None)], pa.uuid())
    held = pa.ListArray.from_arrays(pa.array(range(0, 17, 2), pa.int32()), pa.StructArray.from_arrays([pairs], ["u"]))
    schema = pa.schema([("at", AT), ("id", pa.int64()), ("x", given), ("y", pa.uuid())])
    table = lake.create_table("t", schema, time="at")
    assert table.schema.field("x").type == pa.list_(pa.struct([("u", pa.string())]))
    given = rows([None] * 8, pa.int64()).set_column(2, "x", held)
    table.append(given.append_column("y", pa.array([*uuids[:-1], None], pa.uuid())).slice(2, 6))
    assert seen(table) == [[{"u": str(one)}, {"u": None}] for one in uuids[2:]]
    assert seen(table, where=f"y = '{uuids[3]}'") == seen(table)[1:2]


VECTOR = pa.list_(pa.float32(), 3)


@pytest.fixture
def vectors(lake):
    """A table with vectors, one of them in a struct."""
    kind = pa.struct([("v", VECTOR), ("model", pa.string())])
    schema = pa.schema([("at", AT), ("id", pa.int64()), ("x", VECTOR), ("y", kind)])
    return lake.create_table("t", schema, time="at", primary_key="id")


def embedded(first, vectors, kind=VECTOR):
    table = rows(vectors, kind, first)
    inner = pa.struct([("v", kind), ("model", pa.string())])
    return table.append_column("y", pa.array([{"v": one, "model": "m"} for one in vectors], inner))


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float32(), 4)])
def test_a_vector_of_another_length_is_refused_by_column_and_row(vectors, kind):
    size = kind.list_size if pa.types.is_fixed_size_list(kind) else 2
    wrong = [[1.0] * size] if size == 4 else [[1.0, 2.0, 3.0], None, [1.0] * size]
    with pytest.raises(InvalidRows, match=rf"column=x .*row={len(wrong) - 1}"):
        vectors.append(embedded(0, wrong, kind))
    assert vectors.scan().count() == 0


def test_vectors_keep_their_size_through_every_operation(lake, vectors):
    model = {place: [float(place), -0.5, 0.25] if place % 3 else None for place in range(9)}
    given = embedded(0, [*model.values(), [9.0, 9.0, 9.0]])
    vectors.append(given.slice(2, 7))  # behind a slice lie other vectors
    vectors.append(embedded(0, list(model.values())[:2], pa.list_(pa.float64())))

    def check(table=vectors):
        found = table.scan().to_arrow().sort_by("id")
        assert found.schema.types[2:4] == [VECTOR, pa.struct([("v", VECTOR), ("model", pa.string())])]
        assert found["x"].to_pylist() == [model[place] for place in sorted(model)]
        assert found["y"].to_pylist() == [{"v": model[place], "model": "m"} for place in sorted(model)]

    check()
    vectors.upsert(embedded(3, [[3.5, 3.5, 3.5]]))
    model[3] = [3.5, 3.5, 3.5]
    vectors.update({"x": "NULL"}, "id = 99")
    vectors.delete("id = 4")
    del model[4]
    vectors.merge(embedded(5, [[5.5] * 3, None]), on=["id"], when_matched_update={"x": "source.x", "y": "source.y"})
    model[5], model[6] = [5.5] * 3, None
    check()
    vectors.rename_column(("y", "v"), "w")
    vectors.rename_column(("y", "w"), "v")
    vectors.add_column("z", VECTOR)
    check()
    vectors.compact()
    vectors.erase("id = 8")
    del model[8]
    check()
    assert vectors.scan().to_arrow()["z"].null_count == len(model)
    assert vectors.scan().to_polars().sort("id")["x"].to_list() == [model[place] for place in sorted(model)]
    assert vectors.scan(columns=["id", "x"]).to_arrow()["x"].type == VECTOR
    assert not lake.check(deep=True).findings
    with lakehouse.connect(lake.catalog.url, str(lake.warehouse)) as again:
        check(again.table("t"))
