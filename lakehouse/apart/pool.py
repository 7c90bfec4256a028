"""The query processes of one lake: kept warm between queries, killed when a limit is exceeded."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from lakehouse.apart.process import QueryProcess
from lakehouse.apart.wire import Ended, TooMuch, read_error
from lakehouse.cancelling import watched
from lakehouse.errors import LakehouseError, QueryLimitExceeded

logger = logging.getLogger(__name__)
_MOST_IDLE = 2
_PREPARING_SECONDS = 20.0


class QueryProcesses:
    """Processes that run queries of one lake, one at a time each; as many as queries at once. Thread-safe.

    ``settings`` say what each opens; ``let_go`` is called with the pin of a killed one.
    """

    def __init__(self, settings: Mapping[str, Any], let_go: Callable[[str], None]) -> None:
        self._settings = settings
        self._let_go = let_go
        self._guard = threading.Lock()
        self._idle: list[QueryProcess] = []
        self._starting: threading.Event | None = None
        self._owner = os.getpid()

    def prepare(self) -> None:
        """Start a process in the background unless there is one, for a query that is likely to come soon.

        One that comes meanwhile waits for it. A start that fails is tried again by the next query, which says why.
        """
        with self._guard:
            self._forget_parents()
            if self._starting is not None or any(one.is_alive for one in self._idle):
                return
            self._starting = started = threading.Event()
        threading.Thread(target=self._start, args=(started,), name="lakehouse-query-process", daemon=True).start()

    def _start(self, started: threading.Event) -> None:
        process = None
        try:
            process = QueryProcess(self._settings, _PREPARING_SECONDS)
        except (LakehouseError, OSError) as error:
            logger.info("no query process could be prepared: %s", error)
        finally:
            with self._guard:
                self._starting = None
                if process is not None:
                    self._idle.append(process)
            started.set()

    def ask(
        self, question: Mapping[str, Any], *, most_bytes: int, most_memory: int, most_seconds: float
    ) -> tuple[dict[str, Any], bytes]:
        """A process's answer. Its start does not count towards the limits, all that it does for the answer does.

        Raises `QueryLimitExceeded` if the process did not answer within the limits and was ended, and what the query
        raises.
        """
        process = self._taken(most_seconds)
        is_sound = False
        try:
            with watched(process.kill):
                answer, body = process.ask(question, most_bytes=most_bytes, seconds=most_seconds)
            is_sound = bool(answer.get("is_sound"))
        except TimeoutError as error:
            raise QueryLimitExceeded(
                "the query took too long and was stopped; ask for less, or allow more seconds",
                limit="seconds",
                most_seconds=most_seconds,
            ) from error
        except TooMuch as error:
            raise QueryLimitExceeded(
                "the result is larger than its limit; ask for fewer columns or rows",
                limit="bytes",
                most_bytes=most_bytes,
            ) from error
        except Ended as error:
            process.end()
            raise QueryLimitExceeded(
                "the query was stopped, most likely because it needed more memory than its limit; ask for fewer rows "
                "or columns, or allow more",
                limit="memory",
                most_memory=most_memory,
                ended=process.how,
            ) from error
        finally:
            if is_sound:
                self._give_back(process)
            else:
                self._end(process)
        if "error" in answer:
            raise read_error(answer)
        return answer, body

    def idle(self) -> list[QueryProcess]:
        """Idle processes, after waiting for one that is being prepared."""
        self._wait_prepared()
        with self._guard:
            return list(self._idle)

    def _taken(self, seconds: float) -> QueryProcess:
        while True:
            with self._guard:
                self._forget_parents()
                while self._idle:
                    process = self._idle.pop()
                    if process.is_alive:
                        return process
                    process.end()
                starting = self._starting
            if starting is None:
                return QueryProcess(self._settings, seconds)
            starting.wait()

    def _forget_parents(self) -> None:
        if os.getpid() != self._owner:  # forked: the processes are the parent's
            self._owner, self._idle, self._starting = os.getpid(), [], None

    def _wait_prepared(self) -> None:
        with self._guard:
            self._forget_parents()
            starting = self._starting
        if starting is not None:
            starting.wait()

    def _give_back(self, process: QueryProcess) -> None:
        with self._guard:
            if len(self._idle) < _MOST_IDLE and process.is_alive:
                self._idle.append(process)
                return
        self._end(process)

    def _end(self, process: QueryProcess) -> None:
        process.end()
        try:
            self._let_go(process.pin_id)
        except LakehouseError:
            return  # its lease will expire

    def close(self) -> None:
        """End all idle processes, and one that is being prepared."""
        self._wait_prepared()
        with self._guard:
            idle, self._idle = self._idle, []
        for process in idle:
            self._end(process)
