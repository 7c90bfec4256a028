"""A catalog in a SQLite file: its name, its settings, and other programs that hold it."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

import lakehouse
from lakehouse.catalog.store import opening, presence, reaction, writer_queue
from lakehouse.errors import CatalogUnavailable, InvalidInput
from lakehouse.testing import behind
from lakehouse.testing.rows import SCHEMA, many

HOLDER = """
import sys
from pysqlite3 import dbapi2
held = dbapi2.connect(sys.argv[1], isolation_level=None)
held.execute(sys.argv[2])
held.execute("BEGIN EXCLUSIVE")
held.execute("SELECT count(*) FROM sqlite_master").fetchone()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """A catalog's file with a table of one version more."""
    path = tmp_path / "real" / "catalog.db"
    with lakehouse.connect(f"sqlite:///{path}", tmp_path / "warehouse") as lake:
        lake.create_table("flights", SCHEMA, time="time").append(many(3))
    return path


def _spellings(real: Path) -> Iterator[str]:
    folder = real.parent.parent
    (folder / "link.db").symlink_to(real)
    (folder / "twice.db").symlink_to("link.db")
    (folder / "linked").symlink_to(real.parent, target_is_directory=True)
    yield f"{folder}/link.db"
    yield f"{folder}/twice.db"
    yield f"{folder}/linked/catalog.db"
    yield f"{folder}/linked/../real/./catalog.db"
    yield f"{folder}//real//catalog.db"
    yield "real/catalog.db"
    yield "../" + folder.name + "/twice.db"


def test_every_spelling_of_a_catalogs_path_is_one_catalog_with_one_queue(real, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for spelling in _spellings(real):
        with lakehouse.connect(f"sqlite:///{spelling}", tmp_path / "warehouse") as lake:
            monkeypatch.chdir("/")
            table = lake.table("flights")
            before = table.version
            assert table.append(many(3)).version > before
            assert behind.file_of(lake.catalog) == real
            assert sorted(one.name for one in real.parent.iterdir()) == [
                f"catalog.db{end}" for end in ("", "-open", "-queue", "-shm", "-wal")
            ]
            monkeypatch.chdir(tmp_path)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link.db", "linked", "real", "twice.db", "warehouse"]


def test_a_link_to_a_catalog_that_is_yet_to_be_made_makes_it_where_it_points(tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "there" / "catalog.db")
    with lakehouse.connect(f"sqlite:///{tmp_path}/link.db", tmp_path / "warehouse") as lake:
        lake.create_table("flights", SCHEMA, time="time")
    assert (tmp_path / "there" / "catalog.db").stat().st_size > 0


def test_a_catalogs_file_with_two_names_is_refused(real, tmp_path):
    os.link(real, tmp_path / "other.db")
    for path in (real, tmp_path / "other.db"):
        with pytest.raises(CatalogUnavailable, match="hard links"):
            lakehouse.connect(f"sqlite:///{path}", tmp_path / "warehouse")


def test_an_address_with_parameters_is_refused(tmp_path):
    for url in (f"sqlite:///{tmp_path}/a.db?timeout=1", f"sqlite:///file:{tmp_path}/a.db?uri=true&vfs=unix-none"):
        with pytest.raises(InvalidInput, match="question mark"):
            lakehouse.connect(url, tmp_path / "warehouse")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("writes_ahead", "held"), [(True, ("wal", 2)), (False, ("delete", 3))])
def test_each_connection_syncs_as_its_journal_needs(tmp_path, monkeypatch, writes_ahead, held):
    monkeypatch.setattr(opening, "WRITES_AHEAD", writes_ahead)
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse") as lake:

        def asked(name):
            return behind.rows_of(lake.catalog, text(f"PRAGMA {name}"))[0][0]

        assert (asked("journal_mode"), asked("synchronous")) == held
        assert asked("foreign_keys") == 1


def test_a_file_system_on_which_no_log_can_be_written_ahead_is_refused(tmp_path):
    """SQLite's way of locking by files has no shared memory, as some file systems have none."""
    connection = opening.sqlite.connect(f"file:{tmp_path}/catalog.db?vfs=unix-dotfile", uri=True)
    with pytest.raises(CatalogUnavailable, match="local disk") as caught:
        opening.configure(connection)
    assert (caught.value.setting, caught.value.expected, caught.value.found) == ("journal_mode", "wal", "delete")
    connection.close()


@pytest.fixture(params=["BEGIN EXCLUSIVE", "locking_mode=EXCLUSIVE"])
def held(request, real: Path) -> Iterator[str]:
    """Another program that holds the database: against writers, or against everybody."""
    pragma = "SELECT 1" if request.param == "BEGIN EXCLUSIVE" else "PRAGMA locking_mode=EXCLUSIVE"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(real), pragma], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield request.param
    process.communicate("")


def test_a_catalog_that_another_program_holds_is_an_error_after_one_wait(real, tmp_path, monkeypatch, held):
    monkeypatch.setattr(reaction, "WAIT_SECONDS", 1.5)
    began = time.monotonic()
    with pytest.raises(CatalogUnavailable, match="another program holds"):
        lakehouse.connect(f"sqlite:///{real}", tmp_path / "warehouse")
    assert time.monotonic() - began < 10 * 1.5


def test_reads_writes_and_the_end_of_a_lake_wait_once_for_a_program_that_holds_its_catalog(real, tmp_path, monkeypatch):
    monkeypatch.setattr(reaction, "WAIT_SECONDS", 1.5)
    lake = lakehouse.connect(f"sqlite:///{real}", tmp_path / "warehouse")
    table = lake.table("flights")
    table.append(many(3))
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(real), "SELECT 1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    assert lake.head == 3
    waited = []
    for ask in (lambda: table.scan().to_arrow(), lambda: table.delete("value = 1"), lambda: lake.tag("t")):
        began = time.monotonic()
        with pytest.raises(CatalogUnavailable, match="another program holds"):
            ask()
        waited.append(time.monotonic() - began)
    began = time.monotonic()
    lake.close()
    waited.append(time.monotonic() - began)
    process.communicate("")
    assert max(waited) < 10 * 1.5
    with lakehouse.connect(f"sqlite:///{real}", tmp_path / "warehouse") as lake:
        assert lake.table("flights").scan().count() == 6


@pytest.mark.parametrize("is_warm", [False, True])
def test_a_query_shows_within_its_seconds_that_another_program_holds_the_catalog(real, tmp_path, is_warm):
    with lakehouse.connect(f"sqlite:///{real}", tmp_path / "warehouse") as lake:
        lake.table("flights").append(many(3))
        if is_warm:
            lake.query("SHOW TABLES")  # its process is there, and holds no version
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(real), "SELECT 1"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(CatalogUnavailable, match="another program holds"):
            lake.query("SELECT count(*) FROM flights", most_seconds=5.0)
        process.communicate("")
        assert lake.query("SELECT count(*) AS n FROM flights").rows["n"].to_pylist() == [6]


def test_writers_pass_a_process_that_is_stopped_in_their_queue(real, tmp_path, monkeypatch):
    monkeypatch.setattr(writer_queue, "WAIT_SECONDS", 0.5)
    stopped = os.open(f"{real}-queue", os.O_RDWR | os.O_CREAT)
    assert writer_queue.holds(stopped, fcntl.LOCK_EX)
    with lakehouse.connect(f"sqlite:///{real}", tmp_path / "warehouse") as lake:
        flights = lake.table("flights")
        assert [flights.append(many(1)).version for _ in range(3)] == [3, 4, 5]
        os.close(stopped)
        assert flights.append(many(1)).version == 6
    assert not writer_queue.writer_queue(str(real)).is_held()


def test_whoever_comes_to_a_catalog_waits_for_one_who_brings_its_log_in(real, tmp_path, monkeypatch):
    monkeypatch.setattr(presence, "WAIT_SECONDS", 0.2)
    monkeypatch.setattr(reaction, "WAIT_SECONDS", 1.5)
    alone = os.open(f"{real}-open", os.O_RDWR)
    assert presence.holds(alone, fcntl.LOCK_EX)
    with pytest.raises(CatalogUnavailable, match="another program holds"):
        lakehouse.connect(f"sqlite:///{real}", tmp_path / "warehouse")
    os.close(alone)
    lakehouse.connect(f"sqlite:///{real}", tmp_path / "warehouse").close()
