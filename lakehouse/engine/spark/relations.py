"""What Spark found out about explicit files, kept for the next frame over the same ones: files never change.

Spark looks at every file when a frame is made, a millisecond or two each, and forgets it with the frame. A relation is
what it found; a frame made of one has columns of its own, as any other.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakehouse.remembered import Remembered

MOST_FILES = 20_000
"""Files of all relations that are kept for a session; Spark holds some 500 bytes for each."""

_guard = threading.Lock()
_of_sessions: weakref.WeakKeyDictionary[SparkSession, Remembered[Hashable, Any]] = weakref.WeakKeyDictionary()


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
        relations = _of_sessions.setdefault(session, Remembered(MOST_FILES))
    known = relations.get(key)
    if known is None:
        known = make()
        if files <= MOST_FILES:
            relations.put(key, known, cost=files)
    return known
