"""A catalog that is down, or was never one: a clear error, and nothing half done."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import lakehouse
from lakehouse.errors import CatalogUnavailable, InvalidInput, LakehouseError
from lakehouse.testing.postgres import PostgresServer
from lakehouse.testing.processes import free_port
from lakehouse.testing.rows import SCHEMA, arrow, values


@pytest.fixture
def server():
    """A server that the test may stop."""
    with PostgresServer() as own:
        yield own


@pytest.mark.timeout(300)
def test_a_server_that_stopped_is_unavailable_and_works_again_when_it_is_back(server, warehouse):
    with lakehouse.connect(server.url(server.create_database()), str(warehouse)) as lake:
        table = lake.create_table("flights", SCHEMA, time="time")
        version = table.append(arrow([("2013-01-05", "a", 1)])).version
        server.stop(at_once=True)
        for attempt in (
            lambda: lake.head,
            lambda: table.scan().to_arrow(),
            lambda: table.append(arrow([("2013-01-05", "a", 2)])),
            lambda: lake.create_table("other", SCHEMA, time="time"),
        ):
            with pytest.raises(CatalogUnavailable, match=str(server.port)):
                attempt()
        server.start()
        assert lake.head == version
        assert values(table) == [1]
        table.append(arrow([("2013-01-05", "a", 3)]))
        assert values(table) == [1, 3]
        assert lake.tables() == ["flights"]


@pytest.mark.timeout(300)
def test_a_restart_between_two_operations_is_not_noticed(server, warehouse):
    with lakehouse.connect(server.url(server.create_database()), str(warehouse)) as lake:
        table = lake.create_table("flights", SCHEMA, time="time")
        operation = table.begin_append()
        operation.write(arrow([("2013-01-05", "a", 1)]))
        server.stop(at_once=True)
        server.start()
        operation.commit()
        assert values(table) == [1]


def test_a_server_that_is_not_there_is_named_without_its_password():
    port = free_port()
    with pytest.raises(CatalogUnavailable, match=str(port)) as caught:
        lakehouse.connect(f"postgresql+psycopg://someone:hidden@127.0.0.1:{port}/lake")
    assert "hidden" not in str(caught.value)


def test_a_database_that_is_not_there_is_named(postgres, warehouse):
    with pytest.raises(CatalogUnavailable, match="nowhere"):
        lakehouse.connect(postgres.url("nowhere"), str(warehouse))


@pytest.mark.parametrize(
    "url", ["", "mysql://x/y", "lake", "sqlite://", "postgresql+asyncpg://x/y", "http://x", 42], ids=str
)
def test_an_address_of_no_known_form_is_refused(url, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LAKEHOUSE_CATALOG", raising=False)
    if url == "":
        lakehouse.connect(url, str(tmp_path)).close()
        assert (tmp_path / ".lakehouse").is_dir()
    else:
        with pytest.raises(InvalidInput):
            lakehouse.connect(url, str(tmp_path))


def test_a_folder_is_no_sqlite_file(tmp_path):
    with pytest.raises(CatalogUnavailable, match="catalog"):
        lakehouse.connect(f"sqlite:///{tmp_path}", str(tmp_path / "warehouse"))


def test_a_path_below_a_file_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CatalogUnavailable, match="file"):
        lakehouse.connect(f"sqlite:///{tmp_path}/file/catalog.db", str(tmp_path / "warehouse"))


def test_a_file_that_is_no_database_is_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database at all, but something that somebody wants to keep " * 100)
    before = path.read_bytes()
    with pytest.raises(CatalogUnavailable, match="notes"):
        lakehouse.connect(f"sqlite:///{path}", str(tmp_path / "warehouse"))
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_left_alone(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE lake (something TEXT)")
        other.execute("INSERT INTO lake VALUES ('kept')")
    other.close()
    with pytest.raises(LakehouseError, match="other"):
        lakehouse.connect(f"sqlite:///{path}", str(tmp_path / "warehouse"))
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT * FROM lake").fetchall() == [("kept",)]
    other.close()


DROP_RIGHTS = "os.setgroups([]); os.setgid(65534); os.setuid(65534)" if os.getuid() == 0 else ""


@pytest.fixture
def shared_folder():
    """A folder that every user may enter, with one inside that only its owner may."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "closed").mkdir(mode=0o500)
        yield folder


@pytest.mark.parametrize(
    ("catalog", "warehouse"),
    [("closed/catalog.db", "warehouse"), ("open.db", "closed/warehouse")],
    ids=["catalog", "warehouse"],
)
def test_a_folder_without_permission_is_named(shared_folder, catalog, warehouse):
    """Root may write anywhere, so a process without its rights is asked; what it imports it has imported before."""
    code = f"""if True:
        import os, lakehouse
        from lakehouse.testing.rows import SCHEMA, arrow
        with lakehouse.connect("sqlite:///{shared_folder}/first.db", "{shared_folder}/first") as lake:
            lake.create_table("t", SCHEMA, time="time").append(arrow([("2013-01-05", "a", 1)]))
        os.chmod("{shared_folder}", 0o777)
        {DROP_RIGHTS}
        try:
            with lakehouse.connect("sqlite:///{shared_folder}/{catalog}", "{shared_folder}/{warehouse}") as lake:
                lake.create_table("t", SCHEMA, time="time").append(arrow([("2013-01-05", "a", 1)]))
        except lakehouse.LakehouseError as error:
            print(type(error).__name__, error)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("CatalogUnavailable" if "closed" in catalog else ""), done.stderr
    assert f"{shared_folder}/closed" in done.stdout, done.stderr


def test_a_catalog_written_by_a_newer_release_is_refused_unchanged(tmp_path, sqlite_url, warehouse):
    lakehouse.connect(sqlite_url, str(warehouse)).close()
    with sqlite3.connect(tmp_path / "catalog.db") as catalog:
        tables = {name for (name,) in catalog.execute("SELECT name FROM sqlite_master WHERE name LIKE '%version%'")}
        assert "alembic_version" in tables
        catalog.execute("UPDATE alembic_version SET version_num = 'from_the_future'")
    catalog.close()
    with pytest.raises(LakehouseError, match=r"(?i)newer|release|upgrade|migrat"):
        lakehouse.connect(sqlite_url, str(warehouse))


def test_a_lake_that_was_closed_says_so_or_works(sqlite_url, warehouse):
    lake = lakehouse.connect(sqlite_url, str(warehouse))
    table = lake.create_table("flights", SCHEMA, time="time")
    lake.close()
    lake.close()
    try:
        table.append(arrow([("2013-01-05", "a", 1)]))
    except LakehouseError:
        return
    with lakehouse.connect(sqlite_url, str(warehouse)) as again:
        assert values(again.table("flights")) == [1]
    lake.close()
