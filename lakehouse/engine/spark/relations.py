"""What Spark found out about explicit files, kept for the next frame over the same ones: files never change.

Spark looks at every file when a frame is made, a millisecond or two each, and forgets it with the frame. A relation is
what it found; a frame made of one has columns of its own, as any other.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

_MOST_FILES = 20_000
"""Files of all relations that are kept for a session; Spark holds some 500 bytes for each."""

_guard = threading.Lock()
_of_sessions: weakref.WeakKeyDictionary[SparkSession, _Relations] = weakref.WeakKeyDictionary()


def frame_over(session: SparkSession, key: Hashable, files: int, make: Callable[[], DataFrame]) -> DataFrame:
    """A frame like the one that ``make`` makes, which has ``files`` files and is the same for equal keys.

    A session that runs elsewhere (Spark Connect) has no relations to keep: there it is made anew.
    """
    if not hasattr(session, "_jsparkSession"):
        return make()
    known = kept(session, key, files, lambda: make()._jdf.queryExecution().analyzed().relation())
    from pyspark.sql.classic.dataframe import DataFrame as Classic  # noqa: PLC0415 - absent where Spark is elsewhere

    return Classic(session._jsparkSession.baseRelationToDataFrame(known), session)


def kept(session: SparkSession, key: Hashable, files: int, make: Callable[[], Any]) -> Any:
    """What is known of so many files under a key; made if nothing is."""
    with _guard:
        relations = _of_sessions.setdefault(session, _Relations())
        known = relations.get(key)
    if known is None:
        known = make()
        with _guard:
            relations.put(key, known, files)
    return known


class _Relations:
    """Relations, and what else is known of files, by key; forgets those that were not used longest."""

    def __init__(self) -> None:
        self._held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._left = _MOST_FILES

    def get(self, key: Hashable) -> Any:
        """What is kept under a key, or None."""
        found = self._held.get(key)
        if found is None:
            return None
        self._held.move_to_end(key)
        return found[0]

    def put(self, key: Hashable, known: Any, files: int) -> None:
        """Keep something; not what alone is about too many files."""
        if files > _MOST_FILES or key in self._held:
            return
        self._held[key] = known, files
        self._left -= files
        while self._left < 0:
            _, (_, forgotten) = self._held.popitem(last=False)
            self._left += forgotten
