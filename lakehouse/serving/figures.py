"""What a node counts of itself, and Prometheus' text of it."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field, replace

from lakehouse.core.serving.group import Group, Node, NodeReport, NodeStage, SlowQuery
from lakehouse.serving.sending import Sending

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SLOW = 10
"""How many of the slowest queries are known."""
_SLOW_SECONDS = 0.1
"""A query that takes less is not slow."""


@dataclass
class Figures:
    """Counts since a node started. Thread-safe."""

    queries: int = 0
    result_hits: int = 0
    hits: int = 0
    misses: int = 0
    rows: int = 0
    bytes: int = 0
    cut_off: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    slow: list[SlowQuery] = field(default_factory=list)
    _buckets: list[int] = field(default_factory=lambda: [0] * (len(_BOUNDS) + 1))
    _seconds: float = 0.0
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def answered(
        self, statement: SlowQuery, rows: int, size: int, *, segments: tuple[int, int], is_known: bool
    ) -> None:
        """An answer, with how many segments came from the cache and from the warehouse."""
        with self._guard:
            self.queries += 1
            self.result_hits += is_known
            self.hits, self.misses = self.hits + segments[0], self.misses + segments[1]
            self.rows, self.bytes = self.rows + rows, self.bytes + size
            self._buckets[bisect_left(_BOUNDS, statement.seconds)] += 1
            self._seconds += statement.seconds

    def is_slow(self, seconds: float) -> bool:
        """Whether a query is slow, and among the slowest."""
        return seconds >= _SLOW_SECONDS and (len(self.slow) < _SLOW or seconds > self.slow[-1].seconds)

    def note_slow(self, query: SlowQuery) -> None:
        """Keep a query that is among the slowest; the slowest run of each statement."""
        with self._guard:
            others = [one for one in self.slow if one.statement != query.statement]
            same = [one for one in self.slow if one.statement == query.statement and one.seconds > query.seconds]
            kept = [*others, *(same or [query])]
            self.slow = sorted(kept, key=lambda one: -one.seconds)[:_SLOW]

    def cut(self) -> None:
        """An answer that its client did not take."""
        with self._guard:
            self.cut_off += 1

    def failed(self, code: str) -> None:
        """A query that was not answered."""
        with self._guard:
            self.errors[code] += 1

    def filled(self, report: NodeReport) -> NodeReport:
        """A report with these counts."""
        with self._guard:
            return replace(
                report,
                queries=self.queries,
                errors=self.errors.total(),
                result_hits=self.result_hits,
                hits=self.hits,
                misses=self.misses,
                slow=tuple(self.slow),
            )

    def exposition(self, node: Node, group: Group, age_seconds: float, sending: Sending) -> str:
        """The text of `https://prometheus.io/docs/instrumenting/exposition_formats`."""
        report = node.report
        with self._guard:
            lines = [
                *_metric("queries_total", "counter", "Answers.", self.queries),
                *_metric("result_hits_total", "counter", "Answers that were known.", self.result_hits),
                *_metric("segment_hits_total", "counter", "Segments read from the cache.", self.hits),
                *_metric("segment_misses_total", "counter", "Segments read from the warehouse.", self.misses),
                *_metric("rows_total", "counter", "Rows of answers.", self.rows),
                *_metric("bytes_total", "counter", "Bytes of answers.", self.bytes),
                *_metric("sending_bytes", "gauge", "Bytes of answers that are being sent.", sending.bytes),
                *_metric("sending_answers", "gauge", "Answers that are being sent.", sending.answers),
                *_metric("cut_off_total", "counter", "Answers that clients did not take in time.", self.cut_off),
                *_metric("live_version", "gauge", "The version that the node answers at.", node.live),
                *_metric("group_live_version", "gauge", "The version that its group answers at.", group.live),
                *_metric("group_target_version", "gauge", "The version that is loaded.", group.target or group.live),
                *_metric("group_flips_total", "counter", "How often the live version changed.", group.flips),
                *_metric("loaded_versions", "gauge", "Versions that are loaded.", len(report.loaded)),
                *_metric("failed_versions", "gauge", "Versions that cannot be loaded.", len(report.failed)),
                *_metric("held_bytes", "gauge", "Bytes of segments that are held.", report.held_bytes),
                *_metric("held_files", "gauge", "Segments that are held.", report.held_files),
                *_metric("catalog_age_seconds", "gauge", "Since the catalog was reached.", round(age_seconds, 3)),
                *_metric("ready", "gauge", "Whether the node has joined.", int(node.stage is NodeStage.SERVING)),
            ]
            name = "lakehouse_serving_errors_total"
            lines += [f"# HELP {name} Queries that failed, by code.", f"# TYPE {name} counter"]
            lines += [f'{name}{{code="{code}"}} {count}' for code, count in sorted(self.errors.items())]
            lines += self._histogram()
        return "\n".join(lines) + "\n"

    def _histogram(self) -> list[str]:
        name, seen = "lakehouse_serving_query_seconds", 0
        lines = [f"# HELP {name} Seconds of answers.", f"# TYPE {name} histogram"]
        for bound, count in zip((*_BOUNDS, "+Inf"), self._buckets, strict=True):
            seen += count
            lines.append(f'{name}_bucket{{le="{bound}"}} {seen}')
        return [*lines, f"{name}_sum {self._seconds:.6f}", f"{name}_count {self.queries}"]


def _metric(name: str, kind: str, said: str, value: float) -> list[str]:
    full = f"lakehouse_serving_{name}"
    return [f"# HELP {full} {said}", f"# TYPE {full} {kind}", f"{full} {value}"]
