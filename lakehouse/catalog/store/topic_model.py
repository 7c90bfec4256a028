"""The table of topics: what the processes that run streams said of them last."""

from __future__ import annotations

from sqlalchemy import Column, Table, Text

from lakehouse.catalog.store.columns import big, metadata

topic = Table(
    "topic",
    metadata,
    Column("name", Text(), primary_key=True),
    Column("process", Text(), nullable=False),
    Column("state", Text(), nullable=False),
    big("reported_us"),
    Column("report", Text(), nullable=False),
)
"""A topic, the process that runs or ran it, and its last report (`lakehouse.core.topic.Progress`) as JSON."""
