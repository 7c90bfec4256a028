"""The catalog holds a checksum of every file that it names, and whoever has to be sure of bytes compares them."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
import xxhash
from sqlalchemy import text, update

from lakehouse.admin.recover import recover
from lakehouse.catalog.store.models import segment as segment_rows
from lakehouse.catalog.store.models import segment_summary, tombstone
from lakehouse.core.checksum import content_of, shown
from lakehouse.errors import InvalidInput, SegmentUnreadable
from lakehouse.operations.summarize import build_indexes, build_statistics
from lakehouse.testing import behind
from lakehouse.testing.campaign.flips import changed
from lakehouse.testing.rows import KEYED, arrow, many, values

DAY = "2013-01-05"


@pytest.fixture
def table(lake):
    return lake.create_table(
        "flights", KEYED, time="time", cluster_by={"client": 8}, primary_key="value", properties={"index": "value"}
    )


def flip(path, at, bit=4):
    """Flip one bit of a file, for good."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << bit
    path.write_bytes(content)


def stored(lake):
    """Of every file that the catalog names its path and checksum."""
    return {one.path: one.checksum for one in lake.catalog.checks().files()}


def fill(lake, table):
    """Files of every kind: of appends, a merge, an update, an erasure, a large set, and an index."""
    for n in range(4):
        table.append(many(10, value=n * 10))
    table.compact()
    table.append(many(20_000, start="2013-01-06", value=1000))
    table.update({"client": "'z'"}, "value = 4")
    table.delete("value % 3 = 1 AND value > 1000")
    lake.maintain()
    table.erase("value = 9")
    lake.maintain()
    scattered = np.random.default_rng(3).integers(1 << 20, 1 << 60, 9_000)
    table.upsert(many(9_000, start="2013-01-07").set_column(2, KEYED.field("value"), [scattered]))


def test_every_file_has_the_checksum_of_its_bytes(lake, table, warehouse):
    fill(lake, table)
    found = stored(lake)
    kinds = {path.rsplit(".", 1)[1] for path in found}
    assert kinds >= {"parquet", "keys", "index"}
    for path, checksum in found.items():
        assert content_of(checksum) == xxhash.xxh3_128_digest((warehouse / path).read_bytes())
    for one in table.segments():
        assert one.checksum == found[one.path]
        assert shown(one.checksum).startswith("xxh3:")
    assert lake.check(deep=True).findings == []
    assert lake.check().unsummed == 0


def test_a_footer_names_the_place_of_its_file(lake, table, warehouse):
    fill(lake, table)
    for one in table.segments():
        held = pq.read_metadata(warehouse / one.path).metadata
        named = "/".join(held[f"lakehouse.{what}".encode()].decode() for what in ("table", "operation", "file"))
        assert named == one.path


@pytest.mark.parametrize("kind", ["parquet", "keys", "index"])
def test_a_flip_in_any_kind_of_file_is_found_by_a_deep_check(lake, table, warehouse, kind):
    fill(lake, table)
    path = next(path for path in sorted(stored(lake)) if path.endswith(kind))
    flip(warehouse / path, 100)
    assert lake.check().findings == []
    problems = [(one.kind, one.subject) for one in lake.check(deep=True).findings]
    assert ("content", path) in problems


def test_checksums_travel_with_an_export_and_a_restore(lake, table, warehouse, tmp_path):
    fill(lake, table)
    table.restore(lake.head - 1)
    lake.export()
    known = {one.path: one.checksum for one in table.segments()}
    assert all(known.values())
    recover(warehouse, f"sqlite:///{tmp_path}/new.db")
    import lakehouse  # noqa: PLC0415 - for the catalog that was recovered

    with lakehouse.connect(f"sqlite:///{tmp_path}/new.db", warehouse) as again:
        assert {one.path: one.checksum for one in again.table("flights").segments()} == known
        assert all(stored(again).values())
        assert {one.kind for one in again.check(deep=True).findings} == {"unknown"}


def forget_checksums(lake):
    """Make a catalog what it was before there were checksums."""

    behind.change(
        lake.catalog,
        *(update(of).values(checksum=None) for of in (segment_rows, tombstone, segment_summary)),
        text("DELETE FROM key_frame"),
        text("UPDATE bin SET frame_version = NULL"),
    )


def test_files_of_an_older_release_are_read_by_their_size_and_get_checksums_when_asked(lake, connect, table, warehouse):
    fill(lake, table)
    known = stored(lake)
    forget_checksums(lake)
    other = connect()
    seen = other.table("flights")
    assert not any(one.checksum for one in seen.segments())
    rows = values(seen)
    for verify in ("pages", "content"):
        seen.set_properties({"verify": verify})
        assert values(seen) == rows
    seen.compact()
    assert other.check().unsummed > 0
    lost = next(path for path in sorted(stored(other)) if path.endswith("parquet") and not stored(other)[path])
    kept = (warehouse / lost).read_bytes()
    (warehouse / lost).write_bytes(kept[:-1])
    assert other.check(deep=True, add_checksums=True).unsummed == 1
    (warehouse / lost).write_bytes(kept)
    assert other.check(deep=True, add_checksums=True).unsummed == 0
    found = {path: checksum for path, checksum in stored(other).items() if path in known}
    assert {path: content_of(one) for path, one in found.items()} == {path: content_of(known[path]) for path in found}
    again = connect().table("flights")
    assert all(one.checksum for one in again.segments())
    assert values(again) == rows
    assert other.check(deep=True).findings == []


def test_two_files_of_one_size_that_were_swapped_are_found(lake, table, warehouse):
    first, second = (table.append(arrow([(DAY, "a", n)])) for n in (1, 2))
    assert first.version < second.version
    one, two = (warehouse / segment.path for segment in table.segments())
    assert one.stat().st_size == two.stat().st_size
    held = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(held)
    for verify in ("pages", "content"):
        table.set_properties({"verify": verify})
        with pytest.raises(SegmentUnreadable, match="not what was written"):
            values(table)
    assert len([one for one in lake.check(deep=True).findings if one.kind == "content"]) == 2
    forget_checksums(lake)
    with pytest.raises(SegmentUnreadable):
        table.compact()
    problems = [one.problem for one in lake.check(deep=True).findings if one.kind == "rows"]
    assert len(problems) == 2
    assert all("the file is another one" in problem for problem in problems)


def test_whatever_is_made_of_rows_is_made_of_what_was_written(lake, table, warehouse):
    table.append(many(20, value=0))
    table.append(many(20, value=100))
    head = lake.head
    ids = [one.id for one in table.segments()]
    source = many(1, value=3)
    with changed(warehouse / table.segments()[0].path, {40: 1}):
        for work in (
            table.compact,
            lambda: table.update({"client": "'z'"}, "value = 3"),
            lambda: table.delete("value = 3"),
            lambda: table.merge(source, on="target.value = source.value", when_matched_delete=True),
            lambda: table.erase("value = 3"),
            lambda: build_indexes(lake.session, table.spec, ids),
            lambda: build_statistics(lake.session, table.spec, ids),
        ):
            with pytest.raises(SegmentUnreadable, match="not what was written"):
                work()
        assert lake.head == head
        version = table.upsert(many(1, value=3)).version
        with pytest.raises(SegmentUnreadable, match="not what was written"):
            table.resolve()
        assert lake.head == version
    assert len(values(table)) == 40
    table.compact()
    assert len(values(table)) == 40


def test_a_task_of_the_service_fails_with_the_file_and_commits_nothing(lake, table, warehouse):
    for n in range(10):
        table.append(many(5, value=10 * n))
    rows = values(table)
    path = table.segments()[3].path
    with changed(warehouse / path, {40: 1}):
        lake.maintain()
        assert any(path in (one.error or "") and "not what was written" in one.error for one in lake.tasks())
        assert "compact" not in {one.operation for one in lake.log()}
    assert values(table) == rows


def test_a_level_that_there_is_not_is_refused(lake, table):
    with pytest.raises(InvalidInput, match="size, pages, content"):
        table.set_properties({"verify": "all"})
    assert table.spec.verify == "size"
