"""What a query of Spark's says of itself, in as few questions as it takes: ten queries are looked at each second."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lakehouse.streaming.topics.config import Source


class Query(Protocol):
    """What is used of ``pyspark.sql.streaming.StreamingQuery``."""

    @property
    def status(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def recentProgress(self) -> Sequence[Any]: ...  # noqa: D102, N802
    def awaitTermination(self) -> Any: ...  # noqa: D102, N802
    def stop(self) -> None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Ended:
    """A batch that has ended: its number, the rows that it read, how long it took, and what it left unread."""

    batch: int
    rows: int
    seconds: float
    lag: int | None = None
    lag_unit: str | None = None
    has_run: bool = True
    """Whether there was a batch at all: Spark reports also that it found nothing to read."""


def ended_since(query: Query, source: Source, batch: int) -> list[Ended]:
    """The batches of a query that ended after one, oldest first, as far as Spark remembers them (100)."""
    handle = getattr(query, "_jsq", None)
    if handle is None:  # Spark Connect sends all of them in one answer
        texts = [one.json for one in query.recentProgress]
        return [one for one in (ended_of(json.loads(text), source) for text in texts) if one.batch > batch]
    held = handle.recentProgress()  # one question each, so that those that are known are not fetched again
    found: list[Ended] = []
    for place in range(len(held) - 1, -1, -1):
        one = ended_of(json.loads(held[place].json()), source)
        if one.batch <= batch:
            break
        found.append(one)
    return found[::-1]


def ended_of(told: Mapping[str, Any], source: Source) -> Ended:
    """A batch from Spark's report of it.

    >>> took = {"addBatch": 1400, "triggerExecution": 1500}
    >>> ended_of({"batchId": 3, "numInputRows": 10, "durationMs": took}, Source("rate"))
    Ended(batch=3, rows=10, seconds=1.5, lag=None, lag_unit=None, has_run=True)
    >>> ended_of({"batchId": 0, "numInputRows": 0, "durationMs": {"triggerExecution": 9}}, Source("rate")).has_run
    False
    """
    sources = told.get("sources") or [{}]
    lag, unit = lag_of(sources[0], source)
    took = told.get("durationMs", {})
    number, rows, seconds = (
        int(told["batchId"]),
        int(told.get("numInputRows") or 0),
        took.get("triggerExecution", 0) / 1000,
    )
    return Ended(number, rows, seconds, lag, unit, has_run="addBatch" in took)


def lag_of(told: Mapping[str, Any], source: Source) -> tuple[int | None, str | None]:
    """How much a source had beyond what was read, and in what; None where it does not say.

    >>> kafka = {"endOffset": '{"orders":{"0":7,"1":2}}', "latestOffset": '{"orders":{"0":9,"1":5,"2":4}}'}
    >>> lag_of(kafka, Source("kafka"))
    (9, 'records')
    >>> lag_of({"endOffset": {"version": 7, "file": 2}, "latestOffset": {"version": 9, "file": 0}}, Source(table="a"))
    (2, 'versions')
    >>> lag_of({"endOffset": "12", "latestOffset": None}, Source("rate"))
    (None, None)
    """
    read, there = _offset(told.get("endOffset")), _offset(told.get("latestOffset"))
    if read is None or there is None:
        return None, None
    if source.table is not None:
        if isinstance(read, Mapping) and isinstance(there, Mapping) and "version" in read and "version" in there:
            return max(0, int(there["version"]) - int(read["version"])), "versions"
        return None, None
    if isinstance(read, int) and isinstance(there, int):
        return max(0, there - read), "offsets"
    if source.format == "kafka" and isinstance(read, Mapping) and isinstance(there, Mapping):
        count = 0
        for topic, partitions in there.items():
            known = read.get(topic, {})
            count += sum(max(0, int(most) - int(known.get(one, 0))) for one, most in partitions.items())
        return count, "records"
    return None, None


def _offset(told: Any) -> Any:
    """An offset as a value; Spark gives it as text, or as what the text says."""
    if not isinstance(told, str):
        return told
    try:
        return json.loads(told)
    except json.JSONDecodeError:
        return None
