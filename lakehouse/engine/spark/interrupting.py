"""An interrupt while this process waits for Spark's driver, which is another one.

Py4J has a connection a thread, and a question whose answer nobody waited for leaves that answer on it: the next
question, such as those of a clean-up, would take it for its own. It looks after that where `KeyboardInterrupt` is
raised, not where our own `Interrupted` is.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext

from lakehouse import interrupts


@contextmanager
def keeping_handler() -> Iterator[None]:
    """Around the start of a session: whoever listened to Ctrl-C before still does, not the handler of Spark.

    That one raises `KeyboardInterrupt` even while a commit is being sent. Python's own handler is left to Spark, as
    in every notebook.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        is_ours = before is not signal.default_int_handler and threading.current_thread() is threading.main_thread()
        if is_ours and before is not signal.getsignal(signal.SIGINT):
            signal.signal(signal.SIGINT, before)


def forget_connection() -> None:
    """Close this thread's connection to Spark's driver; its next question opens one."""
    gateway = SparkContext._gateway
    connections = getattr(getattr(gateway, "_gateway_client", None), "thread_connection", None)
    if connections is not None:  # without pinned threads Py4J itself forgets a connection whose answer did not come
        vars(connections).clear()


interrupts.before_raising(forget_connection)
