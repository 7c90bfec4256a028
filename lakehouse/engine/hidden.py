"""What row and key tombstones leave of a plan: few parts, each read as one scan, whatever the number of tombstones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from lakehouse.core.column import Layout
from lakehouse.core.plan import ReadGroup
from lakehouse.core.segment import Segment
from lakehouse.core.sets import named_keys, row_id_array
from lakehouse.core.skyline import IntArray
from lakehouse.core.spec import ROW_ID, TableSpec
from lakehouse.core.tombstone import Tombstone, TombstoneKind
from lakehouse.engine import ORDINAL, Query
from lakehouse.engine.masks import visible
from lakehouse.errors import InternalError
from lakehouse.predicate.term import Term

Joining = Callable[[Layout, Layout], Layout | None]
"""How files of two layouts are read in one scan; None if they are not."""

_ANY_ID = (0, (1 << 63) - 1)
_Sets = Mapping[int, BitMap64 | pa.Table]


@dataclass(frozen=True, slots=True)
class KeyMask:
    """What hides rows by the values of ``columns``.

    ``table`` has these columns, never null, and `ORDINAL`: a row is hidden if a row of the table has its values and a
    greater ordinal than its segment. Without ``is_ordered`` every ordinal there is greater.
    """

    columns: tuple[str, ...]
    table: pa.Table
    is_ordered: bool


@dataclass(frozen=True, slots=True)
class Part:
    """Segments that are read as one scan. What passes ``condition`` (None: all) and is under no mask is seen.

    ``places`` holds, for each segment, the ascending places from 0 of its rows that are hidden. It is empty if there
    are none; where it is not, no segment stores row ids. ``layout``: how its files hold the columns of the table, alike
    in those that are read; None where all are as they are.
    """

    segments: Sequence[Segment]
    condition: Term | None
    places: tuple[IntArray, ...] = ()
    masks: tuple[KeyMask, ...] = ()
    layout: Layout | None = None

    @property
    def hidden_ids(self) -> IntArray:
        """Row ids at all ``places``."""
        firsts = (one.first_row_id for one in self.segments)
        found: list[IntArray] = [first + places for first, places in zip(firsts, self.places, strict=True)]
        return np.concatenate(found)


@dataclass(slots=True)
class _Found:
    """Segments of one condition, by what touches them."""

    condition: Term | None
    bare: list[Segment] = field(default_factory=list)
    placed: list[Segment] = field(default_factory=list)
    places: list[IntArray] = field(default_factory=list)
    tangled: list[Segment] = field(default_factory=list)


def apart(_one: Layout, _other: Layout) -> None:
    """Files of two layouts are two scans."""


def plan_parts(query: Query, join: Joining = apart) -> list[Part]:
    """The parts of a query; at most four share a condition, but for groups that have no row or key tombstones.

    Segments that none of those touches are read as if there were none. Fresh segments under row tombstones
    alone get ``places``, all others get masks. ``join`` says of which layouts the engine reads files in one scan.
    Cost: one pass over the sets of the tombstones, and over the segments.
    Raises `InternalError` if a tombstone's set is missing.
    """
    parts: list[Part] = []
    groups: list[ReadGroup] = []
    for group in query.plan.groups:
        if group.segments and any(one.kind != "interval" for one in group.tombstones):
            groups.append(group)
        elif group.segments:
            parts.append(Part(group.segments, visible(query, group)))
    known = {one.id: one for group in groups for one in group.tombstones}.values()
    rows, keys = _of_kind(known, "row"), _of_kind(known, "key")
    hidden = iter(_hidden_places([one for group in groups for one in group.segments], rows, query.sets))
    found: dict[str | None, _Found] = {}
    for group in groups:
        condition = visible(query, group)
        into = found.setdefault(None if condition is None else condition.duckdb, _Found(condition))
        for segment in group.segments:
            places = next(hidden)
            if places is None or any(_may_hold(one, segment) for one in keys):
                into.tangled.append(segment)
            elif len(places):
                into.placed.append(segment)
                into.places.append(places)
            else:
                into.bare.append(segment)
    parts.extend(_parts(found.values(), query, rows, keys))
    if not query.spec.columns:
        return parts
    read = columns_read(query, parts)
    return [one for part in parts for one in _of_one_layout(part, query.spec, read, join)]


def _of_one_layout(part: Part, spec: TableSpec, read: Collection[str] | None, join: Joining) -> Iterator[Part]:
    """The part cut by what files are read in one way, as far as columns are read (None: all)."""
    numbers = [segment.schema_number for segment in part.segments]
    by_layout: dict[Layout, set[int]] = {}
    for number in dict.fromkeys(numbers):
        layout = tuple(one for one in spec.layout(number) if read is None or one.name in read)
        by_layout.setdefault(layout, set()).add(number)
    joined: list[tuple[Layout, set[int]]] = []
    for layout, among in by_layout.items():
        for place, (other, others) in enumerate(joined):
            both = join(other, layout)
            if both is not None:
                joined[place] = (both, others | among)
                break
        else:
            joined.append((layout, among))
    for layout, among in joined:
        whole = _whole(layout, spec, min(among))
        if len(joined) == 1:
            yield replace(part, layout=whole)
            return
        places = [place for place, number in enumerate(numbers) if number in among]
        hidden = tuple(part.places[one] for one in places) if part.places else ()
        yield replace(part, segments=[part.segments[one] for one in places], places=hidden, layout=whole)


def _whole(layout: Layout, spec: TableSpec, number: int) -> Layout | None:
    """A layout with the columns that are not read, as files of a schema number hold them."""
    read = {one.name: one for one in layout}
    found = tuple(read.get(one.name, one) for one in spec.layout(number))
    return None if all(one.is_plain for one in found) else found


def columns_read(query: Query, parts: Sequence[Part], *, counting: bool = False) -> frozenset[str] | None:
    """Columns of files that a query's rows may come of, or be left out by; None for all. More than there are is fine.

    ``counting`` needs none for their own sake.
    """
    if query.columns is None and not counting:
        return None
    wanted = set() if counting or query.columns is None else {*query.columns, ROW_ID}
    texts = [query.where or ""]
    for part in parts:
        texts.append("" if part.condition is None else part.condition.duckdb)
        wanted.update(name for mask in part.masks for name in mask.columns)
        if part.places or part.masks:
            wanted.add(ROW_ID)
    # A text names a column as it is, but for quotes, which are doubled.
    text = "\n".join(filter(None, texts))
    left = [name for name in query.spec.schema.names if name not in wanted] if text else []
    wanted.update(
        name for name in left if any(way in text for way in (name, name.replace('"', '""'), name.replace("`", "``")))
    )
    return frozenset(wanted)


def stored_columns_read(query: Query, parts: Sequence[Part], *, counting: bool = False) -> frozenset[str] | None:
    """The same under the names that they have in files."""
    stored, wanted = query.spec.stored_names, columns_read(query, parts, counting=counting)
    return wanted if wanted is None else frozenset(stored.get(name, name) for name in wanted)


def _of_kind(tombstones: Iterable[Tombstone], kind: TombstoneKind) -> list[Tombstone]:
    """Newest first."""
    return sorted((one for one in tombstones if one.kind == kind), key=lambda one: -one.ordinal)


def _parts(
    found: Iterable[_Found], query: Query, rows: Sequence[Tombstone], keys: Sequence[Tombstone]
) -> Iterator[Part]:
    for one in found:
        if one.bare:
            yield Part(one.bare, one.condition)
        if one.placed:
            yield Part(one.placed, one.condition, places=tuple(one.places))
        oldest = min((tombstone.ordinal for tombstone in (*rows, *keys)), default=0)
        before = [segment for segment in one.tangled if segment.ordinal < oldest]
        beside = [segment for segment in one.tangled if segment.ordinal >= oldest]
        for segments in filter(None, (before, beside)):  # of the former no ordinal has to be compared
            masks = (_row_mask(segments, rows, query), _key_mask(segments, keys, query))
            yield Part(segments, one.condition, masks=tuple(mask for mask in masks if mask is not None))


def _set(tombstone: Tombstone, sets: _Sets) -> Any:
    if tombstone.id not in sets:
        raise InternalError("a tombstone's set was not loaded", tombstone=tombstone.id, kind=tombstone.kind)
    return sets[tombstone.id]


def _may_hold(tombstone: Tombstone, segment: Segment) -> bool:
    """Whether a key tombstone may hide rows of a segment."""
    if tombstone.ordinal <= segment.ordinal or tombstone.start >= segment.end or segment.start >= tombstone.end:
        return False
    for column in tombstone.min:
        bounds: list[Any] = [one.get(column) for one in (tombstone.min, tombstone.max, segment.min, segment.max)]
        if None not in bounds and (bounds[0] > bounds[3] or bounds[1] < bounds[2]):
            return False
    return True


def _id_range(segment: Segment) -> tuple[int, int]:
    """The least and greatest row id that a segment may have."""
    known = segment.row_ids or _ANY_ID
    if not segment.has_row_ids or segment.nulls.get(ROW_ID) == 0:
        return known
    # A null among stored row ids means one by place.
    return min(known[0], segment.first_row_id), max(known[1], segment.first_row_id + segment.rows - 1)


def _slice(ids: BitMap64, least: int, greatest: int) -> BitMap64:
    """Those within a range, both ends included; the set itself where that is all of it."""
    if not ids or (least <= ids.min() and ids.max() <= greatest):
        return ids
    return ids[ids.rank(least - 1) if least > 0 else 0 : ids.rank(greatest)]


def _hidden_places(segments: Sequence[Segment], rows: Sequence[Tombstone], sets: _Sets) -> list[IntArray | None]:
    """For each segment the places that row tombstones hide; None if its row ids have to be looked at to tell.

    A tombstone's interval says no more than where its rows are: the ids alone decide.
    """
    found: list[IntArray | None] = [np.empty(0, dtype=np.int64)] * len(segments)
    newer, taken = BitMap64(), 0
    for place in sorted(range(len(segments)), key=lambda place: -segments[place].ordinal):
        segment = segments[place]
        while taken < len(rows) and rows[taken].ordinal > segment.ordinal:
            newer |= _set(rows[taken], sets)
            taken += 1
        hidden = _slice(newer, *_id_range(segment))
        if hidden:
            found[place] = None if segment.has_row_ids else row_id_array(hidden) - segment.first_row_id
    return found


def _row_mask(segments: Sequence[Segment], rows: Sequence[Tombstone], query: Query) -> KeyMask | None:
    """Row tombstones over segments whose row ids have to be looked at: each id with the greatest ordinal it has."""
    ranges = [_id_range(one) for one in segments]
    least, greatest = min(one[0] for one in ranges), max(one[1] for one in ranges)
    oldest = min(one.ordinal for one in segments)
    seen = BitMap64()
    tables = []
    for one in rows:
        if one.ordinal > oldest:
            ids = _slice(_set(one, query.sets), least, greatest) - seen
            seen |= ids
            tables.append((one, pa.table({ROW_ID: row_id_array(ids)})))
    return _mask((ROW_ID,), tables, segments)


def _key_mask(segments: Sequence[Segment], keys: Sequence[Tombstone], query: Query) -> KeyMask | None:
    """Key tombstones over segments: each key with the greatest ordinal it has."""
    used = [one for one in keys if any(_may_hold(one, segment) for segment in segments)]
    tables = [(one, named_keys(_set(one, query.sets), query.spec)) for one in used]
    return _mask(tuple(tables[0][1].column_names), tables, segments) if tables else None


def _mask(
    columns: tuple[str, ...], tables: Sequence[tuple[Tombstone, pa.Table]], segments: Sequence[Segment]
) -> KeyMask | None:
    """One table of several, each value with the greatest ordinal of its tombstones."""
    parts = [
        table.append_column(ORDINAL, pa.repeat(pa.scalar(one.ordinal, pa.int64()), table.num_rows))
        for one, table in tables
    ]
    if not any(part.num_rows for part in parts):
        return None
    table = pa.concat_tables(parts)
    if len(parts) > 1:
        greatest = table.group_by(list(columns), use_threads=False).aggregate([(ORDINAL, "max")])
        table = greatest.select([*columns, f"{ORDINAL}_max"]).rename_columns([*columns, ORDINAL])
    newest = max(one.ordinal for one in segments)
    return KeyMask(columns, table, is_ordered=any(one.ordinal <= newest for one, _ in tables))
