"""One thread ends what is late: each once, never after its end, and nothing once it is closed."""

from __future__ import annotations

import threading

import pytest

from lakehouse.serving.deadlines import Deadlines

LONG = 60.0


def test_what_takes_too_long_is_ended_once() -> None:
    deadlines = Deadlines(0.05)
    ended: list[str] = []
    late = {name: threading.Event() for name in "abc"}

    def end(name: str) -> None:
        ended.append(name)
        late[name].set()

    with deadlines.within(lambda: end("a")), deadlines.within(lambda: end("b")):
        assert late["a"].wait(LONG)
        assert late["b"].wait(LONG)
    with deadlines.within(lambda: end("c")):
        assert late["c"].wait(LONG)
    deadlines.close()
    assert ended == ["a", "b", "c"]


def test_what_ends_in_time_is_left_alone() -> None:
    deadlines = Deadlines(0.2)
    late = threading.Event()
    ended: list[str] = []
    with deadlines.within(lambda: ended.append("in time")):
        pass
    with deadlines.within(late.set):  # whose end comes after that of what ended in time
        assert late.wait(LONG)
    deadlines.close()
    assert ended == []


def test_a_block_that_ends_while_it_is_ended_waits_for_that() -> None:
    deadlines = Deadlines(0.01)
    begun, may_end = threading.Event(), threading.Event()
    seen: list[str] = []

    def end() -> None:
        begun.set()
        assert may_end.wait(LONG)
        seen.append("ended")

    def work() -> None:
        with deadlines.within(end):
            assert begun.wait(LONG)
        seen.append("left")

    worker = threading.Thread(target=work)
    worker.start()
    assert begun.wait(LONG)
    may_end.set()
    worker.join(LONG)
    deadlines.close()
    assert seen == ["ended", "left"]


def test_closed_it_ends_nothing() -> None:
    deadlines = Deadlines(LONG)
    with deadlines.within(lambda: pytest.fail("closed")):
        deadlines.close()


def test_an_end_that_fails_leaves_the_others_their_limit() -> None:
    deadlines, late = Deadlines(0.05), threading.Event()
    with deadlines.within(lambda: 1 // 0), deadlines.within(late.set):
        assert late.wait(LONG)
    deadlines.close()
