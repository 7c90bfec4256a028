"""What a process remembers is bounded, keeps what is used, and is whole in a child process too."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from lakehouse.remembered import Remembered


def test_the_least_recently_used_value_is_evicted_first() -> None:
    words: Remembered[str, int] = Remembered(10)
    words.put("a", 1, cost=4)
    words.put("b", 2, cost=4)
    assert words.get("a") == 1
    words.put("c", 3, cost=4)
    assert words.known(["a", "b", "c"]) == {"a": 1, "c": 3}
    assert len(words) == 2


def test_a_value_put_again_replaces_the_old_one_and_its_cost() -> None:
    words: Remembered[str, int] = Remembered(10)
    for cost in (9, 1, 5):
        words.put("a", cost, cost=cost)
    words.put("b", 2, cost=5)
    assert words.known("ab") == {"a": 5, "b": 2}
    words.put("b", 3, cost=6)
    assert words.known("ab") == {"b": 3}


@pytest.mark.parametrize("size", [0, 1, 10])
def test_the_last_value_is_kept_however_large_it_is(size: int) -> None:
    words: Remembered[str, int] = Remembered(size)
    for number, name in enumerate("abc"):
        words.put(name, number, cost=11)
    assert words.known("abc") == {"c": 2}


def test_a_child_process_knows_what_its_parent_knew() -> None:
    words: Remembered[str, int] = Remembered(10)
    words.put("a", 1)
    child = os.fork()
    if not child:
        os._exit(words.get("a") or 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_a_child_forked_in_the_middle_of_a_change_does_not_wait() -> None:
    words: Remembered[str, int] = Remembered(10)
    words.put("a", 1)
    begun, done = threading.Event(), threading.Event()
    changing = threading.Thread(target=words.known, args=[_held_up(begun, done)])
    changing.start()
    begun.wait()
    child = os.fork()
    if not child:
        words.put("b", 1)
        os._exit(0 if words.get("b") else 1)
    done.set()
    changing.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert words.get("a")


def _held_up(begun: threading.Event, done: threading.Event) -> Iterator[str]:
    yield "a"
    begun.set()
    done.wait()
