"""Protects what this process reads by one pin in the catalog, so that it does not expire while it is read.

The first scan places the pin and the heartbeat renews it; meanwhile, scans at its version or a later one write nothing.
Every third of a lease it moves to the oldest version in use, or is removed if none is.
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
"""How long a process that ends waits for a catalog that another program holds; leases end the rest."""


class Pins:
    """The versions in use, and the pin on the oldest of them. Thread-safe.

    ``start`` is called when there is a pin, which `beat` has to renew from then on.
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
    def seconds(self) -> float:
        """How long a lazy result is protected."""
        return self._pin_seconds

    @property
    def id(self) -> str:
        """The pin's id in the catalog."""
        return self._id

    def hold(self, holder: object, spec: TableSpec, version: int) -> Callable[[], object]:
        """Protect a version from expiry for as long as an object lives, or until the returned function is called.

        Raises `VersionNotFound` if it has expired. A catalog that cannot be written is read without a pin.
        """
        if not self._is_held(version):
            self._place(spec, version)
        release = weakref.finalize(holder, self._release, version, self._id)
        release.atexit = False
        return release

    def linger(self, version: int) -> None:
        """Keep a protected version for ``pin_seconds`` more: lazy results are read later."""
        with self._guard:
            self._lingering.append((steady_seconds() + self._pin_seconds, version))

    def leave(self, spec: TableSpec, version: int) -> None:
        """Protect a version for ``pin_seconds``, even if this process ends: other processes read what it planned.

        Raises `VersionNotFound`. A catalog that cannot be written is read without a pin.
        """
        try:
            self._catalog.pin(secrets.token_hex(16), spec, version, version, lease_seconds=self._pin_seconds)
        except (VersionNotFound, TableNotFound):
            raise
        except LakehouseError as error:
            logger.warning("reading without a pin, so an expiry may end the read: %s", coded(error))

    def _is_held(self, version: int) -> bool:
        """Record the use of a version if the pin covers it."""
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
                    logger.warning("reading without a pin, so an expiry may end the read: %s", coded(error))
                else:
                    with self._guard:
                        self._pinned, self._safe_until = least, started + self._catalog.lease_seconds
                    self._start()
            with self._guard:
                self._in_use[version] += 1

    def _release(self, version: int, pin_id: str) -> None:
        # A finalizer may run at any point, so it takes no lock.
        if pin_id == self._id:
            self._released.append(version)

    def _used(self) -> list[int]:
        """The versions in use; call it under the lock."""
        while self._released:
            version = self._released.popleft()
            self._in_use[version] -= 1
            if not self._in_use[version]:
                del self._in_use[version]
        now = steady_seconds()
        self._lingering = [(until, version) for until, version in self._lingering if until > now]
        return [*self._in_use, *(version for _, version in self._lingering)]

    def beat(self) -> None:
        """Call `follow`; a failed beat leaves it to the next one."""
        try:
            self.follow()
        except LakehouseError as error:
            # A scan after the lease has expired places the pin again.
            logger.warning("the pin was not renewed: %s", coded(error))

    def follow(self) -> None:
        """Renew the pin and move it to the oldest version in use; remove it if none is."""
        with self._writing:
            started = steady_seconds()
            with self._guard:
                if self._pinned is None:
                    return
                used = self._used()
                # Set before the catalog is called: from now on a scan of an older version places the pin again.
                least = self._pinned = max(self._pinned, min(used)) if used else None
            if least is None:
                self._catalog.unpin(self._id)
            elif not self._catalog.renew_pin(self._id, least):
                logger.warning("the pin expired while this process was paused; what it reads may be gone")
                self._forget_pin()
            else:
                with self._guard:
                    self._safe_until = started + self._catalog.lease_seconds

    def _forget_pin(self) -> None:
        with self._guard:
            self._pinned = None

    def after_fork(self) -> None:
        """A forked child must neither rely on its parent's pin nor remove it."""
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
                    logger.warning("the pin could not be removed; it ends with its lease: %s", coded(error))
