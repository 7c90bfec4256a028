"""Rows outside a replace's interval or keys: counted, with an example, by footers where these suffice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse.core.interval import Interval
from lakehouse.core.keys import key_scope
from lakehouse.storage.files import Folder
from lakehouse.storage.footer import read_footers
from lakehouse.storage.outside import Outside, values_outside
from tests.unit.engine.harness import spec_of

DAY = Interval.of("2013-01-05")
HOUR_US = 3_600_000_000


def _outside(
    folder: Path, hours: list[float], clients: list[Any], interval: Interval | None, keys: Any
) -> Outside | None:
    times = pa.array([DAY.start_us + int(hour * HOUR_US) for hour in hours]).cast(pa.timestamp("us", "UTC"))
    table = pa.table({"ts": times, "client": clients})
    spec = spec_of(table.schema, cluster_by="client")
    pq.write_table(table, folder / "a.parquet", row_group_size=2)
    files = read_footers(folder, ["a.parquet"], spec)
    return values_outside(Folder(folder), files, spec, interval, key_scope(keys))


def test_rows_inside_are_fine(tmp_path: Path) -> None:
    assert _outside(tmp_path, [0, 23.999], [1, 2], DAY, {"client": [1, 2]}) is None
    assert _outside(tmp_path, [0, 99], [1, 2], None, None) is None


def test_the_end_of_an_interval_is_outside(tmp_path: Path) -> None:
    found = _outside(tmp_path, [0, 24, -1, 5], [1, 1, 1, 1], DAY, None)
    assert found is not None
    assert (found.rows, found.column, found.example) == (2, "ts", DAY.end)


def test_rows_of_other_keys_are_counted_with_an_example(tmp_path: Path) -> None:
    found = _outside(tmp_path, [1, 2, 3], [1, 5, 6], DAY, {"client": [1, 6]})
    assert found == Outside(1, "client", 5)


def test_a_key_between_the_bounds_of_a_file_is_found(tmp_path: Path) -> None:
    assert _outside(tmp_path, [1, 2, 3], [1, 2, 3], DAY, {"client": [1, 3]}) == Outside(1, "client", 2)


def test_null_is_a_key_like_any_other(tmp_path: Path) -> None:
    assert _outside(tmp_path, [1, 2], [1, None], DAY, {"client": 1}) == Outside(1, "client", None)
    assert _outside(tmp_path, [1, 2], [1, None], DAY, {"client": [1, None]}) is None
    assert _outside(tmp_path, [1, 2], pa.nulls(2, pa.int64()), DAY, {"client": [None]}) is None
    assert _outside(tmp_path, [1, 2], pa.nulls(2, pa.int64()), DAY, {"client": [7]}) == Outside(2, "client", None)


def test_a_row_outside_both_counts_once(tmp_path: Path) -> None:
    found = _outside(tmp_path, [30, 1], [9, 1], DAY, {"client": 1})
    assert found is not None
    assert found.rows == 1


def test_footers_alone_decide_where_bounds_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a data page was read")

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", refuse)
    assert _outside(tmp_path, [0, 1, 2], [7, 7, 7], DAY, {"client": [7, 8]}) is None
