"""Traces of erased rows in the catalog beside their segments: key scopes are removed, the rest is counted.

A keyed tombstone hides older rows of its keys. Where all rows of a key went from every segment, and nothing that runs
can add older ones, it hides nothing of that key in any version, and need not name it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select

from lakehouse.catalog.store.encoding import decode_keys, decode_map, encode_map
from lakehouse.catalog.store.models import (
    commit_log,
    commit_table,
    garbage,
    lake_table,
    operation,
    tag,
    tombstone,
    txn,
)
from lakehouse.catalog.versions.horizon import read_horizon
from lakehouse.core.erased import words_of
from lakehouse.core.interval import Interval, from_us
from lakehouse.core.keys import KeyScope
from lakehouse.core.operation import Begun
from lakehouse.core.spec import TableSpec

Taken = tuple[Interval, KeyScope | None]
"""An interval and keys of which every row was erased."""


@dataclass(frozen=True, slots=True)
class ScopeChange:
    """A keyed tombstone that has less to name once rows are erased: the keys ``left``, or nothing at all."""

    tombstone: int
    added_version: int
    covered: Interval
    left: KeyScope | None


def scopes_to_change(connection: Connection, begun: Begun, taken: Taken | None) -> list[ScopeChange]:
    """Tombstones of a table that name keys of which every row was erased.

    None is left out for an operation that could still add older rows of these keys. Cost: the table's keyed tombstones.
    """
    spec = begun.table
    if taken is None or taken[1] is None:
        return []
    oldest = connection.execute(
        select(func.min(operation.c.ordinal)).where(
            operation.c.table_id == spec.id, operation.c.state == "running", operation.c.number != begun.number
        )
    ).scalar()
    changes = []
    current = spec.current_names
    for row in connection.execute(_keyed(spec)).mappings().all():
        covered, keys = Interval(from_us(row["start_us"]), from_us(row["end_us"])), decode_keys(row["keys"], current)
        assert keys is not None
        left = keys_left(keys, taken[1]) if taken[0].contains(covered) else keys
        if left != keys and (oldest is None or oldest >= row["ordinal"]):
            changes.append(ScopeChange(row["id"], row["added_version"], covered, left))
    return changes


def keys_left(keys: KeyScope, erased: KeyScope) -> KeyScope | None:
    """What a scope still has to say when all rows of another one are gone; None if that is nothing.

    >>> keys_left({"client": (77, 78)}, {"client": (77,)}), keys_left({"client": (77,)}, {"client": (77, 78)})
    ({'client': (78,)}, None)
    >>> keys_left({"client": (77,)}, {"client": (77,), "region": ("eu",)})
    {'client': (77,)}
    """
    rest = {name: tuple(one for one in keys.get(name, (...,)) if one not in erased[name]) for name in erased}
    if not any(rest.values()):
        return None
    if len(erased) > 1 or not erased.keys() <= keys.keys():
        return keys
    return {name: rest.get(name, held) for name, held in keys.items()}


def newest_erasure(connection: Connection) -> int:
    """The version of the lake's newest erasure, 0 without any."""
    return int(connection.execute(select(func.max(lake_table.c.erased_version))).scalar() or 0)


def scopes_named(connection: Connection, spec: TableSpec, taken: Taken | None) -> list[Interval]:
    """What those keyed tombstones cover that `scopes_to_change` may find."""
    if taken is None or taken[1] is None:
        return []
    return [Interval(from_us(row.start_us), from_us(row.end_us)) for row in connection.execute(_keyed(spec))]


def _keyed(spec: TableSpec) -> Any:
    return select(tombstone).where(tombstone.c.table_id == spec.id, tombstone.c["keys"].is_not(None))


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What of a table may still show values of rows: files, running operations, keys of tombstones, users' texts."""

    garbage: int
    running: tuple[str, ...]
    ended: int
    """Operations that ended without a commit and whose folders are not deleted yet."""
    scopes: tuple[KeyScope, ...]
    key_sets: int
    texts: tuple[tuple[int, str], ...]
    """Of commits, by version: message and properties."""
    marks: tuple[tuple[int, str], ...]
    """Of commits, by version: who made them exactly once (``txn``)."""
    tags: tuple[tuple[int, str], ...]
    """Names of the lake's tags, by version."""
    readable: int
    """Versions of the table that can still be read."""


def read_leftovers(connection: Connection, spec: TableSpec) -> Leftovers:
    """Where values of erased rows may remain. Cost: the table's log, and its keyed tombstones."""
    of_table = operation.c.table_id == spec.id
    running = select(operation.c.id).where(of_table, operation.c.state == "running").order_by(operation.c.number)
    ended = select(func.count()).where(of_table, operation.c.state == "aborted")
    files = select(func.count()).select_from(garbage).where(garbage.c.table_id == spec.id)
    sets = select(func.count()).where(tombstone.c.table_id == spec.id, tombstone.c.kind == "key")
    log = (
        select(commit_log.c.version, commit_log.c.message, commit_log.c.properties)
        .join(commit_table, commit_table.c.version == commit_log.c.version)
        .where(commit_table.c.table_id == spec.id)
    )
    marks = select(txn.c.version, txn.c.app).where(txn.c.table_id == spec.id)
    current = spec.current_names
    scopes = (decode_keys(row["keys"], current) for row in connection.execute(_keyed(spec)).mappings())
    return Leftovers(
        garbage=connection.execute(files).scalar_one(),
        running=tuple(connection.execute(running).scalars()),
        ended=connection.execute(ended).scalar_one(),
        scopes=tuple(one for one in scopes if one is not None),
        key_sets=connection.execute(sets).scalar_one(),
        readable=count_readable(connection, spec),
        texts=tuple(_texts((version, message, _words(held)) for version, message, held in connection.execute(log))),
        marks=tuple(_texts(connection.execute(marks).all())),
        tags=tuple(_texts(connection.execute(select(tag.c.version, tag.c.name)).all())),
    )


def count_readable(connection: Connection, spec: TableSpec) -> int:
    """How many versions of a table are retained: those since the horizon, and the newest at it and at older tags."""
    mine = select(commit_table.c.version).where(commit_table.c.table_id == spec.id)
    versions = sorted(connection.execute(mine).scalars())
    horizon = read_horizon(connection)
    points = [one for one in connection.execute(select(tag.c.version)).scalars() if one < horizon]
    kept = {one for one in versions if one >= horizon}
    for point in (*points, horizon):
        place = bisect_right(versions, point)
        kept |= {versions[place - 1]} if place else set()
    return len(kept)


def _words(properties: str | None) -> str | None:
    """What users wrote into the properties of a commit."""
    return encode_map(words_of(decode_map(properties)))


def _texts(rows: Iterable[Any]) -> list[tuple[int, str]]:
    return [(row[0], str(part)) for row in rows for part in row[1:] if part is not None]
