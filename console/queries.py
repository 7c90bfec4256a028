"""What the pages ask of the lake: plain values and data frames, no drawing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd

import lakehouse
from lakehouse.core import Segment, Tombstone
from lakehouse.core.bars import Bar, bars

MAX_BARS = 2_000
"""Above this many bars a picture is slow to draw and no single one can be seen: neighbours are joined."""
MICROSECOND = timedelta(microseconds=1)
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


def open_lake() -> Any:
    """The lake that LAKEHOUSE_CATALOG and LAKEHOUSE_WAREHOUSE name, or the one in ./.lakehouse."""
    return lakehouse.connect()


def list_tables(lake: Any) -> pd.DataFrame:
    """A row a table, as stored: rows that tombstones hide are counted."""
    return pd.DataFrame([_summary(lake.table(name)) for name in lake.tables()])


def _summary(table: Any) -> dict[str, Any]:
    version = table.version
    segments = table.segments(as_of=version)
    return {
        "table": table.name,
        "version": version,
        "grain": str(table.grain),
        "first row": min((one.start for one in segments), default=None),
        "last row": max((one.end - MICROSECOND for one in segments), default=None),
        "segments": len(segments),
        "tombstones": len(table.tombstones(as_of=version)),
        "rows": sum(one.rows for one in segments),
        "size": sum(one.bytes for one in segments),
    }


def list_versions(lake: Any, name: str, limit: int) -> pd.DataFrame:
    """A row a commit of one table, newest first, with the tags that name it."""
    tags: dict[int, list[str]] = {}
    for tag, version in lake.tags().items():
        tags.setdefault(version, []).append(tag)
    return pd.DataFrame(
        [
            {
                "version": commit.version,
                "committed": commit.committed_at,
                "operation": commit.operation,
                "tables": ", ".join(commit.tables),
                "segments": change(commit.added, commit.dropped),
                "rows": change(commit.rows_added, commit.rows_deleted),
                "tombstones": change(commit.tombstones_added, commit.tombstones_dropped),
                "tags": ", ".join(sorted(tags.get(commit.version, []))),
                "message": commit.message or "",
            }
            for commit in lake.table(name).log(limit)
        ]
    )


def change(added: int, dropped: int) -> str:
    """What came and what went, as in "+3 -1"."""
    return " ".join(f"{sign}{count:,}" for sign, count in (("+", added), ("−", dropped)) if count)


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


def describe(entry: Segment | Tombstone) -> str:
    """One line on a segment or tombstone."""
    if isinstance(entry, Segment):
        return f"segment {entry.id}"
    scope = "" if entry.keys is None else f", only {dict(entry.keys)}"
    return f"{entry.kind} tombstone {entry.id}{scope}"


def drawable(instant: datetime) -> pd.Timestamp:
    """A time inside what a browser and pandas can draw."""
    return pd.Timestamp(min(max(instant, datetime(1700, 1, 1, tzinfo=UTC)), datetime(2250, 1, 1, tzinfo=UTC)))


def size_text(count: int) -> str:
    """A number of bytes in the unit that fits."""
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:,.0f} {unit}" if size >= 100 or unit == "B" else f"{size:.1f} {unit}"


def text_of(instant: datetime) -> str:
    """A UTC time as short as it can be said."""
    return instant.replace(tzinfo=None).isoformat(sep=" ").removesuffix(":00").removesuffix(" 00:00")
