"""Spark makes the same indexes and sketches, and its reads leave out the same segments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lakehouse
from lakehouse.core.summary import SummaryKind
from lakehouse.errors import SegmentUnreadable
from lakehouse.operations.summarize import build_indexes, build_statistics
from tests.contract.test_summaries import rows
from tests.unit.engine.harness import comparable
from tests.unit.indexed import EQUALITIES, twins


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> Any:
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "ware house", spark=spark) as opened:
        yield opened


def test_rows_are_the_same_with_indexes_and_without(lake: Any) -> None:
    indexed, plain = twins(lake)
    schema = indexed.schema
    for where in EQUALITIES:
        one, other = (table.scan(where=where).to_spark().toArrow().cast(schema) for table in (indexed, plain))
        assert comparable(one) == comparable(other), where


def test_tasks_make_what_the_process_makes(lake: Any, tmp_path: Path) -> None:
    tables = [
        lake.create_table(name, rows(0).schema, time="time", properties={"index": "client, value"})
        for name in ("by_spark", "in_process")
    ]
    made = []
    for table, engine in zip(tables, ("spark", None), strict=True):
        table.append(rows(0))
        table.append(rows(100, 20_000))
        ids = [one.id for one in table.segments()]
        assert build_indexes(lake.session, table.spec, ids, engine=engine) == 4
        assert build_statistics(lake.session, table.spec, ids, engine=engine) == 6
        found = lake.catalog.summaries.read(SummaryKind.SKETCH, ids)
        held = lake.catalog.summaries.read(SummaryKind.INDEX, ids)
        assert sorted((one.bytes > 0) for one in held) == [False, False, True, True]
        made.append([one.content for one in found])
        assert table.scan(where="value = 7919").count() == 1
        assert len(table.scan(where="client = 'client 7919'").plan().segments) == 1
    assert made[0] == made[1]
    assert lake.check().is_sound


def test_the_data_source_opens_no_more_than_scans_do(lake: Any, spark: Any, tmp_path: Path) -> None:
    indexed, _ = twins(lake)
    lakehouse.register(spark)
    options = {
        "catalog": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": str(tmp_path / "ware house"),
        "table": "indexed",
    }
    frame = spark.read.format("lakehouse").options(**options).load()
    assert [row.id for row in frame.where("id = 3").select("id").collect()] == [3]
    assert frame.where("text = '' AND double IS NOT NULL").count() == 1
    # The data file of every other segment may be gone: a look-up does not open it.
    kept = indexed.scan(where="id = 3").plan().files
    for one in indexed.segments():
        if one.path not in kept:
            (lake.warehouse / one.path).unlink()
    assert frame.where("id = 3").count() == 1


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_done(lake: Any) -> None:
    table = lake.create_table("events", rows(0).schema, time="time", properties={"index": "client"})
    for number in range(3):
        table.append(rows(100 * number))
    (lake.warehouse / table.segments()[1].path).unlink()
    with pytest.raises(SegmentUnreadable, match="missing"):
        build_indexes(lake.session, table.spec, [one.id for one in table.segments()], engine="spark")
    assert len(lake.catalog.summaries.read(SummaryKind.INDEX, [one.id for one in table.segments()])) == 2
