"""Bringing a catalog's tables to the form that this release needs."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, text

from lakehouse.catalog.database import Database
from lakehouse.errors import CatalogUnavailable

REVISION = "0008"
"""The newest migration; a catalog at this revision is opened without loading Alembic."""
_MIGRATIONS = Path(__file__).with_name("migrations")
_ONE_AT_A_TIME = text("SELECT pg_advisory_xact_lock(7150623954837463021)")


def current_revision(database: Database) -> str | None:
    """The revision that a catalog is at; None for an empty database."""
    return database.read(_revision)


def ensure_migrated(database: Database) -> None:
    """Create or upgrade the catalog's tables where they are not those of this release; safe from many processes."""
    if current_revision(database) != REVISION:
        database.run(lambda connection: _upgrade(connection, database))


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


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
    # Alembic takes longer to import than a migrated catalog to open.
    command: Any = import_module("alembic.command")
    config = import_module("alembic.config").Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, REVISION)
