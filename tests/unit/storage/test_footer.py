"""What footers say, and what they must not be trusted to say."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse.core.interval import MAX_TIME, to_us
from lakehouse.core.segment import NewSegment
from lakehouse.errors import InvalidInput, SegmentUnreadable
from lakehouse.storage.footer import read_footers
from tests.unit.engine.harness import HOSTILE, hostile_rows, spec_of

TIMES = [dt.datetime(2013, 1, 5, hour, tzinfo=dt.UTC) for hour in (7, 3, 23)]


def _written(folder: Path, columns: dict[str, Any], **how: Any) -> NewSegment:
    table = pa.table({"ts": pa.array(TIMES, pa.timestamp("us", "UTC")), **columns})
    pq.write_table(table, folder / "a.parquet", **how)
    (found,) = read_footers(folder, ["a.parquet"], spec_of(table.schema))
    return found


def test_the_interval_is_tight(tmp_path: Path) -> None:
    found = _written(tmp_path, {})
    assert found.start == TIMES[1]
    assert found.end == TIMES[2] + dt.timedelta(microseconds=1)
    assert (found.rows, found.bytes) == (3, (tmp_path / "a.parquet").stat().st_size)


def test_values_have_the_python_type_of_the_column(tmp_path: Path) -> None:
    rows = hostile_rows()
    pq.write_table(rows, tmp_path / "a.parquet")
    (found,) = read_footers(tmp_path, ["a.parquet"], spec_of(HOSTILE))
    assert found.min["ts"] == dt.datetime(1, 1, 1, tzinfo=dt.UTC)
    assert found.min["tiny"] == -128
    assert found.max["local"] == MAX_TIME.replace(tzinfo=None)
    assert found.min["day"] == dt.date(1, 1, 1)
    assert found.max["money"] == Decimal("99999999.99")
    assert found.min["flag"] is False
    assert found.min["text"] == ""
    assert found.min["bytes"] == b""
    assert found.nulls["text"] == rows["text"].null_count
    assert not {"list", "struct", "map", "structs"} & {*found.min, *found.nulls}


def test_bounds_hold_over_row_groups(tmp_path: Path) -> None:
    found = _written(tmp_path, {"value": [5, None, 1], "none": pa.nulls(3, pa.int64())}, row_group_size=1)
    assert (found.min["value"], found.max["value"], found.nulls["value"]) == (1, 5, 1)
    assert "none" not in found.min
    assert found.nulls["none"] == 3


def test_a_nested_column_before_a_plain_one_does_not_shift_its_statistics(tmp_path: Path) -> None:
    pairs = pa.array([{"a": 100, "b": 200}] * 3, pa.struct([("a", pa.int64()), ("b", pa.int64())]))
    found = _written(tmp_path, {"pair": pairs, "list": [[1], [2], [3]], "value": [7, 8, 9], "a.b": [1, 2, 3]})
    assert (found.min["value"], found.max["value"], found.max["a.b"]) == (7, 9, 3)


def test_a_column_without_statistics_has_no_bounds(tmp_path: Path) -> None:
    found = _written(tmp_path, {"value": [1, 2, 3]}, write_statistics=["ts"])
    assert "value" not in found.min
    assert "value" not in found.nulls


def test_a_time_column_without_statistics_is_read(tmp_path: Path) -> None:
    found = _written(tmp_path, {}, write_statistics=False)
    assert (found.start, found.end) == (TIMES[1], TIMES[2] + dt.timedelta(microseconds=1))


def test_a_long_string_is_bounded_by_shorter_ones(tmp_path: Path) -> None:
    low, high = "a" * 1000, "z" * 1000
    found = _written(tmp_path, {"text": [low, high, "m"], "raw": [b"\x00" * 500, b"\xff" * 500, b"m"]})
    assert found.min["text"] < low
    assert found.max["text"] > high
    assert len(found.max["text"]) <= 128
    assert found.min["raw"] <= b"\x00" * 500
    assert "raw" not in found.max


def test_a_string_too_long_for_parquets_statistics_has_no_bounds(tmp_path: Path) -> None:
    found = _written(tmp_path, {"text": ["a" * 10_000, "b", None]})
    assert "text" not in found.min
    assert found.nulls["text"] == 1


def test_the_last_character_of_a_cut_bound_can_be_the_last_one_there_is(tmp_path: Path) -> None:
    text = "x" + "\U0010ffff" * 500
    found = _written(tmp_path, {"text": [text, text, text]})
    assert found.max["text"] == "y"


def test_nan_leaves_a_column_without_bounds_where_it_is_in_them(tmp_path: Path) -> None:
    found = _written(tmp_path, {"all": [math.nan] * 3, "zero": [-0.0, 0.0, 0.0]})
    assert "all" not in found.min
    assert repr(found.min["zero"]) == "0.0"


def test_files_without_rows_are_left_out(tmp_path: Path) -> None:
    schema = pa.schema([("ts", pa.timestamp("us", "UTC"))])
    pq.write_table(schema.empty_table(), tmp_path / "empty.parquet")
    assert read_footers(tmp_path, ["empty.parquet"], spec_of(schema)) == []


def test_null_times_are_refused_with_their_number(tmp_path: Path) -> None:
    table = pa.table({"ts": pa.array([TIMES[0], None, None], pa.timestamp("us", "UTC"))})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InvalidInput, match=r"time column.*column=ts count=2"):
        read_footers(tmp_path, ["a.parquet"], spec_of(table.schema))


def test_nulls_in_a_key_are_refused(tmp_path: Path) -> None:
    table = pa.table({"ts": pa.array(TIMES, pa.timestamp("us", "UTC")), "client": [1, None, 3]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InvalidInput, match=r"column=client count=1"):
        read_footers(tmp_path, ["a.parquet"], spec_of(table.schema, primary_key="client"))


@pytest.mark.parametrize("us", [to_us(dt.datetime(1, 1, 1, tzinfo=dt.UTC)) - 1, 253_402_300_800_000_000, -(1 << 62)])
@pytest.mark.parametrize("statistics", [True, False])
def test_times_outside_the_calendar_are_refused(tmp_path: Path, us: int, statistics: bool) -> None:
    table = pa.table({"ts": pa.array([0, us]).cast(pa.timestamp("us", "UTC"))})
    pq.write_table(table, tmp_path / "a.parquet", write_statistics=statistics)
    with pytest.raises(InvalidInput, match="years 1 to 9999"):
        read_footers(tmp_path, ["a.parquet"], spec_of(table.schema))


@pytest.mark.parametrize(
    "damage", [None, b"", b"PAR1", lambda data: data[:-1], lambda data: data[:-30] + b"x" * 22 + data[-8:]]
)
def test_a_missing_or_damaged_file_is_named(tmp_path: Path, damage: Any) -> None:
    table = pa.table({"ts": pa.array(TIMES, pa.timestamp("us", "UTC"))})
    names = [f"{number}.parquet" for number in range(6)]
    for name in names:
        pq.write_table(table, tmp_path / name)
    broken = tmp_path / names[4]
    data = broken.read_bytes()
    broken.unlink()
    if damage is not None:
        broken.write_bytes(damage(data) if callable(damage) else damage)
    with pytest.raises(SegmentUnreadable) as caught:
        read_footers(tmp_path, names, spec_of(table.schema))
    assert caught.value.path == str(broken)


def test_a_file_of_something_else_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"other": [1]}), tmp_path / "a.parquet")
    with pytest.raises(SegmentUnreadable, match=r"time column.*a\.parquet"):
        read_footers(tmp_path, ["a.parquet"], spec_of(HOSTILE))
