"""A catalog knows its warehouse: one wrong address neither writes rows elsewhere nor deletes what is garbage."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.admin.doctor import check_home
from lakehouse.errors import InvalidAddress, SegmentUnreadable
from lakehouse.lake import Lake
from lakehouse.storage.home import HOME


def _rows(*days: str) -> pa.Table:
    times = pa.array([datetime.fromisoformat(day) for day in days], pa.timestamp("us"))
    return pa.table({"at": times, "n": pa.array(range(len(days)), pa.int64())})


def _open(folder: Path, warehouse: str, catalog: str = "catalog.db") -> Lake:
    return lakehouse.connect(f"sqlite:///{folder}/{catalog}", folder / warehouse)


def _filled(folder: Path) -> None:
    with _open(folder, "here") as lake:
        lake.create_table("events", "at TIMESTAMP, n BIGINT", time="at").append(_rows("2024-01-01"))


def _files(folder: Path) -> list[Path]:
    return [one for one in folder.rglob("*") if one.is_file()] if folder.exists() else []


def test_another_warehouse_is_refused_before_anything_is_written(tmp_path):
    _filled(tmp_path)
    (tmp_path / "there").mkdir()
    with _open(tmp_path, "there") as lake:
        events = lake.table("events")
        for attempt in (
            lambda: events.append(_rows("2024-01-02")),
            lambda: events.replace(_rows("2024-01-02"), interval="2024-01-02"),
            lambda: events.delete("n = 0"),
            lambda: events.erase("n = 0"),
            events.compact,
            lake.export,
            lake.collect,
        ):
            with pytest.raises(InvalidAddress, match="not in this warehouse") as refused:
                attempt()
            assert str(tmp_path / "here") in str(refused.value)
        assert lake.head == 2
    assert not _files(tmp_path / "there")
    with _open(tmp_path, "here") as lake:
        assert lake.table("events").append(_rows("2024-01-02")).version == 3
        assert lake.table("events").count() == 2


def test_a_lake_without_rows_has_a_warehouse_from_its_first_write_on(tmp_path):
    with _open(tmp_path, "here") as lake:
        lake.create_table("events", "at TIMESTAMP, n BIGINT", time="at").append(_rows("2024-01-01"))
    with _open(tmp_path, "there") as lake, pytest.raises(InvalidAddress, match="not in this warehouse"):
        lake.table("events").append(_rows("2024-01-02"))


def test_a_second_catalog_is_refused_where_another_lake_lies(tmp_path):
    _filled(tmp_path)
    with _open(tmp_path, "here", "second.db") as lake:
        with pytest.raises(InvalidAddress, match="another catalog's lake"):
            lake.create_table("events", "at TIMESTAMP, n BIGINT", time="at")
        assert lake.tables() == []


def test_a_warehouse_moves_with_its_mark(tmp_path):
    _filled(tmp_path)
    (tmp_path / "here").rename(tmp_path / "moved")
    with _open(tmp_path, "moved") as lake:
        lake.table("events").append(_rows("2024-01-02"))
        assert lake.table("events").count() == 2


def test_a_lost_mark_is_written_again_where_the_files_are(tmp_path):
    _filled(tmp_path)
    (tmp_path / "here" / HOME).unlink()
    (tmp_path / "here").rename(tmp_path / "moved")
    with _open(tmp_path, "there") as lake, pytest.raises(InvalidAddress):
        lake.table("events").append(_rows("2024-01-02"))
    with _open(tmp_path, "moved") as lake:
        lake.table("events").append(_rows("2024-01-02"))
    assert (tmp_path / "moved" / HOME).is_file()


def test_a_damaged_mark_says_what_to_do(tmp_path):
    _filled(tmp_path)
    (tmp_path / "here").rename(tmp_path / "moved")
    for content in (b"", b"[]", b'{"lake": 7}', b"\xff"):
        (tmp_path / "moved" / HOME).write_bytes(content)
        with _open(tmp_path, "moved") as lake, pytest.raises(SegmentUnreadable, match="delete it"):
            lake.table("events").append(_rows("2024-01-02"))
    (tmp_path / "moved" / HOME).unlink()
    with _open(tmp_path, "moved") as lake:
        lake.table("events").append(_rows("2024-01-02"))


def test_a_recovered_catalog_is_the_same_lake(tmp_path):
    _filled(tmp_path)
    with _open(tmp_path, "here") as lake:
        lake.export()
    lakehouse.recover(tmp_path / "here", f"sqlite:///{tmp_path}/new.db")
    with _open(tmp_path, "here", "new.db") as lake:
        lake.table("events").append(_rows("2024-01-02"))
        assert lake.table("events").count() == 2


def test_of_two_lakes_that_begin_in_one_warehouse_one_has_it(tmp_path):
    lakes = [_open(tmp_path, "here", f"{name}.db") for name in "ab"]
    both = Barrier(2)

    def begin(number: int) -> bool:
        both.wait()
        try:
            lakes[number].create_table("events", "at TIMESTAMP, n BIGINT", time="at")
        except InvalidAddress:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(begin, range(2))) == [False, True]
    for lake in lakes:
        lake.close()


@pytest.mark.parametrize(("warehouse", "status"), [("here", "ok"), ("there", "fail")])
def test_doctor_says_whether_the_warehouse_is_the_lakes(tmp_path, warehouse, status):
    _filled(tmp_path)
    (found,) = check_home(f"sqlite:///{tmp_path}/catalog.db", str(tmp_path / warehouse))
    assert (found.subject, found.status) == ("lake", status)


def test_doctor_says_nothing_of_what_is_not_there(tmp_path):
    assert not list(check_home(f"sqlite:///{tmp_path}/catalog.db", str(tmp_path / "here")))
    assert not (tmp_path / "catalog.db").exists()


def test_reading_a_copy_needs_no_mark(tmp_path):
    _filled(tmp_path)
    shutil.copytree(tmp_path / "here", tmp_path / "copy", ignore=shutil.ignore_patterns("_catalog"))
    with _open(tmp_path, "copy") as lake:
        assert lake.table("events").count() == 1
        assert lake.table("events").scan().to_arrow().num_rows == 1
