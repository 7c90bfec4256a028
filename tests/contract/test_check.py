"""Check: whatever is damaged is found, and only what was asked for is repaired."""

from __future__ import annotations

import logging
import os
import time

import pytest
from sqlalchemy import text

from lakehouse.catalog.store.models import bin, commit_table, delta, key_frame, lake, segment  # noqa: A004
from lakehouse.testing import behind
from lakehouse.testing.rows import arrow, values

DAY = "2013-01-05"


@pytest.fixture
def filled(lake, table):
    """Enough versions of two days for several key frames, a tombstone, and something forgotten."""
    for n in range(40):
        table.append(arrow([(DAY, "a", n), ("2013-01-06", "b", n)]))
    table.replace(None, ("2013-01-05T00:00", "2013-01-05T06:00"), keys={"client": "b"})
    table.replace(arrow([("2013-01-06", "c", 99)]), "2013-01-06")
    table.append(arrow([("2013-01-06", "c", 100)]))
    lake.tag("kept", table.log()[20].version)
    lake.expire(keep_last=2)
    lake.collect(grace_seconds=0)
    table.append(arrow([("2013-01-07", "c", 101)]))
    return table


def change(lake, statement, **values):
    behind.change(lake.catalog, statement, **values)
    lake.catalog.forget_remembered()


def kinds(checked):
    return {one.kind for one in checked.findings}


def test_a_sound_lake_has_no_findings(lake, filled):
    checked = lake.check()
    assert checked.findings == []
    assert checked.is_sound
    assert checked.segments == len(filled.segments()) + len(
        {one.id for one in filled.segments(as_of="kept")} - {one.id for one in filled.segments()}
    )
    assert checked.deltas
    assert checked.key_frames == len(filled.key_frames())
    assert "0 findings" in repr(checked)


def test_exports_are_no_findings_and_are_kept(lake, filled, warehouse):
    lake.export()
    kept = sorted((warehouse / "_catalog").rglob("*"))
    for path in kept:
        os.utime(path, (0, 0))
    checked = lake.check(delete_unknown=True)
    assert not checked.findings
    assert sorted((warehouse / "_catalog").rglob("*")) == kept


def test_missing_short_long_and_replaced_files_are_found(lake, filled, warehouse):
    first, second, third, fourth = [one.path for one in filled.segments()][:4]
    (warehouse / first).unlink()
    os.truncate(warehouse / second, 10)
    with (warehouse / third).open("ab") as file:
        file.write(b"more")
    (warehouse / fourth).unlink()
    (warehouse / fourth).mkdir()
    found = {one.subject: one.kind for one in lake.check().findings}
    assert found == {first: "missing", second: "short", third: "long", fourth: "unreadable"}


def test_unknown_files_are_found_and_deleted_only_if_asked_for_and_a_day_old(lake, filled, warehouse):
    operation = filled.begin_append()
    operation.write(arrow([(DAY, "a", 1)]))
    folder = (warehouse / filled.segments()[0].path).parent
    old, new, far = folder / "old.parquet", folder / "new.parquet", warehouse / "notes.txt"
    for path in (old, new, far):
        path.write_text("not known")
    yesterday = time.time() - 25 * 3600
    for path in (old, far):
        os.utime(path, (yesterday, yesterday))
    for segment_ in filled.segments():
        os.utime(warehouse / segment_.path, (yesterday, yesterday))
    names = sorted(path.relative_to(warehouse).as_posix() for path in (old, new, far))
    checked = lake.check()
    assert [(one.kind, one.subject) for one in checked.findings] == [("unknown", name) for name in names]
    assert old.exists()
    repaired = {one.subject: one.is_repaired for one in lake.check(delete_unknown=True).findings}
    assert repaired == {name: name.endswith("old.parquet") for name in names}
    assert (old.exists(), new.exists(), far.exists()) == (False, True, True)
    operation.commit()
    assert filled.scan().count() == 44


@pytest.mark.parametrize("place", ["first", "middle", "last", "all"])
def test_damaged_key_frames_are_found_and_reads_do_without_them(lake, filled, caplog, place):
    expected, old = values(filled), values(filled, as_of="kept")
    frames = behind.rows_of(lake.catalog, key_frame.select())
    for frame in frames:
        page = bytearray(frame.page)
        page[{"first": 0, "middle": len(page) // 2, "last": -1, "all": 0}[place]] ^= 4
        damaged = b"" if place == "all" else bytes(page)
        change(lake, key_frame.update().where(key_frame.c.page == frame.page), page=damaged)
    with caplog.at_level(logging.WARNING):
        assert (values(filled), values(filled, as_of="kept")) == (expected, old)
    assert f"flights, {DAY}" in caplog.text
    checked = lake.check()
    assert [(one.kind, one.is_repaired) for one in checked.findings] == [("key frame", False)] * len(frames)
    assert not checked.is_sound
    checked = lake.check(rebuild_key_frames=True)
    assert [(one.kind, one.is_repaired) for one in checked.findings] == [("key frame", True)] * len(frames)
    assert checked.is_sound
    assert lake.check().findings == []
    lake.catalog.forget_remembered()
    assert (values(filled), values(filled, as_of="kept")) == (expected, old)


def test_key_frames_that_are_all_lost_are_written_again(lake, table):
    for n in range(150):
        table.append(arrow([(DAY, "a", n)]))
    frames = [(frame.version, frame.entries) for frame in table.key_frames()]
    change(lake, key_frame.delete())
    change(lake, bin.update().values(frame_version=None, frame_entries=0))
    assert kinds(lake.check()) == {"bin"}
    assert lake.check(rebuild_key_frames=True).is_sound
    assert [(frame.version, frame.entries) for frame in table.key_frames()] == frames
    assert values(table) == list(range(150))


def test_whatever_a_catalog_says_wrongly_is_found(lake, filled):
    row = behind.rows_of(lake.catalog, delta.select().limit(1))[0]
    frame = key_frame.update().where(key_frame.c.version == filled.key_frames()[0].version)
    first, *_, last = behind.rows_of(lake.catalog, _FRESH)
    newest = commit_table.select().where(commit_table.c.version == lake.head)
    logged = behind.rows_of(lake.catalog, newest)[0]
    for kind, breaks, mends in (
        ("bin", bin.update().values(chain=bin.c.chain + 1), bin.update().values(chain=bin.c.chain - 1)),
        ("bin", bin.update().values(version=bin.c.version + 1), bin.update().values(version=bin.c.version - 1)),
        ("key frame", frame.values(entries=key_frame.c.entries + 1), frame.values(entries=key_frame.c.entries - 1)),
        ("delta", delta.delete().where(delta.c.entry == row.entry), delta.insert().values(**row._asdict())),
        ("log", LAKE.values(head=lake_head + 1, counter=lake_counter + 1),
         LAKE.values(head=lake_head - 1, counter=lake_counter - 1)),
        ("delta", segment.update().values(added_version=segment.c.added_version - 1),
         segment.update().values(added_version=segment.c.added_version + 1)),
        ("order", segment.update().values(ordinal=segment.c.ordinal + 1000),
         segment.update().values(ordinal=segment.c.ordinal - 1000)),
        ("order", segment.update().where(segment.c.id == last.id).values(first_row_id=first.first_row_id),
         segment.update().where(segment.c.id == last.id).values(first_row_id=last.first_row_id)),
        ("log", commit_table.delete().where(commit_table.c.version == logged.version),
         commit_table.insert().values(**logged._mapping)),
        ("delta", delta.insert().values(**{**row._mapping, "version": lake.head + 1}),
         delta.delete().where(delta.c.version == lake.head + 1)),
    ):  # fmt: skip
        change(lake, breaks)
        assert kind in kinds(lake.check()), breaks
        change(lake, mends)
        assert lake.check().findings == [], mends


_FRESH = segment.select().where(segment.c.has_row_ids.is_(False)).order_by(segment.c.first_row_id)
LAKE, lake_head, lake_counter = lake.update(), lake.c.head, lake.c.counter


def test_two_segments_of_one_file_are_found(lake, filled):
    one, other = filled.segments()[:2]
    change(lake, text("UPDATE segment SET path = :path, bytes = :bytes WHERE id = :id"),
           path=one.path, bytes=one.bytes, id=other.id)  # fmt: skip
    assert "shared" in kinds(lake.check())


def test_a_delta_whose_entry_is_gone_is_found(lake, filled):
    entry = filled.segments()[0].id
    change(lake, segment.delete().where(segment.c.id == entry))
    assert "delta" in kinds(lake.check())
