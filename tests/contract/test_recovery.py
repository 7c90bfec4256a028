"""A lost catalog is made again from an export and from footers; what neither holds is reported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text
from typer.testing import CliRunner

import lakehouse
from lakehouse.catalog.recovery.recover import ROW_GAP
from lakehouse.catalog.store.models import key_frame
from lakehouse.catalog.store.tables import metadata
from lakehouse.catalog.versions.log import GAP
from lakehouse.cli import app
from lakehouse.core.interval import to_utc
from lakehouse.errors import InvalidInput, SegmentUnreadable, TableNotFound, VersionNotFound
from lakehouse.storage.exports import EXPORTS
from lakehouse.testing import behind, faults
from lakehouse.testing.rows import SCHEMA, arrow, values, visible

EXPORT_AND_DIE = """
import sys, lakehouse
from lakehouse.testing import faults
with faults.armed({sys.argv[3]: faults.kill}):
    lakehouse.connect(*sys.argv[1:3]).export()
"""
PHASES = (Phase.explicit, Phase.generate)
"""A failing history is short enough to be read; making it shorter takes minutes."""
FIRST = to_utc("2013-01-05")


@pytest.fixture
def lose(catalog_url, tmp_path):
    """Lose the catalog's contents: on SQLite its file, on PostgreSQL its tables."""

    def now(*lakes: Any) -> None:
        for lake in lakes:
            lake.close()
        if catalog_url.startswith("sqlite"):
            for path in tmp_path.glob("catalog.db*"):
                path.unlink()
            return
        engine = create_engine(catalog_url.replace("postgresql://", "postgresql+psycopg://"))
        with engine.begin() as connection:
            metadata.drop_all(connection)
            connection.execute(text("DROP TABLE alembic_version"))
        engine.dispose()

    return now


@pytest.fixture
def recover(catalog_url, warehouse):
    """Recover, and check that nothing in the warehouse was changed by it."""

    def run(**options: Any) -> Any:
        before = listing(warehouse)
        found = lakehouse.recover(warehouse, catalog_url, **options)
        assert listing(warehouse) == before
        return found

    return run


def listing(warehouse: Path) -> dict[str, tuple[int, int]]:
    """Every file and folder below a warehouse with its length and time of change."""
    found = {}
    for path in [warehouse, *warehouse.rglob("*")]:
        status = path.lstat()
        found[str(path)] = (status.st_size, status.st_mtime_ns)
    return found


def state(table: Any, as_of: Any = None) -> Any:
    """All that a version of a table shows, but for which versions changed its chunks without a trace."""
    return (
        visible(table, as_of=as_of),
        [(one.id, one.path, one.ordinal, one.first_row_id, dict(one.min), dict(one.max), dict(one.nulls))
         for one in table.segments(as_of=as_of)],
        list(table.tombstones(as_of=as_of)),
        [replace(one, version=0) for one in table.chunks(as_of=as_of)],
        list(table.timeline(as_of=as_of).slices),
    )  # fmt: skip


def assert_sound(lake: Any) -> None:
    """The catalog agrees with itself and with what is stored; files that it does not know may lie about."""
    assert [one for one in lake.check().findings if one.kind != "unknown"] == []


def check_goes_on(lake: Any, table: Any) -> None:
    """Every kind of write works on, with numbers that nothing had before."""
    before = {one.id for one in table.segments()} | {one.id for one in table.tombstones()}
    rows = visible(table)
    late = FIRST + timedelta(days=40)
    commit = table.append(arrow([(late, "z", 1000), (late, "z", 1001)]))
    assert commit.version > GAP
    new = [one for one in table.segments() if one.id not in before]
    assert new
    assert all(one.first_row_id >= ROW_GAP and one.id > max(before, default=0) for one in new)
    assert visible(table) == sorted([*rows, (late, "z", 1000), (late, "z", 1001)])
    table.replace(None, (late, late + timedelta(hours=2)))
    assert visible(table) == rows
    table.append(arrow([(FIRST, "m", 2000)]))
    expected = visible(table)
    table.compact()
    assert visible(table) == expected
    assert_sound(lake)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "replace", "part", "keys", "compact", "restore", "tag", "wide"]), st.integers(0, 4)
    ),
    min_size=1,
    max_size=20,
)


NET_ZERO = [
    ("replace", 0), ("tag", 0), ("wide", 1), ("part", 1), ("tag", 0), ("replace", 2), ("part", 4), ("restore", 3),
    ("tag", 0), ("keys", 4), ("restore", 3),
]  # fmt: skip
"""Restores undo what lies between two tags, in bins of several sizes."""


def run(lake: Any, table: Any, step: str, number: int) -> None:
    day = FIRST + timedelta(days=number)
    match step:
        case "append":
            table.append(arrow([(day, "a", number), (day + timedelta(hours=7), "b", 2)]), txn=("feed", lake.head))
        case "wide":
            table.append(arrow([(day, "a", 7), (day + timedelta(days=9), "b", 8)]))
        case "replace":
            table.replace(arrow([(day, "a", 3)]), (day, day + timedelta(days=1)))
        case "part":
            table.replace(None, (day, day + timedelta(hours=6)))
        case "keys":
            table.replace(None, (day, day + timedelta(days=1)), keys={"client": "b"})
        case "compact":
            table.compact((day, day + timedelta(days=1)))
        case "restore":
            versions = [table.version, *(commit.version for commit in table.log())]
            table.restore(versions[number % len(versions)])
        case "tag":
            lake.tag(f"tag-{lake.head}")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("properties", [{}, {"ragged": "true"}], ids=["by chunk", "ragged"])
def test_the_head_and_every_tag_come_back(lake, connect, lose, recover, properties) -> None:
    @settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES)
    @given(steps=STEPS)
    @example(steps=NET_ZERO)
    def check(steps):
        old = connect()
        for name in old.tables():
            old.drop_table(name)
        table = old.create_table("flights", SCHEMA, time="time", cluster_by=("client",), properties=properties)
        created = old.head
        for step, number in steps:
            run(old, table, step, number)
        tags = [name for name, version in old.tags().items() if version >= created]
        old_tags = old.tags()
        head, states = old.head, {name: state(table, name) for name in tags}
        latest, log = state(table), list(old.log())
        exported = old.export()
        assert exported.version == head
        lose(old)
        found = recover()
        assert (found.version, found.missing, found.damaged, found.unknown) == (head, (), (), ())
        new = connect()
        again = new.table("flights")
        assert list(new.log())[1:] == [one for one in log if one.version in {head, *old_tags.values()}]
        assert state(again) == state(again, head) == latest
        assert_sound(new)
        assert {name: state(again, name) for name in tags} == states
        frames_are_derived(new, again, [None, *tags])
        check_goes_on(new, again)
        assert {name: state(again, name) for name in tags} == states

    check()


def frames_are_derived(lake: Any, table: Any, points: list[Any]) -> None:
    """The deltas alone say the same as the key frames."""
    before = [state(table, point) for point in points]
    behind.change_by(lake.catalog, forget)
    lake.catalog.forget_remembered()
    assert [state(table, point) for point in points] == before
    lake.check(rebuild_key_frames=True)
    assert_sound(lake)


def forget(connection: Any) -> None:
    connection.execute(key_frame.delete())
    connection.execute(text("UPDATE bin SET frame_version = NULL, frame_entries = 0"))


def test_marks_hold_and_lost_versions_are_refused(lake, table, connect, lose, recover) -> None:
    first = table.append(arrow([("2013-01-05", "a", 1)]), txn=("feed", 1))
    lake.export()
    lost = table.append(arrow([("2013-01-05", "a", 2)]), txn=("feed", 2))
    lose(lake)
    recover()
    again = connect().table("flights")
    assert again.append(arrow([("2013-01-05", "a", 1)]), txn=("feed", 1)).version == first.version
    assert values(again) == [1]
    assert values(again, as_of=first.version) == [1]
    with pytest.raises(VersionNotFound, match="lost"):
        again.scan(as_of=lost.version).to_arrow()
    assert again.append(arrow([("2013-01-05", "a", 2)]), txn=("feed", 2)).version > GAP
    assert values(again) == [1, 2]


def test_what_came_after_the_export_is_reported_and_can_be_adopted(lake, table, connect, lose, recover) -> None:
    table.append(arrow([("2013-01-05", "a", 1), ("2013-01-06", "a", 2)]))
    table.replace(arrow([("2013-01-05", "a", 3)]), "2013-01-05")
    lake.export()
    table.append(arrow([("2013-01-07", "a", 4), ("2013-01-08", "b", 5)]))
    table.replace(arrow([("2013-01-07", "a", 6)]), "2013-01-07")
    other = lake.create_table("late", SCHEMA, time="time", grain="month", cluster_by=("client",))
    other.append(arrow([("2013-02-05", "a", 7)]))
    open_operation = table.begin_append()
    open_operation.write(arrow([("2013-01-09", "a", 8)]))
    lose(lake)
    dry = recover(dry_run=True)
    assert [(one.table, one.files, one.rows, one.version) for one in dry.unknown] == [
        ("flights", 2, 2, None), ("flights", 1, 1, None), ("late", 1, 1, None), ("flights", 1, 1, None)
    ]  # fmt: skip
    assert (dry.superseded, dry.head, dry.tables) == (1, None, ("flights", "late"))
    assert (dry.unknown[0].start, dry.unknown[2].start) == (to_utc("2013-01-07"), to_utc("2013-02-05"))
    found = recover(adopt=True)
    assert all(one.version is not None for one in found.unknown)
    new = connect()
    assert values(new.table("flights")) == [2, 3, 4, 5, 6, 8]
    late = new.table("late")
    assert (values(late), late.grain, late.cluster_by) == ([7], other.grain, other.cluster_by)
    assert [one.operation for one in new.log(5)] == ["append", "append", "append", "append", "create"]
    check_goes_on(new, new.table("flights"))
    new.export()
    lose(new)
    second = recover(adopt=True)
    assert second.unknown == ()
    assert second.head > 2 * GAP - 1


def test_without_adopt_unknown_files_stay_out(lake, table, connect, lose, recover) -> None:
    table.append(arrow([("2013-01-05", "a", 1)]))
    lake.export()
    table.append(arrow([("2013-01-05", "a", 2)]))
    lose(lake)
    assert len(recover().unknown) == 1
    assert values(connect().table("flights")) == [1]


def test_without_an_export_tables_come_from_footers(lake, table, connect, lose, recover) -> None:
    table.append(arrow([("2013-01-05", "a", 1), ("2013-01-05", "b", 2)]))
    table.append(arrow([("2013-01-05", "a", 3)]))
    table.compact()
    lake.rename_table("flights", "trips")
    lake.table("trips").append(arrow([("2013-01-06", "a", 4)]))
    lose(lake)
    found = recover(adopt=True)
    assert (found.export, found.tables) == (None, ("trips",))
    again = connect().table("trips")
    assert values(again) == [1, 1, 2, 2, 3, 3, 4]  # the compaction's inputs and its outputs
    assert again.cluster_by == table.cluster_by
    again.append(arrow([("2013-01-06", "a", 5)]))
    assert values(again) == [1, 1, 2, 2, 3, 3, 4, 5]


def test_without_an_export_and_without_adopt_tables_are_empty(lake, table, connect, lose, recover) -> None:
    table.append(arrow([("2013-01-05", "a", 1)]))
    lose(lake)
    assert recover().tables == ("flights",)
    assert values(connect().table("flights")) == []


def test_two_tables_of_one_name_get_two_names(lake, table, connect, lose, recover) -> None:
    table.append(arrow([("2013-01-05", "a", 1)]))
    lake.drop_table("flights")
    lake.create_table("flights", SCHEMA, time="time").append(arrow([("2013-01-05", "a", 2)]))
    lose(lake)
    recover(adopt=True)
    new = connect()
    named = {name: values(new.table(name)) for name in new.tables()}
    assert named.pop("flights") == [2]
    ((name, held),) = named.items()
    assert (name.startswith("recovered_"), held) == (True, [1])


@pytest.mark.parametrize("point", ["export.written", "export.before_rename"])
def test_an_export_that_fails_leaves_the_one_before(lake, table, connect, lose, recover, warehouse, point) -> None:
    table.append(arrow([("2013-01-05", "a", 1)]))
    first = lake.export()
    table.append(arrow([("2013-01-05", "a", 2)]))
    with faults.armed({point: faults.fail()}), pytest.raises(faults.Injected):
        lake.export()
    assert [str(one) for one in (warehouse / EXPORTS).iterdir()] == [first.path]
    lose(lake)
    assert recover().export == first.path
    assert values(connect().table("flights")) == [1]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("point", ["export.written", "export.before_rename"])
def test_an_export_that_is_killed_leaves_the_one_before(
    lake, table, connect, lose, recover, warehouse, catalog_url, point
) -> None:
    table.append(arrow([("2013-01-05", "a", 1)]))
    first = lake.export()
    table.append(arrow([("2013-01-05", "a", 2)]))
    killed = subprocess.run([sys.executable, "-c", EXPORT_AND_DIE, catalog_url, str(warehouse), point])
    assert killed.returncode == -9
    left = [one.name for one in (warehouse / EXPORTS).iterdir()]
    assert len(left) == 2
    lose(lake)
    assert recover().export == first.path
    new = connect()
    assert values(new.table("flights")) == [1]
    partial = next(one for one in (warehouse / EXPORTS).iterdir() if one.name.startswith(".partial-"))
    new.export()
    assert partial.is_dir()
    os.utime(partial, (0, 0))
    new.export()
    assert not partial.exists()


@pytest.mark.parametrize("harm", ["flip", "cut", "gone", "manifest"])
def test_a_damaged_export_is_passed_over(lake, table, connect, lose, recover, harm) -> None:
    table.append(arrow([("2013-01-05", "a", 1)]))
    first = lake.export()
    table.append(arrow([("2013-01-05", "a", 2)]))
    second = Path(lake.export().path)
    path = second / ("manifest.json" if harm == "manifest" else "key_frame.arrow")
    held = bytearray(path.read_bytes())
    match harm:
        case "flip" | "manifest":
            held[len(held) // 2] ^= 1
            path.write_bytes(held)
        case "cut":
            path.write_bytes(held[:-1])
        case "gone":
            path.unlink()
    lose(lake)
    found = recover(adopt=True)
    assert found.export == first.path
    assert len(found.damaged) == 1
    assert str(path) in found.damaged[0]
    assert values(connect().table("flights")) == [1, 2]


def test_missing_and_short_files_are_named_and_the_rest_is_recovered(
    lake, table, connect, lose, recover, warehouse
) -> None:
    for day in (5, 6, 7):
        table.append(arrow([(f"2013-01-0{day}", "a", day)]))
    gone, short, _ = (one.path for one in table.segments())
    lake.export()
    lose(lake)
    (warehouse / gone).unlink()
    (warehouse / short).write_bytes((warehouse / short).read_bytes()[:-10])
    found = recover()
    assert len(found.missing) == 2
    assert gone in found.missing[0]
    assert short in found.missing[1]
    again = connect().table("flights")
    assert values(again, interval="2013-01-07") == [7]
    with pytest.raises(SegmentUnreadable, match=gone):
        again.scan(interval="2013-01-05").to_arrow()


def test_a_file_that_was_cut_short_is_not_adopted(lake, table, connect, lose, recover, warehouse) -> None:
    lake.export()
    table.append(arrow([("2013-01-05", "a", 1)]))
    path = warehouse / table.segments()[0].path
    path.write_bytes(path.read_bytes()[:-10])
    table.append(arrow([("2013-01-05", "a", 2)]))
    lose(lake)
    found = recover(adopt=True)
    assert ["cut short" in (one.problem or "") for one in found.unknown] == [True, False]
    assert values(connect().table("flights")) == [2]


def test_dropped_and_renamed_tables_and_names_of_any_script(lake, connect, lose, recover) -> None:
    columns = "Zeit TIMESTAMP, `Verspätung in %` DOUBLE, 客户 STRING"
    unicode = lake.create_table("alt", columns, time="Zeit", cluster_by=["客户"], properties={"Größe": "klein"})
    rows = pa.table({"Zeit": [FIRST], "Verspätung in %": [1.5], "客户": ["航空"]})
    unicode.append(rows, message="première ✈")
    lake.rename_table("alt", "neu")
    dropped = lake.create_table("dropped", SCHEMA, time="time")
    dropped.append(arrow([("2013-01-05", "a", 1)]))
    lake.tag("before")
    lake.drop_table("dropped")
    lake.export()
    lose(lake)
    found = recover(adopt=True)
    assert (found.tables, found.unknown, found.missing) == (("neu",), (), ())
    new = connect()
    again = new.table("neu")
    assert again.scan().to_arrow().to_pylist() == unicode_rows(rows)
    assert again.properties == {"Größe": "klein"}
    assert any(one.message == "première ✈" for one in again.log())
    with pytest.raises(TableNotFound):
        new.table("alt")
    with pytest.raises(TableNotFound):
        new.table("dropped")
    new.create_table("dropped", SCHEMA, time="time").append(arrow([("2013-01-05", "a", 2)]))
    assert values(new.table("dropped")) == [2]


def unicode_rows(rows: Any) -> Any:
    return [{**row, "Zeit": to_utc(row["Zeit"])} for row in rows.to_pylist()]


def test_an_empty_lake_comes_back_empty(lake, connect, lose, recover) -> None:
    exported = lake.export()
    assert (exported.version, exported.tables, exported.segments) == (0, 0, 0)
    lose(lake)
    found = recover()
    assert (found.version, found.tables) == (0, ())
    new = connect()
    assert new.tables() == []
    new.create_table("flights", SCHEMA, time="time").append(arrow([("2013-01-05", "a", 1)]))
    assert values(new.table("flights")) == [1]


def test_a_catalog_in_use_and_a_warehouse_that_is_not_there_are_refused(lake, table, recover, tmp_path) -> None:
    lake.export()
    for options in ({}, {"adopt": True}, {"dry_run": True}):
        with pytest.raises(InvalidInput, match="not empty"):
            recover(**options)
    with pytest.raises(InvalidInput, match="no such warehouse"):
        lakehouse.recover(tmp_path / "nowhere", f"sqlite:///{tmp_path}/new.db")
    assert not (tmp_path / "new.db").exists()


def test_a_dry_run_makes_nothing(lake, table, warehouse, tmp_path) -> None:
    lake.export()
    found = lakehouse.recover(warehouse, f"sqlite:///{tmp_path}/new/catalog.db", dry_run=True)
    assert (found.dry_run, found.tables) == (True, ("flights",))
    assert not (tmp_path / "new").exists()


def test_the_newest_exports_stay(lake, table, warehouse) -> None:
    for value in range(5):
        table.append(arrow([("2013-01-05", "a", value)]))
        last = lake.export()
    assert len(list((warehouse / EXPORTS).iterdir())) == 3
    last = lake.export(keep=1)
    assert [str(one) for one in (warehouse / EXPORTS).iterdir()] == [last.path]
    with pytest.raises(InvalidInput):
        lake.export(keep=0)


def test_a_new_catalog_does_not_delete_the_exports_of_the_lost_one(lake, table, connect, lose, recover) -> None:
    table.append(arrow([("2013-01-05", "a", 1)]))
    first = lake.export()
    lose(lake)
    mistaken = connect()  # someone connected, and a schedule exported, before anyone saw that the catalog was lost
    for name in "abcdef":
        mistaken.create_table(name, SCHEMA, time="time")
        mistaken.export(keep=1)
    assert Path(first.path).is_dir()


def test_an_export_holds_one_state_while_others_write(lake, table, connect, lose, recover) -> None:
    table.append(arrow([("2013-01-05", "a", 1)]))
    seen = lake.head
    with faults.armed({"export.written": lambda: connect().table("flights").append(arrow([("2013-01-05", "a", 2)]))}):
        assert lake.export().version == seen
    lose(lake)
    recover()
    assert values(connect().table("flights")) == [1]


def test_the_commands_say_what_was_done(lake, table, lose, warehouse, catalog_url) -> None:
    table.append(arrow([("2013-01-05", "a", 1)]))
    where = ["--catalog", catalog_url, "--warehouse", str(warehouse)]
    state = json.loads(CliRunner().invoke(app, ["export", "--json", *where]).stdout)
    assert (state["version"], state["segments"]) == (lake.head, 1)
    assert "1 segments" in CliRunner().invoke(app, ["export", "--keep", "1", *where]).stdout
    table.append(arrow([("2013-01-05", "a", 2)]))
    lose(lake)
    dry = CliRunner().invoke(app, ["recover", str(warehouse), "--dry-run", "--catalog", catalog_url])
    assert "nothing was made" in dry.stdout
    assert "operations that no export knows" in dry.stdout
    done = CliRunner().invoke(app, ["recover", str(warehouse), "--adopt", "--json", "--catalog", catalog_url])
    assert json.loads(done.stdout)["unknown"][0]["version"] > GAP
