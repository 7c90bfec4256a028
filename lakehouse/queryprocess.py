"""A query process: opens the lake, then runs queries one by one, within limits of memory and processor time.

Run by `lakehouse.apart.process`, which kills it at its deadline; so nothing here measures time.
"""

from __future__ import annotations

import fcntl
import os
import resource
import select
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from lakehouse import progress
from lakehouse.apart.wire import TOLD, Ended, TooMuch, read_point, receive, send, write_error
from lakehouse.catalog.store.reaction import wait_at_most
from lakehouse.engine.duckdb import QueryLimits
from lakehouse.errors import InternalError, InvalidArgument, LakehouseError, QueryLimitExceeded
from lakehouse.lake import connect
from lakehouse.sql.looking import answer

_IDLE_SECONDS = 300.0
_PIN_SECONDS = 30.0
_GRACE_SECONDS = 5
_SHARE_WAITED = 0.6
"""Share of its seconds that a query waits for a program that holds the catalog; the rest is for reporting it."""
_KEPT_BYTES = 100_000_000
"""How much a process may have grown and still be reused."""
_TELLING_SECONDS = 0.25
_LIFE = 0
"""The file descriptor of a pipe whose other end the caller has."""


def main() -> None:
    """Answer until the caller is gone."""
    _end_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    channel = socket.socket(fileno=int(sys.argv[1]))
    try:
        settings, _ = receive(channel, most_bytes=0)
        _serve(channel, settings)
    except (Ended, TooMuch):
        return


def _end_with_parent() -> None:
    """The kernel ends this process when the other end of the pipe closes, in the middle of whatever is running."""
    fcntl.fcntl(_LIFE, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(_LIFE, fcntl.F_SETFL, fcntl.fcntl(_LIFE, fcntl.F_GETFL) | os.O_ASYNC)
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    if select.select([_LIFE], [], [], 0)[0]:  # closed already
        os.kill(os.getpid(), signal.SIGKILL)


def _serve(channel: socket.socket, settings: Mapping[str, Any]) -> None:
    wait_at_most(_SHARE_WAITED * float(settings["seconds"]))
    try:
        lake = connect(**settings["lake"], pin_seconds=_PIN_SECONDS)
    except LakehouseError as error:
        return send(channel, write_error(error))
    with lake:
        duckdb.connect(":memory:").close()  # loaded and warmed before anything is measured
        send(channel, {"pin": lake.session.pins.id})
        base = _memory()[1]
        while select.select([channel], [], [], _IDLE_SECONDS)[0]:
            question, _ = receive(channel, most_bytes=0)
            with _telling(channel) if question.get("tells") else nullcontext():
                answer, body = _answered(lake, question)
            send(channel, {"is_sound": _memory()[1] < base + _KEPT_BYTES, **answer}, body)
    return None


def _answered(lake: Any, question: Mapping[str, Any]) -> tuple[dict[str, Any], memoryview | bytes]:
    most = int(question["most_memory"])
    wait_at_most(_SHARE_WAITED * float(question["most_seconds"]))
    try:
        with _walls(most, float(question["most_seconds"])) as room:
            spill = None if question.get("spill") is None else Path(question["spill"])
            limits = QueryLimits(question["most_rows"], question["most_bytes"], room, spill)
            point, values = read_point(question["as_of"]), question.get("values")
            found = answer(lake.session, question["text"], as_of=point, limits=limits, values=values)
            target = pa.BufferOutputStream()
            with pa.ipc.new_stream(target, found.rows.schema) as writer:
                writer.write_table(found.rows)
            reads = [[one.table, one.version, list(one.columns), one.where] for one in found.reads]
            return {"is_cut": found.is_cut, "is_plan": found.is_plan, "reads": reads}, memoryview(target.getvalue())
    except LakehouseError as error:
        return write_error(error), b""
    except (MemoryError, duckdb.OutOfMemoryException, pa.ArrowMemoryError):
        return _failed(
            QueryLimitExceeded(
                "the query needs more memory than it may have; ask for fewer rows or columns, or allow more",
                limit="memory",
                most_memory=most,
            )
        )
    except Exception as error:  # noqa: BLE001 - reported by name to the asker
        cause = f"{type(error).__name__}: {error}"[:300]
        return _failed(InternalError("the query failed in a way that nobody foresaw; please report it", cause=cause))


@contextmanager
def _telling(channel: socket.socket) -> Iterator[None]:
    """Send how much of the query is done, some times a second, while the block lasts."""
    steps: list[progress.Step] = []
    over = threading.Event()

    class Told:
        def step_began(self, step: progress.Step) -> None:
            steps.append(step)

        def step_ended(self, step: progress.Step) -> None:
            steps.remove(step)

    def tell() -> None:
        while not over.wait(_TELLING_SECONDS):
            for step in steps[:1]:
                step.look()
                send(channel, {TOLD: step.done})

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        with progress.listening(Told()):
            yield
    finally:
        over.set()
        teller.join()


def _failed(error: LakehouseError) -> tuple[dict[str, Any], bytes]:
    """The answer of a process that nobody should ask again."""
    return {**write_error(error), "is_sound": False}, b""


@contextmanager
def _walls(most_memory: int, most_seconds: float) -> Iterator[int]:
    """Limit this process; return how many bytes it may add to its current memory."""
    size, resident = _memory()
    room = most_memory - resident
    if room < _KEPT_BYTES:
        raise InvalidArgument(
            "the memory limit is below what a query process itself needs; allow more",
            most_memory=most_memory,
            least=resident + _KEPT_BYTES,
        )
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    seconds = int(used + most_seconds * (os.cpu_count() or 1)) + _GRACE_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    resource.setrlimit(resource.RLIMIT_AS, (size + room, hard))
    try:
        yield room
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _memory() -> tuple[int, int]:
    """Bytes of address space, and of memory, of this process."""
    size, resident = Path("/proc/self/statm").read_text("ascii").split()[:2]
    page = resource.getpagesize()
    return int(size) * page, int(resident) * page


if __name__ == "__main__":
    main()
