"""What this process reads, as one pin in the catalog: nothing that its readers can see is forgotten under them.

The pin is placed by the first scan and renewed by the heartbeat; while it stands, a scan at its version or a later one
writes nothing. Three times a lease it follows the oldest version that is in use, or goes if none is.
"""

from __future__ import annotations

import logging
import secrets
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable

from lakehouse.catalog.catalog import Catalog
from lakehouse.catalog.store.clock import steady_seconds
from lakehouse.core.spec import TableSpec
from lakehouse.errors import CatalogHeld, LakehouseError, TableNotFound, VersionNotFound, coded
from lakehouse.forks import watch_forks

logger = logging.getLogger(__name__)
_CLOSING_SECONDS = 1.0
"""How long the end of a process waits for a catalog that another program holds; leases end what is left."""


class Pins:
    """The versions that are in use, and the pin that holds the oldest of them. Thread-safe.

    ``start`` is called when there is a pin to be renewed from now on, by `beat`.
    """

    def __init__(self, catalog: Catalog, pin_seconds: float, start: Callable[[], None]) -> None:
        self._catalog = catalog
        self._pin_seconds = pin_seconds
        self._start = start
        self._guard = threading.Lock()
        self._writing = threading.Lock()
        self._reset()
        watch_forks(self)

    def _reset(self) -> None:
        self._id = secrets.token_hex(16)
        self._in_use: Counter[int] = Counter()
        self._released: deque[int] = deque()
        self._lingering: list[tuple[float, int]] = []
        self._pinned: int | None = None
        self._safe_until = 0.0
        self._retry_at = 0.0

    @property
    def id(self) -> str:
        """What the pin is called in the catalog."""
        return self._id

    def hold(self, holder: object, spec: TableSpec, version: int) -> Callable[[], object]:
        """Keep a version from being forgotten for as long as an object lives, or until what is returned is called.

        Raises `VersionNotFound` if it was meanwhile. A catalog that cannot be written is read without a pin.
        """
        if not self._is_held(version):
            self._place(spec, version)
        release = weakref.finalize(holder, self._release, version, self._id)
        release.atexit = False
        return release

    def linger(self, version: int) -> None:
        """Keep a version that is held for ``pin_seconds`` from now on: what was made of it is read later."""
        with self._guard:
            self._lingering.append((steady_seconds() + self._pin_seconds, version))

    def leave(self, spec: TableSpec, version: int) -> None:
        """Keep a version for ``pin_seconds`` whatever becomes of this process: others read what was planned in it.

        Raises `VersionNotFound`. A catalog that cannot be written is read without a pin.
        """
        try:
            self._catalog.pin(secrets.token_hex(16), spec, version, version, lease_seconds=self._pin_seconds)
        except (VersionNotFound, TableNotFound):
            raise
        except LakehouseError as error:
            logger.warning("reading without a pin, so that an expiry may end it: %s", coded(error))

    def _is_held(self, version: int) -> bool:
        """Note the use of a version if the pin covers it."""
        now = steady_seconds()
        with self._guard:
            if self._pinned is None or version < self._pinned or now >= self._safe_until:
                return False
            self._in_use[version] += 1
            return True

    def _place(self, spec: TableSpec, version: int) -> None:
        with self._writing:
            if self._is_held(version):
                return
            started = steady_seconds()
            with self._guard:
                least = min([version, *self._used()])
            if started >= self._retry_at:
                try:
                    self._catalog.pin(self._id, spec, version, least)
                except (VersionNotFound, TableNotFound, CatalogHeld):
                    raise
                except LakehouseError as error:
                    self._retry_at = started + self._catalog.lease_seconds
                    logger.warning("reading without a pin, so that an expiry may end it: %s", coded(error))
                else:
                    with self._guard:
                        self._pinned, self._safe_until = least, started + self._catalog.lease_seconds
                    self._start()
            with self._guard:
                self._in_use[version] += 1

    def _release(self, version: int, pin_id: str) -> None:
        # A finalizer may run in the middle of anything, so it takes no lock.
        if pin_id == self._id:
            self._released.append(version)

    def _used(self) -> list[int]:
        """The versions in use; to be called under the guard."""
        while self._released:
            version = self._released.popleft()
            self._in_use[version] -= 1
            if not self._in_use[version]:
                del self._in_use[version]
        now = steady_seconds()
        self._lingering = [(until, version) for until, version in self._lingering if until > now]
        return [*self._in_use, *(version for _, version in self._lingering)]

    def beat(self) -> None:
        """`follow`, again and again: a beat that fails leaves it to the next one."""
        try:
            self.follow()
        except LakehouseError as error:
            # A scan that comes after the lease places the pin anew.
            logger.warning("the pin was not renewed: %s", coded(error))

    def follow(self) -> None:
        """Renew the pin, and let it follow what is in use; where nothing is, remove it."""
        with self._writing:
            started = steady_seconds()
            with self._guard:
                if self._pinned is None:
                    return
                used = self._used()
                # Raised before the catalog is asked: from now on a scan of an older version places the pin anew.
                least = self._pinned = max(self._pinned, min(used)) if used else None
            if least is None:
                self._catalog.unpin(self._id)
            elif not self._catalog.renew_pin(self._id, least):
                logger.warning("the pin ran out while this process was held up; what it reads may be gone")
                self._forget_pin()
            else:
                with self._guard:
                    self._safe_until = started + self._catalog.lease_seconds

    def _forget_pin(self) -> None:
        with self._guard:
            self._pinned = None

    def after_fork(self) -> None:
        """A child's reads are its own: it must neither lean on its parent's pin nor remove it."""
        self._guard, self._writing = threading.Lock(), threading.Lock()
        self._reset()

    def close(self) -> None:
        """Remove the pin."""
        with self._writing:
            if self._pinned is not None:
                self._forget_pin()
                try:
                    self._catalog.unpin(self._id, wait_seconds=_CLOSING_SECONDS)
                except LakehouseError as error:
                    logger.warning("the pin was not removed, its lease will end it: %s", coded(error))
