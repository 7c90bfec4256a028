"""The tables of a session's lake by name: list, open, create."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from lakehouse.core.beside import is_beside
from lakehouse.core.spec import WriteOrder
from lakehouse.errors import AlreadyExists
from lakehouse.interrupts import undoing
from lakehouse.session.session import Session
from lakehouse.table.table import Table


def table_names(session: Session) -> list[str]:
    """Names of users' tables, sorted."""
    return [one for one in session.catalog.table_names() if not is_beside(one)]


def open_table(session: Session, name: str) -> Table:
    """A table by name. Raises `TableNotFound`."""
    return Table(session, *session.catalog.table(name))


def create_table(
    session: Session,
    name: str,
    schema: Any,
    *,
    time: str | None = None,
    grain: str | None = None,
    primary_key: Sequence[str] = (),
    cluster_by: Sequence[str] | Mapping[str, int] = (),
    write_order: WriteOrder = "commit",
    properties: Mapping[str, str] | None = None,
    if_not_exists: bool = False,
) -> Table:
    """Create a table; see `Lake.create_table`."""
    from lakehouse.schema import define_table  # noqa: PLC0415 - late

    spec = define_table(
        name,
        schema,
        time=time,
        grain=grain,
        primary_key=primary_key,
        cluster_by=cluster_by,
        write_order=write_order,
        properties=properties,
        folder=uuid4().hex,
    )
    try:
        return Table(session, *session.catalog.create_table(spec))
    except AlreadyExists as error:
        if not if_not_exists or "view" in error.facts:
            raise
        return open_table(session, name)


@contextmanager
def dropped_unless_filled(session: Session, name: str) -> Iterator[None]:
    """Drop a table that was created for rows if the block that writes them fails."""
    try:
        yield
    except BaseException:
        with undoing():
            session.catalog.drop_table(name)
        raise
