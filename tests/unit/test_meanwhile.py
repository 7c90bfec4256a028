"""Work beside waiting ends with the block around it, whatever happens in either, and in a forked child too."""

from __future__ import annotations

import os
import threading

import pytest

from lakehouse.meanwhile import meanwhile


def test_it_begins_before_the_block_and_has_ended_after_it() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def work() -> int:
        begun.set()
        go_on.wait()
        return threading.get_ident()

    with meanwhile(work) as found:
        begun.wait()
        assert not found.done()
        go_on.set()
    assert found.done()
    assert found.result() != threading.get_ident()


def test_an_error_of_the_block_comes_before_one_of_the_work() -> None:
    with pytest.raises(KeyError, match="block"), meanwhile(int, "no number") as found:
        raise KeyError("block")
    with pytest.raises(ValueError, match="no number"):
        found.result()


def test_a_forked_child_has_threads_of_its_own() -> None:
    with meanwhile(threading.get_ident):
        pass
    child = os.fork()
    if not child:
        try:
            with meanwhile(sum, [1, 2]) as found:
                pass
            os._exit(found.result())
        finally:
            os._exit(99)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
