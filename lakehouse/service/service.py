"""The service as a process: rounds until it is stopped, with rewrites in a thread or process of their own."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from warnings import warn

from lakehouse.core.task import Task, TaskState, Worker
from lakehouse.errors import LakehouseError, coded
from lakehouse.service.rounds import Limits, work
from lakehouse.session.session import Session
from lakehouse.storage.opening import variables_of

logger = logging.getLogger(__name__)
_LOOK_SECONDS = 0.5


class Service:
    """Maintains a lake until it is stopped. Any number of services, in as many processes, share the work.

    Resident tasks (PLAN, CLEAN, COLLECT, small RESOLVE) run in one thread, elastic ones in another. With the engine
    ``spark``, elastic tasks run in a job, a process that starts when such a task waits and ends when none does.
    ``on_end`` is called with each task that ended here.

    Examples
    --------
    >>> stop = threading.Event()
    >>> service = Service(lake.session, Limits(), on_end=lambda task: stop.set())  # until the first task has ended
    >>> added = flights.append(late)
    >>> service.run(stop)
    >>> len(lake.tasks(state="done")) > 0
    True
    """

    def __init__(
        self,
        session: Session,
        limits: Limits,
        *,
        every_seconds: float = 5.0,
        on_end: Callable[[Task], None] | None = None,
        told: Callable[[Task], None] | None = None,
    ) -> None:
        if told is not None:
            warn("Service(told=) is called Service(on_end=) now", DeprecationWarning, stacklevel=2)
        self._session = session
        self._limits = limits
        self._every_seconds = every_seconds
        self._on_end = on_end or told

    def run(self, stop: threading.Event) -> None:
        """Run until ``stop`` is set; a running task is finished first, unless it runs in a job."""
        rounds = [self._round_of(worker) for worker in Worker if worker in self._limits.workers]
        threads = [threading.Thread(target=self._loop, args=(stop, one)) for one in rounds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _round_of(self, worker: Worker) -> Callable[[threading.Event], None]:
        if worker is Worker.ELASTIC and self._limits.engine == "spark":
            return self._job
        return lambda stop: self._tasks(stop, replace(self._limits, workers=(worker,)))

    def _loop(self, stop: threading.Event, do_round: Callable[[threading.Event], None]) -> None:
        while not stop.is_set():
            try:
                do_round(stop)
            except LakehouseError as error:
                # The catalog may answer again later; a task records its own errors.
                logger.warning("a round of maintenance ended early: %s", coded(error))
            stop.wait(self._every_seconds)

    def _tasks(self, stop: threading.Event, limits: Limits) -> None:
        for done in work(self._session, limits, patient=True):
            if self._on_end is not None:
                self._on_end(done)
            if stop.is_set():
                return

    def _job(self, stop: threading.Event) -> None:
        """Run waiting elastic tasks in a process that ends when they are done."""
        if not any(
            one.worker is Worker.ELASTIC for one in self._session.catalog.tasks().tasks(state=TaskState.WAITING)
        ):
            return
        job = subprocess.Popen(_command(self._limits), env={**os.environ, **_places(self._session)})
        while job.poll() is None:
            if stop.wait(_LOOK_SECONDS):
                job.terminate()  # its claims end with their lease; nothing uncommitted is visible
                job.wait()
        if job.returncode and not stop.is_set():
            logger.warning("a job of maintenance ended with exit code %s", job.returncode)


def _command(limits: Limits) -> list[str]:
    run = "from lakehouse.cli import main; main()"
    table = [] if limits.table is None else ["--table", limits.table]
    budget = [] if limits.budget_bytes is None else ["--budget", str(limits.budget_bytes)]
    return [
        sys.executable, "-c", run, "maintain", "--once", "--worker", "elastic", "--engine", "spark", *table, *budget,
    ]  # fmt: skip


def _places(session: Session) -> dict[str, str]:
    """The lake's address in the environment of a child process, not in its arguments, which everybody can see."""
    warehouse = session.warehouse
    return {
        "LAKEHOUSE_CATALOG": session.catalog.address,
        "LAKEHOUSE_WAREHOUSE": warehouse.address,
        **variables_of(warehouse.settings),
    }
