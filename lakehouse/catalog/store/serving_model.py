"""The tables of query nodes: groups, each with its live version in one row, and the nodes' leases and reports."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, Index, Integer, Table, Text

from lakehouse.catalog.store.columns import big, metadata

serving_group = Table(
    "serving_group",
    metadata,
    Column("name", Text(), primary_key=True),
    Column("lake", Text(), nullable=False),
    big("live"),
    big("target", nullable=True),
    big("flips"),
    Column("replicas", Integer(), nullable=True),
    big("flipped_us"),
    CheckConstraint("target IS NULL OR target > live"),
)
"""A group. The flip of its live version is one update of this row, by compare-and-set on ``flips``."""
serving_node = Table(
    "serving_node",
    metadata,
    Column("id", Text(), primary_key=True),
    Column("group_name", Text(), nullable=False),
    Column("url", Text(), nullable=False),
    Column("stage", Text(), nullable=False),
    big("live"),
    big("least"),
    big("lease_until_us"),
    Column("report", Text(), nullable=False),
    Index("serving_node_group", "group_name"),
)
"""A node. Versions from ``least`` on are protected from expiry until its lease ends.

``report`` is a `lakehouse.core.serving.group.NodeReport` as JSON.
"""
