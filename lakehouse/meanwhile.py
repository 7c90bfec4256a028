"""Small work that another thread does while its caller waits for a disk or a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

from lakehouse.forks import watch_forks

_THREADS = 16
_T = TypeVar("_T")


class _Threads:
    """They stay, since to start one takes longer than what it is to do."""

    def __init__(self) -> None:
        self.after_fork()
        watch_forks(self)

    def after_fork(self) -> None:
        """A child has none of its parent's."""
        self.pool = ThreadPoolExecutor(_THREADS, "lakehouse-meanwhile")


_threads = _Threads()


@contextmanager
def meanwhile(work: Callable[..., _T], *arguments: Any) -> Iterator[Future[_T]]:
    """Around what waits: ``work`` begins before it, and has ended, or failed, after it.

    >>> with meanwhile(sum, [1, 2]) as found:
    ...     pass
    >>> found.result()
    3
    """
    found = _threads.pool.submit(work, *arguments)
    try:
        yield found
    finally:
        wait([found])
