"""An operation's part of a commit: a value for each kind, with what that kind brings and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakehouse.core.hits import Hits
from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope
from lakehouse.core.operation import Begun, NewTombstone, Rewrite
from lakehouse.core.segment import NewSegment
from lakehouse.core.spec import TableSpec
from lakehouse.core.tombstone import Tombstone


@dataclass(frozen=True, slots=True)
class Contribution:
    """What every kind brings: the operation, the segments that it adds, and the caller's mark.

    ``if_useful``: nothing is to be committed where nothing changes. ``guards``: nothing of the whole commit is, if the
    mark was committed before.
    """

    begun: Begun
    segments: tuple[NewSegment, ...] = ()
    txn: tuple[str, int] | None = None
    if_useful: bool = False
    guards: bool = False

    @property
    def rows_deleted(self) -> int | None:
        """Rows that readers lose by it, or see rewritten; None where nobody looked at them."""
        return 0


@dataclass(frozen=True, slots=True)
class AppendContribution(Contribution):
    """Rows that are added; ``as_known``: only to the columns for which they were written."""

    as_known: bool = False


@dataclass(frozen=True, slots=True)
class RepeatContribution(Contribution):
    """Of an operation whose ``txn`` had been committed when it began: it wrote nothing and stands for that commit."""


@dataclass(frozen=True, slots=True)
class ReplaceContribution(Contribution):
    """Rows in the place of all in the interval and keys that its operation locked; ``rows_taken``, if counted.

    ``properties`` are the table's from this commit on, if they change with the rows.
    """

    rows_taken: int | None = None
    properties: Mapping[str, str] | None = None

    @property
    def rows_deleted(self) -> int | None:
        """Rows that it takes away, if somebody counted them."""
        return self.rows_taken


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeDeleteContribution(Contribution):
    """A delete of every row of an interval and key scope, found or not."""

    interval: Interval
    keys: KeyScope | None = None
    rows_taken: int | None = None

    @property
    def rows_deleted(self) -> int | None:
        """Rows that it takes away, if somebody counted them."""
        return self.rows_taken


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChangeContribution(Contribution):
    """A delete or update of the rows ``hits``, which it found by looking at those of the interval ``read``.

    ``tombstones`` has the row tombstone over them, if there are any. ``emptied``: segments of which it found every row.
    """

    hits: Hits
    read: Interval
    tombstones: tuple[NewTombstone, ...] = ()
    emptied: frozenset[int] = frozenset()

    @property
    def rows_deleted(self) -> int | None:
        """Rows that it removes or rewrites."""
        return len(self.hits.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeContribution(RowChangeContribution):
    """The same, with rows that match none: their ``keys``, of which none may have come meanwhile (None: any may).

    ``hides_unseen``: its rows stand in the place of others with their keys, and it did not look for these by key.
    """

    keys: pa.Table | None = None
    hides_unseen: bool = False

    @property
    def rows_deleted(self) -> int | None:
        """Rows that it removes or rewrites; None if rows that it did not look at may have one of the keys inserted."""
        return None if self.hides_unseen else len(self.hits.rows)


@dataclass(frozen=True, slots=True)
class KeyChangeContribution(Contribution):
    """An upsert or delete by primary key: key tombstones, beside the rows of an upsert."""

    tombstones: tuple[NewTombstone, ...] = ()

    @property
    def rows_deleted(self) -> int | None:
        """Unknown: it looked at no row."""
        return None


@dataclass(frozen=True, slots=True)
class ResolveContribution(Contribution):
    """Row tombstones in the place of the key tombstones ``resolved``; ``inputs`` are the segments that it looked at."""

    tombstones: tuple[NewTombstone, ...] = ()
    resolved: tuple[Tombstone, ...] = ()
    inputs: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class CompactionContribution(Contribution):
    """Segments in the place of the ``inputs``, whose rows they hold."""

    inputs: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class CleanContribution(Contribution):
    """Nothing of its own: what can no longer matter is found under the head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreContribution(Contribution):
    """What a table was at the version ``target``, when its definition was ``then``."""

    target: int
    then: TableSpec

    @property
    def rows_deleted(self) -> int | None:
        """Unknown: it looked at no row."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterContribution(Contribution):
    """Changes of the table's columns, in their order: values of `lakehouse.schema.changes`.

    ``rows_seen``: the version whose rows were found to have one primary key each, if they make one, of the columns
    ``key_seen`` (field ids).
    """

    changes: tuple[Any, ...]
    rows_seen: int | None = None
    key_seen: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseContribution(Contribution):
    """Files in the place of segments' files, of all that came up to the version ``seen``.

    ``read`` is the interval that it searched; ``scope`` an interval and keys of which it removes everything, if its
    filter says nothing else.
    """

    rewrites: tuple[Rewrite, ...]
    read: Interval
    seen: int
    scope: tuple[Interval, KeyScope | None] | None = None

    @property
    def rows_deleted(self) -> int | None:
        """Rows that it takes out of the segments that are there."""
        return sum(one.rows_erased for one in self.rewrites)
