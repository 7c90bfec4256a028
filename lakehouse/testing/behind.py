"""Direct access to a catalog's database, for tests that query, age or damage it.

A process keeps its cached states after such a change; `Catalog.forget_remembered` makes it read them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Executable, Row

from lakehouse.catalog.catalog import Catalog
from lakehouse.catalog.store.database import Database

T = TypeVar("T")


@contextmanager
def database(catalog: Catalog) -> Iterator[Database]:
    """A catalog's database, opened with separate connections."""
    with closing(Database(catalog.address)) as opened:
        yield opened


def is_on_sqlite(catalog: Catalog) -> bool:
    """Whether the catalog is a SQLite file rather than on a server."""
    return catalog.address.startswith("sqlite")


def file_of(catalog: Catalog) -> Path:
    """The file of a SQLite catalog."""
    with database(catalog) as opened:
        return Path(str(opened.url.database))


def ask(catalog: Catalog, question: Callable[[Connection], T]) -> T:
    """The result of a function that reads by a connection, from one state of the catalog."""
    with database(catalog) as opened:
        return opened.read(question)


def rows_of(catalog: Catalog, query: Executable, **values: Any) -> list[Row[Any]]:
    """Every row of a query.

    >>> from sqlalchemy import text
    >>> rows_of(lake.catalog, text("SELECT name FROM lake_table WHERE id > :least"), least=0)
    [('flights',)]
    """
    return ask(catalog, lambda connection: list(connection.execute(query, values).all()))


def change(catalog: Catalog, *statements: Executable, **values: Any) -> None:
    """Run statements in one writing transaction."""

    def work(connection: Connection) -> None:
        for one in statements:
            connection.execute(one, values)

    change_by(catalog, work)


def change_by(catalog: Catalog, work: Callable[[Connection], T]) -> T:
    """The result of a function that writes by a connection, in one transaction."""
    with database(catalog) as opened:
        return opened.run(work)
