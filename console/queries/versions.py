"""What the Versions page asks: the log, what a version did, and what lies between two."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import links
from lakehouse.core import Interval
from lakehouse.core.commit import Commit
from lakehouse.core.diff import EntryDiff
from lakehouse.core.drawn import gaps, said_of_others
from lakehouse.core.erased import receipt_text
from lakehouse.core.interval import from_us
from lakehouse.core.operation import Kind
from lakehouse.errors import VersionNotFound
from queries.words import change, size_text, sizes_text, text_of
from shown import shown

OPERATIONS = [kind.value for kind in Kind]
MOST_CHUNKS = 1_000
MOST_ENTRIES = 500
MOST_CHANGED_ROWS = 1_000_000
MOST_SECONDS = 15.0
PREVIEW_ROWS = 200
BY = "by"
"""Property of a version that somebody made through the console: who."""


def list_versions(
    lake: Any,
    name: str | None,
    limit: int,
    *,
    before: int | None = None,
    operation: str | None = None,
    interval: Interval | None = None,
) -> pd.DataFrame:
    """A row a commit, newest first: of a table, or of the lake (None), with its tags and the run that made it.

    ``interval`` counts for a table only. Cost: the commits listed, and the deltas of an interval's chunks.
    """
    tags: dict[int, list[str]] = {}
    for tag, version in lake.tags().items():
        tags.setdefault(version, []).append(tag)
    table = None if name is None else lake.table(name)
    if table is None:
        commits = lake.catalog.commits(limit=limit, before=before, operation=operation)
    else:
        commits = table.log(limit, before=before, operation=operation, interval=interval, definitions=interval is None)
    numbers = [commit.version for commit in commits]
    written = lake.catalog.bytes_written(numbers, None if table is None else table.spec.id)
    return pd.DataFrame(
        [_commit_row(commit, tags.get(commit.version, []), written.get(commit.version)) for commit in commits]
    )


def explain_gaps(lake: Any, numbers: Sequence[int], *, of_table: bool) -> list[str]:
    """What became of numbers between listed versions, a sentence each, newest first. Cost: one small read."""
    missing = gaps(numbers)
    drawn = lake.catalog.drawn(missing)
    said = [f"{one}." for one in sorted(drawn, key=lambda one: one.number, reverse=True)]
    others = said_of_others(missing, drawn, of_table=of_table)
    if others is not None:
        said.append(f"{'Other' if drawn else 'The'} numbers {others}.")
    return said


def _commit_row(commit: Commit, tags: list[str], written: int | None) -> dict[str, Any]:
    return {
        "version": commit.version,
        "committed": commit.committed_at,
        "operation": commit.operation,
        "message": shown(commit.message or receipt_text(commit)),
        "by": shown(made_by(commit), 100),
        "tables": ", ".join(commit.tables),
        "segments": change(commit.added, commit.dropped),
        "rows": f"{change(commit.rows_added, 0)} {'' if commit.rows_lost == '0' else f'−{commit.rows_lost}'}".strip(),
        "size": "" if written is None else f"+{size_text(written)}",
        "tombstones": change(commit.tombstones_added, commit.tombstones_dropped),
        "tags": shown(", ".join(sorted(tags)), 200),
        "run": links.run(commit.properties),
    }


def made_by(commit: Commit) -> str:
    """Who or what made a version, as far as it says so."""
    if commit.properties.get(BY):
        return commit.properties[BY]
    if commit.properties.get(links.RUN_ID):
        return "Dagster"
    return commit.txn[0] if commit.txn else ""


def list_schemas(lake: Any, name: str) -> pd.DataFrame:
    """A row for each change of the columns that a table had, newest first, with how many there are from then on."""
    listed = lake.table(name).schemas()
    rows = [
        {"from version": one.version, "changes": shown(change), "columns": len(one.schema)}
        for one in listed
        for change in (one.changes or ("created" if one is listed[0] else "nothing that is read",))[::-1]
    ]
    return pd.DataFrame(rows[::-1])


@dataclass(frozen=True, slots=True)
class Difference:
    """What leads from one version to another: totals, a row a chunk, a row an entry, a row a change of columns."""

    a: int
    b: int
    totals: Mapping[str, str]
    chunks: pd.DataFrame
    entries: pd.DataFrame
    is_cut: bool
    columns: pd.DataFrame


def read_difference(lake: Any, name: str, a: int, b: int, interval: Interval | None) -> Difference:
    """The segments and tombstones between two versions, by chunk. Cost: the bins changed since the older."""
    table = lake.table(name)
    found: EntryDiff = lake.catalog.entry_diff(table.spec, a, b, interval)
    if interval is not None:
        found = EntryDiff(
            found.added_segments.within(interval),
            found.dropped_segments.within(interval),
            *(
                tuple(one for one in listed if one.interval.overlaps(interval))
                for listed in (found.added_tombstones, found.dropped_tombstones)
            ),
        )
    chunks = _by_chunk(table.spec.grain, found)
    entries = _entries(found)
    return Difference(
        a,
        b,
        {
            "Segments": change(len(found.added_segments), len(found.dropped_segments)) or "0",
            "Rows stored": change(found.added_segments.rows, found.dropped_segments.rows) or "0",
            "Size": sizes_text(found.added_segments.bytes, found.dropped_segments.bytes) or "0",
            "Tombstones": change(len(found.added_tombstones), len(found.dropped_tombstones)) or "0",
            "Chunks touched": f"{len(chunks):,}",
        },
        chunks[:MOST_CHUNKS],
        entries,
        len(chunks) > MOST_CHUNKS or len(entries) >= MOST_ENTRIES,
        _columns(table, a, b),
    )


def _columns(table: Any, a: int, b: int) -> pd.DataFrame:
    """A row a change of columns."""
    return pd.DataFrame(
        [
            {
                "column": shown(one.column),
                "change": one.kind,
                "before": shown(one.before),
                "after": shown(one.after),
            }
            for one in table.column_changes(a, b)
        ]
    )


def _by_chunk(grain: Any, found: EntryDiff) -> pd.DataFrame:
    """A row a chunk in which something begins; counted in columns."""
    parts = []
    for sign, segments in ((1, found.added_segments), (-1, found.dropped_segments)):
        starts = grain.floor_us(segments.bounds[0])
        part = {"chunk": starts, "rows": segments.numbers("rows"), "size": segments.numbers("bytes")}
        parts.append(pd.DataFrame({**part, "sign": sign, "segments": 1, "tombstones": 0}))
    for sign, tombstones in ((1, found.added_tombstones), (-1, found.dropped_tombstones)):
        starts = grain.floor_us(np.array([one.interval.start_us for one in tombstones], dtype=np.int64))
        parts.append(
            pd.DataFrame({"chunk": starts, "rows": 0, "size": 0, "sign": sign, "segments": 0, "tombstones": 1})
        )
    summed = pd.concat(parts).groupby(["chunk", "sign"]).sum().unstack(fill_value=0)
    rows = []
    for chunk, row in summed.iterrows():
        counts = {
            name: say(int(row.get((name, 1), 0)), int(row.get((name, -1), 0)))
            for name, say in (("segments", change), ("rows", change), ("size", sizes_text), ("tombstones", change))
        }
        rows.append({"chunk": grain.label(from_us(int(chunk))), **counts})
        if len(rows) > MOST_CHUNKS:
            break
    return pd.DataFrame(rows)


def _entries(found: EntryDiff) -> pd.DataFrame:
    rows = []
    for action, segments in (("ADD", found.added_segments), ("DROP", found.dropped_segments)):
        rows += [_entry_row(action, "segment", one) for one in segments[:MOST_ENTRIES]]
    for action, tombstones in (("ADD", found.added_tombstones), ("DROP", found.dropped_tombstones)):
        rows += [_entry_row(action, f"{one.kind} tombstone", one) for one in tombstones[:MOST_ENTRIES]]
    return pd.DataFrame(rows[:MOST_ENTRIES])


def _entry_row(action: str, kind: str, entry: Any) -> dict[str, Any]:
    return {
        "action": action,
        "what": kind,
        "id": str(entry.id),
        "from": text_of(entry.start),
        "until": text_of(entry.end),
        "ordinal": entry.ordinal,
        "rows": entry.rows,
    }


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Rows between two versions, counted by what became of them, and the first of them; ``is_cut``: not all."""

    counts: Mapping[str, int]
    preview: pa.Table
    is_cut: bool


def count_changes(lake: Any, name: str, a: int, b: int) -> ChangedRows:
    """What happened to rows between two versions, within a limit of rows and time. Cost: the files that changed."""
    reader = lake.table(name).changes(min(a, b), max(a, b)).to_reader()
    deadline = time.monotonic() + MOST_SECONDS
    counts: dict[str, int] = {}
    first: list[pa.RecordBatch] = []
    rows = 0
    for batch in reader:
        for kind in batch.column("_change_type").value_counts().to_pylist():
            counts[kind["values"]] = counts.get(kind["values"], 0) + kind["counts"]
        if rows < PREVIEW_ROWS:
            first.append(batch.slice(0, PREVIEW_ROWS - rows))
        rows += len(batch)
        if rows >= MOST_CHANGED_ROWS or time.monotonic() > deadline:
            return ChangedRows(counts, pa.Table.from_batches(first, reader.schema), True)
    return ChangedRows(counts, pa.Table.from_batches(first, reader.schema), False)


def version_at(lake: Any, name: str, as_of: Any) -> int:
    """The newest version at or before ``as_of`` that changed the table's rows or columns. Raises `VersionNotFound`."""
    found: int = lake.table(name).version_at(as_of)
    return found


def version_before(lake: Any, name: str, version: int) -> int | None:
    """The table's version before one; None for the first, or where the one before was forgotten."""
    try:
        return version_at(lake, name, version - 1)
    except VersionNotFound:
        return None
