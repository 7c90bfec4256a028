"""What a restore would do to a table's rows and columns, before it is confirmed."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.core.interval import from_us
from lakehouse.reading.between import rows_between
from queries.words import count_text

MOST_ROWS = 1_000_000
MOST_SECONDS = 15.0
MOST_CHUNKS = 1_000
_KINDS = {"insert": "added", "delete": "removed", "update_after": "changed"}
"""What becomes of rows, by the change feed's words; the other form of an update is not counted again."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Rows by what becomes of them, a row a chunk, changes of columns in words; ``is_cut``: not all were counted."""

    rows: Mapping[str, int]
    chunks: pd.DataFrame
    columns: tuple[str, ...]
    is_cut: bool

    @property
    def sentence(self) -> str:
        """The rows in a sentence."""
        if not any(self.rows.values()):
            return "No row differs."
        more = "At least " if self.is_cut else ""
        parts = [f"{count_text(count, 'row')} {kind}" for kind, count in self.rows.items() if count]
        return f"{more}{', '.join(parts)}, in {count_text(len(self.chunks), 'chunk')}."


def read_effect(lake: Any, name: str, version: int) -> Effect:
    """What differs between a table's newest rows and those of a version, within a limit of rows and time.

    Cost: the files that only one of them has, and of others those with changed rows. Raises `SegmentUnreadable`.
    """
    table = lake.table(name)
    spec, head = table.spec, table.version
    by_chunk: Counter[tuple[int, str]] = Counter()
    deadline, is_cut = time.monotonic() + MOST_SECONDS, False
    for batch in rows_between(lake.session, spec, head, version):
        for kind in _KINDS:
            rows = batch.filter(pc.equal(batch.column("_change_type"), kind))
            if len(rows):
                by_chunk.update({(start, kind): count for start, count in _counted(spec, rows)})
        if by_chunk.total() >= MOST_ROWS or time.monotonic() > deadline:
            is_cut = True
            break
    totals = {word: sum(count for (_, one), count in by_chunk.items() if one == kind) for kind, word in _KINDS.items()}
    starts = sorted({start for start, _ in by_chunk})
    chunks = pd.DataFrame(
        {
            "chunk": "all of time" if not spec.time else spec.grain.label(from_us(start)),
            **{f"rows {word}": by_chunk[start, kind] for kind, word in _KINDS.items()},
        }
        for start in starts[:MOST_CHUNKS]
    )
    return Effect(totals, chunks, tuple(map(str, table.column_changes(None, version))), is_cut)


def _counted(spec: Any, rows: pa.RecordBatch) -> list[tuple[int, int]]:
    """How many rows there are in each chunk, by its start."""
    if not spec.time:
        return [(0, len(rows))]
    times = rows.column(spec.time).cast(pa.int64()).to_numpy(zero_copy_only=False)
    starts, counts = np.unique(spec.grain.floor_us(times), return_counts=True)
    return list(zip(starts.tolist(), counts.tolist(), strict=True))
