"""Columns and indexes that the catalog's tables share."""

from typing import Any

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, MetaData, Table, text
from sqlalchemy.dialects import postgresql, sqlite

metadata = MetaData()
"""The catalog's tables, and nobody else's."""
NUMBER = BigInteger().with_variant(Integer(), "sqlite")
"""SQLite numbers rows only for a column of exactly the type INTEGER."""


def big(name: str, **options: object) -> Column:  # type: ignore[type-arg]
    """A whole number of 64 bits, not null unless the options say so."""
    return Column(name, BigInteger(), **{"nullable": False, **options})  # type: ignore[arg-type]


def reference(name: str, target: str, **options: object) -> Column:  # type: ignore[type-arg]
    """The number of a row of another table."""
    return Column(name, BigInteger(), ForeignKey(target), **{"nullable": False, **options})  # type: ignore[arg-type]


def inserting(table: Table, dialect: str) -> Any:
    """An INSERT that can say what becomes of a row that is there."""
    return (sqlite if dialect == "sqlite" else postgresql).insert(table)


def live_name(table: str) -> Index:
    """What is not dropped has a name of its own."""
    where = text("dropped_version IS NULL")
    return Index(f"{table}_live_name", "name", unique=True, sqlite_where=where, postgresql_where=where)


def dropped(table: str) -> Index:
    """For clean-up: entries that are not live, by the version that dropped them."""
    where = text("dropped_version IS NOT NULL")
    return Index(f"{table}_dropped", "dropped_version", sqlite_where=where, postgresql_where=where)


def open_tasks(name: str, column: str, *, unique: bool = False) -> Index:
    """Over open tasks, which are few whatever the history."""
    where = text("state IN ('waiting', 'running')")
    return Index(name, column, unique=unique, sqlite_where=where, postgresql_where=where)
