"""A bounded cache of values that never change: the most recently used ones."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from cachetools import LRUCache

from lakehouse.forks import watch_forks

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """Values by key; the least recently used are evicted. Thread-safe.

    ``size`` bounds the sum of the costs of all values, in the unit that `put` is called with. A value that alone costs
    more evicts all others: large values are the ones that one would not want to read again.

    >>> letters = Remembered(size=2)
    >>> letters.put(1, "a"), letters.put(2, "b"), letters.get(1), letters.put(3, "c")
    (None, None, 'a', None)
    >>> letters.known([1, 2, 3])
    {1: 'a', 3: 'c'}
    >>> letters.put(4, "d", cost=5)
    >>> letters.known([1, 2, 3, 4])
    {4: 'd'}
    """

    def __init__(self, size: int) -> None:
        self._size = max(1, size)
        self._guard = threading.Lock()
        self._held = self._nothing()
        watch_forks(self)

    def _nothing(self) -> LRUCache[K, tuple[V, int]]:
        return LRUCache(self._size, getsizeof=lambda held: held[1])

    def after_fork(self) -> None:
        """A forked child has no thread that would finish its parent's change: it starts with an empty cache."""
        if self._guard.locked():
            self._guard, self._held = threading.Lock(), self._nothing()

    def get(self, key: K) -> V | None:
        """The value of a key, or None; cost: under a microsecond."""
        with self._guard:
            held = self._held.get(key)
        return None if held is None else held[0]

    def known(self, keys: Iterable[K]) -> dict[K, V]:
        """The cached values of some keys, in the order of the keys."""
        with self._guard:
            return {key: self._held[key][0] for key in keys if key in self._held}

    def put(self, key: K, value: V, cost: int = 1) -> None:
        """Cache a value, replacing an older one of the same key."""
        with self._guard:
            self._held[key] = value, min(cost, self._size)

    def drop(self, key: K) -> None:
        """Evict a value, if it is there."""
        with self._guard:
            self._held.pop(key, None)

    def clear(self) -> None:
        """Evict every value."""
        with self._guard:
            self._held = self._nothing()

    def __len__(self) -> int:
        """The number of cached values."""
        return len(self._held)
