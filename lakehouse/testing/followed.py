"""A follower of a table beside the rows that there are: what it was given leads from each version to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

from lakehouse.testing.rows import Row, plain

At = Callable[[int], Iterable[Row]]
"""The rows that there are at a version of the library."""


class Followed:
    """A consumer that is read a little at a time, and the rows that its reader would have by now."""

    def __init__(self, consumer: str, *, changes: bool) -> None:
        self._consumer = consumer
        self._changes = changes
        self._version = 0
        self._held: Counter[Row] = Counter()
        """With changes what they lead to; else the rows that there were at the version."""

    def read_on(self, table: Any, newest: int, at: At, before: Callable[[int], int]) -> None:
        """Read what there is, as a process that has just begun. Raises `AssertionError` where the rows are others.

        ``newest`` is the table's newest version; ``before`` says which of its versions another one followed.
        """
        batches = table.follow(changes=self._changes, consumer=self._consumer, wait_seconds=0)
        for version, some in groupby(batches, lambda batch: batch.version):
            assert version > self._version, "a version is given once"
            given = [batch.rows for batch in some]
            wanted = Counter(at(version))
            if self._changes:
                self._apply(given)
                assert self._held == wanted, version
            else:
                put = Counter(row for rows in given for row in plain(rows))
                known = Counter(at(before(version))) if self._version else Counter()
                assert wanted - known <= put <= wanted, version
                self._held = wanted
            self._version = version
        now = Counter(at(newest))
        assert self._held == now if self._changes else now <= self._held, "a change was left out"

    def _apply(self, given: Iterable[Any]) -> None:
        for kind, row in _changes_of(given):
            if kind in ("delete", "update_before"):
                assert self._held[row] > 0, f"{row} was not there"
                self._held[row] -= 1
            else:
                self._held[row] += 1
        self._held = +self._held


def _changes_of(given: Iterable[Any]) -> Iterator[tuple[str, Row]]:
    for rows in given:
        for one in rows.to_pylist():
            yield one["_change_type"], (one["time"], one["client"], one["value"])
