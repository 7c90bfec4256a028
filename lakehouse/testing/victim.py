"""Processes that run a history until they are killed at a chosen point.

One process is started and warmed up; each victim is a fork of it, so a kill costs a tenth of a second.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.engine.default import DefaultDialect

import lakehouse
from lakehouse import faults
from lakehouse.catalog.store.prepared import Prepared
from lakehouse.core import version
from lakehouse.engine.duckdb import DuckDBEngine
from lakehouse.storage import summaries
from lakehouse.testing.faults import kill, on_count
from lakehouse.testing.history import Author, Step, World, create_tables, do

LEASE_SECONDS = 0.2
_ANSWER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Kill:
    """Where a victim dies, counted from the beginning of its first step of ``kind``.

    ``at`` is a point of `lakehouse.faults.POINTS`, the ``number``-th time that it is reached; ``"statement"``, before
    or after the catalog's statements and COMMITs, in turn; or ``"microsecond"``, wherever it is by then.
    """

    kind: str
    at: str
    number: int

    def __str__(self) -> str:
        return f"{self.kind}: {self.at} {self.number}"


@dataclass(frozen=True, slots=True)
class Task:
    """A victim's orders: ``steps``, in which it may be killed from ``first`` on; without a kill it records its path."""

    catalog: str
    warehouse: str
    steps: tuple[Step, ...]
    first: int = 0
    kill: Kill | None = None
    mutate: Callable[[Victim], None] | None = None


@dataclass(slots=True)
class Death:
    """What is known of a victim: the versions that it acknowledged, one for each step, and how it ended."""

    done: list[int | None] = field(default_factory=list)
    ways: list[list[str]] = field(default_factory=list)
    failure: str = ""
    status: int = 0


class Victim:
    """The process that runs a history. A mutant may change it, or the library in it, before it begins."""

    def __init__(self, task: Task, pipe: Connection) -> None:
        self._task = task
        self._pipe = pipe
        self._is_acknowledged = False
        self._way: list[str] = []
        self._ticks = 0
        self._armed = False

    def acknowledge(self, made: int | None) -> None:
        """Report to the parent that the step is done, once."""
        if not self._is_acknowledged:
            self._is_acknowledged = True
            self._pipe.send(("done", made))

    def live(self) -> None:
        """Do every step."""
        # Frames come often, so that deaths between the steps of writing one are common.
        vars(version)["LONGEST_CHAIN"] = 2
        vars(summaries)["INLINE_BYTES"] = 64  # so are those of indexes in files
        if self._task.mutate is not None:
            self._task.mutate(self)
        self._watch()
        lake = lakehouse.connect(
            self._task.catalog, self._task.warehouse, lease_seconds=LEASE_SECONDS, wait_seconds=10.0
        )
        for place, step in enumerate(self._task.steps):
            if place == self._task.first:
                self._arm()
            self._is_acknowledged = False
            self.acknowledge(do(lake, step))
            if self._task.kill is None:
                self._pipe.send(("way", self._way.copy()))
                self._way.clear()
        lake.close()

    def _watch(self) -> None:
        killed = self._task.kill
        if killed is None:
            faults.armed = {point: self._noting(point) for point in faults.POINTS}
        if killed is None or killed.at == "statement":
            _watch_statements(self._tick)

    def _arm(self) -> None:
        killed = self._task.kill
        self._armed = True
        if killed is None or killed.at == "statement":
            return
        if killed.at == "microsecond":
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends a process as SIGKILL does: nothing of it runs
            signal.setitimer(signal.ITIMER_REAL, killed.number / 1e6)
        else:
            faults.armed = {killed.at: on_count(killed.number, kill)}

    def _noting(self, point: str) -> Callable[[], None]:
        return lambda: self._way.append(point)

    def _tick(self, label: str) -> None:
        if not self._armed or threading.current_thread() is not threading.main_thread():
            return
        self._ticks += 1
        if self._task.kill is None:
            self._way.append(f"statement {label}")
        elif self._ticks == self._task.kill.number:
            kill()


def _watch_statements(tick: Callable[[str], None]) -> None:
    """Call ``tick`` before and after everything that is sent to the catalog's database."""
    event.listen(Engine, "before_cursor_execute", lambda _, __, sent, *rest: tick(f"before {sent[:30]}"))
    event.listen(Engine, "after_cursor_execute", lambda _, __, sent, *rest: tick(f"after {sent[:30]}"))
    _wrap(Prepared, "run", "a prepared statement", tick)
    _wrap(Prepared, "run_many", "prepared statements", tick)
    _wrap(DefaultDialect, "do_commit", "COMMIT", tick)


def _wrap(owner: type, name: str, label: str, tick: Callable[[str], None]) -> None:
    original = getattr(owner, name)

    def wrapped(*arguments: Any) -> Any:
        tick(f"before {label}")
        result = original(*arguments)
        tick(f"after {label}")
        return result

    setattr(owner, name, wrapped)


class Nursery:
    """Forks victims, one at a time, from a process that has warmed up. A context manager."""

    def __init__(self) -> None:
        self.engine = DuckDBEngine()
        """Reads what victims leave."""
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Nursery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.engine.close()
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def run(self, task: Task) -> Death:
        """Let a victim run and die; return what it reported until then."""
        self._pipe.send(task)
        death = Death()
        while True:
            if not self._pipe.poll(_ANSWER_SECONDS):
                raise TimeoutError(f"a victim neither went on nor died: {task.kill}")
            match self._pipe.recv():
                case "done", made:
                    death.done.append(made)
                case "way", way:
                    death.ways.append(way)
                case "failed", text:
                    death.failure = text
                case "ended", status:
                    death.status = status
                    return death


def _serve(pipe: Connection) -> None:
    _warm_up()
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        child = os.fork()
        if child == 0:
            status = 1
            try:
                Victim(task, pipe).live()
                status = 0
            except BaseException as error:  # noqa: BLE001 - reported to the parent
                pipe.send(("failed", f"{type(error).__name__}: {error}"))
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        pipe.send(("ended", os.waitstatus_to_exitcode(status)))


def _warm_up() -> None:
    """Import and compile what a history needs, and leave no thread and no connection behind."""
    with (
        tempfile.TemporaryDirectory() as folder,
        lakehouse.connect(f"sqlite:///{folder}/catalog.db", f"{folder}/warehouse") as lake,
    ):
        create_tables(lake)
        author = Author(random.Random(0), World(), {lake.head: World()})  # noqa: S311 - the same history each time
        for kind in ("append", "append", "replace a part", "compact", "transaction", "read"):
            do(lake, author.step(kind))
