"""docs/types.md says what each type of columns is and can do: every cell of its tables is tried."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakehouse
from lakehouse.errors import InvalidInput, InvalidRows
from lakehouse.operations.summarize import build_indexes, missing_indexes
from lakehouse.schema import read_type
from tests.unit.engine.documents import DOCUMENTS, PARTS, STATEMENT, part, selected
from tests.unit.engine.typed import (
    ARROW,
    AT,
    CONDITIONS,
    DOES,
    IS,
    KINDS,
    OUT,
    REFUSED,
    SAMPLES,
    UNKNOWN,
    cells,
    same,
)

DAY = datetime(2013, 1, 5, tzinfo=UTC)
NUMBER = itertools.count()


@pytest.fixture(scope="module")
def types(tmp_path_factory):
    """One lake for all types."""
    folder = tmp_path_factory.mktemp("types")
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", str(folder / "warehouse")) as lake:
        yield lake


def rows(values, kind, first=0):
    times = [DAY.replace(microsecond=first + place) for place in range(len(values))]
    ids = pa.array(range(first, first + len(values)), pa.int64())
    return pa.table({"at": pa.array(times, AT), "id": ids, "x": pa.array(values, kind)})


def made(lake, kind, **options):
    schema = pa.schema([("at", AT), ("id", pa.int64()), ("x", kind)])
    return lake.create_table(f"t{next(NUMBER)}", schema, time="at", **options)


def seen(table, column="x", **scan):
    return table.scan(**scan).to_arrow().sort_by("id")[column].to_pylist()


def known(name):
    """The values of a type that are not null, each once."""
    found = []
    for value in [*SAMPLES[name].shared, *SAMPLES[name].own]:
        if value is not None and not any(same(value, one) for one in found):
            found.append(value)
    return found


def is_refused(attempt):
    try:
        attempt()
    except InvalidInput:
        return True
    return False


def test_both_tables_have_the_same_types():
    assert list(IS) == list(DOES) == list(SAMPLES)


@pytest.mark.parametrize(
    ("given", "instead"), [(one, row["instead"]) for row in REFUSED.values() for one in cells(row["given as"])]
)
def test_what_the_page_refuses_is_refused_by_column_and_the_error_says_what_to_use(types, given, instead):
    kind = UNKNOWN.get(given, given)
    inside = f"ARRAY<{given}>" if kind is given else pa.list_(kind)
    attempts = [lambda: read_type(kind, "x"), lambda: read_type(inside, "x")]
    if kind is given:
        attempts.append(lambda: types.sql(f"CREATE TABLE refused (at TIMESTAMP, x {given}) PARTITIONED BY (days(at))"))
    else:
        attempts.append(lambda: made(types, kind))
    for attempt in attempts:
        with pytest.raises(InvalidInput, match="column=x") as error:
            attempt()
        assert not [word for word in cells(instead) if word not in str(error.value)]


@pytest.mark.parametrize("name", IS)
def test_a_type_is_what_the_page_says(types, name):
    row, samples, out = IS[name], SAMPLES[name], OUT[name]
    for word in cells(row["DDL"]):
        assert read_type(word, "x") == KINDS[name], word
    table = made(types, KINDS[name])
    values = []
    for kind in map(ARROW.__getitem__, cells(row["Arrow in"])):
        assert read_type(kind, "x") == KINDS[name], kind
        given = [one and UUID(one) for one in samples.shared] if kind == pa.uuid() else samples.shared
        table.append(rows(given, kind, len(values)))
        values += samples.shared
    table.append(rows(samples.own, out, len(values)))
    values += samples.own
    assert table.scan().to_arrow()["x"].type == out
    assert same(seen(table), values)
    table.compact()
    assert same(seen(table), values)
    assert stored(types.warehouse / table.segments()[0].path) == row["Parquet"].strip("`")
    with duckdb.connect() as connection:
        assert str(table.scan().to_duckdb(connection).types[2]).replace('"', "") == row["DuckDB"].strip("`")
    text = types.sql(f"SHOW CREATE TABLE {table.name}")["createtab_stmt"].to_pylist()[0]
    (word,) = re.findall(r"^  `x` (.*)$", text, re.MULTILINE)
    assert word.replace("`", "") == cells(row["DDL"])[0]
    assert types.sql(text.replace(table.name, f"{table.name}_again")).schema == table.schema


def stored(path):
    """How a file holds column x: its physical and logical type, or what kind of group it is."""
    schema = pq.ParquetFile(path).schema
    column = next(schema.column(place) for place in range(len(schema)) if schema.column(place).path[:1] == "x")
    if "." in column.path:
        return {"list": "LIST", "key_value": "MAP"}.get(column.path.split(".")[1], "group")
    logical = column.logical_type
    zone = " UTC" if "isAdjustedToUTC=true" in str(logical) else ""
    return f"{column.physical_type} {'' if logical.type == 'NONE' else logical.type}{zone}".strip()


@pytest.mark.parametrize("name", DOES)
def test_filters_and_bounds_are_what_the_page_says(types, name):
    row, samples, out = DOES[name], SAMPLES[name], OUT[name]
    table = made(types, KINDS[name])
    values = [*samples.shared, *samples.own]
    for place, value in enumerate(values):
        table.append(rows([value], out, place))
    literal = (cells(row["literal"]) or ["'a'"])[0]
    for what, (condition, passes) in CONDITIONS.items():
        where = condition.format(literal)
        if what not in cells(row["filter"]):
            assert is_refused(lambda where=where: table.scan(where=where).count()), what
            continue
        wanted = [place for place, value in enumerate(values) if passes(value, samples.literal)]
        assert seen(table, "id", where=where) == wanted, what
        if what != "IN" and row["bounds"] == "yes":
            asked = "x" if name == "boolean" and what == "=" else where
            opened = len(table.scan(where=asked).plan().segments)
            assert opened == len(wanted) or (name == "boolean" and what == "<"), what
    bounds = ["x" in one.min for one in table.segments() if one.nulls.get("x") == 0]
    assert set(bounds) == ({True} if row["bounds"] == "yes" else set())


@pytest.mark.parametrize("name", DOES)
def test_what_a_type_can_be_is_what_the_page_says(types, name):
    row, out, kind, values = DOES[name], OUT[name], KINDS[name], known(name)
    yes = {what: row[what] == "yes" for what in ("primary key", "cluster by", "index", "default")}
    assert is_refused(lambda: made(types, kind, primary_key=["x"])) is not yes["primary key"]
    assert is_refused(lambda: made(types, kind, cluster_by={"x": 4})) is not yes["cluster by"]
    assert is_refused(lambda: made(types, kind, properties={"index": "x"})) is not yes["index"]
    if yes["primary key"]:
        table = made(types, kind, primary_key=["x"])
        for first in (0, 50):
            table.upsert(rows(values, out, first))
        table.delete_keys(rows(values[:1], out).select(["x"]))
        assert same(seen(table), values[1:])
        assert seen(table, "id") == list(range(51, 50 + len(values)))
    if yes["cluster by"]:
        table = made(types, kind, cluster_by={"x": 4})
        table.append(rows(values, out))
        table.replace(None, "2013-01-05", keys={"x": values[0]})
        assert same(seen(table), values[1:])
    if yes["index"]:
        table = made(types, kind, properties={"index": "x"})
        table.append(rows(values, out))
        segments, _ = types.catalog.live(table.spec, types.head)
        assert build_indexes(types.session, table.spec, missing_indexes(types.session, table.spec, segments)) == 1
        literal, wanted = cells(row["literal"])[0], SAMPLES[name].literal
        assert seen(table, where=f"x = {literal}") == [one for one in values if one == wanted]
    default = values[0]
    table = made(types, pa.int64())
    table.append(rows([1], pa.int64()))
    assert is_refused(lambda: table.add_column("added", kind, default=default)) is not yes["default"]
    if yes["default"]:
        assert same(seen(table, "added"), [default])
        table.set_default("added", values[-1])
        table.append(rows([2], pa.int64(), 1))
        assert same(seen(table, "added"), [default, values[-1]])


@pytest.mark.parametrize("name", DOES)
def test_a_type_is_widened_to_those_of_the_page_and_to_no_other(types, name):
    wider = [] if DOES[name]["widened to"] == "nothing" else DOES[name]["widened to"].split(", ")
    assert not set(wider) - set(OUT)
    values = SAMPLES[name].shared
    held = pa.array(values, OUT[name])
    table = made(types, KINDS[name])
    table.append(rows(values, OUT[name]))
    for other, kind in KINDS.items():
        if other in wider:
            grown = made(types, KINDS[name])
            grown.append(rows(values, OUT[name]))
            grown.widen_column("x", kind)
            assert same(seen(grown), held.cast(OUT[other]).to_pylist()), other
        elif other != name:
            assert is_refused(lambda kind=kind: table.widen_column("x", kind)), other
    assert same(seen(table), values)


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_a_part_of_a_microsecond_is_refused_by_its_row_and_nothing_is_cut(types, zone):
    fine = pa.timestamp("ns", zone)
    table = made(types, fine)
    assert table.schema.field("x").type == pa.timestamp("us", zone)
    with pytest.raises(InvalidRows, match=r"column=x .*row=2"):
        table.append(rows([1000, None, 1], fine))
    table.append(rows([1000, None, -1_000_000], fine))
    assert [one and one.microsecond for one in seen(table)] == [1, None, 999_000]


def test_json_is_read_by_path_as_the_page_says(types):
    schema = pa.schema([("at", AT), ("id", pa.int64()), ("doc", pa.string())])
    table = types.create_table("events", schema, time="at")
    table.append(rows(DOCUMENTS, pa.string()).rename_columns(["at", "id", "doc"]))
    assert sorted(types.sql(STATEMENT).fetchall()) == selected()
    assert len(selected()) == 2
    for path in PARTS:
        found = dict(types.sql(f"SELECT id, get_json_object(doc, '{path}') FROM events").fetchall())
        assert [found[place] for place in range(len(DOCUMENTS))] == [part(one, path) for one in DOCUMENTS], path


def test_nothing_that_was_done_to_any_type_is_found_damaged(types):
    assert not types.check(deep=True).findings
