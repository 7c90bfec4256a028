"""The table of uploads in parts that are not over: a store keeps what was put of them until they are aborted."""

from __future__ import annotations

from sqlalchemy import Column, Text
from sqlmodel import Field

from lakehouse.catalog.store.columns import Row, reference


class UploadRow(Row, table=True):
    """An upload of an operation's file, from before its first part until it is completed or aborted.

    ``id`` is the store's; ``path`` is where the file will be stored.
    """

    __tablename__ = "upload"
    operation: int = Field(sa_column=reference("operation.number", primary_key=True))
    path: str = Field(sa_column=Column(Text(), primary_key=True))
    id: str = Field(sa_column=Column(Text(), primary_key=True))


upload = UploadRow.__table__  # type: ignore[attr-defined]
