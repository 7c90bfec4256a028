"""The state of a lake at one version, in memory: what statements ask of a catalog, without asking it again.

A node reads it once for each version that it serves. So a query costs no round trip, all of its tables are of one
version, and a node whose catalog is away goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeVar, cast

from lakehouse.arguments import nearest_table
from lakehouse.catalog.catalog import Catalog
from lakehouse.catalog.reader import ReadPoint
from lakehouse.core.beside import is_beside
from lakehouse.core.interval import Interval
from lakehouse.core.plan import ReadPlan
from lakehouse.core.predicate import Predicate
from lakehouse.core.segments import Segments
from lakehouse.core.sets import MatchSet
from lakehouse.core.spec import TableSpec
from lakehouse.core.tombstone import Tombstone
from lakehouse.core.view import View
from lakehouse.errors import TableNotFound, VersionNotServed
from lakehouse.session.session import Session
from lakehouse.storage.warehouse import Warehouse

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FrozenTable:
    """A table at a version: its definition then, and what is live of it."""

    spec: TableSpec
    created: int
    version: int
    segments: Segments
    tombstones: tuple[Tombstone, ...]


@dataclass(frozen=True, slots=True)
class Frozen:
    """A lake at a version, with the newest erasure that its files are of."""

    version: int
    erasure: int
    tables: Mapping[str, FrozenTable]
    views: tuple[View, ...]
    sets: Mapping[int, MatchSet]

    @property
    def versions(self) -> dict[str, int]:
        """The version of each table."""
        return {name: table.version for name, table in self.tables.items()}

    def files(self) -> set[str]:
        """Stored paths of all segments."""
        return {path for table in self.tables.values() for path in table.segments.paths}


def freeze(catalog: Catalog, version: int) -> Frozen:
    """Read a lake's state at a version, from one state of the catalog. Raises `VersionNotFound` if it has expired.

    Cost: what is live in it; of tables whose state this process has read before, what changed since.
    """

    def look() -> Frozen:
        tables, tombstones = {}, []
        for name in catalog.table_names():
            spec, created = catalog.table(name)
            if is_beside(name) or created > version:
                continue
            point = catalog.resolve_as_of(spec, created, version)
            segments, hidden = catalog.live(point.spec, point.version)
            tables[name] = FrozenTable(point.spec, created, point.version, segments, tuple(hidden))
            tombstones += [one for one in hidden if one.kind != "interval"]
        views = tuple(replace(one, dropped=None) for one in catalog.views() if one.is_there(version))
        return Frozen(version, catalog.newest_erasure(), tables, views, catalog.sets(tombstones) if tombstones else {})

    return catalog.snapshot(look)


class _AllNamed:
    def names(self, _: str) -> bool:
        """Whether a file is named."""
        return True


class FrozenCatalog:
    """What reads ask of a `Catalog`, answered of a state in memory, which is its head."""

    def __init__(self, frozen: Frozen) -> None:
        self._frozen = frozen

    def names(self) -> tuple[list[str], frozenset[str]]:
        """Names of the tables, sorted, and folded names of the views."""
        return self.table_names(), frozenset(one.name.casefold() for one in self._frozen.views)

    def table_names(self) -> list[str]:
        """Names of the tables, sorted."""
        return sorted(self._frozen.tables)

    def views(self) -> list[View]:
        """The views."""
        return list(self._frozen.views)

    def snapshot(self, work: Callable[[], T]) -> T:
        """Run ``work``: there is one state only."""
        return work()

    def head(self) -> int:
        """The version."""
        return self._frozen.version

    def table(self, name: str) -> tuple[TableSpec, int]:
        """A table's definition and the version that created it. Raises `TableNotFound`."""
        found = self._frozen.tables.get(name)
        if found is None:
            known = [one for one in self.table_names() if not is_beside(one)]
            raise TableNotFound(
                "no such table at the version that is served",
                table=name,
                version=self.head(),
                **nearest_table(name, known),
            )
        return found.spec, found.created

    def resolve(self, as_of: Any) -> int:
        """The version. Raises `VersionNotServed` for any other one."""
        if as_of is None or as_of == self._frozen.version:
            return self._frozen.version
        return self._not_served(as_of)

    def resolve_as_of(self, spec: TableSpec, _: int, as_of: Any) -> ReadPoint:
        """A table's version and definition. Raises `VersionNotServed` for another version than it has here."""
        held = self._frozen.tables[spec.name]
        if as_of is not None and as_of not in (held.version, self._frozen.version):
            self._not_served(as_of)
        return ReadPoint(held.version, held.version, held.spec)

    def _not_served(self, as_of: Any) -> NoReturn:
        raise VersionNotServed(
            "query nodes answer at one version of the lake; leave VERSION AS OF out, or ask the lake itself",
            as_of=as_of,
            serves=self._frozen.version,
        )

    def live(
        self, spec: TableSpec, _: int, interval: Interval | None = None
    ) -> tuple[Segments, tuple[Tombstone, ...] | list[Tombstone]]:
        """Live segments and tombstones that touch the chunks that an interval touches."""
        held = self._frozen.tables[spec.name]
        if interval is None:
            return held.segments, held.tombstones
        aligned = spec.grain.align(interval)
        return held.segments.within(aligned), [one for one in held.tombstones if aligned.overlaps(one.interval)]

    def sets(self, tombstones: Iterable[Tombstone]) -> dict[int, MatchSet]:
        """The sets of row and key tombstones, by tombstone id."""
        return {one.id: self._frozen.sets[one.id] for one in tombstones}

    def checks(self) -> _AllNamed:
        """What says of every file that it is named: the node itself finds out whether an erasure replaced it."""
        return _AllNamed()


class _NoPins:
    """Pins of a state that the node's lease protects as a whole."""

    seconds = 0.0

    def hold(self, *_: object) -> Callable[[], object]:
        """Nothing."""
        return lambda: None


class _NoIndexes:
    """Indexes lie in the catalog, which is not asked."""

    def narrowed(self, plan: ReadPlan, _: TableSpec, __: Predicate | None) -> ReadPlan:
        """The plan as it is."""
        return plan


class FrozenSession(Session):
    """A session over a frozen state, which shares engines with the one that it was made of, and closes nothing."""

    def __init__(self, base: Session, frozen: Frozen, warehouse: Warehouse) -> None:
        self.catalog = cast(Catalog, FrozenCatalog(frozen))
        self.warehouse = warehouse if warehouse.cache is None else warehouse.as_of_erasure(frozen.erasure)
        self.erasure = None if warehouse.cache is None else frozen.erasure
        self.pins = cast(Any, _NoPins())
        self.index_cache = cast(Any, _NoIndexes())
        self.plan_counts = base.plan_counts
        self.local_engine = base.local_engine
        self.works = base.works
        self.most_in_process = base.most_in_process

    def drop_erased(self) -> int | None:
        """The newest erasure that was known when the state was read: the node itself looks for newer ones."""
        return self.erasure

    def close(self) -> None:
        """Nothing: what it uses is another's."""
