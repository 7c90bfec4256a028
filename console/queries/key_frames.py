"""Queries of the Key frames page: how a chunk's state is built, and how long that takes.

The catalog keeps what touches many chunks once for a run of them. A run's own edges lie centuries apart, so it is named
by the chunks that the table has in it.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from lakehouse.core import Interval
from lakehouse.core.key_frame import ChainLink
from queries.timeline import whole
from queries.words import chunk_text, count_text, framed, size_text

MOST_CHUNKS = 200
MOST_STEPS = 400
"""Steps of a chunk's history that are read."""
FRAMES_SHOWN = 60
"""Steps of it that are drawn: those around the version shown."""


@dataclass(frozen=True, slots=True)
class ChunkHistory:
    """The history of one bin: ``strip`` has one row for each step, and says which ones build the version.

    ``label`` names its chunks; ``is_shared`` says that they are more than one. ``start`` is the version of the key
    frame that the version is built from, None where there is none.
    """

    label: str
    is_shared: bool
    strip: pd.DataFrame
    start: int | None
    key_frames: int
    key_frame_bytes: int
    chain: int
    read_milliseconds: float


def list_chains(lake: Any, name: str, interval: Interval | None) -> pd.DataFrame:
    """One row for each bin, most recently changed first."""
    table = lake.table(name)
    chains = lake.catalog.chain_lengths(table.spec, interval, MOST_CHUNKS)
    named = _named(lake, table, [one.chunk for one in chains])
    return framed(
        (
            {
                "chunk": named[one.chunk][0],
                "from": named[one.chunk][1].start,
                "until": named[one.chunk][1].end,
                "newest version": one.version,
                "newest key frame": "none" if one.frame_version is None else f"at version {one.frame_version}",
                "entries in it": one.entries,
                "versions behind it": one.chain,
            }
            for one in chains
        ),
        "from",
        "until",
    )


def _named(lake: Any, table: Any, runs: Sequence[Interval]) -> dict[Interval, tuple[str, Interval]]:
    """Runs by the chunks that the table has in them: in words, and as an interval.

    Cost: nothing, unless one is longer than a chunk.
    """
    grain = table.spec.bin_grain
    if all(grain.chunk(one.start) == one for one in runs):
        return {one: (chunk_text(grain, one), one) for one in runs}
    found = whole(*lake.catalog.live(table.spec, table.version))
    reach = None if found is None else grain.align(found)
    return {one: (chunk_text(grain, one, reach), one if reach is None else one.intersect(reach) or one) for one in runs}


def read_chunk_histories(lake: Any, name: str, version: int, chunk: Interval) -> list[ChunkHistory]:
    """The histories from which a chunk's state is built: its own, and those of the larger bins that hold it."""
    table = lake.table(name)
    started = time.perf_counter()
    lake.catalog.replayed(table.spec, version, chunk)
    taken = 1000 * (time.perf_counter() - started)
    by_run: dict[Interval, list[ChainLink]] = {}
    for step in lake.catalog.chunk_history(table.spec, chunk, MOST_STEPS):
        by_run.setdefault(step.chunk, []).append(step)
    named = _named(lake, table, list(by_run))
    return [
        _history_of(named[run][0], run != table.spec.bin_grain.chunk(run.start), steps, version, taken)
        for run, steps in by_run.items()
    ]


def _history_of(label: str, is_shared: bool, steps: Sequence[ChainLink], version: int, taken: float) -> ChunkHistory:
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
        label,
        is_shared,
        strip.iloc[first : first + FRAMES_SHOWN],
        start if start >= 0 else None,
        len(frames),
        sum(one.bytes for one in frames),
        chain,
        taken,
    )


def how_built(history: ChunkHistory, version: int) -> str:
    """In a sentence, how the state of a chunk at a version is put together."""
    first = "nothing" if history.start is None else f"the key frame of version {history.start}"
    later = f" and {count_text(history.chain, 'delta')} after it" if history.chain else ""
    return f"Version {version} is built from {first}{later}."
