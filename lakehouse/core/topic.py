"""Topics: streams that a process keeps running, what it reports of each, and whether one is stalled."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self

LEASE_SECONDS = 15.0
"""How long a process keeps a topic of which it has not reported."""
STALLED_SECONDS = 300.0
"""How long a topic may make no progress before it counts as stalled, unless its caller says another time."""
_SILENT_SECONDS = 60.0
"""How long a process may be silent about a topic that it is to run."""
_MOST_ERROR = 2000


class TopicState(StrEnum):
    """Where a topic stands."""

    RUNNING = "running"
    WAITING = "waiting"
    """It failed, or another process has it, and it is started again."""
    DONE = "done"
    """It had read all that there was, as it was asked to."""
    STOPPED = "stopped"
    FAILED = "failed"
    """It failed, and is not started again."""

    @property
    def is_live(self) -> bool:
        """Whether a process is to be at work on it."""
        return self in (TopicState.RUNNING, TopicState.WAITING)


class Health(StrEnum):
    """How a topic is."""

    WELL = "well"
    STALLED = "stalled"
    FAILED = "failed"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Progress:
    """What a process knows of one of its topics, since it began to run it.

    Ages are in seconds before the report, None for what has not been: a process's clock may not be the catalog's.
    ``rows`` were read from the source. ``batch`` is the number of the last batch that ended, ``version`` what the last
    one with rows committed. ``lag`` is how much of the source was not read when the last batch was planned, in
    ``lag_unit`` (records, versions, offsets); None where the source does not say. ``failures`` counts the times that
    the topic failed without a batch in between, ``restarts`` all that it was started again.
    """

    table: str
    source: str
    mode: str = "append"
    rows: int = 0
    batches: int = 0
    batch: int | None = None
    version: int | None = None
    rows_per_second: float = 0.0
    batch_seconds: float | None = None
    lag: int | None = None
    lag_unit: str | None = None
    restarts: int = 0
    failures: int = 0
    error: str | None = None
    started_ago: float = 0.0
    batch_ago: float | None = None
    error_ago: float | None = None
    busy_seconds: float = 0.0
    """For how long no batch has ended although one was being worked on."""
    next_in: float | None = None
    """When a topic that waits is started again."""

    def to_json(self) -> str:
        """The text by which a catalog keeps it."""
        held = asdict(replace(self, error=None if self.error is None else self.error[:_MOST_ERROR]))
        return json.dumps({name: value for name, value in held.items() if value is not None}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What another release wrote may say more or less than this one knows.

        >>> Progress.from_json('{"table": "trips", "source": "rate", "colour": "red"}').rows
        0
        """
        held: dict[str, Any] = json.loads(text)
        known = {one.name for one in fields(cls)}
        return cls(**{"table": "", "source": "", **{name: held[name] for name in held if name in known}})


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as its process reported it last, by the catalog's clock; ``silent_seconds`` is how long ago."""

    name: str
    state: TopicState
    process: str
    reported_at: datetime
    silent_seconds: float
    progress: Progress = field(repr=False)

    @property
    def table(self) -> str:
        """The table that it writes."""
        return self.progress.table

    def at(self, seconds_ago: float | None) -> datetime | None:
        """The time of an age that its process reported."""
        return None if seconds_ago is None else self.reported_at - timedelta(seconds=seconds_ago)

    def health(self, after_seconds: float = STALLED_SECONDS) -> Health:
        """How it is; `stall` says why it is stalled or failed."""
        if self.state is TopicState.FAILED:
            return Health.FAILED
        if not self.state.is_live:
            return Health.ENDED
        return Health.WELL if self.stall(after_seconds) is None else Health.STALLED

    def stall(self, after_seconds: float = STALLED_SECONDS) -> str | None:
        """Why a topic that is to run makes no progress, in a sentence; None if it does, or is not to run.

        It is stalled if its process says nothing for a minute, if it has failed again and again for ``after_seconds``
        without a batch in between, or if a batch has lasted as long. A topic that waits for rows, or for its trigger,
        is not: its lag says how far it is behind.
        """
        if self.state is TopicState.FAILED:
            return f"it failed: {self.progress.error or 'its process does not say why'}"
        if not self.state.is_live:
            return None
        if self.silent_seconds > _SILENT_SECONDS:
            return f"its process has not reported for {self.silent_seconds:,.0f} s; start it again"
        told = self.progress
        since = told.started_ago if told.batch_ago is None else told.batch_ago
        if told.failures and since > after_seconds:
            return f"{told.failures:,} failures and no batch for {since:,.0f} s: {told.error}"
        if self.state is TopicState.RUNNING and told.busy_seconds > after_seconds:
            return f"a batch has lasted {told.busy_seconds:,.0f} s"
        return None
