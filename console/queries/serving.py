"""Queries of the Serving page: groups of query nodes as these reported them last."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from lakehouse.core.serving.group import Group, Node
from shown import shown

MOST = 500
"""The most nodes, or statements, that are listed."""


@dataclass(frozen=True, slots=True)
class Serving:
    """What the page shows: a row for each group, node and slow statement, figures, and what cannot be loaded."""

    groups: pd.DataFrame
    nodes: pd.DataFrame
    slow: pd.DataFrame
    troubles: list[tuple[str, str]]
    live: int
    handoffs: int
    queries: int


def serving(lake: Any) -> Serving:
    """All groups and nodes, by name. Cost: one small read of the catalog."""
    groups = lake.serving()
    nodes = [one for group in groups for one in group.nodes]
    return Serving(
        pd.DataFrame(_group(one) for one in groups[:MOST]),
        pd.DataFrame(_node(one) for one in nodes[:MOST]),
        pd.DataFrame(
            {"took s": one.seconds, "statement": shown(one.statement, 500), "at version": one.version}
            for group in groups
            for one in group.slowest[:MOST]
        ),
        [
            (shown(one.id, 100), shown(f"cannot load version {version}: {why}", 500))
            for one in nodes[:MOST]
            for version, why in one.report.failed.items()
        ],
        sum(one.is_leased for one in nodes),
        sum(one.target is not None for one in groups),
        sum(one.report.queries for one in nodes),
    )


def _group(one: Group) -> dict[str, Any]:
    return {
        "group": shown(one.name),
        "live version": one.live,
        "next version": "" if one.target is None else str(one.target),
        "waits for": shown(", ".join(one.waits_for), 300),
        "flips": one.flips,
        "flipped": one.flipped_at,
        "nodes": sum(node.is_leased for node in one.nodes),
    }


def _node(one: Node) -> dict[str, Any]:
    report = one.report
    return {
        "node": shown(one.id),
        "group": shown(one.group),
        "state": one.word,
        "answers at": one.live,
        "loaded": ", ".join(map(str, report.loaded)),
        "next loaded %": round(100 * report.loading_bytes / report.loading_of) if report.loading_of else None,
        "size": report.held_bytes,
        "queries": report.queries,
        "known": report.result_hits,
        "from cache %": None if one.hit_rate is None else round(100 * one.hit_rate, 1),
        "errors": report.errors,
        "address": shown(one.url, 200),
    }
