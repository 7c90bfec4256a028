"""Key frames, and the chains of deltas behind them: how a chunk's state is stored."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse.core.interval import Interval


@dataclass(frozen=True, slots=True)
class KeyFrame:
    """One chunk's state at one version, materialized: how many live entries it holds, and its size."""

    chunk: Interval
    version: int
    entries: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One step by which a chunk's state is built: its key frame (``is_key_frame``), or the delta of a version after it.

    ``added`` and ``dropped`` count entries; ``entries`` is how many are live after the step, ``bytes`` the size of a
    key frame. ``chunk`` may be a run of chunks: what spans many of them is kept once for all.
    """

    chunk: Interval
    version: int
    is_key_frame: bool
    added: int
    dropped: int
    entries: int
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class ChainLength:
    """How far the newest key frame of a chunk, or of a run of chunks kept together, lies behind.

    ``version`` is the newest that changed it, ``frame_version`` that of its newest key frame with ``entries`` (None: it
    has none), ``chain`` the number of versions after that.
    """

    chunk: Interval
    version: int
    frame_version: int | None
    entries: int
    chain: int
