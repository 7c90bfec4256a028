"""How the suite is spread over processes, and what doctest may not import."""

import gc
import re
import sqlite3
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from _pytest.doctest import DoctestItem
from sqlalchemy import Connection, inspect

import lakehouse
from lakehouse.catalog.store import migration
from lakehouse.catalog.store.database import Database

collect_ignore_glob = ["lakehouse/catalog/migrations/*", ".venv", ".tools", "build", "dist"]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among what is collected, which lives to the end: that takes a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_unconfigure() -> None:
    """Let what was collected go: extension modules report what is left as the process ends."""
    gc.unfreeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep every test that needs Spark on one worker: a session costs seconds and gigabytes, so there is one."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) or "/tests/spark/" in item.path.as_posix():
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(autouse=True, scope="session")
def _new_catalogs_by_one_script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Make each new SQLite catalog by what all migrations come to, in a tenth of their time; one is migrated for it."""
    path = tmp_path_factory.mktemp("template") / "catalog.db"
    lakehouse.connect(f"sqlite:///{path}", path.with_name("warehouse")).close()
    with sqlite3.connect(path) as template:
        script = [one for one in template.iterdump() if one not in ("BEGIN TRANSACTION;", "COMMIT;")]
    template.close()
    upgrade = migration._upgrade

    def upgrade_or_make(connection: Connection, database: Database) -> None:
        if not database.is_sqlite or inspect(connection).get_table_names():
            upgrade(connection, database)
            return
        for statement in script:
            connection.exec_driver_sql(statement)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migration, "_upgrade", upgrade_or_make)
        yield


@pytest.fixture(autouse=True)
def _names_of_examples(request: pytest.FixtureRequest, doctest_namespace: dict[str, Any]) -> Iterator[None]:
    """Give examples that name it a lake of their own, with a table of three flights."""
    item = request.node
    text = "".join(one.source for one in item.dtest.examples) if isinstance(item, DoctestItem) else ""
    if not re.search(r"\b(?:flights|lake|late)\b", text) or "connect(" in text:
        yield
        return
    folder: Path = request.getfixturevalue("tmp_path")
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse") as lake:
        flights = lake.create_table(
            "flights", "at TIMESTAMP, id BIGINT, carrier STRING, delay BIGINT", time="at", primary_key=["id"],
            cluster_by=["carrier"],
        )  # fmt: skip
        lake.sql(
            "INSERT INTO flights VALUES ('2013-01-05 08:00', 1, 'UA', 3), ('2013-01-05 09:00', 2, 'DL', 30), "
            "('2013-01-06 08:00', 3, 'UA', 0)"
        )
        at = pa.array([datetime(2013, 1, 5, hour, tzinfo=UTC) for hour in (8, 10)], pa.timestamp("us", "UTC"))
        late = pa.table({"at": at, "id": [1, 4], "carrier": ["UA", "UA"], "delay": [42, 7]})
        names = {"lake": lake, "flights": flights, "late": late}
        doctest_namespace.update(names)
        yield
    for name in names:
        del doctest_namespace[name]
