"""A bounded, fair queue of queries: readers are served round robin, so one reader's queries never starve another's."""

import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lakehouse.errors import QueryLimitExceeded, StatementCancelled

OnWait = Callable[[int], object]
MayBegin = Callable[[str], bool]
_LOOK_SECONDS = 1.0
"""How often a waiting query reports its place, which is also when a reader who left is noticed."""


class Turn:
    """A query's wait for its slot, which another thread can end: `leave`."""

    def __init__(self) -> None:
        self.on_wait: OnWait | None = None
        """Without it the query wakes for its slot alone, else whenever its place may change."""
        self.woken = threading.Event()
        self.has_left = False

    def leave(self) -> None:
        """Wait no longer: `FairQueue.slot` raises `StatementCancelled`, unless there is a slot already."""
        self.has_left = True
        self.woken.set()


class FairQueue:
    """``at_once`` slots, of which one reader holds at most ``each``; waiting readers are served round robin.

    While ``each`` is less than ``at_once``, one reader cannot take every slot, so a second reader starts at once. At
    most ``most_waiting_each`` queries of one reader wait, and ``most_waiting`` in all. ``may_begin`` may keep a
    reader's queries waiting though there is a slot; it is called under the queue's lock. Thread-safe.
    """

    def __init__(
        self,
        *,
        at_once: int,
        each: int,
        most_waiting: int,
        most_waiting_each: int,
        may_begin: MayBegin = lambda _: True,
    ) -> None:
        self._at_once, self._each = at_once, each
        self._most, self._most_each = most_waiting, most_waiting_each
        self._may_begin = may_begin
        self._guard = threading.Lock()
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[Turn]] = OrderedDict()

    @contextmanager
    def slot(
        self, reader: str, *, most_seconds: float, on_wait: OnWait | None = None, turn: Turn | None = None
    ) -> Iterator[None]:
        """Wait for a slot and hold it inside a ``with`` block; ``on_wait`` gets the place in the queue, from 1.

        ``turn`` lets another thread end the wait; it serves once. Raises `QueryLimitExceeded` if too many wait
        already, or after waiting for ``most_seconds``, and `StatementCancelled` for a turn that was left.
        """
        turn = turn or Turn()
        turn.on_wait = on_wait
        with self._guard:
            self._stand(reader, turn)
            self._serve()
        try:
            self._wait(reader, turn, time.monotonic() + most_seconds, most_seconds)
        except BaseException:
            self._leave(reader, turn)
            raise
        try:
            yield
        finally:
            with self._guard:
                self._running[reader] -= 1
                self._running += Counter()  # drop readers without any
                self._serve()

    def _stand(self, reader: str, turn: Turn) -> None:
        own = self._waiting.get(reader, ())
        if len(own) >= self._most_each or sum(map(len, self._waiting.values())) >= self._most:
            raise QueryLimitExceeded(
                "too many queries wait already; try again when some have ended", limit="waiting", yours=len(own)
            )
        self._waiting.setdefault(reader, deque()).append(turn)

    def _wait(self, reader: str, turn: Turn, until: float, most_seconds: float) -> None:
        while True:
            turn.woken.clear()  # before the look: what changes after it is seen the next time
            with self._guard:
                place = self._place(reader, turn)
            if place == 0:
                return
            if turn.has_left:
                raise StatementCancelled("the query was cancelled while it waited for its turn")
            left = until - time.monotonic()
            if left <= 0:
                raise QueryLimitExceeded(
                    "other queries run; try again when they have ended",
                    limit="waiting",
                    place=place,
                    waited_seconds=most_seconds,
                )
            if turn.on_wait is None:
                turn.woken.wait(left)
                continue
            turn.on_wait(place)  # not under the lock: it may take long, or raise
            turn.woken.wait(min(left, _LOOK_SECONDS))

    def _leave(self, reader: str, turn: Turn) -> None:
        with self._guard:
            if turn in self._waiting.get(reader, ()):
                self._waiting[reader].remove(turn)
                if not self._waiting[reader]:
                    del self._waiting[reader]
            else:  # it got its slot just now
                self._running[reader] -= 1
                self._running += Counter()
            self._serve()

    def _serve(self) -> None:
        """Give free slots to those next in the queue; call it under the lock."""
        while sum(self._running.values()) < self._at_once:
            following = next(filter(self._is_free, self._waiting), None)
            if following is None:
                break
            turns = self._waiting.pop(following)
            turns.popleft().woken.set()
            self._running[following] += 1
            if turns:
                self._waiting[following] = turns  # behind all others
        for turns in self._waiting.values():
            for one in turns:
                if one.on_wait is not None:
                    one.woken.set()

    def _is_free(self, reader: str) -> bool:
        return self._running[reader] < self._each and self._may_begin(reader)

    def look_again(self) -> None:
        """Let those begin who may now: ``may_begin`` has changed its mind."""
        with self._guard:
            self._serve()

    def _place(self, reader: str, turn: Turn) -> int:
        """The place in the queue, from 1; 0 once it has a slot."""
        own = self._waiting.get(reader, ())
        if turn not in own:
            return 0
        round_ = list(own).index(turn)
        readers = list(self._waiting)
        ahead = sum(min(len(self._waiting[one]), round_) for one in readers if one != reader)
        same = sum(len(self._waiting[one]) > round_ for one in readers[: readers.index(reader)])
        return ahead + same + round_ + 1
