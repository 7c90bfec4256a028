"""Collect: exactly what nothing can reach is deleted, whatever fails meanwhile."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import text

import lakehouse
from lakehouse.catalog.store.database import Database
from lakehouse.errors import InternalError, LakehouseError, LockLost, SegmentUnreadable, StorageUnavailable
from lakehouse.lake import Lake
from lakehouse.storage import files as storage_files
from lakehouse.testing import behind, faults
from lakehouse.testing.rows import SCHEMA, arrow, many, values

DAY = "2013-01-05"


def stored(warehouse: Path) -> set[str]:
    return {path.relative_to(warehouse).as_posix() for path in warehouse.rglob("*") if path.is_file()}


def reachable(*tables) -> set[str]:
    """Every file that some version of a table needs."""
    return {
        segment.path
        for table in tables
        for version in [table.version, *(commit.version for commit in table.log())]
        for segment in table.segments(as_of=version)
    }


def replaced(table, count=4):
    """A table each version of which replaced the one before."""
    return [table.replace(arrow([(DAY, "a", n)]), DAY).version for n in range(count)]


def clean_up(lake):
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)


def test_files_of_forgotten_segments_go_after_the_grace(lake, table, warehouse):
    replaced(table)
    before = stored(warehouse)
    expired = lake.expire(keep_last=1)
    assert stored(warehouse) == before
    assert lake.collect().files == 0
    foreseen = lake.collect(grace_seconds=0, dry_run=True)
    assert stored(warehouse) == before
    collected = lake.collect(grace_seconds=0)
    assert collected == foreseen
    assert (collected.files, collected.bytes) == (3, expired.bytes)
    assert stored(warehouse) == reachable(table)
    assert lake.collect(grace_seconds=0).files == 0
    assert values(table) == [3]
    assert lake.check().is_sound


def test_what_a_tag_or_a_restore_reaches_stays(lake, table, warehouse):
    versions = replaced(table)
    lake.tag("kept", versions[1])
    lake.expire(keep_last=1)
    table.restore("kept")
    lake.untag("kept")
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    assert values(table) == [1]
    assert stored(warehouse) == reachable(table)


def test_an_aborted_operation_leaves_nothing_and_a_living_one_keeps_all(lake, table, warehouse):
    table.append(arrow([(DAY, "a", 1)]))
    lost, living = table.begin_append(), table.begin_append()
    for operation in (lost, living):
        operation.write(arrow([(DAY, "a", 2)]))
    lake.catalog.abort(lost.begun)  # as one whose process died before it could delete
    assert lake.collect(grace_seconds=0).operations == 1
    assert not any(lost.id in path for path in stored(warehouse))
    living.commit()
    assert values(table) == [1, 2]
    assert stored(warehouse) == reachable(table)
    assert lake.collect(grace_seconds=0).operations == 0


def test_a_writer_far_slower_than_the_grace_loses_nothing(connect, table, warehouse):
    lake = connect(lease_seconds=1.5)
    slow = lake.table("flights").begin_append()
    for turn in range(5):
        slow.write(arrow([(DAY, "a", turn)]))
        threading.Event().wait(0.6)
        Lake(table.session).expire(keep_last=1)
        assert Lake(table.session).collect(grace_seconds=0.1).operations == 0
    slow.commit()
    assert values(table) == list(range(5))


def test_one_lease_that_ran_out_takes_no_other_operation_with_it(connect, lake, table, warehouse):
    stopped = connect(lease_seconds=0.2)
    zombie = stopped.table("flights").begin_append()
    stopped.session.heartbeat.close()
    living = connect(lease_seconds=5.0).table("flights").begin_append()
    for operation in (zombie, living):
        operation.write(arrow([(DAY, "a", 1)]))
    threading.Event().wait(0.5)
    assert lake.collect(grace_seconds=0, dry_run=True).operations == 1
    collected = lake.collect(grace_seconds=0)
    assert (collected.operations, collected.files) == (1, 1)
    zombie.write(arrow([(DAY, "a", 2)]))  # it does not know yet
    assert any(zombie.id in path for path in stored(warehouse))
    with pytest.raises(LockLost):
        zombie.commit()
    zombie.abort()
    assert not any(zombie.id in path for path in stored(warehouse))
    living.commit()
    assert values(table) == [1]
    assert lake.check().is_sound


def test_a_lease_that_ran_out_within_the_grace_is_waited_for(connect, lake, table):
    stopped = connect(lease_seconds=0.1)
    late = stopped.table("flights").begin_append()
    stopped.session.heartbeat.close()
    late.write(arrow([(DAY, "a", 1)]))
    threading.Event().wait(0.3)
    assert lake.collect(grace_seconds=60).operations == 0
    late.commit()
    assert values(table) == [1]


def test_clean_up_after_a_conflict_touches_no_live_file(lake, table, warehouse):
    for n in range(4):
        table.append(arrow([(DAY, "a", n)]))
    compaction = table.begin_compaction()
    compaction.run()
    table.replace(arrow([(DAY, "b", 9)]), DAY)
    with pytest.raises(LockLost):
        compaction.commit()
    compaction.abort()
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    assert values(table) == [9]
    assert stored(warehouse) == reachable(table)


def test_what_was_dropped_and_written_again_is_there(lake, table, warehouse):
    batch = arrow([(DAY, "a", 1)])
    table.append(batch)
    table.replace(None, DAY)
    table.append(batch)
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    assert values(table) == [1]
    assert stored(warehouse) == reachable(table)


@pytest.mark.parametrize("point", ["expire.recorded", "expire.forgotten", "collect.marked", "collect.before_delete",
                                   "collect.after_delete"])  # fmt: skip
def test_a_failure_anywhere_is_made_good_by_the_next_run(lake, table, warehouse, point):
    replaced(table)
    lost = table.begin_append()
    lost.write(arrow([(DAY, "a", 7)]))
    lake.catalog.abort(lost.begun)
    with faults.armed({point: faults.fail()}), pytest.raises(faults.Injected):
        clean_up(lake)
    assert values(table) == [3]
    assert reachable(table) <= stored(warehouse)
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    assert stored(warehouse) == reachable(table)
    assert lake.check().is_sound


def test_a_catalog_that_fails_deletes_nothing(lake, table, warehouse, monkeypatch):
    replaced(table)
    lake.expire(keep_last=1)
    lost = table.begin_append()
    lost.write(arrow([(DAY, "a", 7)]))
    lake.catalog.abort(lost.begun)
    before = stored(warehouse)
    run = Database.run
    for failing in range(1, 4):
        calls = iter(range(1, 100))

        def unreliable(self, work, failing=failing, calls=calls, **options):
            if next(calls) == failing:
                raise lakehouse.CatalogUnavailable("gone")
            return run(self, work, **options)

        with monkeypatch.context() as patch:
            patch.setattr(Database, "run", unreliable)
            with pytest.raises(lakehouse.CatalogUnavailable):
                lake.collect(grace_seconds=0)
        gone = before - stored(warehouse)
        assert gone == set() if failing < 3 else all(lost.id in path for path in gone)
    lake.collect(grace_seconds=0)
    assert stored(warehouse) == reachable(table)


def test_a_file_that_cannot_be_deleted_is_not_struck_off(lake, table, warehouse, monkeypatch):
    replaced(table)
    lake.expire(keep_last=1)

    def refuse(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(storage_files.Path, "unlink", refuse)
        with pytest.raises(StorageUnavailable, match="Permission denied"):
            lake.collect(grace_seconds=0)
    assert lake.collect(grace_seconds=0).files == 3


def test_a_warehouse_that_is_not_there_strikes_nothing_off(lake, table, warehouse):
    table.begin_append().abort()
    assert lake.collect(grace_seconds=0).operations == 0
    replaced(table)
    lake.expire(keep_last=1)
    warehouse.rename(warehouse.parent / "unmounted")
    with pytest.raises(StorageUnavailable, match="mount"):
        lake.collect(grace_seconds=0)
    (warehouse.parent / "unmounted").rename(warehouse)
    assert lake.collect(grace_seconds=0).files == 3


def test_a_listed_file_that_a_segment_needs_is_never_deleted(lake, table, warehouse):
    table.append(arrow([(DAY, "a", 1)]))
    (path,) = [segment.path for segment in table.segments()]
    insert = text("INSERT INTO garbage (table_id, path, marked_us) VALUES (:table, :path, 0)")
    behind.change(lake.catalog, insert, table=table.spec.id, path=path)
    for dry_run in (True, False):
        with pytest.raises(InternalError, match="nothing was deleted"):
            lake.collect(grace_seconds=0, dry_run=dry_run)
    assert values(table) == [1]


def test_many_collections_at_once_delete_each_file_once(lake, table, connect, warehouse):
    replaced(table, 12)
    lake.expire(keep_last=1)
    lost = [table.begin_append() for _ in range(3)]
    for operation in lost:
        operation.write(arrow([(DAY, "a", 7)]))
        lake.catalog.abort(operation.begun)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            there = connect()
            there.expire(keep_last=1)
            there.collect(grace_seconds=0)
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert stored(warehouse) == reachable(table)
    assert lake.check().is_sound


SPELLINGS = {
    "double slash": lambda path: f"{path.parent}//{path.name}",
    "slash at the end": lambda path: f"{path}/",
    "link": lambda path: str(_link(path)),
    "uri": lambda path: path.as_uri(),
    "escaped uri": lambda path: "file://" + quote(str(path)).replace(path.name[0], f"%{ord(path.name[0]):02x}"),
    "dots": lambda path: f"{path}/../{path.name}",
}


def _link(path: Path) -> Path:
    link = path.parent / "Elsewhere"
    if not link.is_symlink():
        link.symlink_to(path)
    return link


@pytest.mark.parametrize("first", SPELLINGS)
def test_no_spelling_of_the_warehouse_makes_a_live_file_unknown(sqlite_url, tmp_path, first):
    place = tmp_path / "Ware House%20"
    place.mkdir()
    with lakehouse.connect(sqlite_url, SPELLINGS[first](place)) as lake:
        versions = replaced(lake.create_table("t", SCHEMA, time="time"))
    for spelling in SPELLINGS.values():
        with lakehouse.connect(sqlite_url, spelling(place)) as lake:
            table = lake.table("t")
            table.replace(arrow([(DAY, "a", 50)]), DAY)
            lake.expire(keep_last=2)
            lake.collect(grace_seconds=0)
            assert lake.check().is_sound
            assert stored(place) == reachable(table)
            assert values(table) == [50]
    assert versions


def test_an_unknown_commit_keeps_every_file(lake, table, warehouse):
    """The answer to COMMIT was lost; the writer gives up; what was committed stays."""
    operation = table.begin_append()
    operation.write(arrow([(DAY, "a", 1)]))
    lake.catalog.commit([operation.contribution()])
    operation.abort()
    lake.collect(grace_seconds=0)
    assert values(table) == [1]
    assert stored(warehouse) == reachable(table)


def test_a_file_that_is_lost_fails_the_read_and_is_found(lake, table, warehouse):
    table.append(many(10, start=DAY))
    (segment,) = table.segments()
    os.truncate(warehouse / segment.path, segment.bytes - 1)
    with pytest.raises(SegmentUnreadable):
        table.scan().to_arrow()
    assert [(one.kind, one.subject) for one in lake.check().findings] == [("short", segment.path)]


def test_a_grace_that_cannot_be_is_refused(lake):
    for grace in (-1, "1h", float("nan"), None):
        with pytest.raises(LakehouseError):
            lake.collect(grace_seconds=grace)
