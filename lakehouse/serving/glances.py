"""Looks at the catalog before each answer, one for all who ask at that moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from lakehouse.core.serving.group import Glance
from lakehouse.errors import coded


class Glances:
    """One thread that looks; whoever asks gets what a look saw that began after. Thread-safe.

    A catalog that does not answer in time delays nobody for long: what was seen last counts then, with its age.
    """

    def __init__(self, look: Callable[[], Glance], first: Glance) -> None:
        self._look = look
        self._changed = threading.Condition()
        self._wanted = self._done = 0
        self._seen, self._seen_at = first, time.monotonic()
        self._error: str | None = None
        self._is_late = False
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="lakehouse-glances", daemon=True)
        self._thread.start()

    @property
    def seen(self) -> Glance:
        """What was seen last."""
        return self._seen

    @property
    def age_seconds(self) -> float:
        """How long ago that was."""
        return max(0.0, time.monotonic() - self._seen_at)

    @property
    def is_current(self) -> bool:
        """Whether the last look saw anything, and none is late."""
        return self._error is None and not self._is_late

    def fresh(self, most_seconds: float) -> tuple[Glance, float]:
        """What a look sees that begins now, and 0; after ``most_seconds`` what was seen last, and its age."""
        with self._changed:
            self._wanted += 1
            mine = self._wanted
            self._changed.notify_all()
            is_done = self._changed.wait_for(lambda: self._done >= mine or self._is_closed, most_seconds)
            self._is_late = not is_done
            if is_done and self._error is None:
                return self._seen, 0.0
            return self._seen, self.age_seconds

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted > self._done or self._is_closed)
                if self._is_closed:
                    return
                begun, begun_at = self._wanted, time.monotonic()
            seen, said = None, None
            try:
                seen = self._look()
            except Exception as error:  # noqa: BLE001 - what was seen last counts, with its age
                said = coded(error)
            with self._changed:
                self._done, self._error = begun, said
                if seen is not None:
                    self._seen, self._seen_at = seen, begun_at
                self._changed.notify_all()

    def close(self) -> None:
        """Look no more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
