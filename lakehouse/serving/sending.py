"""Answers on their way to clients: how many bytes of them a node holds in memory, and for whom."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable


class Held:
    """The bytes of one answer, from when its rows are known until it is sent or dropped, which is said once."""

    __slots__ = ("_reader", "_sending", "_size")

    def __init__(self, sending: Sending, reader: str, size: int) -> None:
        self._sending, self._reader, self._size = sending, reader, size

    def resize(self, size: int) -> None:
        """It is of so many bytes now, as it is sent."""
        self._sending._count(self._reader, size - self._size, 0)
        self._size = size

    def release(self) -> None:
        """It is in memory no more."""
        self._sending._count(self._reader, -self._size, -1)


class Sending:
    """Counts the bytes of answers that are being sent, in all and by reader. Thread-safe.

    There is room for a reader while all answers together have less than ``most_bytes``, and its own less than half of
    them, so that one who takes nothing leaves room for others. ``freed`` is called whenever there may be more room.

    >>> sending = Sending(100, freed=lambda: print("room"))
    >>> first = sending.hold("a", 50)
    >>> sending.has_room("a"), sending.has_room("b"), sending.begin("a", 1), sending.bytes
    (False, True, None, 50)
    >>> first.release()
    room
    >>> sending.has_room("a"), sending.bytes, sending.answers
    (True, 0, 0)
    """

    def __init__(self, most_bytes: int, freed: Callable[[], object]) -> None:
        self.most_bytes = most_bytes
        self._freed = freed
        self._guard = threading.Lock()
        self._held: Counter[str] = Counter()
        self.bytes = 0
        self.answers = 0

    def has_room(self, reader: str) -> bool:
        """Whether a query of this reader may begin."""
        return self.bytes < self.most_bytes and 2 * self._held[reader] < self.most_bytes

    def hold(self, reader: str, size: int) -> Held:
        """Count an answer whose query was let begin."""
        self._count(reader, size, 1)
        return Held(self, reader, size)

    def begin(self, reader: str, size: int) -> Held | None:
        """Count an answer that is known, if there is room for it now."""
        with self._guard:
            if not self.has_room(reader):
                return None
            self._add(reader, size, 1)
        return Held(self, reader, size)

    def _count(self, reader: str, size: int, answers: int) -> None:
        with self._guard:
            self._add(reader, size, answers)
        if size < 0:
            self._freed()

    def _add(self, reader: str, size: int, answers: int) -> None:
        self.bytes += size
        self.answers += answers
        self._held[reader] += size
        if not self._held[reader]:
            del self._held[reader]
