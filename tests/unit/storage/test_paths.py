"""Where the warehouse is, and that a stored path cannot leave it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse.core.segment import Segment
from lakehouse.errors import InvalidInput, SegmentUnreadable
from lakehouse.storage.files import Folder
from lakehouse.storage.paths import Locator, warehouse_path
from lakehouse.storage.verify import check_files, verified


def test_spellings_of_one_folder_give_one_path(tmp_path: Path) -> None:
    folder = tmp_path / "my lake"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    spellings = [
        str(folder),
        f"{folder}/",
        f"{tmp_path}//my lake//",
        f"{tmp_path}/x/../my lake",
        str(tmp_path / "link"),
        f"file://{tmp_path}/my%20lake/",
        f"file://localhost{tmp_path}/my%20lake",
        f"file:{tmp_path}/my%20lake",
    ]
    assert {warehouse_path(one) for one in spellings} == {folder}


def test_a_path_is_taken_literally_and_only_a_uri_is_decoded(tmp_path: Path) -> None:
    assert warehouse_path(f"{tmp_path}/a%20b") == tmp_path / "a%20b"
    assert warehouse_path(f"file://{tmp_path}/a%2520b") == tmp_path / "a%20b"


@pytest.mark.parametrize("location", ["s3://bucket/lake", "hdfs://host/lake", "file://host/lake", "", "a\x00b"])
def test_a_warehouse_that_is_no_local_folder_is_refused(location: str) -> None:
    with pytest.raises(InvalidInput, match=r"path|local folder"):
        warehouse_path(location)


def test_a_warehouse_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidInput, match="name a folder"):
        warehouse_path(tmp_path / "file")


@pytest.mark.parametrize(
    "stored",
    ["../x", "a/../../x", "/etc/passwd", "a/..", "..", "", "a/", "a\\..\\x", "a/b\x00c", "a/../../w2/x"],
)
def test_a_stored_path_cannot_leave_the_warehouse(tmp_path: Path, stored: str) -> None:
    with pytest.raises(SegmentUnreadable, match="leaves the warehouse"):
        Locator(tmp_path / "warehouse").file(stored)


def test_a_link_inside_the_warehouse_cannot_lead_out_of_it(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "rows.parquet").write_text("x")
    (warehouse / "table").symlink_to(tmp_path / "secret")
    with pytest.raises(SegmentUnreadable, match="leaves the warehouse"):
        Locator(warehouse).file("table/rows.parquet")
    (warehouse / "table").unlink()
    (warehouse / "table").mkdir()
    (warehouse / "table" / "rows.parquet").symlink_to(tmp_path / "secret" / "rows.parquet")
    with pytest.raises(SegmentUnreadable, match="not a plain file"):
        verified(Folder(warehouse), [_segment("table/rows.parquet", 1)])


def test_files_that_are_missing_or_of_another_size_are_all_named(tmp_path: Path) -> None:
    for name, size in {"good": 5, "short": 4, "long": 6}.items():
        (tmp_path / name).write_bytes(b"x" * size)
    segments = [_segment(name, 5) for name in ("good", "short", "long", "absent")]
    files, errors = check_files(Folder(tmp_path), segments)
    assert files == {"good": tmp_path / "good"}
    assert [Path(error.path).name for error in errors] == ["short", "long", "absent"]
    with pytest.raises(SegmentUnreadable, match=r"cut short.*others=2") as caught:
        verified(Folder(tmp_path), segments)
    assert caught.value.path == str(tmp_path / "short")


def _segment(path: str, size: int) -> Segment:
    return Segment(id=path, start="2013-01-05", end="2013-01-06", ordinal=1, rows=1, bytes=size, path=path)
