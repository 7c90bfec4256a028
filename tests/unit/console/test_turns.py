"""Turns at the query page: bounded, fair between readers, and given up cleanly."""

from __future__ import annotations

import threading

import pytest

from lakehouse.errors import QueryLimitExceeded
from queries.turns import Turns

LONG = 60.0


class Reader:
    """Somebody who asks in a thread of their own, and keeps the turn until told to end."""

    def __init__(self, turns: Turns, name: str, order: list[str], gone: type[BaseException] | None = None) -> None:
        self.begun, self.end, self.waits = threading.Event(), threading.Event(), threading.Event()
        self.places: list[int] = []
        self.error: BaseException | None = None
        self.left = gone
        self.thread = threading.Thread(target=self._ask, args=(turns, name, order), daemon=True)
        self.thread.start()

    def _ask(self, turns: Turns, name: str, order: list[str]) -> None:
        try:
            with turns.turn(name, most_seconds=LONG, tell=self._told):
                order.append(name)
                self.begun.set()
                assert self.end.wait(LONG)
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            self.error = error
        self.waits.set()

    def _told(self, place: int) -> None:
        self.places.append(place)
        self.waits.set()
        if self.left is not None:
            raise self.left

    def leave(self) -> None:
        self.end.set()
        self.thread.join(LONG)
        assert not self.thread.is_alive()


def waits(turns: Turns, name: str, order: list[str]) -> Reader:
    reader = Reader(turns, name, order)
    assert reader.waits.wait(LONG)
    return reader


def runs(turns: Turns, name: str, order: list[str]) -> Reader:
    reader = Reader(turns, name, order)
    assert reader.begun.wait(LONG)
    return reader


@pytest.fixture
def turns() -> Turns:
    return Turns(at_once=2, each=1, most_waiting=6, most_waiting_each=3)


def test_another_reader_begins_at_once_whatever_one_has_asked(turns: Turns) -> None:
    order: list[str] = []
    crowd = [runs(turns, "a", order), *(waits(turns, "a", order) for _ in range(3))]
    other = runs(turns, "b", order)
    assert order == ["a", "b"]
    for one in [other, *crowd]:
        one.leave()
    assert order == ["a", "b", "a", "a", "a"]


def test_readers_take_turns(turns: Turns) -> None:
    order: list[str] = []
    first, second = runs(turns, "a", order), runs(turns, "b", order)
    rest = [waits(turns, name, order) for name in ("c", "c", "d", "d")]
    assert [one.places[0] for one in rest] == [1, 2, 2, 4]
    for leaves, follows in ((first, rest[0]), (rest[0], rest[2]), (second, rest[1]), (rest[2], rest[3])):
        leaves.leave()
        assert follows.begun.wait(LONG)
    for one in (rest[1], rest[3]):
        one.leave()
    assert order == ["a", "b", "c", "d", "c", "d"]


def test_who_asks_too_much_is_refused_and_others_are_not(turns: Turns) -> None:
    order: list[str] = []
    crowd = [runs(turns, "a", order), *(waits(turns, "a", order) for _ in range(3))]
    with pytest.raises(QueryLimitExceeded, match="too many"), turns.turn("a", most_seconds=LONG):
        pytest.fail("refused")
    crowd.append(runs(turns, "b", order))
    crowd += [waits(turns, "b", order) for _ in range(3)]
    with pytest.raises(QueryLimitExceeded, match="too many") as caught, turns.turn("c", most_seconds=LONG):
        pytest.fail("refused")
    assert (caught.value.limit, caught.value.yours) == ("waiting", 0)
    for one in crowd:
        one.end.set()
    for one in crowd:
        one.leave()


def test_who_waits_too_long_is_told_and_out_of_the_queue(turns: Turns) -> None:
    order: list[str] = []
    first = runs(turns, "a", order)
    with pytest.raises(QueryLimitExceeded, match="other queries run") as caught, turns.turn("a", most_seconds=0.01):
        pytest.fail("has no turn")
    assert caught.value.place == 1
    first.leave()
    with turns.turn("a", most_seconds=LONG, tell=_not_told):
        pass


def test_who_goes_away_while_waiting_leaves_nothing_behind(turns: Turns) -> None:
    order: list[str] = []
    first = runs(turns, "a", order)
    gone = Reader(turns, "a", order, gone=KeyboardInterrupt)
    assert gone.waits.wait(LONG)
    gone.thread.join(LONG)
    assert isinstance(gone.error, KeyboardInterrupt)
    first.leave()
    with turns.turn("a", most_seconds=LONG, tell=_not_told), turns.turn("b", most_seconds=LONG, tell=_not_told):
        pass


def test_a_query_that_fails_gives_its_turn_back(turns: Turns) -> None:
    for _ in range(5):
        with pytest.raises(ZeroDivisionError), turns.turn("a", most_seconds=LONG, tell=_not_told):
            _ = 1 / 0


def _not_told(place: int) -> None:
    raise AssertionError(place)
