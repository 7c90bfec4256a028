"""All topics of a file, kept running side by side, and what their process says of them."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from lakehouse.core.listing import Listing
from lakehouse.core.topic import Topic, TopicState
from lakehouse.errors import EngineUnavailable, LakehouseError, coded
from lakehouse.lake import Lake
from lakehouse.streaming.topics.backoff import Backoff
from lakehouse.streaming.topics.config import TopicConfig, TopicsFile
from lakehouse.streaming.topics.process import is_dead, process_name
from lakehouse.streaming.topics.queries import Query
from lakehouse.streaming.topics.run import TopicRun
from lakehouse.streaming.topics.sources import checkpoint_of, start_query

logger = logging.getLogger(__name__)
LOOK_SECONDS = 1.0
REPORT_SECONDS = 5.0
GRACE_SECONDS = 30.0
"""How long a batch may go on after its topic was asked to end."""


class Supervisor:
    """Runs every topic of a file until it is stopped, and reports how they are to the catalog.

    A topic that fails is started again after a while and leaves the others alone. ``is_once``: a failure is the end of
    its topic. ``on_look`` is called each second with all topics, ``on_change`` with one whose state has changed.
    """

    def __init__(
        self,
        lake: Lake,
        found: TopicsFile,
        *,
        stop: threading.Event | None = None,
        is_once: bool = False,
        on_look: Callable[[Listing[Topic]], None] = lambda _: None,
        on_change: Callable[[Topic], None] = lambda _: None,
        start: Callable[[Lake, TopicConfig, str], Query] = start_query,
        backoff: Callable[[], Backoff] = lambda: Backoff(chance=random.Random()),  # noqa: S311 - no secret
    ) -> None:
        self.stop = stop or threading.Event()
        self.process = process_name()
        self._lake, self._start = lake, start
        self._on_look, self._on_change = on_look, on_change
        self._woken = threading.Event()
        self._checkpoints = {one.name: checkpoint_of(lake, one, found.file) for one in found.topics}
        self._runs = [
            TopicRun(
                one,
                partial(start, lake, one, self._checkpoints[one.name]),
                partial(self._claim, one.name),
                stop=self.stop,
                clock=time.monotonic,
                backoff=backoff(),
                is_once=is_once,
                on_change=self._changed,
            )
            for one in found.topics
        ]
        self._reported = 0.0

    def run(self) -> bool:
        """Run until ``stop`` is set or every topic has ended; whether none of them failed.

        Batches that are being written when it is asked to end are waited for; what is not committed then comes again.
        Raises `EngineUnavailable` if Spark itself ends, with which no topic can go on.
        """
        for one in self._runs:
            one.thread.start()
        try:
            while not self.stop.is_set() and any(one.thread.is_alive() for one in self._runs):
                self._look()
                self._check_spark()
                self._woken.wait(LOOK_SECONDS)
                self._woken.clear()
        finally:
            self.stop.set()
            self._end()
            self._look(at_last=True)
        return all(one.state is not TopicState.FAILED for one in self._runs)

    def topics(self) -> Listing[Topic]:
        """How all topics are now."""
        return Listing(self._topic(one) for one in self._runs)

    def _topic(self, run: TopicRun) -> Topic:
        return Topic(run.topic.name, run.state, self.process, datetime.now(UTC), 0.0, run.progress())

    def _claim(self, name: str, progress: Any) -> str | None:
        catalog = self._lake.catalog
        holder = catalog.claim_topic(name, self.process, progress)
        if holder is not None and is_dead(holder):
            holder = catalog.claim_topic(name, self.process, progress, dead=(holder,))
        return holder

    def _changed(self, run: TopicRun) -> None:
        self._on_change(self._topic(run))
        self._reported = 0.0  # the catalog is told at once
        self._woken.set()

    def _look(self, *, at_last: bool = False) -> None:
        for one in self._runs:
            one.look()
        if at_last or time.monotonic() - self._reported >= REPORT_SECONDS:
            self._reported = time.monotonic()
            try:
                self._report()
            except LakehouseError as error:
                logger.warning("the catalog was not told of topics: %s", coded(error))  # it is told again soon
        self._on_look(self.topics())

    def _report(self) -> None:
        for one in self._runs:
            if one.is_new:
                batch = self._lake.catalog.newest_batch(self._lake.table(one.topic.table).spec.id, one.topic.stream)
                one.took(None if batch is None else batch.version)
        reports = {one.topic.name: (one.state, one.progress()) for one in self._runs if one.is_ours}
        for name in self._lake.catalog.report_topics(self.process, reports):
            next(one for one in self._runs if one.topic.name == name).lose()

    def _check_spark(self) -> None:
        """Spark's own end is that of all topics: a new process has to start it."""
        if any(one.state is TopicState.WAITING for one in self._runs) and self._start is start_query:
            try:
                context = getattr(self._lake.spark, "sparkContext", None)
                is_over = context is not None and bool(context._jsc.sc().isStopped())
            except (Py4JError, OSError, AttributeError):
                is_over = True
            if is_over:
                raise EngineUnavailable("Spark has ended, and with it every topic; start them again")

    def _end(self) -> None:
        give_up = time.monotonic() + GRACE_SECONDS
        while is_open := [one for one in self._runs if one.thread.is_alive()]:
            at_once = time.monotonic() >= give_up
            for one in is_open:
                one.end(at_once=at_once)
            is_open[0].thread.join(0.1)
            if time.monotonic() > give_up + GRACE_SECONDS:
                logger.warning("topics did not end: %s", ", ".join(one.topic.name for one in is_open))
                return
