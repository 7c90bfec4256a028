"""What the demo prints at its end: the version log and the timeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid

from lakehouse.core.commit import Commit
from lakehouse.core.timeline import Timeline


def show_log(console: Console, commits: Sequence[Commit]) -> None:
    """The version log, newest first."""
    grid = Grid(title="versions of flights", box=SIMPLE_HEAD, title_justify="left")
    for name in ("version", "rows added", "rows dropped", "segments", "tombstones"):
        grid.add_column(name, justify="right")
    grid.add_column("operation")
    grid.add_column("message")
    for one in commits:
        grid.add_row(
            str(one.version),
            f"{one.rows_added:,}",
            f"{one.rows_deleted:,}",
            f"+{one.added} -{one.dropped}",
            f"+{one.tombstones_added} -{one.tombstones_dropped}",
            one.operation,
            one.message or "",
        )
    console.print(grid)


def show_timeline(console: Console, timeline: Timeline) -> None:
    """What can be seen, from left to right: neighbours with equally many segments and tombstones in one line."""
    grid = Grid(title="timeline of flights", box=SIMPLE_HEAD, title_justify="left")
    for name in ("from", "to"):
        grid.add_column(name)
    for name in ("slices", "segments in each", "tombstones in each"):
        grid.add_column(name, justify="right")
    runs: list[list[Any]] = []
    for one in timeline.slices:
        shape = (len(one.segments), len(one.tombstones))
        if runs and runs[-1][1] == shape and runs[-1][0][-1].end == one.start:
            runs[-1][0].append(one)
        else:
            runs.append([[one], shape])
    for slices, (segments, tombstones) in runs:
        grid.add_row(
            f"{slices[0].start:%Y-%m-%d %H:%M}",
            f"{slices[-1].end:%Y-%m-%d %H:%M}",
            str(len(slices)),
            str(segments),
            str(tombstones),
        )
    console.print(grid)
