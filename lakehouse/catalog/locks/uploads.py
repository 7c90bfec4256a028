"""Uploads of operations' files in parts, noted with their operation from before the first part until they are over."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, delete, insert, literal, select

from lakehouse.catalog.store.database import Database
from lakehouse.catalog.store.models import operation
from lakehouse.catalog.store.prepared import run_for_each
from lakehouse.catalog.store.upload_model import upload
from lakehouse.errors import LockLost

MOST = 400
"""How many uploads one batch has."""
Upload = tuple[str, str]
"""The stored path of a file, and the store's id of its upload."""


def note(connection: Connection, operation_id: str, one: Upload) -> None:
    """Note an upload with its operation. Raises `LockLost` if that does not run any more: who ended it looks once."""
    path, upload_id = one
    running = select(operation.c.number, literal(path), literal(upload_id)).where(
        operation.c.id == operation_id, operation.c.state == "running"
    )
    if connection.execute(insert(upload).from_select(["operation", "path", "id"], running)).rowcount != 1:
        raise LockLost("the operation was ended while it wrote; begin it again", operation=operation_id)


def forget(connection: Connection, uploads: Sequence[Upload]) -> None:
    """Remove the notes of uploads that are over."""
    its = upload.c.path == bindparam("of"), upload.c.id == bindparam("over")
    run_for_each(connection, delete(upload).where(*its), [{"of": path, "over": one} for path, one in uploads])


def left(connection: Connection) -> list[Upload]:
    """Uploads whose operations have ended, `MOST` of them at most."""
    ended = select(upload.c.path, upload.c.id).join(operation, operation.c.number == upload.c.operation)
    rows = connection.execute(ended.where(operation.c.state != "running").limit(MOST)).all()
    return [(row.path, row.id) for row in rows]


class OperationUploads:
    """The notes of uploads of one catalog's operations, which a stored path names; each its own transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def began(self, stored: str, upload: str) -> None:
        """Note an upload. Raises `LockLost` if the operation does not run any more."""
        operation_id = stored.split("/")[1]
        self._database.run(lambda connection: note(connection, operation_id, (stored, upload)))

    def ended(self, stored: str, upload: str) -> None:
        """Forget an upload that is over."""
        self._database.run(lambda connection: forget(connection, [(stored, upload)]))
