"""A data file that is missing, short or no Parquet: the read fails and names it, or says what it left out."""

from __future__ import annotations

import random
import stat

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakehouse
from lakehouse.errors import PartialRead, SegmentUnreadable
from lakehouse.testing.rows import SCHEMA, arrow, values


@pytest.fixture
def table(sqlite_url, warehouse):
    """Three days of rows, a file a day."""
    with lakehouse.connect(sqlite_url, str(warehouse)) as lake:
        table = lake.create_table("flights", SCHEMA, time="time", cluster_by=("client",))
        table.append(arrow([(f"2013-01-{day:02d}", "a", day) for day in (4, 5, 6)]))
        yield table


@pytest.fixture
def victim(table, warehouse):
    """The file of the fifth of January."""
    (segment,) = table.segments(interval="2013-01-05")
    return warehouse / segment.path


def remove(path):
    path.unlink()


def empty(path):
    path.write_bytes(b"")


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-20])


def cut_to_the_footer(path):
    path.write_bytes(path.read_bytes()[-100:])


def lengthen(path):
    path.write_bytes(path.read_bytes() + b"more")


def garbage(path):
    path.write_bytes(random.Random(1).randbytes(path.stat().st_size))


def garbage_inside(path):
    data = bytearray(path.read_bytes())
    data[4:60] = random.Random(1).randbytes(56)
    path.write_bytes(data)


def garbage_footer(path, seed=1):
    data = bytearray(path.read_bytes())
    data[-60:-8] = random.Random(seed).randbytes(52)
    path.write_bytes(data)


def zeros(path):
    path.write_bytes(bytes(path.stat().st_size))


def a_folder(path):
    path.unlink()
    path.mkdir()


DAMAGE = [remove, empty, cut_short, cut_to_the_footer, lengthen, garbage, garbage_footer, zeros, a_folder]
NAMES = [damage.__name__ for damage in DAMAGE]


@pytest.mark.parametrize("damage", DAMAGE, ids=NAMES)
def test_a_damaged_file_fails_the_read_and_is_named(table, victim, damage):
    damage(victim)
    for read in (table.scan().to_arrow, table.scan().to_pandas, table.scan(columns=["value"]).to_arrow):
        with pytest.raises(SegmentUnreadable, match=victim.name) as caught:
            read()
        assert str(caught.value.path).endswith(victim.name)


@pytest.mark.parametrize("damage", DAMAGE, ids=NAMES)
def test_a_read_that_does_not_need_the_file_succeeds(table, victim, damage):
    damage(victim)
    assert values(table, interval="2013-01-04") == [4]
    assert values(table, where="value = 6") == [6]


@pytest.mark.parametrize("damage", DAMAGE, ids=NAMES)
def test_best_effort_returns_the_rest_and_says_what_is_missing(table, victim, damage):
    damage(victim)
    scan = table.scan(best_effort=True)
    with pytest.warns(PartialRead, match=victim.name):
        found = scan.to_arrow()
    assert sorted(found.column("value").to_pylist()) == [4, 6]
    assert len(scan.missing) == 1
    assert str(scan.missing[0]).endswith(victim.name)


def test_best_effort_never_fails_on_what_it_is_there_to_leave_out(table, victim):
    # A few of a hundred such footers can still be decoded, and one of these then fails while rows are read.
    sound = victim.read_bytes()
    for seed in range(300):
        victim.write_bytes(sound)
        garbage_footer(victim, seed)
        with pytest.warns(PartialRead, match=victim.name):
            assert table.scan(best_effort=True).to_arrow().num_rows == 2
    victim.write_bytes(sound)
    garbage_inside(victim)
    with pytest.warns(PartialRead, match=victim.name):
        assert table.scan(best_effort=True).to_arrow().num_rows == 2


def test_best_effort_is_silent_when_nothing_is_missing(table):
    scan = table.scan(best_effort=True)
    assert sorted(scan.to_arrow().column("value").to_pylist()) == [4, 5, 6]
    assert list(scan.missing) == []


def test_every_missing_file_is_said(table, warehouse):
    for segment in table.segments():
        (warehouse / segment.path).unlink()
    scan = table.scan(best_effort=True)
    with pytest.warns(PartialRead):
        assert scan.to_arrow().num_rows == 0
    assert len(scan.missing) == 3


def test_pages_of_garbage_fail_the_read_or_its_process_never(table, victim):
    garbage_inside(victim)
    try:
        found = table.scan().to_arrow()
    except SegmentUnreadable as error:
        assert victim.name in str(error)  # noqa: PT017 - what cannot be distinguished from data must not crash either
    else:
        assert found.num_rows == 3


def test_a_parquet_file_of_other_columns_is_no_segment(table, victim):
    pq.write_table(pa.table({"other": [1]}), victim)
    with pytest.raises(SegmentUnreadable, match=victim.name):
        table.scan().to_arrow()


def test_a_count_is_never_wrong_silently(table, victim):
    victim.unlink()
    try:
        counted = table.scan(where="value > 0").count()
    except SegmentUnreadable as error:
        assert victim.name in str(error)  # noqa: PT017
    else:
        assert counted == 3


@pytest.mark.parametrize("damage", [remove, cut_short, garbage], ids=["remove", "cut_short", "garbage"])
def test_a_compaction_of_a_damaged_file_commits_nothing(table, victim, damage):
    for value in range(4):
        table.append(arrow([("2013-01-05", "a", 50 + value)]))
    version = table.version
    damage(victim)
    with pytest.raises(SegmentUnreadable, match=victim.name):
        table.compact()
    assert table.version == version
    assert table.locks() == []


def test_a_damaged_file_does_not_stop_a_replace_or_a_restore(table, victim):
    version = table.version
    victim.unlink()
    table.replace(arrow([("2013-01-05", "a", 50)]), "2013-01-05")
    assert values(table) == [4, 6, 50]
    with pytest.raises(SegmentUnreadable, match=victim.name):
        values(table, as_of=version)


def test_a_warehouse_that_cannot_be_written_fails_the_write_and_commits_nothing(sqlite_url, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(lakehouse.LakehouseError, match="file"):
        attempt_append(sqlite_url, tmp_path / "file")
    (tmp_path / "inside").mkdir()
    with pytest.raises(lakehouse.LakehouseError, match="file"):
        attempt_append(sqlite_url, tmp_path / "file" / "inside")


def attempt_append(url, place):
    with lakehouse.connect(url, str(place)) as lake:
        table = lake.create_table("flights", SCHEMA, time="time", if_not_exists=True)
        try:
            table.append(arrow([("2013-01-05", "a", 1)]))
        finally:
            assert table.log() == []
            assert table.locks() == []


@pytest.mark.parametrize("place", ["ftp://host/lake", "http://example.org/lake", "hdfs:///lake", ""], ids=str)
def test_a_warehouse_that_is_not_supported_is_refused_with_what_is(sqlite_url, place, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    if place:
        with pytest.raises(lakehouse.InvalidInput, match=place[:4]):
            lakehouse.connect(sqlite_url, place)
    else:
        lakehouse.connect(sqlite_url, place).close()


def test_files_are_durable_and_private_to_the_operations_folder(table, warehouse):
    operation = table.begin_append()
    operation.write(arrow([("2013-01-05", "a", 7)]))
    commit = operation.commit()
    (segment,) = [one for one in table.segments() if one.ordinal == commit.version]
    parts = segment.path.split("/")
    assert len(parts) >= 3
    assert parts[1].replace("-", "") == operation.id.replace("-", "")
    assert stat.S_ISREG((warehouse / segment.path).stat().st_mode)
