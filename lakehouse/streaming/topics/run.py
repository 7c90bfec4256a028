"""One topic, kept running in a thread of its own: started, waited for, and started again after a failure."""

from __future__ import annotations

import logging
import re
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from lakehouse.core.topic import LEASE_SECONDS, Progress, TopicState
from lakehouse.errors import LakehouseError, coded
from lakehouse.streaming.topics.backoff import Backoff
from lakehouse.streaming.topics.config import TopicConfig
from lakehouse.streaming.topics.queries import Ended, Query, ended_since

logger = logging.getLogger(__name__)
_RATE_SECONDS = 30.0
"""Over how long rows a second are counted."""
_OURS = re.compile(r"(?:lakehouse\.errors\.)(\w+): (.+)")
_PYTHON = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Warning|Interrupt)): (.+)", re.MULTILINE)
_MOST_TEXT = 500

Start = Callable[[], Query]
Claim = Callable[[Progress], str | None]


class TopicRun:
    """Runs one topic until it is stopped, has read all that it was to read, or, run once, has failed.

    Parameters
    ----------
    start
        Starts the query.
    claim
        Makes this process the one that runs the topic, or says which process does.
    stop
        Set by whoever wants all topics to end; `end` then ends the query.
    clock
        Seconds that only grow.
    is_once
        Whether the first failure is the end.
    on_change
        Called when its state has changed, in its thread.
    """

    def __init__(
        self,
        topic: TopicConfig,
        start: Start,
        claim: Claim,
        *,
        stop: threading.Event,
        clock: Callable[[], float],
        backoff: Backoff,
        is_once: bool = False,
        on_change: Callable[[TopicRun], None] = lambda _: None,
    ) -> None:
        self.topic = topic
        self.state = TopicState.WAITING
        self.is_new = False
        """Whether a batch with rows has ended since the last `progress`, so that there is a new version."""
        self._start, self._claim, self._stop, self._clock = start, claim, stop, clock
        self._backoff, self._is_once, self._on_change = backoff, is_once, on_change
        self._guard = threading.Lock()
        self._told = Progress(topic.table, topic.source.described(), topic.mode)
        self._began = clock()
        self._batch_at: float | None = None
        self._error_at: float | None = None
        self._next_at: float | None = None
        self._idle_at = clock()
        self._rates: deque[tuple[float, int]] = deque([(clock(), 0)])
        self._query: Query | None = None
        self._seen = -1
        self.is_lost = False
        """Whether another process has taken it over."""
        self.is_ours = False
        """Whether this process is the one that runs it, and so the one that reports of it."""
        self.thread = threading.Thread(target=self._run, name=f"topic {topic.name}", daemon=True)

    # In its own thread

    def _run(self) -> None:
        while not self._is_over():
            wait_seconds = self._attempt()
            if wait_seconds is None:
                return
            self._next_at = self._clock() + wait_seconds
            self._enter(TopicState.WAITING)
            self._stop.wait(wait_seconds)
            self._next_at = None
        self._enter(TopicState.STOPPED)

    def _is_over(self) -> bool:
        return self._stop.is_set() or self.is_lost

    def _attempt(self) -> float | None:
        """Run the query to its end; None if that is the end of the topic, else how long to wait before the next."""
        began, batches = self._clock(), self._told.batches
        try:
            holder = self._claim(self.progress())
            self.is_ours = holder is None
            if holder is not None:
                self._note(f"process {holder} runs it; it is taken over when that ends")
                if not self._is_once:
                    return LEASE_SECONDS
                self._enter(TopicState.FAILED)
                return None
            query = self._start()
            with self._guard:
                self._query, self._seen, self._idle_at = query, -1, self._clock()
            self._enter(TopicState.RUNNING)
            if self._is_over():  # asked for while it started
                query.stop()
            query.awaitTermination()
            self.look()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is not an end of the others
            if not self._is_over():
                return self._failed(error, began, batches)
            logger.info("topic %s was ended while it worked: %s", self.topic.name, said(error))
        finally:
            with self._guard:
                self._query = None
        self._enter(TopicState.STOPPED if self._is_over() else TopicState.DONE)
        return None

    def _failed(self, error: Exception, began: float, batches: int) -> float | None:
        self.look()
        logger.warning("topic %s failed: %s", self.topic.name, said(error), exc_info=_unexpected(error))
        ran = self._clock() - began
        wait_seconds = self._backoff.after(ran, has_ended_batch=self._told.batches > batches)
        self._note(said(error))
        with self._guard:
            self._told = replace(self._told, failures=self._backoff.failures)
        if self._is_once:
            self._enter(TopicState.FAILED)
            return None
        with self._guard:
            self._told = replace(self._told, restarts=self._told.restarts + 1)
        return wait_seconds

    def _note(self, text: str) -> None:
        with self._guard:
            self._told = replace(self._told, error=text[:_MOST_TEXT])
            self._error_at = self._clock()

    def _enter(self, state: TopicState) -> None:
        self.state = state
        self._on_change(self)

    # From the supervisor's thread

    def look(self) -> None:
        """See which batches have ended."""
        with self._guard:
            query = self._query
            if query is None:
                return
            try:
                ended = ended_since(query, self.topic.source, self._seen)
                is_busy = bool(query.status["isTriggerActive"])
            except (PySparkException, Py4JError, OSError) as error:
                logger.debug("topic %s does not answer: %s", self.topic.name, error)  # its thread tells how it ended
                return
            now = self._clock()
            if ended or not is_busy:
                self._idle_at = now
            if ended:
                self._seen, self._batch_at = ended[-1].batch, now
                self._told = _counted(self._told, ended)
                self.is_new = self.is_new or any(one.rows for one in ended)
                self._told = replace(self._told, failures=0)

    def took(self, version: int | None) -> None:
        """Note the version of its last batch."""
        with self._guard:
            self.is_new = False
            self._told = replace(self._told, version=version)

    def progress(self) -> Progress:
        """What there is to say of it now."""
        with self._guard:
            now, told = self._clock(), self._told
            self._rates.append((now, told.rows))
            while len(self._rates) > 2 and now - self._rates[0][0] > _RATE_SECONDS:
                self._rates.popleft()
            then, rows = self._rates[0]
            is_running = self.state is TopicState.RUNNING and self._query is not None
            return replace(
                told,
                rows_per_second=round((told.rows - rows) / (now - then), 3) if now > then else 0.0,
                started_ago=round(now - self._began, 3),
                batch_ago=_ago(now, self._batch_at),
                error_ago=_ago(now, self._error_at),
                busy_seconds=round(now - self._idle_at, 3) if is_running else 0.0,
                next_in=None if self._next_at is None else round(max(0.0, self._next_at - now), 3),
            )

    def lose(self) -> None:
        """Leave the topic to the process that has taken it."""
        self._note("another process has taken it over")
        self.is_lost, self.is_ours = True, False
        self.end(at_once=True)

    def end(self, *, at_once: bool) -> None:
        """End its query if it is between two batches, or in any case: what a batch has not committed comes again."""
        with self._guard:
            query, seen = self._query, self._seen
        if query is None:
            return
        try:
            if at_once or not query.status["isTriggerActive"] or ended_since(query, self.topic.source, seen):
                query.stop()
        except (PySparkException, Py4JError, OSError) as error:
            logger.info("topic %s had ended already: %s", self.topic.name, said(error))


def _counted(told: Progress, ended: list[Ended]) -> Progress:
    last = ended[-1]
    return replace(
        told,
        rows=told.rows + sum(one.rows for one in ended),
        batches=told.batches + sum(one.has_run for one in ended),
        batch=last.batch,
        batch_seconds=last.seconds,
        lag=last.lag,
        lag_unit=last.lag_unit,
    )


def _ago(now: float, then: float | None) -> float | None:
    return None if then is None else round(now - then, 3)


def _unexpected(error: Exception) -> bool:
    """Whether a log should have an error's trace: what Spark and the library say is enough of their own."""
    return not isinstance(error, (LakehouseError, PySparkException, Py4JError, OSError))


def said(error: Any) -> str:
    """What an error says in a line: that of the library or of Python inside Spark's, without their traces.

    >>> said(ValueError("StreamingQueryException: ... lakehouse.errors.InvalidRows: no column b (table=t)"))
    'InvalidRows: no column b (table=t)'
    """
    if isinstance(error, LakehouseError):
        return coded(error)[:_MOST_TEXT]
    text = str(error)
    found = _OURS.findall(text) or _PYTHON.findall(text)
    if found:
        name, message = found[-1]
        return f"{name}: {message}"[:_MOST_TEXT]
    line = next((one for one in text.splitlines() if one.strip()), "")
    return f"{type(error).__name__}: {line.strip()}"[:_MOST_TEXT]
