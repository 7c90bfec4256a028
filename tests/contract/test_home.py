"""A catalog knows its warehouse: a wrong address neither writes rows elsewhere nor forgets what is garbage."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.admin.doctor import check_home
from lakehouse.errors import InvalidAddress
from lakehouse.lake import Lake


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


def test_a_lake_without_rows_is_where_the_first_are_written(tmp_path):
    with _open(tmp_path, "here") as here, _open(tmp_path, "there") as there:
        here.create_table("events", "at TIMESTAMP, n BIGINT", time="at")
        here.session.require_home()
        there.table("events").append(_rows("2024-01-01"))
        with pytest.raises(InvalidAddress, match="not in this warehouse"):
            here.table("events").append(_rows("2024-01-01"))
        assert there.table("events").count() == 1


def test_a_warehouse_may_move(tmp_path):
    _filled(tmp_path)
    (tmp_path / "here").rename(tmp_path / "moved")
    with _open(tmp_path, "moved") as lake:
        lake.table("events").append(_rows("2024-01-02"))
        assert lake.table("events").count() == 2


def test_a_lost_file_does_not_keep_a_warehouse_from_moving(tmp_path):
    _filled(tmp_path)
    with _open(tmp_path, "here") as lake:
        lake.table("events").append(_rows("2024-01-02"))
        (tmp_path / "here" / lake.table("events").segments()[-1].path).unlink()
    (tmp_path / "here").rename(tmp_path / "moved")
    with _open(tmp_path, "moved") as lake:
        lake.table("events").append(_rows("2024-01-03"))


def test_a_recovered_catalog_has_its_warehouse_even_if_files_are_lost(tmp_path):
    _filled(tmp_path)
    with _open(tmp_path, "here") as lake:
        (lost,) = lake.table("events").segments()
        lake.export()
    (tmp_path / "here" / lost.path).unlink()
    lakehouse.recover(tmp_path / "here", f"sqlite:///{tmp_path}/new.db")
    with _open(tmp_path, "here", "new.db") as lake:
        lake.table("events").append(_rows("2024-01-02"))
    with _open(tmp_path, "there", "new.db") as lake, pytest.raises(InvalidAddress):
        lake.table("events").append(_rows("2024-01-02"))


@pytest.mark.parametrize(("warehouse", "status"), [("here", "ok"), ("there", "fail")])
def test_doctor_says_whether_the_warehouse_is_the_lakes(tmp_path, warehouse, status):
    _filled(tmp_path)
    (found,) = check_home(f"sqlite:///{tmp_path}/catalog.db", str(tmp_path / warehouse))
    assert (found.subject, found.status) == ("lake", status)


def test_doctor_says_nothing_of_what_is_not_there(tmp_path):
    assert not list(check_home(f"sqlite:///{tmp_path}/catalog.db", str(tmp_path / "here")))
    assert not (tmp_path / "catalog.db").exists()
