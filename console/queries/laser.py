"""What lies under the laser at one instant: segments, the tombstones over them, and versions that changed it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

import links
from lakehouse.arguments import unknown_column
from lakehouse.core import Interval, Segment, Tombstone
from lakehouse.core.explain import Effect, Met, ProbedSegment, explain
from lakehouse.core.interval import ALL_TIME, MAX_TIME
from lakehouse.core.plan import plan_read
from lakehouse.engine import Query
from lakehouse.errors import InvalidArgument, SegmentUnreadable
from lakehouse.reading.scan import sets_of
from queries.timeline import MICROSECOND
from queries.words import change, count_text, describe, framed, keys_text

MOST_SHOWN = 200
"""How many segments, and versions, are listed for one instant."""
MOST_LOOKED_INTO = 20
"""How many segments' rows are read."""
MOST_KEYS = 1_000_000
"""How many keys of a tombstone are searched for the requested ones."""
_VERDICTS = {
    "visible": "not hidden by anything",
    "masked": "some rows may be hidden",
    "hidden": "hidden",
    "elsewhere": "holds no such rows",
}
_WORDS = ("visible", "some rows are hidden", *_VERDICTS.values())
_NOTHING_SEEN = frozenset({"hidden", "holds no such rows"})
_EFFECTS: dict[Effect, str] = {
    "hides": "hides all of it",
    "masks": "hides some of its rows",
    "older": "does not reach it: it is not newer",
    "other keys": "does not reach it: it is about other keys",
    "other rows": "does not reach it: it is about other rows",
}


@dataclass(frozen=True, slots=True)
class Laser:
    """``probed`` has a row for each segment, ``met`` for each of its tombstones, ``happened`` for each version.

    ``sentence`` sums it up.
    """

    at: datetime
    sentence: str
    probed: pd.DataFrame
    met: pd.DataFrame
    happened: pd.DataFrame


def read_laser(lake: Any, name: str, version: int, at: datetime, keys: dict[str, Any] | None) -> Laser:
    """What is visible of an instant at a version, and why. Cost: the bins of its chunk."""
    table = lake.table(name)
    instant = Interval(at, MAX_TIME) if MAX_TIME - at <= MICROSECOND else Interval(at, at + MICROSECOND)
    if not table.time:
        instant = ALL_TIME
    segments, tombstones = lake.catalog.live(table.spec, version, instant)
    primary_key = table.primary_key
    if keys is not None and primary_key and keys.keys() >= set(primary_key):
        tombstones = with_keys(lake, tombstones, at, keys, primary_key)
    found = explain(segments, tombstones, at, keys, primary_key)
    counts = {
        one.segment.id: count_rows(lake, table, version, one.segment, tombstones, instant, keys)
        for one in [one for one in found if one.verdict != "elsewhere"][:MOST_LOOKED_INTO]
    }
    happened = read_happened(table, version, instant)
    return Laser(
        at,
        summed_up(found, counts, happened, version) + rows_summed_up(counts),
        framed((_probed_row(one, counts.get(one.segment.id)) for one in found[:MOST_SHOWN]), "from", "until"),
        pd.DataFrame([_met_row(one, met) for one in found[:MOST_SHOWN] for met in one.met][:MOST_SHOWN]),
        happened,
    )


@dataclass(frozen=True, slots=True)
class RowCount:
    """The rows of a segment under the laser: how many there are, and how many are visible."""

    stored: int
    visible: int

    @property
    def verdict(self) -> str:
        """Their verdict, in words."""
        if not self.stored:
            return "holds no such rows"
        if not self.visible:
            return "hidden"
        return "visible" if self.visible == self.stored else "some rows are hidden"


def count_rows(
    lake: Any,
    table: Any,
    version: int,
    segment: Segment,
    tombstones: list[Tombstone],
    instant: Interval,
    keys: dict[str, Any] | None,
) -> RowCount | None:
    """Rows of a segment at an instant, with some keys; None if its file cannot be read.

    Cost: the row groups of its file that hold the instant, read twice: with and without the tombstones.
    """
    counts = []
    for masks in ((), tombstones):
        plan = plan_read([segment], masks, version=version, interval=instant)
        columns = tuple(keys or (table.spec.lean_column,))
        query = Query(plan, table.spec, lake.session.warehouse, columns, sets=sets_of(lake.session, plan))
        try:
            rows = lake.session.local_engine.collect(query)
        except SegmentUnreadable:
            return None
        for column, values in (keys or {}).items():
            rows = rows.filter(pc.is_in(rows[column], pa.array(values, rows.schema.field(column).type)))
        counts.append(rows.num_rows)
    return RowCount(*counts)


def verdict_of(probed: ProbedSegment, count: RowCount | None) -> str:
    """The verdict on a segment, from its rows or, if these were not read, from its bounds."""
    return _VERDICTS[probed.verdict] if count is None else count.verdict


def rows_summed_up(counts: Mapping[Any, RowCount | None]) -> str:
    """A sentence on the rows that were read; empty if there were none."""
    known = [one for one in counts.values() if one is not None]
    if not known:
        return ""
    stored, visible = sum(one.stored for one in known), sum(one.visible for one in known)
    if not stored:
        return " No such row is stored here."
    return f" {count_text(stored, 'row')} stored here: {visible:,} visible, {stored - visible:,} hidden."


def with_keys(
    lake: Any, tombstones: list[Tombstone], at: datetime, keys: dict[str, Any], primary_key: tuple[str, ...]
) -> list[Tombstone]:
    """Key tombstones over an instant, with the given primary keys that they match; the largest sets are not read."""
    over = [one for one in tombstones if one.kind == "key" and one.start <= at < one.end and one.rows <= MOST_KEYS]
    asked = list(product(*(keys[column] for column in primary_key)))
    held = {
        entry: frozenset(key for key in asked if _holds(found, dict(zip(primary_key, key, strict=True))))
        for entry, found in lake.catalog.sets(over).items()
    }
    return [replace(one, primary_keys=held[one.id]) if one.id in held else one for one in tombstones]


def _holds(keys: pa.Table, key: dict[str, Any]) -> bool:
    found = None
    for column, value in key.items():
        same = pc.equal(keys.column(column), pa.scalar(value, keys.schema.field(column).type))
        found = same if found is None else pc.and_(found, same)
    return bool(pc.any(found).as_py())


def summed_up(
    found: tuple[ProbedSegment, ...], counts: Mapping[Any, RowCount | None], happened: pd.DataFrame, version: int
) -> str:
    """One or two sentences: how much is visible, and if nothing is, since when and why."""
    if not found:
        gone = happened[happened["dropped"] > 0] if len(happened) else happened
        if not len(gone):
            return f"Nothing lies here at version {version}, and nothing ever did in the versions that are kept."
        last = gone.iloc[0]
        return (
            f"Nothing lies here at version {version}. What did lie here was dropped by version {last['version']}, "
            f"a {last['operation']}."
        )
    verdicts = Counter(verdict_of(one, counts.get(one.segment.id)) for one in found)
    parts = [f"{verdicts[words]} {words}" for words in _WORDS if verdicts[words]]
    sentence = f"The laser crosses {len(found)} segment{'s' if len(found) > 1 else ''}: {', '.join(parts)}."
    blocking = {one.id: one for probed in found for one in probed.blocking}
    if blocking and verdicts.keys() <= _NOTHING_SEEN:
        newest = max(blocking.values(), key=lambda one: one.ordinal)
        sentence += f" Nothing is visible: {describe(newest)} of ordinal {newest.ordinal} hides it."
    return sentence


def _probed_row(probed: ProbedSegment, count: RowCount | None) -> dict[str, Any]:
    segment = probed.segment
    return {
        "segment": str(segment.id),
        "verdict": verdict_of(probed, count),
        "rows here": None if count is None else count.stored,
        "seen here": None if count is None else count.visible,
        "ordinal": segment.ordinal,
        "rows stored": segment.rows,
        "from": segment.start,
        "until": segment.end,
        "blocked by": ", ".join(_named(one) for one in probed.blocking),
        "masked by": ", ".join(_named(one.tombstone) for one in probed.met if one.effect == "masks"),
    }


def _named(tombstone: Tombstone) -> str:
    return f"{tombstone.id} (ordinal {tombstone.ordinal})"


def _met_row(probed: ProbedSegment, met: Met) -> dict[str, Any]:
    return {
        "tombstone": str(met.tombstone.id),
        "kind": met.tombstone.kind,
        "ordinal": met.tombstone.ordinal,
        "over segment": str(probed.segment.id),
        "its ordinal": probed.segment.ordinal,
        "what it does": _EFFECTS[met.effect],
        "keys": keys_text(met.tombstone.keys),
    }


def read_happened(table: Any, version: int, interval: Interval, limit: int = MOST_SHOWN) -> pd.DataFrame:
    """What versions up to one did to an interval, newest first, with their origin."""
    commits = {one.version: one for one in table.log(limit, before=version + 1, interval=interval)}
    return pd.DataFrame(
        [
            {
                "version": touch.version,
                "operation": commits[touch.version].operation,
                "committed": commits[touch.version].committed_at,
                "segments": change(touch.segments_added, touch.segments_dropped),
                "rows": change(touch.rows_added, touch.rows_dropped),
                "tombstones": change(touch.tombstones_added, touch.tombstones_dropped),
                "message": commits[touch.version].message or "",
                "run": links.run(commits[touch.version].properties),
                "dropped": touch.segments_dropped,
            }
            for touch in table.history(interval)
            if touch.version in commits
        ]
    )


def read_keys(text: str, schema: pa.Schema) -> dict[str, Any] | None:
    """Parse keys as typed, ``carrier=UA, client=77``; a repeated column adds a value.

    Raises `InvalidInput` for an unknown column or a value of another type.
    """
    found: dict[str, list[Any]] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        column, sign, value = part.partition("=")
        if not sign:
            raise InvalidArgument("not a key; write COLUMN=VALUE", key=part, columns=schema.names)
        if column.strip() not in schema.names:
            raise unknown_column("no such column; use one of the table's", column.strip(), schema.names)
        kind = schema.field(column.strip()).type
        try:
            typed = pa.scalar(value.strip()).cast(kind).as_py()
        except pa.ArrowException as error:
            raise InvalidArgument("not a value of that column", column=column.strip(), type=str(kind)) from error
        found.setdefault(column.strip(), []).append(typed)
    return {column: tuple(values) for column, values in found.items()} or None
