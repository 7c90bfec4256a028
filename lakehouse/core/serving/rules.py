"""Load rules: which segments of a table query nodes hold. The rest is cold, read from the warehouse, never skipped."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lakehouse.core.duration import duration_seconds
from lakehouse.core.interval import MIN_US, Interval
from lakehouse.core.keys import KeyScope, key_scope
from lakehouse.core.prune import Mask, holding
from lakehouse.core.segments import Segments
from lakehouse.errors import InvalidArgument

_NAMES = ("interval", "keys", "cold")
_LAST = "last "
_TAKEN = 'a load rule is a dict such as {"interval": "last 30d"}, {"keys": {"client": [12]}} or {"cold": True}'


@dataclass(frozen=True, slots=True)
class LoadRule:
    """Segments that it matches are loaded, or cold if it says so. One that names nothing matches every segment.

    ``last_seconds`` counts back from the present, and matches what comes after that too.
    """

    interval: Interval | None = None
    last_seconds: float | None = None
    keys: KeyScope = field(default_factory=dict)
    is_cold: bool = False

    def matches(self, segments: Segments, now_us: int) -> Mask:
        """Which segments may hold a row of the rule's interval and keys. Cost: some passes over their bounds."""
        found = np.ones(len(segments), dtype=np.bool_)
        starts, ends, _ = segments.bounds
        if self.interval is not None:
            found &= (starts < self.interval.end_us) & (ends > self.interval.start_us)
        if self.last_seconds is not None:
            found &= ends > max(now_us - int(self.last_seconds * 1_000_000), MIN_US)
        return found & holding(self.keys, segments) if self.keys else found


LoadRules = tuple[LoadRule, ...]


def hot(rules: LoadRules, segments: Segments, now_us: int) -> Mask:
    """Which segments are to be loaded: by the first rule that matches each. Without rules all are, else no others.

    >>> from lakehouse.core.segment import Segment
    >>> both = Segments.of([Segment(1, "2013-01-04", "2013-01-05", 1), Segment(2, "2013-01-05", "2013-01-06", 2)])
    >>> now_us = Interval.of("2013-01-06").start_us
    >>> rules = read_rules([{"interval": "last 24h"}, {"cold": True}])
    >>> hot(rules, both, now_us).tolist(), hot((), both, now_us).tolist()
    ([False, True], [True, True])
    """
    if not rules:
        return np.ones(len(segments), dtype=np.bool_)
    found = np.zeros(len(segments), dtype=np.bool_)
    undecided = np.ones(len(segments), dtype=np.bool_)
    for rule in rules:
        matched = rule.matches(segments, now_us) & undecided
        if not rule.is_cold:
            found |= matched
        undecided &= ~matched
    return found


def read_rules(given: Any) -> LoadRules:
    """Rules as a caller writes them, in order. Raises `InvalidArgument` for what is none.

    >>> read_rules([{"interval": "last 30d"}, {"cold": True}])[0].last_seconds
    2592000.0
    """
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence):
        raise InvalidArgument("load rules are a list; [] loads everything", found=repr(given)[:100])
    return tuple(map(_read_rule, given))


def _read_rule(given: Any) -> LoadRule:
    if not isinstance(given, Mapping) or not given or not set(given) <= set(_NAMES):
        raise InvalidArgument(_TAKEN, found=repr(given)[:200])
    is_cold = given.get("cold", False)
    if not isinstance(is_cold, bool):
        raise InvalidArgument(_TAKEN, cold=repr(is_cold)[:100])
    if given.keys() == {"cold"} and not is_cold:
        return LoadRule()
    written, keys = given.get("interval"), given.get("keys")
    last = None
    if isinstance(written, str) and written.startswith(_LAST):
        last = duration_seconds(written.removeprefix(_LAST).strip())
        if last is None:
            raise InvalidArgument('write a length of time such as "last 30d" or "last 12h"', interval=written[:100])
    interval = None if written is None or last is not None else Interval.of(written)
    return LoadRule(interval, last, _read_keys(keys), is_cold)


def _read_keys(given: Any) -> KeyScope:
    scope = key_scope(given) or {}
    for column, values in scope.items():
        if not all(isinstance(one, str | int | float | None) for one in values):
            raise InvalidArgument("a load rule's keys are numbers, texts or null; write a date as text", column=column)
    return scope


def rules_to_json(rules: LoadRules) -> str:
    """The text by which a table's definition keeps rules; `rules_from_json` reads it.

    >>> rules_to_json(read_rules([{"interval": "2013-01"}, {"cold": True}]))
    '[{"interval": ["2013-01-01T00:00:00+00:00", "2013-02-01T00:00:00+00:00"]}, {"cold": true}]'
    """
    return json.dumps([_written(one) for one in rules], ensure_ascii=False)


def _written(rule: LoadRule) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if rule.last_seconds is not None:
        found["interval"] = f"{_LAST}{rule.last_seconds:.6f}".rstrip("0").rstrip(".") + "s"
    elif rule.interval is not None:
        found["interval"] = [rule.interval.start.isoformat(), rule.interval.end.isoformat()]
    if rule.keys:
        found["keys"] = {name: list(values) for name, values in rule.keys.items()}
    if rule.is_cold or not found:
        found["cold"] = rule.is_cold
    return found


def rules_from_json(text: str | None) -> LoadRules:
    """Rules of a table's definition; none where it has none. Raises `InvalidArgument` for a text that is none."""
    if text is None:
        return ()
    try:
        return read_rules(json.loads(text))
    except json.JSONDecodeError as error:
        raise InvalidArgument("load rules are a list in JSON; set them by lake.set_load_rules", found=text[:100]) from (
            error
        )
