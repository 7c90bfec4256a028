"""The table of topics: what the processes that run streams said of them last."""

from __future__ import annotations

from sqlalchemy import Column, Text
from sqlmodel import Field

from lakehouse.catalog.store.columns import Row, big


class TopicRow(Row, table=True):
    """A topic, the process that runs or ran it, and its last report (`lakehouse.core.topic.Progress`) as JSON."""

    __tablename__ = "topic"
    name: str = Field(sa_column=Column(Text(), primary_key=True))
    process: str = Field(sa_column=Column(Text(), nullable=False))
    state: str = Field(sa_column=Column(Text(), nullable=False))
    reported_us: int = Field(sa_column=big())
    report: str = Field(sa_column=Column(Text(), nullable=False))


topic = TopicRow.__table__  # type: ignore[attr-defined]
