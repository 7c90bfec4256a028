"""What is kept of a scan: its files, looked at once, and nothing that one frame could feel of another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakehouse.engine.duckdb import DuckDBEngine
from lakehouse.engine.spark import SparkEngine, relations
from lakehouse.errors import SegmentUnreadable
from tests.unit.engine.harness import Store, spec_of
from tests.unit.engine.test_duckdb import SCHEMA, events

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture
def query(store: Store, duck: DuckDBEngine) -> Any:
    spec = spec_of(SCHEMA)
    return store.query(spec, store.write(duck, events(500), spec))


def relation_of(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed().relation()


def test_a_second_frame_over_the_same_files_looks_at_none_of_them(engine: SparkEngine, query: Any) -> None:
    first, second = engine.read(query), engine.read(query)
    assert relation_of(first).location().equals(relation_of(second).location())
    assert first.toArrow().equals(second.toArrow())


def test_two_frames_over_the_same_files_have_columns_of_their_own(engine: SparkEngine, query: Any) -> None:
    one, other = engine.read(query), engine.read(query)
    rows = one.count()
    assert one.join(other, one.value == other.value + 1000).count() == 0
    assert one.crossJoin(other.where(other.value < one.agg({"value": "min"}).collect()[0][0])).count() == 0
    assert one.unionAll(other).count() == 2 * rows


def test_a_file_that_is_gone_is_named_though_its_relation_is_kept(
    engine: SparkEngine, query: Any, store: Store
) -> None:
    engine.read(query).count()
    gone = query.plan.segments[0]
    (store.warehouse / gone.path).unlink()
    with pytest.raises(SegmentUnreadable, match="missing"):
        engine.read(query)


def test_other_columns_of_the_same_files_are_another_relation(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "numbers")
    spark.range(3).write.parquet(folder)
    made: list[str] = []

    def make(columns: str) -> DataFrame:
        made.append(columns)
        return spark.read.schema(columns).parquet(folder)

    for columns in ("id long", "id long", "id long, more long"):
        frame = relations.frame_over(spark, (columns, folder), 1, lambda columns=columns: make(columns))
        assert len(frame.columns) == columns.count("long")
    assert made == ["id long", "id long, more long"]


def test_what_is_about_too_many_files_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relations, "MOST_FILES", 10)
    session: Any = _Session()
    made: list[str] = []

    def ask(name: str, files: int) -> None:
        relations.kept(session, name, files, lambda: made.append(name) or name)

    for _ in range(2):
        ask("a", 5)
        ask("too many", 11)
        ask("b", 5)
    assert made == ["a", "too many", "b", "too many"]


class _Session:
    """Stands for a Spark session, to which what is kept belongs."""
