"""The calls that a newcomer tries first: a lake as a mapping, rows of Python, and what is said of mistakes."""

from __future__ import annotations

import sys
from collections import namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lakehouse
from lakehouse.errors import InvalidRows, LakeClosed, TableNotFound
from tools.docs_site.markdown import examples

AT = datetime(2013, 1, 5, tzinfo=UTC)
DDL = (
    "at TIMESTAMP, id BIGINT, x DOUBLE, name STRING, price DECIMAL(9, 2), tags MAP<STRING, INT>, seen ARRAY<TIMESTAMP>"
)
ROW = {"at": AT, "id": 1, "x": 2, "name": "a", "price": 3, "tags": {"k": 1}, "seen": [AT]}
WANTED = {**ROW, "x": 2.0, "price": Decimal("3.00"), "tags": [("k", 1)]}


@dataclass
class Trip:
    at: datetime
    id: int
    x: float
    name: str
    price: Decimal
    tags: dict[str, int]
    seen: list[datetime]


Named = namedtuple("Named", list(ROW))


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakehouse.Lake]:
    folder: Path = tmp_path_factory.mktemp("easy")
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse") as made:
        yield made


@pytest.fixture
def lake(opened: lakehouse.Lake) -> Iterator[lakehouse.Lake]:
    yield opened
    for name in opened:
        opened.drop_table(name)


@pytest.fixture
def trips(lake: lakehouse.Lake) -> lakehouse.Table:
    return lake.create_table("trips", DDL, time="at", primary_key=["id"])


ROWS: dict[str, Callable[[], Any]] = {
    "dicts": lambda: [ROW],
    "dicts in another order": lambda: [dict(reversed(ROW.items()))],
    "columns": lambda: {name: [value] for name, value in ROW.items()},
    "tuples": lambda: [tuple(ROW.values())],
    "lists": lambda: (list(ROW.values()),),
    "named tuples": lambda: [Named(**ROW)],
    "dataclasses": lambda: [Trip(**ROW)],  # type: ignore[arg-type]
    "a generator": lambda: (ROW for _ in range(1)),
    "an iterator of dataclasses": lambda: iter([Trip(**ROW)]),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("made", ROWS.values(), ids=ROWS)
def test_rows_of_python_are_taken_wherever_rows_are(trips: lakehouse.Table, made: Callable[[], Any]) -> None:
    trips.append(made())
    assert trips.to_arrow().to_pylist() == [WANTED]
    trips.upsert(made())
    trips.replace(made(), "2013-01-05")
    merged = trips.merge(made(), on=["id"], when_matched_update={"x": "source.x + 1"})
    assert merged.rows_added == 1
    with trips.begin_append() as op:
        op.write(made())
    assert trips.count() == 2


def test_frames_that_are_lazy_and_relations_are_rows(lake: lakehouse.Lake) -> None:
    table = lake.create_table("t", "at TIMESTAMP, id BIGINT", time="at")
    table.append(pl.LazyFrame({"at": [AT], "id": [1]}).filter(pl.col("id") == 1))
    table.append(duckdb.sql("SELECT TIMESTAMPTZ '2013-01-05 00:00:00+00' AS at, 2::BIGINT AS id"))
    table.append(table.scan(where="id = 1"))
    table.append(lake["t"])
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 1, 1, 1, 2, 2]


def test_keys_are_rows_too(trips: lakehouse.Table) -> None:
    trips.append([ROW, {**ROW, "id": 2}])
    trips.delete_keys([{"id": 1}])
    trips.delete_keys([(2,)])
    assert trips.count() == 0
    assert trips.append([]).rows_added == 0


def test_a_long_iterator_is_read_in_parts_of_the_columns_types(lake: lakehouse.Lake) -> None:
    table = lake.create_table("t", "at TIMESTAMP, id BIGINT, x DOUBLE, name STRING", time="at")
    rows = ({"at": AT, "id": n, "x": 1 if n < 9000 else 0.5, "name": None if n < 9000 else "a"} for n in range(20_000))
    assert table.append(rows).rows_added == 20_000
    found = table.to_arrow()
    assert (sum(found["x"].to_pylist()), found["name"].null_count) == (9000 + 5500, 9000)


def test_a_row_may_lack_what_others_have(lake: lakehouse.Lake) -> None:
    table = lake.create_table("t", "at TIMESTAMP, id BIGINT", time="at")
    table.append([{"at": AT}, {"at": AT, "id": 1}])
    table.append([{"at": AT, "id": 2, "new": "a"}], schema="merge")
    assert table.columns == ["at", "id", "new"]
    assert table.to_arrow()["id"].null_count == 1


def changing(value: Any) -> Iterator[dict[str, Any]]:
    yield from ({**ROW, "id": n} for n in range(8192))
    yield {**ROW, **value}


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a path": (lambda: "trips.csv", "not rows; .*found=str"),
    "a number": (lambda: 7, "a list of dicts or tuples .*found=int"),
    "numbers": (lambda: [7], "not a row; give a dict.*row=0 found=int"),
    "a class": (lambda: [Trip], "not a row.*found=type"),
    "short tuples": (lambda: [tuple(ROW.values()), (AT,)], "as many values as there are columns.*row=1 found=1"),
    "mixed values": (lambda: [ROW, {**ROW, "id": "b"}], "no one type.*column=id"),
    "text for a number": (lambda: [{**ROW, "x": "2"}], "wrong type of column; .*column=x expected=double found=string"),
    "numbers for times": (lambda: [{**ROW, "at": 5}], "wrong type of column; .*column=at"),
    "half a number": (lambda: [{**ROW, "id": 1.5}], "column cannot hold a value.*column=id"),
    "another column": (lambda: [{**ROW, "nmae": 1}], "unknown column.*column=nmae"),
    "a missing column": (lambda: [{"at": AT}], "missing column"),
    "columns of numbers": (lambda: {1: [2]}, "name of text"),
    "one row alone": (lambda: ROW, r"as in \[row\].*column=at found=datetime"),
    "a text as a column": (lambda: {"name": "abc"}, r"as in \[row\].*column=name found=str"),
    "columns that differ": (lambda: {"at": [AT], "id": []}, "differ in length"),
    "a later column": (lambda: changing({"other": 1}), "first rows do not have.*column=other rows_before=8192"),
    "a later type": (lambda: changing({"id": "b"}), "change their type.*column=id rows_before=8192"),
}


@pytest.mark.parametrize(("made", "said"), WRONG.values(), ids=WRONG)
def test_what_is_no_row_is_named_and_nothing_is_committed(
    lake: lakehouse.Lake, trips: lakehouse.Table, made: Callable[[], Any], said: str
) -> None:
    head = lake.head
    with pytest.raises(InvalidRows, match=said):
        trips.append(made())
    assert lake.head == head


def test_an_error_of_a_generator_is_the_callers(lake: lakehouse.Lake, trips: lakehouse.Table) -> None:
    def broken() -> Iterator[dict[str, Any]]:
        yield from ({**ROW, "id": n} for n in range(10_000))
        raise ZeroDivisionError("theirs")

    with pytest.raises(ZeroDivisionError, match="theirs"):
        trips.append(broken())
    assert trips.count() == 0


def test_a_lake_is_a_mapping_of_its_tables(lake: lakehouse.Lake, trips: lakehouse.Table) -> None:
    assert lake["trips"].name == "trips"
    assert ("trips" in lake, "tips" in lake, 7 in lake) == (True, False, False)
    assert (list(lake), len(lake), bool(lake)) == (["trips"], 1, True)
    with pytest.raises(KeyError, match="table=tips nearest=trips"):
        lake["tips"]


def test_a_table_gives_its_rows_in_every_form(trips: lakehouse.Table) -> None:
    trips.append([{**ROW, "id": n} for n in range(7)])
    assert (trips.head().num_rows, trips.head(0).num_rows, trips.head(99).num_rows) == (5, 0, 7)
    assert trips.head(2, columns=["id"]).column_names == ["id"]
    assert trips.to_pandas().shape == (7, 7)
    assert isinstance(trips.to_pandas(), pd.DataFrame)
    assert trips.to_polars().height == trips.to_polars(lazy=True).collect().height == 7
    assert pa.table(trips).num_rows == 7
    assert [one.version for one in trips.history()] == [trips.version]


MISSPELT: dict[str, Callable[[lakehouse.Lake, Any], Any]] = {
    "mesage": lambda lake, table: table.append([], mesage="x"),
    "were": lambda lake, table: table.scan(were="id = 1"),
    "key": lambda lake, table: table.replace([], "2013", key={"id": 1}),
    "tim": lambda lake, table: lake.create_table("t", "at TIMESTAMP", tim="at"),
    "catalogue": lambda lake, table: lakehouse.connect(catalogue="x"),  # type: ignore[call-arg]
    "asof": lambda lake, table: lake.sql("SELECT 1", asof=7),
}


@pytest.mark.parametrize(("name", "call"), MISSPELT.items(), ids=MISSPELT)
def test_a_misspelt_argument_is_named(
    lake: lakehouse.Lake, trips: lakehouse.Table, name: str, call: Callable[[lakehouse.Lake, Any], Any]
) -> None:
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        call(lake, trips)


def test_an_unknown_table_names_the_nearest(lake: lakehouse.Lake, trips: lakehouse.Table) -> None:
    with pytest.raises(TableNotFound, match="table=trisp nearest=trips known=trips"):
        lake.table("trisp")


def test_what_a_notebook_prints_is_one_line(lake: lakehouse.Lake, trips: lakehouse.Table) -> None:
    commit = trips.append([ROW])
    shown = [lake, trips, trips.scan(), trips.scan().plan(), commit, trips.timeline(), lake.transaction()]
    assert [one for one in map(repr, shown) if "\n" in one or not one.startswith("<")] == []
    assert repr(commit) == f"<commit {commit.version}: append trips, +1 -0 rows, {commit.committed_at:%F %T}>"


def test_a_notebook_draws_tables_and_a_picture(lake: lakehouse.Lake, trips: lakehouse.Table) -> None:
    commit = trips.append([ROW])
    assert "<td>trips</td>" in lake._repr_html_()
    assert "<td>at</td><td>timestamp[us, tz=UTC]</td>" in trips._repr_html_()
    assert "<td>append</td>" in commit._repr_html_()
    assert "<td>append</td>" in trips.log()._repr_html_()
    assert "1 segments, 1 rows" in trips.scan().plan()._repr_html_()
    assert trips.timeline()._repr_html_().startswith("<svg ")
    assert trips.timeline("2014")._repr_html_() == "nothing is visible"
    assert trips.segments().__class__()._repr_html_().startswith("<table>")


def test_hostile_names_and_messages_are_text_in_a_notebook(lake: lakehouse.Lake) -> None:
    hostile, column = "<script>alert(1)</script>", "a<script>b"
    table = lake.create_table("t", pa.schema([(column, pa.int64())]), properties={"note": hostile})
    commit = table.append([{column: 1}], message=hostile, properties={hostile: hostile})
    table.comment(hostile, column=column)
    for shown in (lake, table, commit, table.log(), table.scan().plan(), table.segments(), lake.log()):
        assert "<script" not in shown._repr_html_()
    assert "&lt;script&gt;" in table._repr_html_()


def test_a_long_listing_shows_its_first_rows(trips: lakehouse.Table) -> None:
    commit = trips.append([ROW])
    listed = type(trips.log())([commit] * 101)
    assert listed._repr_html_().count("<tr>") == 101
    assert "the first 100 of 101" in listed._repr_html_()


CALLS: dict[str, Callable[[lakehouse.Lake, lakehouse.Table], Any]] = {
    "tables": lambda lake, table: lake.tables(),
    "head": lambda lake, table: lake.head,
    "sql": lambda lake, table: lake.sql("SELECT * FROM trips"),
    "scan": lambda lake, table: table.scan(),
    "append": lambda lake, table: table.append([ROW]),
    "delete": lambda lake, table: table.delete("TRUE"),
    "log": lambda lake, table: table.log(),
}


def test_a_closed_lake_says_so(tmp_path: Path) -> None:
    lake = lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse")
    trips = lake.create_table("trips", DDL, time="at")
    trips.append([ROW])
    scan = trips.scan()
    lake.close()
    lake.close()
    for name, call in CALLS.items():
        with pytest.raises(LakeClosed, match="the lake is closed; connect again"):
            print(name, call(lake, trips))
    with pytest.raises(LakeClosed):
        scan.to_arrow()
    assert repr(trips) == "<table trips by day of at, 7 columns>"


def test_a_dropped_table_says_so_and_still_has_its_past(lake: lakehouse.Lake, trips: lakehouse.Table) -> None:
    version = trips.append([ROW]).version
    lake.drop_table("trips")
    for call in (trips.scan, trips.to_arrow, trips.count, trips.segments, lambda: trips.delete("TRUE")):
        with pytest.raises(TableNotFound, match="the table was dropped"):
            call()
    assert trips.scan(as_of=version).count() == 1


def test_the_page_of_first_calls_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs/python.md").read_text()
    names: dict[str, Any] = {}
    for example in examples(page, "python"):
        exec(compile(example.code, "docs/python.md", "exec"), names)
    assert len(names["frame"]) == 5


def test_a_count_in_sql_starts_no_spark(
    lake: lakehouse.Lake, trips: lakehouse.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips.append([ROW])
    monkeypatch.setitem(sys.modules, "lakehouse.engine.spark", None)  # its import fails
    assert lake.sql("SELECT count(*) FROM trips").fetchall() == [(1,)]
    with pytest.raises(ImportError):
        lake.sql("SELECT count(*) FROM trips", engine="spark")
