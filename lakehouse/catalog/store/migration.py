"""Migrating a catalog's tables to this release."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, text

from lakehouse.catalog.store import models
from lakehouse.catalog.store.database import Database
from lakehouse.catalog.store.reaction import damaged
from lakehouse.catalog.store.tables import metadata
from lakehouse.errors import CatalogUnavailable, LakehouseError

REVISION = "0020"
"""The newest migration; a catalog at this revision is opened without loading Alembic."""
_REVISION = re.compile(r"[0-9]{4}")
MIGRATIONS = Path(__file__).parents[1] / "migrations"
_KEY = "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)"
_ONE_AT_A_TIME = text("SELECT pg_advisory_xact_lock(7150623954837463021)")


def current_revision(database: Database) -> str | None:
    """The revision that a catalog is at; None for an empty database."""
    return database.read(_revision)


def ensure_migrated(database: Database) -> None:
    """Create or upgrade the catalog's tables if they are not those of this release; safe from many processes.

    Raises `CatalogUnavailable` for something that is not a catalog, or a damaged one.
    """
    _check_file(database)
    try:
        if current_revision(database) != REVISION:
            database.run(lambda connection: _upgrade(connection, database))
    except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, LakehouseError):
            raise
        # Errors of SQLite's bindings, SQLAlchemy and Alembic on bytes and rows that no release wrote.
        raise damaged(database.url, error) from error


def _check_file(database: Database) -> None:
    """Open only a file, since opening a FIFO would block."""
    path = Path(str(database.url.database))
    if database.is_sqlite and path.exists() and not path.is_file():
        raise CatalogUnavailable(
            "the catalog's path is not a file; name another one, or move away what is there", path=path
        )


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all()
    if len(found) > 1 or not all(isinstance(one, str) and _REVISION.fullmatch(one) for one in found):
        raise ValueError(f"revisions that no release wrote: {found}")
    return found[0] if found else None


def _upgrade(connection: Connection, database: Database) -> None:
    if not database.is_sqlite:
        connection.execute(_ONE_AT_A_TIME)
    held = _revision(connection)
    if held == REVISION:
        return
    if held is not None and held > REVISION:
        raise CatalogUnavailable(
            "the catalog was written by a newer release; upgrade this package", found=held, expected=REVISION
        )
    if held is None and not inspect(connection).get_table_names():
        _create(connection)
        return
    if held is not None and not any(MIGRATIONS.glob(f"versions/{held}_*.py")):
        raise ValueError(f"a revision that no release wrote: {held}")
    # Alembic takes longer to import than a migrated catalog to open.
    command: Any = import_module("alembic.command")
    config = import_module("alembic.config").Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, REVISION)


def _create(connection: Connection) -> None:
    """The tables as the models have them, which are those that all migrations make, in a tenth of the time."""
    metadata.create_all(connection, checkfirst=False)
    connection.execute(models.lake.insert().values(id=1, head=0, counter=0, next_token=1, clock_us=0, horizon=0))
    connection.execute(text(f"CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, {_KEY})"))
    connection.execute(text("INSERT INTO alembic_version VALUES (:revision)"), {"revision": REVISION})
