"""Fixtures that every suite shares: real catalogs, a lake, and the one Spark session."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import lakehouse
from lakehouse.testing import rows
from lakehouse.testing.object_stores import Store, moto_server
from lakehouse.testing.postgres import PostgresMissing, PostgresServer

CATALOGS = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server of this worker's own."""
    try:
        server = PostgresServer()
    except PostgresMissing as error:
        pytest.fail(str(error), pytrace=False)
    with server:
        yield server


@pytest.fixture(scope="session")
def postgres_template(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with an empty catalog, to be copied: faster than migrating one for each test."""
    name = postgres.create_database()
    lakehouse.connect(postgres.url(name), str(tmp_path_factory.mktemp("template"))).close()
    return name


@pytest.fixture
def postgres_database(postgres: PostgresServer, postgres_template: str) -> Iterator[str]:
    """The name of a database with an empty catalog."""
    name = postgres.create_database(template=postgres_template)
    yield name
    postgres.drop_database(name)


@pytest.fixture
def postgres_url(postgres: PostgresServer, postgres_database: str) -> str:
    """The URL of an empty catalog on PostgreSQL."""
    return postgres.url(postgres_database)


@pytest.fixture(scope="session")
def object_store() -> Iterator[Store]:
    """An object store of this worker's own, in memory."""
    with moto_server() as store:
        yield store


@pytest.fixture
def store(object_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A prefix of a store, with a catalog and a cache of the test's own; the environment names all three."""
    own = object_store.under(uuid4().hex)
    for name, value in own.options.items():
        monkeypatch.setenv(f"LAKEHOUSE_STORAGE_{name.upper()}", value)
    monkeypatch.setenv("LAKEHOUSE_WAREHOUSE", own.url)
    monkeypatch.setenv("LAKEHOUSE_CATALOG", f"sqlite:///{tmp_path}/catalog.db")
    monkeypatch.setenv("LAKEHOUSE_CACHE_DIR", str(tmp_path / "cache"))
    return own


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a new catalog on SQLite."""
    return f"sqlite:///{tmp_path}/catalog.db"


@pytest.fixture(params=CATALOGS)
def catalog_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty catalog, on each database in turn."""
    fixture = "sqlite_url" if request.param == "sqlite" else "postgres_url"
    url: str = request.getfixturevalue(fixture)
    return url


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """Where a test's lake keeps its files."""
    return tmp_path / "warehouse"


@pytest.fixture
def connect(catalog_url: str, warehouse: Path) -> Iterator[Callable[..., Any]]:
    """Open one more handle on the test's lake, as another process would; all are closed at the end."""
    opened: list[Any] = []

    def one_more(**options: Any) -> Any:
        opened.append(lakehouse.connect(catalog_url, str(warehouse), **options))
        return opened[-1]

    yield one_more
    for lake in opened:
        lake.close()


@pytest.fixture
def lake(connect: Callable[..., Any]) -> Any:
    """A new, empty lake on each catalog in turn."""
    return connect()


@pytest.fixture
def table(lake: Any) -> Any:
    """A table of `lakehouse.testing.rows`: time, client (its cluster column) and value, by day."""
    return lake.create_table("flights", rows.SCHEMA, time="time", cluster_by=("client",))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The one Spark session of a test run: two local threads, UTC, no web page."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only the tests that need Spark pay for its import

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    home = tmp_path_factory.mktemp("spark")
    # Workers keep copies of a store's files elsewhere than the tests do, as on other machines.
    os.environ["LAKEHOUSE_CACHE_DIR"] = str(home / "copies")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("lakehouse-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(home))
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.local.dir", str(home))
        .getOrCreate()
    )
    del os.environ["LAKEHOUSE_CACHE_DIR"]
    yield session
    session.stop()
