"""A catalog of an older form is brought to this one with all that it knew."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

import lakehouse
from lakehouse.catalog.store import migration
from lakehouse.catalog.store.database import Database
from lakehouse.catalog.store.encoding import encode_statistics
from lakehouse.catalog.store.rows import spec_definition
from lakehouse.core.interval import Interval, to_utc
from lakehouse.core.task import TaskKind
from lakehouse.errors import InvalidAddress
from lakehouse.schema import define_table
from lakehouse.testing.rows import SCHEMA, arrow

DAY_US = 86_400_000_000
FIRST = to_utc("2013-01-05")
FIRST_US = Interval.of("2013-01-05").start_us


def make_first_form(database: Database) -> None:
    """A catalog at the first revision: a table, two appends (one over ten days), and a drop of the short one."""

    def upgrade(connection: sa.Connection) -> None:
        migrated_to(connection, "0001")
        tables = sa.MetaData()
        tables.reflect(connection)
        spec = define_table(
            "flights", SCHEMA, time="time", grain="day", primary_key=(), cluster_by=(), write_order="commit",
            properties={"ragged": "true"}, folder="f" * 32,
        )  # fmt: skip

        def put(table: str, **values: Any) -> None:
            connection.execute(tables.tables[table].insert().values(**values))

        put("lake_table", id=1, name="flights", folder=spec.folder, definition=spec_definition(spec), created_version=1,
            next_row_id=30)  # fmt: skip
        statistics = encode_statistics({"value": 1}, {"value": 9}, {"value": 0}, {})
        counts = {"segments_added": 1, "segments_dropped": 0, "tombstones_added": 0, "tombstones_dropped": 0}
        for version, kind in enumerate(("create", "append", "append", "replace"), 1):
            put("commit_log", version=version, operation=kind, committed_us=version)
            put("commit_table", version=version, table_id=1, operation=kind, rows_added=10, rows_deleted=0, **counts)
        for number, (version, days) in enumerate(((2, 1), (3, 10)), 1):
            put("operation", number=number, id=f"{number:032x}", table_id=1, kind="append", state="committed",
                base_version=1, begun_us=1, lease_until_us=1, version=version)  # fmt: skip
            put("segment", id=number << 20, table_id=1, operation=number, path=f"{spec.folder}/{number:032x}/0.parquet",
                start_us=FIRST_US, end_us=FIRST_US + days * DAY_US, ordinal=version, rows=10, bytes=1, first_row_id=0,
                has_row_ids=False, statistics=statistics)  # fmt: skip
            for day in range(days):
                start_us = FIRST_US + day * DAY_US
                put("delta", table_id=1, chunk_us=start_us, version=version, entry=number << 20, action=1,
                    is_tombstone=False)  # fmt: skip
        put("delta", table_id=1, chunk_us=FIRST_US, version=4, entry=1 << 20, action=-1, is_tombstone=False)
        for day in range(10):
            put("chunk", table_id=1, start_us=FIRST_US + day * DAY_US, version=4 if day == 0 else 3, chain=1)
        connection.execute(tables.tables["lake"].update().values(head=4, counter=4))

    database.run(upgrade)


@pytest.fixture(params=["sqlite", "postgresql"])
def bare_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database without a table, on each kind in turn."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/bare.db"
        return
    server = request.getfixturevalue("postgres")
    name = server.create_database()
    yield server.url(name)
    server.drop_database(name)


def migrated_to(connection: sa.Connection, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(migration.MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def described(connection: sa.Connection) -> dict[str, object]:
    """Every table and index of a database, whatever their columns' order, and every row."""
    tables = sa.MetaData()
    tables.reflect(connection)
    found: dict[str, object] = {}
    for table in tables.tables.values():
        rows = [dict(row) for row in connection.execute(sa.select(table)).mappings()]
        found[table.name] = (sorted(str(sa.schema.CreateColumn(one)) for one in table.columns), rows)
    if connection.dialect.name == "sqlite":
        made = connection.execute(sa.text("SELECT type, name, tbl_name, sql FROM sqlite_master")).all()
        parts = {tuple(row[:3]): sorted(re.findall(r"\w+|[^\w\s,]", row.sql or "")) for row in made}
    else:
        parts = {
            what: sorted(map(str, connection.execute(sa.text(query))))
            for what, query in {
                "indexes": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
                "constraints": "SELECT conrelid::regclass, pg_get_constraintdef(oid),"
                " CASE contype WHEN 'c' THEN '' ELSE conname END FROM pg_constraint"
                " WHERE connamespace = 'public'::regnamespace",
                "columns": "SELECT table_name, column_name, data_type, is_nullable, column_default"
                " FROM information_schema.columns WHERE table_schema = 'public'",
            }.items()
        }
    return {**found, **{str(name): part for name, part in parts.items()}}


def test_a_new_catalog_is_what_all_migrations_make(bare_url: str, tmp_path: Path) -> None:
    old = Database(bare_url)
    old.run(lambda connection: migrated_to(connection, migration.REVISION))
    expected = old.read(described)
    assert {"lake", "topic", "serving_node", "upload", "alembic_version"} <= expected.keys()

    def empty(connection: sa.Connection) -> None:
        tables = sa.MetaData()
        tables.reflect(connection)
        tables.drop_all(connection)

    old.run(empty)
    old.close()
    with lakehouse.connect(bare_url, tmp_path / "warehouse") as lake:
        assert lake.verify_erased(values=["nobody@nowhere"]).findings == ()
    new = Database(bare_url)
    found = new.read(described)
    new.close()
    assert found == expected
    assert "'head': 0" in str(found["lake"])


def test_every_version_of_the_first_form_reads_the_same(bare_url: str, tmp_path: Path) -> None:
    database = Database(bare_url)
    make_first_form(database)
    assert migration.current_revision(database) == "0001"
    database.close()
    with lakehouse.connect(bare_url, tmp_path / "warehouse") as lake:
        table = lake.table("flights")
        held = {version: [one.id >> 20 for one in table.segments(as_of=version)] for version in (1, 2, 3, 4)}
        assert held == {1: [], 2: [1], 3: [1, 2], 4: [2]}
        (ragged,) = table.segments(interval="2013-01-14")
        assert (dict(ragged.min), dict(ragged.max), ragged.rows) == ({"value": 1}, {"value": 9}, 10)
        assert [commit.version for commit in lake.log()] == [4, 3, 2, 1]
        with pytest.raises(InvalidAddress, match="not in this warehouse"):
            table.append(arrow([(FIRST, "a", 7)]))
        there = tmp_path / "warehouse" / ragged.path
        there.parent.mkdir(parents=True)
        there.touch()
        commit = table.append(arrow([(FIRST, "a", 7)]))
        assert commit.version == 5
        assert [one.codec for one in table.segments()] == ["", "zstd"]


def test_stored_tasks_get_their_names_of_today(bare_url: str, tmp_path: Path) -> None:
    with lakehouse.connect(bare_url, tmp_path / "warehouse") as lake:
        flights = lake.create_table("flights", SCHEMA, time="time", properties={"small_files": "2"})
        for _ in range(3):
            flights.append(arrow([(FIRST, "a", 7)]))
        planned = {task.id: (task.kind, task.state) for task in lake.plan_tasks()}
        collected = {task.id for task in lake.maintain().tasks if task.kind == "collect"}
    assert {"compact"} == {kind for kind, _ in planned.values()}
    database = Database(bare_url)

    def age(connection: sa.Connection) -> list[str]:
        identities = "SELECT identity FROM task ORDER BY id"
        now = list(connection.execute(sa.text(identities)).scalars())
        for old, new in (("merge", "compact"), ("gc", "collect")):
            text = (
                f"UPDATE task SET kind = '{old}', identity = replace(identity, '{new}', '{old}') WHERE kind = '{new}'"
            )
            connection.execute(sa.text(text))
        assert list(connection.execute(sa.text(identities)).scalars()) != now
        for table in ("upload", "serving_node", "serving_group", "topic"):
            connection.execute(sa.text(f"DROP TABLE {table}"))
        connection.execute(sa.text("DROP TABLE consumer"))
        connection.execute(sa.text("DROP TABLE lake_view"))
        connection.execute(sa.text("DROP TABLE table_schema"))
        for column in (
            "lake.warehouse", "lake_table.schema_number", "segment.schema_number", "segment.codec",
        ):  # fmt: skip
            connection.execute(sa.text("ALTER TABLE {} DROP COLUMN {}".format(*column.split("."))))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0009'"))
        return now

    known = database.run(age)
    database.close()
    with lakehouse.connect(bare_url, tmp_path / "warehouse") as lake:
        kinds = {task.id: task.kind for task in lake.tasks()}
        assert {kinds[one] for one in planned} == {"compact"}
        assert {kinds[one] for one in collected} == {"collect"}
        with pytest.warns(DeprecationWarning, match="'merge' is called 'compact'"):
            assert TaskKind("merge") is TaskKind.COMPACT
    database = Database(bare_url)
    stored = database.read(lambda at: list(at.execute(sa.text("SELECT identity FROM task ORDER BY id")).scalars()))
    database.close()
    assert stored == known
