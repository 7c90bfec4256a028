"""Session settings that a call needs, put back when the last call that needs them ends.

Which calls hold them, and what was there before, is kept in the session's own settings: two Python objects may stand
for one session.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

_HELD = "lakehouse.settings.held"
_lock = threading.Lock()


@contextmanager
def held(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Hold a session's settings at given values. Calls side by side should ask for equal values: the first one wins."""
    if not settings:
        yield
        return
    _take(session, settings)
    try:
        yield
    finally:
        _release(session, settings)


def _take(session: SparkSession, settings: Mapping[str, str]) -> None:
    with _lock:
        state = _state(session)
        for key, value in settings.items():
            count, before = state.get(key, (0, None))
            if count == 0:
                before = session.conf.get(key, None)
                session.conf.set(key, value)
            state[key] = (count + 1, before)
        session.conf.set(_HELD, json.dumps(state))


def _release(session: SparkSession, settings: Mapping[str, str]) -> None:
    with _lock:
        state = _state(session)
        for key in settings:
            count, before = state.pop(key)
            if count > 1:
                state[key] = (count - 1, before)
            elif before is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, before)
        if state:
            session.conf.set(_HELD, json.dumps(state))
        else:
            session.conf.unset(_HELD)


def _state(session: SparkSession) -> dict[str, tuple[int, str | None]]:
    """By setting, how many calls hold it and what it was before the first of them."""
    found = json.loads(session.conf.get(_HELD, None) or "{}")
    return {key: (count, before) for key, (count, before) in found.items()}
