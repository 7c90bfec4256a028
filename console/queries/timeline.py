"""What the Timeline page asks: one table at one version as bars."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from lakehouse.core.bars import Bar, bars
from queries.words import describe, drawable, text_of

MAX_BARS = 2_000
"""Above this many bars a picture is slow to draw and no single one can be seen: neighbours are joined."""
KINDS = {
    "visible": "visible",
    "overshadowed": "overshadowed",
    "tombstone": "tombstone",
    "mask": "tombstone of some rows",
}
_NARROWEST_PART = 1 / 500
"""No bar is drawn narrower than this part of the picture: a segment of one row would not be seen."""
_JOIN_PART = 1 / 1_000
"""Neighbours that are nearer than this part of the picture are joined."""


@dataclass(frozen=True)
class TableState:
    """One table at one version: its totals, chunks and picture."""

    name: str
    version: int
    grain: str
    rows_stored: int
    bytes: int
    segments: int
    overshadowed: int
    tombstones: int
    chunks: pd.DataFrame
    picture: pd.DataFrame
    bars: int


def read_state(lake: Any, name: str, version: int) -> TableState:
    """Everything that the page shows of one table at one version."""
    table = lake.table(name)
    segments, tombstones = table.segments(as_of=version), table.tombstones(as_of=version)
    drawn = bars(segments, tombstones)
    visible = {bar.of.id for bar in drawn if bar.kind == "visible"}
    return TableState(
        name=name,
        version=version,
        grain=str(table.grain),
        rows_stored=sum(one.rows for one in segments),
        bytes=sum(one.bytes for one in segments),
        segments=len(segments),
        overshadowed=sum(one.id not in visible for one in segments),
        tombstones=len(tombstones),
        chunks=pd.DataFrame(
            [
                {
                    "chunk": one.start,
                    "until": one.end,
                    "version": one.version,
                    "segments": one.segments,
                    "tombstones": one.tombstones,
                    "rows": one.rows,
                    "size": one.bytes,
                }
                for one in table.chunks(as_of=version)
            ]
        ),
        picture=frame_of(joined(drawn) if len(drawn) > MAX_BARS else [[bar] for bar in drawn]),
        bars=len(drawn),
    )


def joined(drawn: Sequence[Bar]) -> list[list[Bar]]:
    """Bars of one ordinal and kind that touch, or nearly do, as one group."""
    end_of_all, start_of_all = max(bar.end for bar in drawn), min(bar.start for bar in drawn)
    near = (end_of_all - start_of_all) * _JOIN_PART
    groups: list[list[Bar]] = []
    for bar in sorted(drawn, key=lambda one: (one.ordinal, one.kind, one.start)):
        last = groups[-1][-1] if groups else None
        if last and (last.ordinal, last.kind) == (bar.ordinal, bar.kind) and bar.start - last.end <= near:
            groups[-1].append(bar)
        else:
            groups.append([bar])
    return groups


def frame_of(groups: Sequence[Sequence[Bar]]) -> pd.DataFrame:
    """A row a group of bars, with what a tooltip says of it, as text."""
    if not groups:
        return pd.DataFrame()
    spans = [(min(bar.start for bar in group), max(bar.end for bar in group)) for group in groups]
    narrowest = (max(end for _, end in spans) - min(start for start, _ in spans)) * _NARROWEST_PART
    rows = []
    for group, (start, end) in zip(groups, spans, strict=True):
        rows.append(
            {
                "kind": KINDS[group[0].kind],
                "ordinal": group[0].ordinal,
                "start": drawable(start),
                "end": drawable(max(end, start + narrowest)),
                "from": text_of(start),
                "until": text_of(end),
                "what": describe(group[0].of) if len(group) == 1 else f"{len(group)} together",
                "rows": sum(bar.of.rows for bar in group),
            }
        )
    return pd.DataFrame(rows)
