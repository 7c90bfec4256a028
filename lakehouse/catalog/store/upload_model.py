"""The table of uploads in parts that are not over: a store keeps what was put of them until they are aborted."""

from __future__ import annotations

from sqlalchemy import Column, Table, Text

from lakehouse.catalog.store.columns import metadata, reference

upload = Table(
    "upload",
    metadata,
    reference("operation", "operation.number", primary_key=True),
    Column("path", Text(), primary_key=True),
    Column("id", Text(), primary_key=True),
)
"""An upload of an operation's file, from before its first part until it is completed or aborted.

``id`` is the store's; ``path`` is where the file will be stored.
"""
