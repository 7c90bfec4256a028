"""Scans as Arrow datasets and streams: the rows of the scan and no others, and no file that a filter excludes."""

from __future__ import annotations

import datetime as dt
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

import lakehouse
from lakehouse.errors import InvalidInput, NotWholeFiles, SegmentUnreadable

F = pads.field
SCHEMA = pa.schema(
    [
        ("at", pa.timestamp("us", "UTC")),
        ("id", pa.int64()),
        ("client", pa.string()),
        ("number", pa.float64()),
        ("day", pa.date32()),
        ("other", pa.int32()),
        ("select", pa.list_(pa.string())),
    ]
)
START = dt.datetime(2013, 1, 5, tzinfo=dt.UTC)
LONG = "é" * 200


def row(number: int) -> dict[str, Any]:
    """Of day five every client is null, of day two some; texts are longer than the catalog's bounds."""
    day = number // 10
    client = None if day == 5 or (day == 2 and number % 2) else f"{'abc'[day % 3]}{LONG if number % 3 else ''}"
    number_ = float("nan") if number % 10 == 3 else float(number)
    at = START + dt.timedelta(days=day, minutes=number)
    return {
        "at": at, "id": number, "client": client, "number": None if day == 1 else number_,
        "day": at.date(), "other": number % 4, "select": None if number % 2 else [str(number)],
    }  # fmt: skip


ROWS = [row(number) for number in range(80)]


@pytest.fixture
def table(tmp_path: Path) -> Iterator[lakehouse.Table]:
    """Eight files of a day each."""
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse") as lake:
        table = lake.create_table("t", SCHEMA, time="at", primary_key=["id"], cluster_by=["client", "number", "day"])
        table.append(pa.Table.from_pylist(ROWS, schema=table.schema))
        yield table


def test_a_dataset_has_the_rows_and_opens_what_a_filter_needs(table: lakehouse.Table) -> None:
    dataset = table.scan().to_dataset()
    assert dataset.schema.equals(table.schema)
    assert sorted(dataset.to_table()["id"].to_pylist()) == list(range(80))
    cases: list[tuple[pads.Expression, Callable[[dict[str, Any]], Any], int]] = [
        (F("id") == 37, lambda one: one["id"] == 37, 1),
        (F("id").isin([3, 71]), lambda one: one["id"] in (3, 71), 2),
        (F("id") < 0, lambda one: False, 0),
        (F("id").is_null(), lambda one: False, 0),
        (F("at") >= pa.scalar(START + dt.timedelta(days=7)), lambda one: one["id"] >= 70, 1),
        (F("day") == dt.date(2013, 1, 6), lambda one: 10 <= one["id"] < 20, 1),
        (F("client").is_null(), lambda one: one["client"] is None, 2),
        (F("client") == "a", lambda one: one["client"] == "a", 3),
        (F("client") > "b", lambda one: one["client"] is not None and one["client"] > "b", 5),
        (F("client") == f"b{LONG}", lambda one: one["client"] == f"b{LONG}", 3),
        (F("number").is_nan(), lambda one: one["number"] is not None and one["id"] % 10 == 3, 8),
        (F("number") == 44.0, lambda one: one["number"] == 44.0, 8),
        (F("other") == 1, lambda one: one["other"] == 1, 8),
    ]
    for expression, holds, most in cases:
        found = sorted(dataset.to_table(columns=["id"], filter=expression)["id"].to_pylist())
        assert found == [one["id"] for one in ROWS if holds(one)], expression
        assert len(list(dataset.get_fragments(filter=expression))) <= most, expression


def test_engines_that_take_datasets_and_streams_read_the_same(table: lakehouse.Table) -> None:
    dataset = table.scan(columns=["select", "id"]).to_dataset()
    assert dataset.schema.names == ["select", "id"]
    assert duckdb.sql('SELECT id, "select" FROM dataset WHERE id = 8').fetchall() == [(8, ["8"])]
    assert pl.scan_pyarrow_dataset(dataset).filter(pl.col("id") == 8).collect()["id"].to_list() == [8]
    table.delete("id >= 40 AND id <> 44")
    scan = table.scan(columns=["id", "day"], where="id > 37")
    expected = [38, 39, 44]
    assert [one for (one,) in duckdb.sql("SELECT id FROM scan ORDER BY id").fetchall()] == expected
    assert [one for (one,) in duckdb.sql("SELECT id FROM scan ORDER BY id").fetchall()] == expected
    assert sorted(pl.DataFrame(scan)["id"].to_list()) == expected
    assert sorted(pa.table(scan)["id"].to_pylist()) == expected
    assert sorted(pa.RecordBatchReader.from_stream(scan).read_all()["id"].to_pylist()) == expected
    assert pa.table(table.scan(where="id < 0")).schema.equals(table.schema)


def test_what_is_not_whole_files_is_refused_by_name(table: lakehouse.Table) -> None:
    inside = ("2013-01-06", "2013-01-08")
    assert sorted(table.scan(interval=inside).to_dataset().to_table()["id"].to_pylist()) == list(range(10, 30))
    assert table.scan(interval="2014").to_dataset().to_table().equals(table.schema.empty_table())
    for scan in (table.scan(where="id = 7"), table.scan(interval=("2013-01-06T00:12", "2013-01-08"))):
        with pytest.raises(NotWholeFiles, match=r"to_reader\(\)"):
            scan.to_dataset()
    whole = table.version
    changes: list[tuple[Callable[[], object], set[int]]] = [
        (lambda: table.delete("id = 7"), {7}),
        (lambda: table.delete_keys(pa.table({"id": pa.array([17])})), {7, 17}),
        (lambda: table.drop(("2013-01-07T00:00", "2013-01-07T00:25")), {7, 17, 20, 21, 22, 23, 24}),
        (lambda: table.upsert(pa.Table.from_pylist([ROWS[33]], schema=table.schema)), {7, 17, 20, 21, 22, 23, 24}),
    ]
    for change, missing in changes:
        change()
        assert set(range(80)) - set(table.scan().to_arrow()["id"].to_pylist()) == missing
        with pytest.raises(InvalidInput) as refused:
            table.scan().to_dataset()
        assert refused.value.code == "not_whole_files"
    assert table.scan(as_of=whole).to_dataset().count_rows() == 80
    table.drop("2013-01-08")
    table.compact()
    found = sorted(table.scan().to_dataset().to_table()["id"].to_pylist())
    assert found == [one for one in range(80) if one not in missing and not 30 <= one < 40]


def test_a_dataset_keeps_its_version_and_plans_again_after_an_erasure(table: lakehouse.Table) -> None:
    lake = lakehouse.connect(table.session.catalog.url, table.session.warehouse.root, pin_seconds=0.001)
    dataset, planned = lake.table("t").scan().to_dataset(), lake.table("t").scan()
    planned.prepare()
    table.replace(None, "2013-01-05")
    for _ in range(2):
        gc.collect()
        lake.session.pins.beat()
        table.session.catalog.head()
    other = lakehouse.connect(table.session.catalog.url, table.session.warehouse.root)
    other.expire(keep_last=1)
    other.collect(grace_seconds=0)
    assert dataset.count_rows() == 80
    table.erase("id = 77")
    other.collect(grace_seconds=0)
    assert 77 not in planned.to_dataset().to_table()["id"].to_pylist()
    (lake.warehouse / table.segments()[0].path).unlink()
    with pytest.raises(SegmentUnreadable):
        table.scan().to_dataset()
    other.close()
    lake.close()
