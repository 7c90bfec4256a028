"""What a node holds of a version: copies of segments, whole and compared, that stay until it lets go of them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from lakehouse.core.keys import KeyScope
from lakehouse.core.segments import Segments
from lakehouse.core.serving.placement import held_by
from lakehouse.core.serving.rules import LoadRule, LoadRules, hot, rules_from_json
from lakehouse.core.spec import TableSpec
from lakehouse.errors import InvalidInput, StorageUnavailable
from lakehouse.schema import typed_scope
from lakehouse.serving.frozen import Frozen, FrozenTable
from lakehouse.storage.verify import verified
from lakehouse.storage.warehouse import Warehouse, fetch_all

_TOGETHER = 32
"""How many files are fetched at once, between two looks at whether to go on."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Who is to hold what: the nodes of a group, of which this is one, and how many hold a segment (None: all)."""

    node: str
    nodes: frozenset[str]
    replicas: int | None
    now_us: int = field(compare=False)

    @property
    def matters(self) -> bool:
        """Whether another set of nodes makes this one hold other segments."""
        return self.replicas is not None


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Holding:
    """Stored paths that are held of a version, for as long as this object lives, and their bytes."""

    version: int
    erasure: int
    sizes: dict[str, int]

    @property
    def bytes(self) -> int:
        """Their bytes together."""
        return sum(self.sizes.values())


def wanted(frozen: Frozen, placement: Placement) -> list[tuple[FrozenTable, Segments]]:
    """The segments that a node is to hold of a version, by table."""
    found = []
    for table in frozen.tables.values():
        rules = _typed(rules_from_json(table.spec.load_rules), table.spec)
        chosen = table.segments.where(hot(rules, table.segments, placement.now_us))
        mine = held_by(placement.node, placement.nodes, chosen.ids, placement.replicas)
        found.append((table, chosen.where(mine)))
    return found


def _typed(rules: LoadRules, spec: TableSpec) -> LoadRules:
    """Rules with values as the table's columns hold them; a rule whose columns it has no more matches nothing."""
    found = []
    for one in rules:
        try:
            keys: KeyScope = (typed_scope(one.keys, spec) or {}) if one.keys else {}
        except InvalidInput:
            continue
        found.append(LoadRule(one.interval, one.last_seconds, keys, one.is_cold))
    return tuple(found) or ((LoadRule(is_cold=True),) if rules else ())


def load(
    frozen: Frozen,
    warehouse: Warehouse,
    placement: Placement,
    *,
    limit_bytes: int | None,
    make_room: Callable[[Collection[str], int], object],
    go_on: Callable[[int, int], object],
) -> Holding:
    """Hold what a node is to hold of a version; only what is not here yet is fetched.

    ``make_room`` gets the paths that are wanted, and the bytes that are left for others, before the first is fetched.
    ``go_on`` gets the bytes that are there and those that are wanted, and may raise to end it. Raises
    `StorageUnavailable` where the disk or the limit is full, `SegmentUnreadable` for a file that is missing or damaged.
    """
    chosen = wanted(frozen, placement)
    sizes = {path: int(size) for _, one in chosen for path, size in zip(one.paths, one.numbers("bytes"), strict=True)}
    found = Holding(frozen.version, frozen.erasure, sizes)
    if limit_bytes is not None:
        _require_room(found, limit_bytes)
        make_room(sizes.keys(), limit_bytes - found.bytes)
    there, everything = 0, found.bytes
    go_on(there, everything)
    home = warehouse if warehouse.cache is None else warehouse.as_of_erasure(frozen.erasure)
    for table, segments in chosen:
        for first in range(0, len(segments), _TOGETHER):
            part = segments[first : first + _TOGETHER]
            _bring(home, table.spec, part, found)
            there += part.bytes
            go_on(there, everything)
    return found


def _bring(warehouse: Warehouse, spec: TableSpec, segments: Segments, holder: Holding) -> None:
    if warehouse.cache is None:
        verified(warehouse, segments, spec.verify)
    else:
        fetch_all(warehouse, segments, None, holder)


def _require_room(wanted: Holding, limit_bytes: int) -> None:
    if wanted.bytes > limit_bytes:
        raise StorageUnavailable(
            "the cache is too small for what is to be held of this version; give it more bytes, or load less by load "
            "rules",
            needed_bytes=wanted.bytes,
            limit_bytes=limit_bytes,
        )
