"""Few rows of a Spark frame are written in the driver; if they are too many for it, by tasks."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

import lakehouse
from lakehouse.engine.spark.write import few_rows

SCHEMA = "at TIMESTAMP, id BIGINT, s STRING"


def test_few_rows_are_one_segment_and_the_same_rows(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.range(10).repartition(2).selectExpr(
        "timestamp '2026-01-01' + make_interval(0, 0, 0, 0, id) AS at", "id",
        "if(id % 3 = 0, NULL, concat('ü', id)) AS s",
    )  # fmt: skip
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse", spark=spark) as lake:
        tables = [lake.create_table(name, SCHEMA, time="at") for name in ("by_tasks", "here", "too_many")]
        tables[0].append(frame)
        with few_rows():
            assert tables[1].append(frame).rows_added == 10
            assert tables[1].append(frame.where("id < 0")).rows_added == 0

            def refuse(_: Any) -> Any:
                raise PySparkException("results are bigger than spark.driver.maxResultSize")

            monkeypatch.setattr(type(frame), "toArrow", refuse)
            tables[2].append(frame)
            monkeypatch.undo()
        found = [one.scan().to_arrow().sort_by("id").to_pylist() for one in tables]
        assert found[0] == found[1] == found[2]
        assert [row["id"] for row in found[0]] == list(range(10))
        assert [len(one.segments()) for one in tables] == [2, 1, 2]
