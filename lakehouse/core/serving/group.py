"""A group of query nodes as the catalog knows it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from lakehouse.core.listing import Listing
from lakehouse.core.serving.handoff import GroupState, NodeState, lacking


class NodeStage(StrEnum):
    """How far a node has come."""

    JOINING = "joining"
    """It answers, and loads its first version; no flip waits for it."""
    SERVING = "serving"
    LEAVING = "leaving"
    """It ends what it has begun."""


@dataclass(frozen=True, slots=True)
class SlowQuery:
    """A query among the slowest of a node since it started; its values are left out of the statement."""

    statement: str
    seconds: float
    version: int


@dataclass(frozen=True, slots=True)
class NodeReport:
    """What a node says of itself. Counts are since it started.

    ``loading_bytes`` of ``loading_of`` are there of the version that is being loaded. ``hits`` are segments that
    answers read from the cache, ``misses`` those that they read from the warehouse; ``result_hits`` answers that were
    known. ``run`` is drawn when a node starts: another one of the same name has another.
    """

    loaded: tuple[int, ...] = ()
    used: tuple[int, ...] = ()
    failed: Mapping[int, str] = field(default_factory=dict)
    loading_bytes: int = 0
    loading_of: int = 0
    held_files: int = 0
    held_bytes: int = 0
    limit_bytes: int | None = None
    queries: int = 0
    errors: int = 0
    result_hits: int = 0
    hits: int = 0
    misses: int = 0
    slow: tuple[SlowQuery, ...] = ()
    run: str = ""

    def to_json(self) -> str:
        """The text by which the catalog keeps it."""
        return json.dumps({name: value for name, value in asdict(self).items() if value}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse. What another release wrote may say more or less than this one knows.

        >>> one = NodeReport(loaded=(3,), failed={5: "disk full"}, slow=(SlowQuery("SELECT ?", 0.5, 3),))
        >>> NodeReport.from_json(one.to_json()) == one
        True
        """
        held: dict[str, Any] = json.loads(text)
        found = {one.name: held[one.name] for one in fields(cls) if one.name in held}
        for name in ("loaded", "used"):
            found[name] = tuple(map(int, found.get(name, ())))
        found["failed"] = {int(version): str(cause) for version, cause in found.get("failed", {}).items()}
        found["slow"] = tuple(SlowQuery(**one) for one in found.get("slow", ()))
        return cls(**found)


@dataclass(frozen=True, slots=True)
class Node:
    """A query node as it reported itself last; ``lease_seconds`` are left of its lease, less than 0 once it ended."""

    id: str
    group: str
    url: str
    stage: NodeStage
    live: int
    lease_seconds: float
    report: NodeReport = field(repr=False, default_factory=NodeReport)

    @property
    def is_leased(self) -> bool:
        """Whether it has renewed its lease, so that flips wait for it."""
        return self.lease_seconds >= 0

    @property
    def word(self) -> str:
        """How it is, in a word: joining, serving, leaving, or silent once its lease has ended."""
        return self.stage.value if self.is_leased else "silent"

    @property
    def hit_rate(self) -> float | None:
        """The share of segments that its answers read from the cache; None before the first."""
        asked = self.report.hits + self.report.misses
        return self.report.hits / asked if asked else None

    @property
    def state(self) -> NodeState:
        """What the handoff has to know of it."""
        return NodeState(
            self.id,
            self.live,
            frozenset(self.report.loaded),
            frozenset(self.report.used),
            frozenset(self.report.failed),
            self.is_leased,
            self.stage is not NodeStage.JOINING,
            self.stage is NodeStage.LEAVING,
        )


@dataclass(frozen=True, slots=True)
class Group:
    """A group: its live version, that it is to have next, and its nodes, by id.

    ``lake`` is drawn when the group is made: a node with another one serves another catalog.
    """

    name: str
    lake: str
    live: int
    target: int | None
    flips: int
    replicas: int | None
    flipped_at: datetime
    nodes: Listing[Node]

    @property
    def state(self) -> GroupState:
        """What the handoff has to know of it."""
        return GroupState(self.live, self.target, self.flips, self.replicas)

    @property
    def slowest(self) -> list[SlowQuery]:
        """The slowest queries of all nodes, those first that took longest."""
        return sorted((one for node in self.nodes for one in node.report.slow), key=lambda one: -one.seconds)

    @property
    def waits_for(self) -> tuple[str, ...]:
        """Nodes that have yet to load the target."""
        return () if self.target is None else lacking(self.target, [one.state for one in self.nodes])


@dataclass(frozen=True, slots=True)
class Glance:
    """What a node looks at before each answer: one small row."""

    erasure: int
    """The version of the lake's newest erasure; 0 without any."""
    head: int
    live: int
    target: int | None
    flips: int
