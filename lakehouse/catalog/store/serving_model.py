"""The tables of query nodes: groups, each with its live version in one row, and the nodes' leases and reports."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, Index, Integer, Text
from sqlmodel import Field

from lakehouse.catalog.store.columns import Row, big


class ServingGroupRow(Row, table=True):
    """A group. The flip of its live version is one update of this row, by compare-and-set on ``flips``."""

    __tablename__ = "serving_group"
    __table_args__ = (CheckConstraint("target IS NULL OR target > live"),)
    name: str = Field(sa_column=Column(Text(), primary_key=True))
    lake: str = Field(sa_column=Column(Text(), nullable=False))
    live: int = Field(sa_column=big())
    target: int | None = Field(sa_column=big(nullable=True))
    flips: int = Field(sa_column=big())
    replicas: int | None = Field(sa_column=Column(Integer(), nullable=True))
    flipped_us: int = Field(sa_column=big())


class ServingNodeRow(Row, table=True):
    """A node. Versions from ``least`` on are protected from expiry until its lease ends.

    ``report`` is a `lakehouse.core.serving.group.NodeReport` as JSON.
    """

    __tablename__ = "serving_node"
    __table_args__ = (Index("serving_node_group", "group_name"),)
    id: str = Field(sa_column=Column(Text(), primary_key=True))
    group_name: str = Field(sa_column=Column(Text(), nullable=False))
    url: str = Field(sa_column=Column(Text(), nullable=False))
    stage: str = Field(sa_column=Column(Text(), nullable=False))
    live: int = Field(sa_column=big())
    least: int = Field(sa_column=big())
    lease_until_us: int = Field(sa_column=big())
    report: str = Field(sa_column=Column(Text(), nullable=False))


serving_group = ServingGroupRow.__table__  # type: ignore[attr-defined]
serving_node = ServingNodeRow.__table__  # type: ignore[attr-defined]
