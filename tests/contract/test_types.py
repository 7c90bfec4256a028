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
from lakehouse.errors import InvalidInput
from lakehouse.operations.summarize import build_indexes, missing_indexes
from lakehouse.schema import read_type
from tests.unit.engine.typed import ARROW, AT, DOES, IS, REFUSED, SAMPLES, UNKNOWN, cells, same

DAY = datetime(2013, 1, 5, tzinfo=UTC)
NUMBER = itertools.count()
OUT = {name: ARROW[row["Arrow out"].strip("`")] for name, row in IS.items()}
"""By name, the type that a table has."""
UUIDS = [UUID(int=0), None, UUID("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"), UUID(int=(1 << 128) - 1)]


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


@pytest.mark.parametrize("given", [one for row in REFUSED.values() for one in cells(row["given as"])])
def test_what_the_page_refuses_is_refused_by_column(given):
    for kind in (UNKNOWN.get(given, given), f"ARRAY<{given}>" if given not in UNKNOWN else pa.list_(UNKNOWN[given])):
        with pytest.raises(InvalidInput, match="column=x"):
            read_type(kind, "x")


@pytest.mark.parametrize("name", IS)
def test_a_type_is_what_the_page_says(types, name):
    row, samples, out = IS[name], SAMPLES[name], OUT[name]
    for word in cells(row["DDL"]):
        assert read_type(word, "x") == out, word
    table = made(types, out)
    values = []
    for kind in map(ARROW.__getitem__, cells(row["Arrow in"])):
        assert read_type(kind, "x") == out, kind
        given = UUIDS if isinstance(kind, pa.UuidType) else samples.shared
        table.append(rows(given, kind, len(values)))
        values += [None if one is None else str(one) for one in given] if given is UUIDS else given
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


CONDITIONS = {
    "=": ("x = {}", lambda value, literal: value is not None and value == literal),
    "<": ("x < {}", lambda value, literal: value is not None and value < literal),
    "IN": ("x IN ({}, NULL)", lambda value, literal: value is not None and value == literal),
    "IS NULL": ("x IS NULL", lambda value, literal: value is None),
}
"""What the page says of filters: how it is written, and its meaning."""


@pytest.mark.parametrize("name", DOES)
def test_filters_and_bounds_are_what_the_page_says(types, name):
    row, samples, out = DOES[name], SAMPLES[name], OUT[name]
    table = made(types, out)
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
    row, out, values = DOES[name], OUT[name], known(name)
    yes = {what: row[what] == "yes" for what in ("primary key", "cluster by", "index", "default")}
    assert is_refused(lambda: made(types, out, primary_key=["x"])) is not yes["primary key"]
    assert is_refused(lambda: made(types, out, cluster_by={"x": 4})) is not yes["cluster by"]
    assert is_refused(lambda: made(types, out, properties={"index": "x"})) is not yes["index"]
    if yes["primary key"]:
        table = made(types, out, primary_key=["x"])
        for first in (0, 50):
            table.upsert(rows(values, out, first))
        table.delete_keys(rows(values[:1], out).select(["x"]))
        assert same(seen(table), values[1:])
        assert seen(table, "id") == list(range(51, 50 + len(values)))
    if yes["cluster by"]:
        table = made(types, out, cluster_by={"x": 4})
        table.append(rows(values, out))
        table.replace(None, "2013-01-05", keys={"x": values[0]})
        assert same(seen(table), values[1:])
    if yes["index"]:
        table = made(types, out, properties={"index": "x"})
        table.append(rows(values, out))
        segments, _ = types.catalog.live(table.spec, types.head)
        assert build_indexes(types.session, table.spec, missing_indexes(types.session, table.spec, segments)) == 1
        literal, wanted = cells(row["literal"])[0], SAMPLES[name].literal
        assert seen(table, where=f"x = {literal}") == [one for one in values if one == wanted]
    default = values[0]
    table = made(types, pa.int64())
    table.append(rows([1], pa.int64()))
    assert is_refused(lambda: table.add_column("added", out, default=default)) is not yes["default"]
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
    table = made(types, OUT[name])
    table.append(rows(values, OUT[name]))
    for other, kind in OUT.items():
        if other in wider:
            grown = made(types, OUT[name])
            grown.append(rows(values, OUT[name]))
            grown.widen_column("x", kind)
            assert same(seen(grown), held.cast(kind).to_pylist()), other
        elif other != name:
            assert is_refused(lambda kind=kind: table.widen_column("x", kind)), other
    assert same(seen(table), values)


def test_nothing_that_was_done_to_any_type_is_found_damaged(types):
    assert not types.check(deep=True).findings
