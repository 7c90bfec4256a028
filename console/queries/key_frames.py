"""Queries of the Key frames page: how a chunk's state is built, and how long that takes."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from lakehouse.core import Interval
from lakehouse.core.key_frame import ChainLink
from queries.words import framed, size_text

MOST_CHUNKS = 200
MOST_STEPS = 400
"""Steps of a chunk's history that are read."""
FRAMES_SHOWN = 60
"""Steps of it that are drawn: those around the version shown."""


@dataclass(frozen=True, slots=True)
class ChunkHistory:
    """The history of one bin: ``strip`` has one row for each step, and says which ones build the version."""

    chunk: Interval
    strip: pd.DataFrame
    key_frames: int
    key_frame_bytes: int
    chain: int
    read_milliseconds: float


def list_chains(lake: Any, name: str, interval: Interval | None) -> pd.DataFrame:
    """One row for each bin, most recently changed first."""
    table = lake.table(name)
    return framed(
        (
            {
                "chunk": one.chunk.start,
                "until": one.chunk.end,
                "newest version": one.version,
                "newest key frame": "none" if one.frame_version is None else f"at version {one.frame_version}",
                "entries in it": one.entries,
                "versions behind it": one.chain,
            }
            for one in lake.catalog.chain_lengths(table.spec, interval, MOST_CHUNKS)
        ),
        "chunk",
        "until",
    )


def read_chunk_histories(lake: Any, name: str, version: int, chunk: Interval) -> list[ChunkHistory]:
    """The histories from which a chunk's state is built: its own, and those of the larger bins that hold it."""
    table = lake.table(name)
    started = time.perf_counter()
    lake.catalog.replayed(table.spec, version, chunk)
    taken = 1000 * (time.perf_counter() - started)
    by_run: dict[Interval, list[ChainLink]] = {}
    for step in lake.catalog.chunk_history(table.spec, chunk, MOST_STEPS):
        by_run.setdefault(step.chunk, []).append(step)
    return [_history_of(run, steps, version, taken) for run, steps in by_run.items()]


def _history_of(run: Interval, steps: Sequence[ChainLink], version: int, taken: float) -> ChunkHistory:
    frames = [one for one in steps if one.is_key_frame]
    start = max((one.version for one in frames if one.version <= version), default=-1)
    rows = []
    for step in steps:
        builds = step.version <= version and (step.version == start if step.is_key_frame else step.version > start)
        rows.append(
            {
                "version": step.version,
                "what": "key frame" if step.is_key_frame else "delta",
                "added": step.added,
                "dropped": step.dropped,
                "live after it": step.entries,
                "size": size_text(step.bytes) if step.is_key_frame else "",
                "part": "builds this version" if builds else "later" if step.version > version else "earlier",
            }
        )
    strip = pd.DataFrame(rows)
    here = int((strip["version"] <= version).sum())
    first = max(0, min(here - FRAMES_SHOWN * 3 // 4, len(strip) - FRAMES_SHOWN))
    chain = int(((strip["part"] == "builds this version") & (strip["what"] == "delta")).sum())
    return ChunkHistory(
        run,
        strip.iloc[first : first + FRAMES_SHOWN],
        len(frames),
        sum(one.bytes for one in frames),
        chain,
        taken,
    )
