"""Queries of the Query page: rows of a statement at a version, and what was read and left out."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from cachetools import TTLCache

from lakehouse.actions.roles import Role
from lakehouse.core.pruned import Pruned, Reason
from lakehouse.errors import QueryLimitExceeded
from lakehouse.fair_queue import FairQueue, OnWait
from queries.words import text_of
from shown import shown

MOST_ROWS = 5_000
MOST_BYTES = 16_000_000
MOST_WAITING_SECONDS = 60.0
QUEUE = FairQueue(at_once=2, each=1, most_waiting=20, most_waiting_each=3)
"""Queries run two at a time and one per reader, so memory is bounded and no reader waits for another's queries."""
MOST_KEPT = 8
KEPT_SECONDS = 600.0
MOST_LISTED = 200
"""Segments of each reason that are listed one by one."""
MEANING = {
    Reason.TIME: "its interval lies outside the requested time",
    Reason.BOUNDS: "no value between its minimum and maximum passes",
    Reason.BUCKET: "none of its values is in the value's hash bucket",
    Reason.NULLS: "it has only nulls there, or no nulls",
    Reason.NO_ALTERNATIVE: "each alternative is ruled out by itself",
    Reason.INDEX: "the index of a column says that the value is not there",
    Reason.OVERSHADOWED: "newer tombstones hide all of it",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What one query may cost: rows of its result, beyond which it is cut, seconds, and megabytes of memory."""

    rows: int = MOST_ROWS
    seconds: int = 20
    megabytes: int = 1000

    def within(self, most: Limits) -> Limits:
        """The same, but no more than others."""
        return Limits(*(min(getattr(self, one), getattr(most, one)) for one in ("rows", "seconds", "megabytes")))


LIMITS = Limits()
LEAST = Limits(rows=1, seconds=1, megabytes=400)
MOST: Mapping[Role, Limits] = {
    Role.READER: LIMITS,
    Role.MAINTAINER: Limits(seconds=60, megabytes=2000),
    Role.ADMIN: Limits(seconds=600, megabytes=4000),
}
"""The most that each role may set. Two queries run at a time, so twice their memory is used."""


@dataclass(frozen=True, slots=True)
class TableRead:
    """One table of a statement: what its scan opens, and why not the rest.

    ``opened`` is None, and the rest empty, where the filter is too long to plan again.
    """

    table: str
    version: int
    columns: str
    where: str
    opened: int | None
    segments: int = 0
    bytes_opened: int = 0
    bytes: int = 0
    reasons: pd.DataFrame = field(default_factory=pd.DataFrame)
    left_out: pd.DataFrame = field(default_factory=pd.DataFrame)


@dataclass(frozen=True, slots=True)
class Asked:
    """The first rows of a statement, whether there are more, how long it took, and what it read."""

    rows: pa.Table
    is_cut: bool
    seconds: float
    reads: tuple[TableRead, ...]


_kept: TTLCache[tuple[Any, ...], Asked] = TTLCache(MOST_KEPT, KEPT_SECONDS)
"""The most recent answers. Take `_guard` to use them."""
_guard = threading.Lock()


def prepare(lake: Any) -> None:
    """Start what will run the reader's first statement, while they still write it."""
    lake.session.query_processes.prepare()


def ask(lake: Any, sql: str, as_of: str | None, *, reader: str, on_wait: OnWait, limits: Limits = LIMITS) -> Asked:
    """Run a read-only statement once the reader has a slot; ``on_wait`` is called with the place in the queue.

    Raises as `Lake.query` does, and `QueryLimitExceeded` if too many wait. Recent answers are cached while the head
    stays the same, so redrawing one costs nothing.
    """
    key = (lake.catalog.address, str(lake.warehouse), sql, as_of, lake.head, limits)
    with _guard:
        asked = _kept.get(key)
    if asked is None:
        with QUEUE.slot(reader, most_seconds=MOST_WAITING_SECONDS, on_wait=on_wait):
            asked = _asked(lake, sql, as_of, limits)
        with _guard:
            _kept[key] = asked
    return asked


def _asked(lake: Any, sql: str, as_of: str | None, limits: Limits) -> Asked:
    begun = time.perf_counter()
    found = lake.query(
        sql,
        as_of=as_of,
        most_rows=limits.rows,
        most_bytes=MOST_BYTES,
        most_seconds=limits.seconds,
        most_memory=limits.megabytes * 1_000_000,
    )
    seconds = time.perf_counter() - begun
    return Asked(found.rows, found.is_cut, seconds, tuple(_table_read(one) for one in found.reads))


def _table_read(read: Any) -> TableRead:
    try:
        pruned, segments = read.pruned(), read.segments
    except QueryLimitExceeded:  # the filter is too long to be planned without a limit of time
        return TableRead(read.table, read.version, ", ".join(read.columns), shown(read.where), None)
    return TableRead(
        table=read.table,
        version=read.version,
        columns=", ".join(read.columns),
        where=shown(read.where or "none"),
        opened=len(segments),
        segments=len(segments) + sum(len(one.segments) for one in pruned),
        bytes_opened=segments.bytes,
        bytes=segments.bytes + sum(one.segments.bytes for one in pruned),
        reasons=pd.DataFrame(
            {
                "reason": one.reason.value,
                "condition": shown(one.condition),
                "segments": len(one.segments),
                "rows": one.segments.rows,
                "size": one.segments.bytes,
                "that is": MEANING[one.reason],
            }
            for one in pruned
        ),
        left_out=pd.DataFrame(line for one in pruned for line in _segments(one)),
    )


def _segments(pruned: Pruned) -> Iterator[dict[str, Any]]:
    column = pruned.columns[0] if pruned.columns else ""
    for segment in pruned.segments[:MOST_LISTED]:
        yield {
            "reason": pruned.reason.value,
            "condition": shown(pruned.condition),
            "segment": segment.id,
            "start": text_of(segment.start),
            "end": text_of(segment.end),
            "rows": segment.rows,
            "size": segment.bytes,
            "least": shown(segment.min.get(column, "")),
            "greatest": shown(segment.max.get(column, "")),
            "file": segment.path,
        }


# Rows to show, to draw and to download


def drawable(rows: pa.Table) -> pa.Table:
    """The rows as a data frame can show them: names made unique, long and unusual values as cut text."""
    names: list[str] = []
    for name in rows.column_names:
        header = shown(name, 100) or "(no name)"
        same = sum(one == header or one.startswith(f"{header} (") for one in names)
        names.append(f"{header} ({same + 1})" if same else header)
    columns = [column if _is_plain(column.type) else _as_text(column) for column in rows.columns]
    return pa.Table.from_arrays(columns, names=names)


def _is_plain(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_date32(kind)
    )


def _as_text(column: pa.ChunkedArray) -> pa.Array:
    values = (None if one is None else _text(one) for one in column.to_pylist())
    return pa.array(values, pa.string())


def _text(value: Any) -> str:
    return shown(value[:250].hex() if isinstance(value, bytes) else value)


def measures(rows: pa.Table) -> list[str]:
    """Columns of numbers."""
    return [field.name for field in rows.schema if pa.types.is_integer(field.type) or pa.types.is_floating(field.type)]


def to_parquet(rows: pa.Table) -> bytes:
    """The rows as a Parquet file, with unchanged values."""
    target = io.BytesIO()
    pq.write_table(_named_once(rows), target)
    return target.getvalue()


def to_csv(rows: pa.Table) -> bytes:
    """The rows as CSV. A text that a spreadsheet would run as a formula gets an apostrophe before it."""
    named = _named_once(rows)
    columns = [_harmless(column) for column in named.columns]
    frame = pa.Table.from_arrays(columns, names=[_harmless_text(name) for name in named.column_names]).to_pandas()
    text: str = frame.to_csv(index=False)
    return text.encode("utf-8", "replace")


def _named_once(rows: pa.Table) -> pa.Table:
    return rows.rename_columns(drawable(rows.slice(0, 0)).column_names)


_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def _harmless(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    if not pa.types.is_string(column.type):
        return column
    starts = pc.match_substring_regex(column, r"^[=+\-@\t\r]")
    return pc.if_else(starts, pc.binary_join_element_wise("'", column, ""), column)


def _harmless_text(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
