"""The versions that a node has in memory, the segments that it holds of them, and which of them it answers at."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from lakehouse.errors import LakehouseError, VersionNotFound, VersionNotServed
from lakehouse.faults import reach
from lakehouse.serving.answering import Statements, Translations
from lakehouse.serving.asking import Asking
from lakehouse.serving.frozen import Frozen, freeze
from lakehouse.serving.holding import Holding, Placement, load
from lakehouse.session.session import Session
from lakehouse.storage.warehouse import Warehouse

Point = int | Mapping[str, int]
"""A version of the lake, or versions by table."""
_KEEP_SECONDS = 10.0
"""How long a version is kept for clients that ask for it again, after the last did."""


@dataclass
class ServedVersion:
    """A version that a node can answer at."""

    frozen: Frozen
    statements: Statements
    used_until: float = field(default=0.0)


class Versions:
    """What a node has of each version. Thread-safe."""

    def __init__(self, session: Session, warehouse: Warehouse) -> None:
        self.session = session
        self.warehouse = warehouse
        self._guard = threading.RLock()
        self._moved = threading.Condition(self._guard)
        self._renewing = threading.Lock()
        self._served: dict[int, ServedVersion] = {}
        self._holdings: dict[int, Holding] = {}
        self._held: frozenset[str] = frozenset()
        self._leftover: set[str] = set()
        self._uses: Counter[int] = Counter()
        self._translations = Translations()
        self._live = 0

    @property
    def live(self) -> int:
        """The version that the node answers at; it never goes back."""
        return self._live

    @property
    def least(self) -> int:
        """The oldest version that has to stay readable for it."""
        with self._guard:
            return min([self._live, *self._served])

    @property
    def loaded(self) -> frozenset[int]:
        """Versions of which it holds what it is to hold."""
        with self._guard:
            return frozenset(self._holdings)

    @property
    def held(self) -> frozenset[str]:
        """Stored paths of all segments that it holds."""
        return self._held

    @property
    def held_bytes(self) -> int:
        """Their bytes."""
        with self._guard:
            sizes = {path: size for one in self._holdings.values() for path, size in one.sizes.items()}
        return sum(sizes.values())

    @property
    def used(self) -> frozenset[int]:
        """Versions that queries use, or that clients have come back to just now."""
        now = time.monotonic()
        with self._guard:
            kept = {version for version, one in self._served.items() if one.used_until > now}
            return frozenset(kept | {version for version, count in self._uses.items() if count})

    def served(self, version: int) -> ServedVersion:
        """A version in memory, which is read now if it is not there. Raises `VersionNotFound`."""
        with self._guard:
            found = self._served.get(version)
        if found is not None:
            return found
        opened = self._opened(freeze(self.session.catalog, version))
        with self._guard:
            return self._served.setdefault(version, opened)

    def _opened(self, frozen: Frozen) -> ServedVersion:
        return ServedVersion(frozen, Statements(self.session, frozen, self.warehouse, self._translations))

    def follow(self, version: int) -> None:
        """Answer at a version from now on, unless a later one is answered at."""
        self.served(version)
        with self._moved:
            self._live = max(version, self._live)
            self._moved.notify_all()
        reach("handoff.followed")

    # Loading and letting go

    def hold(self, version: int, placement: Placement, go_on: Callable[[int, int], object]) -> bool:
        """Hold what is to be held of a version; False if an erasure came in between, and it has to be done anew.

        See `lakehouse.serving.holding.load` for what it raises.
        """
        served = self.served(version)
        cache = self.warehouse.cache
        limit = None if cache is None else cache.limit_bytes
        found = load(
            served.frozen, self.warehouse, placement, limit_bytes=limit, make_room=self._make_room, go_on=go_on
        )
        with self._guard:
            now = self._served.get(version)
            if now is None or now.frozen.erasure != found.erasure:
                return False
            before = self._holdings.get(version)
            if before is not None:
                self._leftover |= before.sizes.keys() - found.sizes.keys()
            self._holdings[version] = found
            self._count_held()
        return True

    def _make_room(self, wanted: Collection[str], left_bytes: int) -> None:
        """Where older versions do not fit beside what is wanted, let go of what only they hold: it is cold from now on.

        Their queries read it from the warehouse. Better that than a flip that never comes.
        """
        with self._guard:
            sizes = {path: size for one in self._holdings.values() for path, size in one.sizes.items()}
            if sum(size for path, size in sizes.items() if path not in wanted) <= left_bytes:
                return
            for version, one in list(self._holdings.items()):
                self._leftover |= one.sizes.keys() - set(wanted)
                self._keep(version, {path: size for path, size in one.sizes.items() if path in wanted}, one.erasure)
            cache = self.warehouse.cache
            if cache is not None:
                self._leftover = set(cache.let_go(self._leftover))

    def _keep(self, version: int, sizes: dict[str, int], erasure: int) -> None:
        """Hold of a version what is held already, and no more."""
        kept = Holding(version, erasure, sizes)
        if self.warehouse.cache is not None:
            self.warehouse.cache.hold(sizes, kept)
        self._holdings[version] = kept
        self._count_held()

    def unload(self, versions: Collection[int]) -> None:
        """Let go of versions; copies that no other one needs go by `tidy`."""
        with self._guard:
            for version in versions:
                self._holdings.pop(version, None)
                served = self._served.pop(version, None)
                if served is not None:
                    self._leftover |= served.frozen.files()
            self._count_held()

    def tidy(self, needed: Collection[int | None]) -> None:
        """Let go of versions in memory that nobody needs or uses, and delete copies that belong to none."""
        with self._guard:
            kept = {self._live, *needed, *self.used, *self._holdings}
            for version in [one for one in self._served if one not in kept]:
                self._leftover |= self._served.pop(version).frozen.files()
            going, self._leftover = self._leftover, set()
            if going and self.warehouse.cache is not None:
                going -= {path for one in self._served.values() for path in one.frozen.files()}
                self._leftover = set(self.warehouse.cache.let_go(going))

    def close(self) -> None:
        """Hold nothing more; copies stay for the next node of the folder."""
        with self._guard:
            self._holdings.clear()
            self._served.clear()
            self._count_held()

    def sweep(self) -> None:
        """Let go of copies that a node which was killed has left in this one's folder; `tidy` deletes them.

        A store's cache may be others' too: there the limit takes care of what nobody uses.
        """
        cache = self.warehouse.cache
        if cache is not None and self.session.warehouse.cache is None:
            found = set(cache.copies())
            with self._guard:
                self._leftover |= found

    def renew(self, erasure: int) -> bool:
        """Read every version again if there was an erasure, which may have replaced files of all; whether there was.

        Raises `CatalogUnavailable`, and `VersionNotFound` if the live version has expired.
        """
        if not self._stale(erasure):
            return False
        with self._renewing:
            for version in self._stale(erasure):
                try:
                    fresh = freeze(self.session.catalog, version)
                except VersionNotFound:
                    if version == self._live:
                        raise
                    self.unload([version])
                    continue
                self._replace(version, fresh)
        cache = self.warehouse.cache
        if cache is not None and cache.erasure < erasure:
            cache.drop_replaced(erasure, lambda: [one.path for one in self.session.catalog.checks().files()])
        return True

    def _stale(self, erasure: int) -> list[int]:
        with self._guard:
            return [version for version, one in self._served.items() if one.frozen.erasure < erasure]

    def _replace(self, version: int, fresh: Frozen) -> None:
        opened, named = self._opened(fresh), fresh.files()
        with self._guard:
            old = self._served.get(version)
            if old is None:
                return
            self._leftover |= old.frozen.files() - named
            opened.used_until = old.used_until
            self._served[version] = opened
            held = self._holdings.get(version)
            if held is not None:
                sizes = {path: size for path, size in held.sizes.items() if path in named}
                self._keep(version, sizes, fresh.erasure)

    def _count_held(self) -> None:
        self._held = frozenset(path for one in self._holdings.values() for path in one.sizes)

    # Queries

    @contextmanager
    def using(self, versions: Point | None) -> Iterator[int]:
        """The version that a query is answered at, which stays in memory meanwhile: the live one, or one that is named.

        Raises `VersionNotServed`, `VersionNotFound`.
        """
        with self._guard:
            version = self._live if versions is None else self._found(versions)
            if version != self._live:
                self._served[version].used_until = time.monotonic() + _KEEP_SECONDS
            self._uses[version] += 1
        try:
            yield version
        finally:
            with self._guard:
                self._uses[version] -= 1
                self._uses += Counter()

    def _found(self, versions: Point) -> int:
        """The newest version in memory at which tables have some versions."""
        for version in sorted(self._served, reverse=True):
            has = self._served[version].frozen.versions
            if version <= self._live and (
                versions == version if isinstance(versions, int) else versions.items() <= has.items()
            ):
                return version
        raise self._none_such(versions)

    def _none_such(self, versions: Point) -> LakehouseError:
        asked = [versions] if isinstance(versions, int) else list(versions.values())
        facts = {"versions": versions, "serves": sorted(one for one in self._served if one <= self._live)}
        horizon = 0
        with suppress(LakehouseError):
            horizon = self.session.catalog.horizon()
        if asked and min(asked) < horizon:
            return VersionNotFound(
                "the version is not served, and has expired; ask for the live one", **facts, oldest=horizon
            )
        return VersionNotServed(
            "query nodes do not serve these versions; ask for the live one, or the lake itself", **facts
        )

    def has(self, seen: int, at_least: Point | None) -> bool:
        """Whether the live version has come as far."""
        with self._guard:
            return self._live >= seen and self._has(at_least)

    def wait_for(self, seen: int, at_least: Point | None, seconds: float, asking: Asking) -> bool:
        """Wait until the live version has come as far; whether it has. Raises `StatementCancelled`."""
        with asking.stopped_by(self._wake), self._moved:
            has_come = self._moved.wait_for(lambda: asking.is_cancelled or self.has(seen, at_least), seconds)
            asking.check()
            return has_come

    def _wake(self) -> None:
        with self._moved:
            self._moved.notify_all()

    def _has(self, at_least: Point | None) -> bool:
        if at_least is None or isinstance(at_least, int):
            return self._live >= (at_least or 0)
        versions = self._served[self._live].frozen.versions
        return all(versions.get(table, -1) >= version for table, version in at_least.items())
