"""Candidates of all strategies as tasks: disjoint, each for one worker, the best first, within a budget."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, replace

import numpy as np
import numpy.typing as npt

from lakehouse.core.interval import Interval
from lakehouse.core.skyline import distinct
from lakehouse.core.strategy.draft import pieces
from lakehouse.core.strategy.state import TableState
from lakehouse.core.task import Candidate, Gain, TaskKind
from lakehouse.errors import InvalidCandidate

IntArray = npt.NDArray[np.int64]

_SERVICE = frozenset({TaskKind.PLAN, TaskKind.CLEAN, TaskKind.COLLECT})
"""Kinds that the service starts by itself."""


def combine(
    state: TableState, candidates: Iterable[Candidate], *, rewritable_bytes: float = float("inf")
) -> list[Candidate]:
    """Tasks that have no segment in common, by score, the greatest first, of candidates that were `checked`.

    Compactions that want the same segments, or segments of one chunk, become one that gives the causes of all, where a
    task can read them all; where not, the one with the smaller score is left for a later plan. One that saves no scan
    anything never joins another, and waits where that takes some of its segments. A compaction of more
    than ``policy.task_bytes`` is cut into steps in order of time; one segment may go alone whatever its size. Segments
    that are compacted are not asked for by tasks of other kinds. Compactions are taken in order of score, as long as
    all together rewrite no more than ``rewritable_bytes``; one that is too large for what is left waits until more was
    written. Cost: one sort of the segments, and a step for each candidate.
    """
    known = _Known(state)
    listed = sorted(candidates, key=lambda one: -one.score)
    compactions = [part for one in listed if one.kind is TaskKind.COMPACT for part in known.steps(one)]
    tasks = _Tasks(known)
    for one in sorted(compactions, key=lambda one: -one.score):
        tasks.add(one)
    chosen = tasks.within(rewritable_bytes)
    rest = [one for one in listed if one.kind is not TaskKind.COMPACT]
    return sorted(chosen + _others(tasks, rest), key=lambda one: -one.score)


def checked(state: TableState, candidates: Iterable[Candidate]) -> list[Candidate]:
    """A strategy's candidates, if all of them can be tasks.

    Raises `InvalidCandidate` for one that names what the state does not have, or is of a kind of the service's own.
    """
    known = _Known(state)
    return [known.checked(one) for one in candidates]


class _Known:
    """The state's ids in order, to find places by."""

    def __init__(self, state: TableState) -> None:
        self.state = state
        self.compaction_groups, _ = state.compaction_groups
        self.bytes = state.segments.numbers("bytes")
        self.rows = state.segments.numbers("rows")
        self._ids, self._order = state.by_id
        self._tombstones = np.array(sorted(one.id for one in state.tombstones), dtype=np.int64)

    def checked(self, candidate: Candidate) -> Candidate:
        """The candidate, its ids known to be sorted and the table's."""
        if candidate.kind in _SERVICE:
            raise InvalidCandidate(
                "a strategy cannot ask for such a task; use compact, resolve, index or stats",
                strategy=candidate.strategy,
                kind=candidate.kind.value,
            )
        for what, ids, known in (
            ("segments", candidate.segments, self._ids),
            ("tombstones", candidate.tombstones, self._tombstones),
        ):
            if ids.ndim != 1 or ids.dtype != np.int64 or (np.diff(ids) <= 0).any():
                raise InvalidCandidate(
                    "a candidate's ids are one array of int64, sorted, each once", strategy=candidate.strategy, of=what
                )
            if len(ids) and not _contains(known, ids):
                raise InvalidCandidate(
                    "a candidate names what the table does not have; take ids from the state that was given",
                    strategy=candidate.strategy,
                    of=what,
                )
        if candidate.kind is TaskKind.COMPACT and not len(candidate.segments):
            raise InvalidCandidate("a compaction without segments; name at least one", strategy=candidate.strategy)
        return candidate

    def places(self, ids: IntArray) -> IntArray:
        """Places of segments."""
        found: IntArray = self._order[np.searchsorted(self._ids, ids)]
        return found

    def remade(self, candidate: Candidate, places: IntArray, gain: Gain) -> Candidate:
        """The candidate with other segments."""
        starts, ends, _ = self.state.segments.bounds
        return replace(
            candidate,
            interval=Interval(int(starts[places].min()), int(ends[places].max())),
            segments=np.sort(self.state.segments.ids[places]),
            bytes=int(self.bytes[places].sum()),
            rows=int(self.rows[places].sum()),
            gain=gain,
        )

    def steps(self, candidate: Candidate) -> list[Candidate]:
        """A compaction as some that each read no more than a task may."""
        most = self.state.policy.task_bytes
        places = self.places(candidate.segments)
        if int(self.bytes[places].sum()) <= most:
            return [candidate]
        starts, _, _ = self.state.segments.bounds
        places = places[np.argsort(starts[places], kind="stable")]
        large = places[self.bytes[places] * 2 >= most]
        small = places[self.bytes[places] * 2 < most]
        cuts = pieces(self.bytes[small], np.zeros(min(1, len(small)), dtype=np.int64), most)
        parts = [*np.split(small, cuts[1:]), *large[:, None]] if len(small) else [*large[:, None]]
        # A single segment of many gains nothing by itself unless it is masked.
        useful = [part for part in parts if len(part) > 1 or candidate.gain.masked_rows or len(candidate.segments) == 1]
        return [self.remade(candidate, part, _share(candidate.gain, len(part) / len(places))) for part in useful]


@dataclass(slots=True)
class _Joined:
    """A task in the making."""

    best: Candidate
    places: IntArray
    causes: dict[str, str]


class _Tasks:
    """Disjoint compactions, found by segment and by group."""

    def __init__(self, known: _Known) -> None:
        self._known = known
        self._owner = np.full(len(known.state.segments), -1, dtype=np.int64)
        self._by_group: dict[int, int] = {}
        self._held: dict[int, _Joined] = {}
        self._next = 0

    def add(self, candidate: Candidate) -> None:
        """Take a compaction in, with those that it meets; leave it out where all together would be too large."""
        places = self._known.places(candidate.segments)
        owners = {int(one) for one in distinct(self._owner[places]) if one >= 0}
        met = owners | {
            self._by_group[group]
            for group in distinct(self._known.compaction_groups[places]).tolist()
            if group in self._by_group
        }
        if not candidate.score:
            if not owners:
                self._put(candidate, places, places, set())
            return
        for wanted in (met, owners):
            union = distinct(np.concatenate([places, *(self._held[one].places for one in sorted(wanted))]))
            if not wanted or int(self._known.bytes[union].sum()) <= self._known.state.policy.task_bytes:
                self._put(candidate, places, union, wanted)
                return

    def _put(self, candidate: Candidate, places: IntArray, union: IntArray, met: set[int]) -> None:
        causes = {}
        best, gain, scans = candidate, Gain(), candidate.scans
        for one in sorted(met):
            other = self._held.pop(one)
            causes.update(other.causes)
            gain, scans = gain + other.best.gain, max(scans, other.best.scans)
            best = other.best
        is_new = self._owner[places] < 0
        added = _share(candidate.gain, float(is_new.mean()))
        gain = gain + added if met else candidate.gain
        # What two strategies see in the same segments is seen once.
        gain = Gain(*(max(one, other) for one, other in zip(astuple(gain), astuple(candidate.gain), strict=True)))
        causes.setdefault(candidate.strategy, candidate.cause)
        joined = replace(self._known.remade(best, union, gain), scans=scans)
        self._held[self._next] = _Joined(joined, union, causes)
        self._owner[union] = self._next
        for group in distinct(self._known.compaction_groups[union]).tolist():
            self._by_group[group] = self._next
        self._next += 1

    def within(self, rewritable_bytes: float) -> list[Candidate]:
        """The best tasks that together rewrite no more than that; the others are forgotten."""
        tasks = sorted((_named(one) for one in self._held.values()), key=lambda one: -one.score)
        chosen = []
        for one in tasks:
            if one.bytes <= rewritable_bytes:
                rewritable_bytes -= one.bytes
                chosen.append(one)
        self._owner[:] = -1
        for number, one in enumerate(chosen):
            self._owner[self._known.places(one.segments)] = number
        return chosen

    def without_compacted(self, candidate: Candidate) -> Candidate | None:
        """What a task of another kind has to do beside the compactions; None for nothing."""
        if not len(candidate.segments):
            return candidate
        places = self._known.places(candidate.segments)
        left = places[self._owner[places] < 0]
        if len(left) == len(places):
            return candidate
        if not len(left):
            return None
        return self._known.remade(candidate, left, _share(candidate.gain, len(left) / len(places)))


def _others(tasks: _Tasks, candidates: list[Candidate]) -> list[Candidate]:
    """Tasks of other kinds: of one kind, none wants what a better one takes."""
    seen: dict[tuple[TaskKind, str], set[int]] = {}
    chosen = []
    for one in candidates:
        left = tasks.without_compacted(one)
        if left is None:
            continue
        by_segment = seen.setdefault((left.kind, "segments"), set())
        by_tombstone = seen.setdefault((left.kind, "tombstones"), set())
        segments, tombstones = left.segments.tolist(), left.tombstones.tolist()
        # What resolves tombstones only reads segments, and several may.
        mine = by_tombstone if tombstones else by_segment
        wanted = tombstones or segments
        if mine.isdisjoint(wanted):
            mine.update(wanted)
            chosen.append(left)
    return chosen


def _named(joined: _Joined) -> Candidate:
    if len(joined.causes) == 1:
        return joined.best
    return replace(joined.best, strategy="+".join(joined.causes), cause="; ".join(joined.causes.values()))


def _share(gain: Gain, share: float) -> Gain:
    return Gain(*(round(one * share) for one in astuple(gain)))


def _contains(known: IntArray, ids: IntArray) -> bool:
    places = np.searchsorted(known, ids)
    return bool((places < len(known)).all() and (known[np.minimum(places, len(known) - 1)] == ids).all()) and bool(
        len(known)
    )
