"""A file that goes between a plan and the job that reads it fails our own calls by its name."""

from __future__ import annotations

from typing import Any

import pytest

import lakehouse
from lakehouse.engine.spark import SparkEngine, read
from lakehouse.errors import SegmentUnreadable
from lakehouse.storage.verify import verified
from lakehouse.testing.rows import KEYED, arrow

DAY = "2013-01-05"
CALLS = {
    "delete": lambda table: table.delete("value % 2 = 0"),
    "update": lambda table: table.update({"client": "'z'"}, "value % 2 = 0"),
    "compact": lambda table: table.compact(),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_file_that_is_gone_is_named_by_the_call_that_needs_it(
    spark: Any, sqlite_url: str, warehouse: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lakehouse.connect(sqlite_url, str(warehouse), spark=spark) as lake:
        table = lake.create_table("flights", KEYED, time="time")
        for first in (0, 20):
            table.append(arrow([(DAY, "a", first + value) for value in range(20)]))
        gone = warehouse / table.segments()[0].path

        def looked_at(*args: Any, **options: Any) -> Any:
            files = verified(*args, **options)
            gone.unlink(missing_ok=True)
            return files

        monkeypatch.setattr(lake.session, "local_engine", SparkEngine(spark))  # every call of this lake runs by Spark
        monkeypatch.setattr(read, "verified", looked_at)
        try:
            with pytest.raises(SegmentUnreadable, match=gone.name):
                CALLS[name](table)
            assert len(lake.operations()) == 0
        finally:
            monkeypatch.undo()
