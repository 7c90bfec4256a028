"""Durable writes and deletion of exactly what is named."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from lakehouse.errors import InternalError, SegmentUnreadable
from lakehouse.storage import files


def test_every_new_folder_is_made_durable_in_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = _watch_fsync(monkeypatch)
    files.make_folder(tmp_path / "a" / "b")
    assert synced == [str(tmp_path), str(tmp_path / "a")]
    files.make_folder(tmp_path / "a" / "b")
    assert len(synced) == 2


def test_files_and_their_folders_are_flushed_once_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / folder / name for folder in ("x", "y") for name in ("1", "2")]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text("rows")
    synced = _watch_fsync(monkeypatch)
    files.sync_files(paths)
    assert sorted(synced[:4]) == sorted(map(str, paths))
    assert sorted(synced[4:]) == sorted({str(path.parent) for path in paths})


@pytest.mark.parametrize("nth", range(5))
def test_a_refused_fsync_fails_the_call_and_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    paths = [tmp_path / name for name in "abcd"]
    for path in paths:
        path.write_text("rows")
    calls: list[int] = []
    genuine = os.fsync

    def failing(handle: int) -> None:
        calls.append(handle)
        if len(calls) == nth + 1:
            raise OSError(errno.EIO, "Input/output error")
        genuine(handle)

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OSError, match="Input/output error"):
        files.sync_files(paths)
    assert len(calls) <= 5


def test_only_listed_files_are_deleted_and_folders_only_when_empty(tmp_path: Path) -> None:
    for name in ("t/op1/chunk=1/a", "t/op1/chunk=1/b", "t/op1/chunk=2/c", "t/op2/d"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("rows")
    assert files.Folder(tmp_path).delete(["t/op1/chunk=1/a", "t/op1/chunk=2/c", "t/op1/absent"]) == 2
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert left == ["t", "t/op1", "t/op1/chunk=1", "t/op1/chunk=1/b", "t/op2", "t/op2/d"]
    files.Folder(tmp_path).delete(["t/op1/chunk=1/b", "t/op2/d"])
    assert [path.name for path in tmp_path.rglob("*")] == ["t"]


def test_one_path_that_leaves_the_warehouse_stops_the_deletion_of_all(tmp_path: Path) -> None:
    (tmp_path / "warehouse" / "t").mkdir(parents=True)
    (tmp_path / "warehouse" / "t" / "a").write_text("rows")
    with pytest.raises(SegmentUnreadable):
        files.Folder(tmp_path / "warehouse").delete(["t/a", "../secret"])
    assert (tmp_path / "warehouse" / "t" / "a").exists()


def test_only_an_operations_own_folder_can_be_deleted_as_a_whole(tmp_path: Path) -> None:
    operation = f"t/{'0' * 32}"
    (tmp_path / operation / "chunk=1").mkdir(parents=True)
    (tmp_path / operation / "chunk=1" / "a").write_text("rows")
    for wrong in ("t", f"{operation}/chunk=1", "", "/", f"../{operation}", f"t/../{'0' * 32}"):
        with pytest.raises((InternalError, SegmentUnreadable)):
            files.Folder(tmp_path).delete_operation(wrong)
    files.Folder(tmp_path).delete_operation(operation)
    files.Folder(tmp_path).delete_operation(operation)
    assert [path.name for path in tmp_path.rglob("*")] == ["t"]


def test_a_link_in_place_of_an_operations_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "rows").write_text("rows")
    (tmp_path / "warehouse" / "t").mkdir(parents=True)
    (tmp_path / "warehouse" / "t" / ("0" * 32)).symlink_to(tmp_path / "precious")
    with pytest.raises(InternalError, match="link"):
        files.Folder(tmp_path / "warehouse").delete_operation(f"t/{'0' * 32}")
    assert (tmp_path / "precious" / "rows").exists()


def _watch_fsync(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    synced: list[str] = []
    genuine = os.fsync

    def watched(handle: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        genuine(handle)

    monkeypatch.setattr(os, "fsync", watched)
    return synced
