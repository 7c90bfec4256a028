"""Slots of the query page: bounded, fair between readers, and given back whatever happens."""

from __future__ import annotations

import threading

import pytest

from lakehouse.errors import QueryLimitExceeded, StatementCancelled
from lakehouse.fair_queue import FairQueue, Turn

LONG = 60.0


class Reader:
    """Somebody who asks in a thread of their own, and keeps the slot until `leave`."""

    def __init__(self, queue: FairQueue, name: str, order: list[str], gone: type[BaseException] | None = None) -> None:
        self.begun, self.end, self.waits = threading.Event(), threading.Event(), threading.Event()
        self.places: list[int] = []
        self.error: BaseException | None = None
        self.left = gone
        self.thread = threading.Thread(target=self._ask, args=(queue, name, order), daemon=True)
        self.thread.start()

    def _ask(self, queue: FairQueue, name: str, order: list[str]) -> None:
        try:
            with queue.slot(name, most_seconds=LONG, on_wait=self._waits):
                order.append(name)
                self.begun.set()
                assert self.end.wait(LONG)
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            self.error = error
        self.waits.set()

    def _waits(self, place: int) -> None:
        self.places.append(place)
        self.waits.set()
        if self.left is not None:
            raise self.left

    def leave(self) -> None:
        self.end.set()
        self.thread.join(LONG)
        assert not self.thread.is_alive()


def waits(queue: FairQueue, name: str, order: list[str]) -> Reader:
    reader = Reader(queue, name, order)
    assert reader.waits.wait(LONG)
    return reader


def runs(queue: FairQueue, name: str, order: list[str]) -> Reader:
    reader = Reader(queue, name, order)
    assert reader.begun.wait(LONG)
    return reader


@pytest.fixture
def queue() -> FairQueue:
    return FairQueue(at_once=2, each=1, most_waiting=6, most_waiting_each=3)


def test_another_reader_begins_at_once_whatever_one_has_asked(queue: FairQueue) -> None:
    order: list[str] = []
    crowd = [runs(queue, "a", order), *(waits(queue, "a", order) for _ in range(3))]
    other = runs(queue, "b", order)
    assert order == ["a", "b"]
    for one in [other, *crowd]:
        one.leave()
    assert order == ["a", "b", "a", "a", "a"]


def test_readers_are_served_round_robin(queue: FairQueue) -> None:
    order: list[str] = []
    first, second = runs(queue, "a", order), runs(queue, "b", order)
    rest = [waits(queue, name, order) for name in ("c", "c", "d", "d")]
    assert [one.places[0] for one in rest] == [1, 2, 2, 4]
    for leaves, follows in ((first, rest[0]), (rest[0], rest[2]), (second, rest[1]), (rest[2], rest[3])):
        leaves.leave()
        assert follows.begun.wait(LONG)
    for one in (rest[1], rest[3]):
        one.leave()
    assert order == ["a", "b", "c", "d", "c", "d"]


def test_who_asks_too_much_is_refused_and_others_are_not(queue: FairQueue) -> None:
    order: list[str] = []
    crowd = [runs(queue, "a", order), *(waits(queue, "a", order) for _ in range(3))]
    with pytest.raises(QueryLimitExceeded, match="too many"), queue.slot("a", most_seconds=LONG):
        pytest.fail("refused")
    crowd.append(runs(queue, "b", order))
    crowd += [waits(queue, "b", order) for _ in range(3)]
    with pytest.raises(QueryLimitExceeded, match="too many") as caught, queue.slot("c", most_seconds=LONG):
        pytest.fail("refused")
    assert (caught.value.limit, caught.value.yours) == ("waiting", 0)
    for one in crowd:
        one.end.set()
    for one in crowd:
        one.leave()


def test_who_waits_too_long_gets_an_error_and_leaves_the_queue(queue: FairQueue) -> None:
    order: list[str] = []
    first = runs(queue, "a", order)
    with pytest.raises(QueryLimitExceeded, match="other queries run") as caught, queue.slot("a", most_seconds=0.01):
        pytest.fail("has no slot")
    assert caught.value.place == 1
    first.leave()
    with queue.slot("a", most_seconds=LONG, on_wait=_no_wait):
        pass


def test_who_goes_away_while_waiting_leaves_nothing_behind(queue: FairQueue) -> None:
    order: list[str] = []
    first = runs(queue, "a", order)
    gone = Reader(queue, "a", order, gone=KeyboardInterrupt)
    assert gone.waits.wait(LONG)
    gone.thread.join(LONG)
    assert isinstance(gone.error, KeyboardInterrupt)
    first.leave()
    with queue.slot("a", most_seconds=LONG, on_wait=_no_wait), queue.slot("b", most_seconds=LONG, on_wait=_no_wait):
        pass


def test_a_wait_that_another_thread_ends_leaves_nothing_behind(queue: FairQueue) -> None:
    order: list[str] = []
    first, turn, caught = runs(queue, "a", order), Turn(), []

    def ask() -> None:
        with pytest.raises(StatementCancelled) as error, queue.slot("a", most_seconds=LONG, turn=turn):
            pytest.fail("has no slot")
        caught.append(error.value)

    waiter = threading.Thread(target=ask)
    waiter.start()
    turn.leave()
    waiter.join(LONG)
    assert caught
    first.leave()
    with queue.slot("a", most_seconds=LONG, on_wait=_no_wait), queue.slot("b", most_seconds=LONG, on_wait=_no_wait):
        pass


def test_who_left_before_there_was_a_slot_gives_it_back(queue: FairQueue) -> None:
    turn = Turn()
    turn.leave()
    with queue.slot("a", most_seconds=LONG, turn=turn):  # it was free: who left looks for itself
        pass
    with queue.slot("a", most_seconds=LONG, on_wait=_no_wait):
        pass


def test_a_query_that_fails_gives_its_slot_back(queue: FairQueue) -> None:
    for _ in range(5):
        with pytest.raises(ZeroDivisionError), queue.slot("a", most_seconds=LONG, on_wait=_no_wait):
            _ = 1 / 0


def _no_wait(place: int) -> None:
    raise AssertionError(place)
