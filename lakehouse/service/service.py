"""The service as a process: rounds until it is stopped, what rewrites beside what does not."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace

from lakehouse.core.task import Task, TaskState, Worker
from lakehouse.errors import LakehouseError, coded
from lakehouse.service.rounds import Limits, work
from lakehouse.session.session import Session

logger = logging.getLogger(__name__)
_LOOK_SECONDS = 0.5


class Service:
    """Maintains a lake until it is stopped. Any number of them share the work, in as many processes.

    What the service does itself (PLAN, CLEAN, COLLECT, small RESOLVE) runs in one thread, what rewrites in another;
    with the engine ``spark`` the latter is a process of its own, a job that starts when such a task waits and ends when
    none does any more. ``told`` is called with each task that ended here.

    Examples
    --------
    >>> stop = threading.Event()
    >>> service = Service(lake.session, Limits(), told=lambda task: stop.set())  # until the first task has ended
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
        told: Callable[[Task], None] | None = None,
    ) -> None:
        self._session = session
        self._limits = limits
        self._every_seconds = every_seconds
        self._told = told

    def run(self, stop: threading.Event) -> None:
        """Go on until ``stop`` is set; a task that runs then is finished first, but for one of a job."""
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
                # A catalog that does not answer now may do so later; what concerns a task is told by it.
                logger.warning("a round of maintenance ended early: %s", coded(error))
            stop.wait(self._every_seconds)

    def _tasks(self, stop: threading.Event, limits: Limits) -> None:
        for done in work(self._session, limits, patient=True):
            if self._told is not None:
                self._told(done)
            if stop.is_set():
                return

    def _job(self, stop: threading.Event) -> None:
        """Run what waits for an elastic worker in a process that goes away when it is done."""
        if not any(
            one.worker is Worker.ELASTIC for one in self._session.catalog.tasks().tasks(state=TaskState.WAITING)
        ):
            return
        job = subprocess.Popen(_command(self._limits), env={**os.environ, **_places(self._session)})
        while job.poll() is None:
            if stop.wait(_LOOK_SECONDS):
                job.terminate()  # its claims end with their lease; nothing of what it did not commit is visible
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
    """Where the lake is, for a process that this one starts; not as arguments, which everybody can see."""
    return {"LAKEHOUSE_CATALOG": session.catalog.address, "LAKEHOUSE_WAREHOUSE": str(session.warehouse)}
