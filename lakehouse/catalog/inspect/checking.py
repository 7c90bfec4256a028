"""Checks the catalog against itself: every key frame, delta and bin, against a replay of the deltas alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, bindparam, delete, func, select, update

from lakehouse import progress
from lakehouse.catalog.commit.views import read_views
from lakehouse.catalog.forget.expiry import count_forgotten
from lakehouse.catalog.state.bins import rows_by_id
from lakehouse.catalog.state.due_frames import by_first, frames_by_point, insert_frames, read_deltas
from lakehouse.catalog.state.key_frames import note_frames
from lakehouse.catalog.store.database import Database
from lakehouse.catalog.store.models import (
    bin,  # noqa: A004 - the word of the scheme
    commit_log,
    commit_table,
    delta,
    garbage,
    key_frame,
    lake,
    lake_table,
    operation,
    segment,
    segment_summary,
    tombstone,
)
from lakehouse.catalog.store.rows import (
    DamagedPage,
    SegmentsForm,
    named_tables,
    page_tables,
    segments_from_rows,
    spec_from_row,
)
from lakehouse.catalog.versions.horizon import hold_history, read_erased, read_horizon
from lakehouse.core.bins import bin_interval
from lakehouse.core.check import Finding, StoredFile
from lakehouse.core.checksum import Checksum
from lakehouse.core.expire import Numbers
from lakehouse.core.interval import Interval, from_us
from lakehouse.core.invariants import (
    bin_knows_newest,
    head_is_newest,
    is_in_its_bins,
    is_logged,
    is_ordered_before,
    key_frame_holds,
    lived_as_stated,
    lives_alternate,
    names_are_apart,
    row_ids_are_apart,
)
from lakehouse.core.spec import TableSpec
from lakehouse.core.version import replay

_BINS = 400
_NAMERS = (segment, tombstone, segment_summary)
"""Tables of the catalog that name files, with their checksums."""


@dataclass(slots=True)
class Counted:
    """How much was checked."""

    deltas: int = 0
    key_frames: int = 0
    forgotten: int = 0


class Checks:
    """The catalog queries of a check."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def findings(self) -> tuple[list[Finding], Counted]:
        """Contradictions in the catalog. Cost: every delta and key frame, one table at a time."""
        self._database.check_values()
        counted = Counted()
        found = self._database.read(lambda connection: list(_of_log(connection)))
        counted.forgotten = self._database.read(lambda c: count_forgotten(c, self._database.now_us(c)))
        specs = self._database.read(_specs)
        with progress.step("check the catalog", "tables", len(specs)) as step:
            for spec in progress.counted(specs, step):
                found += self._database.read(lambda connection, spec=spec: list(_of_table(connection, spec, counted)))  # type: ignore[misc]
        return found, counted

    def files(self) -> list[StoredFile]:
        """Every file of a segment, a tombstone's set or a summary."""
        queries = [
            select(of.c.path, of.c.bytes, of.c.checksum).where(of.c.path != "").order_by(*of.primary_key)
            for of in _NAMERS
        ]
        return self._database.read(
            lambda connection: [
                StoredFile(row.path, row.bytes, bytes(row.checksum or b""))
                for one in queries
                for row in connection.execute(one)
            ]
        )

    def names(self, path: str) -> bool:
        """Whether a file, relative to the warehouse, is one of a segment, a tombstone's set or a summary now.

        Cost: a pass over the catalog's rows of files.
        """
        queries = [select(of.c.path).where(of.c.path == path).limit(1) for of in _NAMERS]
        return self._database.read(lambda connection: any(connection.execute(one).first() for one in queries))

    def add_checksums(self, checksums: Mapping[str, Checksum]) -> None:
        """Store the checksums of files by path, where none is known.

        Key frames get them when they are written again.
        """

        def work(connection: Connection) -> None:
            hold_history(connection)
            for of in _NAMERS:
                keys = list(of.primary_key)
                rows = connection.execute(select(*keys, of.c.path).where(of.c.checksum.is_(None), of.c.path != ""))
                found = [
                    {**{f"of_{key.name}": row[place] for place, key in enumerate(keys)}, "made": checksums[row.path]}
                    for row in rows
                    if row.path in checksums
                ]
                mine = [key == bindparam(f"of_{key.name}") for key in keys]
                if found:
                    connection.execute(update(of).where(*mine).values(checksum=bindparam("made")), found)

        self._database.run(work)

    def explained(self) -> tuple[set[str], set[str]]:
        """Files that the catalog lists, and folders of operations that may hold any file."""
        return self._database.read(_explained)

    def unexplained(self, paths: Iterable[str]) -> list[str]:
        """Those of some files in its tables' folders that the catalog does not explain, checked under the head.

        Files elsewhere may belong to another catalog.
        """

        def work(connection: Connection) -> list[str]:
            hold_history(connection)
            files, folders = _explained(connection)
            mine = set(connection.execute(select(lake_table.c.folder)).scalars())
            return [
                path
                for path in paths
                if path.split("/")[0] in mine and path not in files and "/".join(path.split("/")[:2]) not in folders
            ]

        return self._database.run(work)

    def rebuild_key_frames(self) -> None:
        """Drop every key frame and write those that are due, a few bins in each transaction."""
        for spec in self._database.read(_specs):
            for bins in self._database.read(partial(_bins, spec=spec)):
                self._database.run(partial(_rebuild, spec=spec, bins=bins))


def _specs(connection: Connection) -> list[TableSpec]:
    return [spec_from_row(row) for row in connection.execute(select(lake_table).order_by(lake_table.c.id))]


def _bins(connection: Connection, spec: TableSpec) -> list[list[int]]:
    known = {one for of in (bin, key_frame) for one in connection.execute(_bins_in(of, spec)).scalars()}
    listed = sorted(known)
    return [listed[first : first + _BINS] for first in range(0, len(listed), _BINS)]


def _bins_in(of: Any, spec: TableSpec) -> Any:
    return select(of.c.bin).where(of.c.table_id == spec.id).distinct()


def _explained(connection: Connection) -> tuple[set[str], set[str]]:
    holders = (segment, segment_summary, tombstone, garbage)
    files = {path for of in holders for path in connection.execute(select(of.c.path)).scalars()}
    open_ones = (
        select(lake_table.c.folder, operation.c.id)
        .join(lake_table, lake_table.c.id == operation.c.table_id)
        .where(operation.c.state.in_(("running", "aborted")))
    )
    return files, {f"{row.folder}/{row.id}" for row in connection.execute(open_ones)}


def _of_log(connection: Connection) -> Iterator[Finding]:
    row = connection.execute(select(lake)).one()
    newest = connection.execute(select(func.max(commit_log.c.version))).scalar() or 0
    if not head_is_newest(horizon=row.horizon, newest=newest, head=row.head, counter=row.counter):
        facts = f"horizon={row.horizon} newest={newest} head={row.head} counter={row.counter}"
        yield Finding("log", "lake", f"the head is not the newest version in the log: {facts}")
    shared = select(segment.c.path).group_by(segment.c.path).having(func.count() > 1)
    for path in connection.execute(shared).scalars():
        yield Finding("shared", path, "two segments have this file")
    yield from _of_views(connection, row.head)
    lost = select(commit_table.c.version).where(commit_table.c.version > row.head).distinct()
    for version in connection.execute(lost).scalars():
        yield Finding("log", str(version), "a version beyond the head is in a table's log")


def _of_views(connection: Connection, head: int) -> Iterator[Finding]:
    """Check that every view is of versions that there are, and the only thing of its name in them."""
    found = read_views(connection)
    for view in found:
        if not view.created <= (view.dropped or view.created) <= head:
            yield Finding("view", view.name, f"the view is of versions beyond the head: {view.created}")
    # A table is called what it is called now in every version, so that only those of the head are compared.
    tables = connection.execute(select(lake_table.c.name).where(lake_table.c.dropped_version.is_(None))).scalars()
    named = [(name, head, None) for name in tables]
    live = [(view.name, head, None) for view in found if view.dropped is None]
    for name in sorted({view.name.casefold() for view in found}):
        lives = [(view.name, view.created, view.dropped) for view in found if view.name.casefold() == name]
        now = [one for one in live if one[0].casefold() == name]
        both = now + [one for one in named if now and one[0].casefold() == name]
        if not names_are_apart(lives) or not names_are_apart(both):
            yield Finding("view", name, "two views, or a view and a table, have this name at one version")


def _of_table(connection: Connection, spec: TableSpec, counted: Counted) -> Iterator[Finding]:
    changes = read_deltas(connection, spec)
    counted.deltas += len(changes)
    entries = {}
    for of, name in ((0, "segment"), (1, "tombstone")):
        ids = np.unique(changes[changes[:, 4] == of, 2]).tolist()
        entries.update({row["id"]: row for row in rows_by_id(connection, name, ids)})
    yield from _of_entries(connection, spec, changes, entries)
    yield from _of_row_ids(spec, entries)
    yield from _of_versions(connection, spec, changes)
    by_bin = by_first(changes)
    yield from _of_bins(connection, spec, by_bin)
    yield from _of_frames(connection, spec, by_bin, entries, counted)


def _of_entries(
    connection: Connection, spec: TableSpec, changes: Numbers, entries: dict[int, dict[str, Any]]
) -> Iterator[Finding]:
    """Check that every delta's entry exists, and that every entry is as its deltas say."""
    events_of: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for one, version, entry, action, _ in changes.tolist():
        events_of[entry].append((version, action, one))
    for entry, events in events_of.items():
        row = entries.get(entry)
        if row is None:
            yield Finding("delta", f"{spec.name} {entry}", "a delta names an entry that is not there")
            continue
        yield from (Finding(kind, f"{spec.name} {entry}", problem) for kind, problem in _of_entry(spec, row, events))
    for of in (segment, tombstone):
        held = set(connection.execute(select(of.c.id).where(of.c.table_id == spec.id)).scalars())
        for entry in sorted(held - events_of.keys()):
            yield Finding("delta", f"{spec.name} {entry}", f"no version ever added this {of.name}")


def _of_entry(spec: TableSpec, row: Mapping[str, Any], events: list[tuple[int, int, int]]) -> Iterator[tuple[str, str]]:
    events.sort()
    by_version = [(version, action) for version, action, _ in events]
    if not lived_as_stated(by_version, added=row["added_version"], dropped=row["dropped_version"]):
        yield "delta", "an entry says otherwise than its deltas when it was live"
    bins = {one for *_, one in events}
    if not is_in_its_bins(spec.bin_grain, Interval(from_us(row["start_us"]), from_us(row["end_us"])), bins):
        yield "delta", "an entry is not kept in the bins of its interval"
    lives = [by_version] if len(bins) == 1 else [[event[:2] for event in events if event[2] == one] for one in bins]
    if not all(map(lives_alternate, lives)):
        yield "delta", "an entry is added where it is live, or dropped where it is not"
    if not is_ordered_before(row["ordinal"], row["added_version"]):
        yield "order", "an entry has a greater ordinal than the version that added it"


def _of_row_ids(spec: TableSpec, entries: Mapping[int, Mapping[str, Any]]) -> Iterator[Finding]:
    """Check that no row id is given out twice; tombstones, and segments that store theirs, give out none."""
    fresh = [one for one in entries.values() if not one.get("has_row_ids", True)]
    if not row_ids_are_apart([one["first_row_id"] for one in fresh], [one["rows"] for one in fresh]):
        yield Finding("order", spec.name, "two segments number rows with the same row ids")


def _of_versions(connection: Connection, spec: TableSpec, changes: Numbers) -> Iterator[Finding]:
    horizon = read_horizon(connection)
    of_table = select(commit_table.c.version).where(commit_table.c.table_id == spec.id)
    logged = set(connection.execute(of_table).scalars())
    for version in np.unique(changes[:, 1]).tolist():
        if not is_logged(version, logged, horizon):
            yield Finding("log", f"{spec.name} {version}", "a delta's version is not in the table's log")


def _of_bins(connection: Connection, spec: TableSpec, by_bin: dict[int, Numbers]) -> Iterator[Finding]:
    horizon, erased = read_horizon(connection), read_erased(connection, spec.id)
    newest = select(key_frame.c.bin, func.max(key_frame.c.version)).where(key_frame.c.table_id == spec.id)
    frames: dict[int, int] = {row[0]: row[1] for row in connection.execute(newest.group_by(key_frame.c.bin))}
    known = {row.bin: row for row in connection.execute(select(bin).where(bin.c.table_id == spec.id))}
    for one in sorted(known.keys() | by_bin.keys()):
        place = _place(spec, one)
        if one not in known or one not in by_bin:
            yield Finding("bin", place, "the bin has " + ("no row" if one in by_bin else "nothing left"))
            continue
        row, versions = known[one], np.unique(by_bin[one][:, 1])
        last = int(versions[-1])
        if not bin_knows_newest(row.version, newest=last, forgotten=max(horizon, erased)):
            yield Finding("bin", place, f"the newest version is another one: expected={last} found={row.version}")
        behind = int((versions > (-1 if row.frame_version is None else row.frame_version)).sum())
        if (row.frame_version, row.chain) != (frames.get(one), behind):
            yield Finding(
                "bin", place, f"what lies behind its key frame is counted wrong: expected={behind} found={row.chain}"
            )


def _of_frames(
    connection: Connection,
    spec: TableSpec,
    by_bin: dict[int, Numbers],
    entries: dict[int, dict[str, Any]],
    counted: Counted,
) -> Iterator[Finding]:
    form = SegmentsForm.of(spec)
    nothing = np.empty((0, 5), dtype=np.int64)
    query = select(key_frame).where(key_frame.c.table_id == spec.id).order_by(key_frame.c.bin, key_frame.c.version)
    for row in connection.execute(query):
        counted.key_frames += 1
        place = f"{_place(spec, row.bin)} at version {row.version}"
        changes = by_bin.get(row.bin, nothing)
        changes = changes[changes[:, 1] <= row.version]
        live = replay([], changes[:, 1], changes[:, 3], changes[:, 2]).tolist()
        try:
            tables = page_tables(row.page)
            body, tombstones = named_tables(form, *tables)
        except (DamagedPage, pa.ArrowException) as error:
            yield Finding("key frame", place, f"the key frame is damaged: {error}")
            continue
        held = [entries[one] for one in live if one in entries]
        segments = [one for one in held if "kind" not in one]
        expected = segments_from_rows(form, segments)
        ids = {"segments": body.column("id").to_pylist(), "tombstones": [one.id for one in tombstones]}
        stored = set(tables[0].column_names)
        told = [name for name in expected.column_names if form.stored_name(name) in stored]  # when it was written
        is_same = _same(body.select(told), expected.select(told))
        if not key_frame_holds(live, **ids, entries=row.entries) or not is_same:
            yield Finding("key frame", place, "the key frame is not what its deltas lead to")


def _same(body: pa.Table, expected: pa.Table) -> bool:
    """Whether two tables are equal; NaN equals itself, and checksums added later may be missing."""
    if body.equals(expected):
        return True
    place = body.column_names.index("checksum")
    held = pc.coalesce(body.column(place), expected.column(place)) if len(body) == len(expected) else body.column(place)
    body = body.set_column(place, body.schema.field(place), held)
    return body.equals(expected) or repr(body.to_pylist()) == repr(expected.to_pylist())


def _place(spec: TableSpec, one: int) -> str:
    return f"{spec.name} {bin_interval(spec.bin_grain, one)}"


def _rebuild(connection: Connection, spec: TableSpec, bins: list[int]) -> None:
    hold_history(connection)
    connection.execute(delete(key_frame).where(key_frame.c.table_id == spec.id, key_frame.c.bin.in_(bins)))
    mine = (bin.c.table_id == spec.id, bin.c.bin.in_(bins))
    connection.execute(update(bin).where(*mine).values(frame_version=None, frame_entries=0, chain=0))
    found = read_deltas(connection, spec, delta.c.bin.in_(bins))
    due = frames_by_point(found, lambda of_bin: np.unique(of_bin[:, 1]))
    for point in sorted(due):  # each is made from the one before
        insert_frames(connection, spec, point, due[point])
    note_frames(connection, spec.id, bins)
