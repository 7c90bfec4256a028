"""One query process: start it, ask it, and end it, whatever it does."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping
from typing import IO, Any

from lakehouse import progress
from lakehouse.apart.wire import TOLD, Ended, TooMuch, read_error, receive, send
from lakehouse.errors import InternalError

_PROGRAM = "lakehouse.queryprocess"
_START_SECONDS = 120.0
_SLACK_BYTES = 64_000_000
"""Space for a result of many columns beside its values."""
_FRUGAL = {
    "MALLOC_ARENA_MAX": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""Libraries reserve address space by the gigabyte, which would count towards the limit."""


class QueryProcess:
    """A process that runs one query at a time. ``settings`` say what it opens; ``pin_id`` is its pin in the catalog.

    ``seconds`` are those of its first query; it waits a part of them if another program holds the catalog.

    It ends with the owner of this object and with the whole process, however that ends: it watches a pipe of which only
    this process has the other end. Raises what opening the lake raises there.
    """

    def __init__(self, settings: Mapping[str, Any], seconds: float) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _PROGRAM, str(theirs.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=None if os.environ.get("LAKEHOUSE_DEBUG") else subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env={**os.environ, **_FRUGAL, "PYTHONPATH": os.pathsep.join(sys.path)},
                start_new_session=True,  # Ctrl-C goes to this process, which then ends the other
            )
        self._channel = ours
        assert self._process.stdin is not None
        self._end = weakref.finalize(self, _end, self._process, ours, self._process.stdin, os.getpid())
        try:
            send(ours, {"lake": settings, "seconds": seconds})
            answer, _ = receive(ours, most_bytes=0, seconds=_START_SECONDS)
        except (Ended, TooMuch, TimeoutError) as error:
            self.end()
            raise InternalError(
                "no process could be started for the query; LAKEHOUSE_DEBUG=1 shows why", ended=self.how
            ) from error
        except BaseException:
            self.end()
            raise
        if "error" in answer:
            self.end()
            raise read_error(answer)
        self.pin_id: str = answer["pin"]

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it can answer."""
        return self._end.alive and self._process.poll() is None

    @property
    def how(self) -> str:
        """How it ended: the name of a signal, or its exit code."""
        code = self._process.returncode
        return signal.Signals(-code).name if code is not None and code < 0 else str(code)

    def ask(self, question: Mapping[str, Any], *, most_bytes: int, seconds: float) -> tuple[dict[str, Any], bytes]:
        """Its answer. Raises `TimeoutError` past the seconds, `Ended`, `TooMuch`; after any exception, end it.

        Until then it says how much is done, if anybody listens.
        """
        until = time.monotonic() + seconds
        self._channel.settimeout(seconds)
        with progress.step("query", "percent", 100) as step:
            send(self._channel, {**question, "tells": progress.listener() is not None})
            while True:
                most, left = most_bytes + _SLACK_BYTES, until - time.monotonic()
                answer, body = receive(self._channel, most_bytes=most, seconds=left)
                if TOLD not in answer:
                    return answer, body
                step.done = max(step.done, int(answer[TOLD]))

    def kill(self) -> None:
        """Kill it, while another thread waits for its answer and then ends it."""
        self._process.kill()

    def end(self) -> None:
        """Kill it, and wait until it is gone."""
        self._end()


def _end(process: subprocess.Popen[bytes], channel: socket.socket, life: IO[bytes], owner: int) -> None:
    if os.getpid() != owner:
        return  # a forked copy: the process is the parent's
    channel.close()
    if process.poll() is None:
        process.kill()
    process.wait()
    life.close()
