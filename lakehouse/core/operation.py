"""What an operation brings to its commit, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any

from lakehouse.core.bucket import Buckets
from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope
from lakehouse.core.spec import TableSpec


class Kind(StrEnum):
    """What an operation does."""

    APPEND = "append"
    REPLACE = "replace"
    COMPACTION = "compact"
    RESTORE = "restore"
    CREATE = "create"
    RENAME = "rename"
    DROP_TABLE = "drop_table"
    TRANSACTION = "transaction"
    RECOVER = "recover"


DEFINITIONS = (Kind.CREATE, Kind.RENAME, Kind.DROP_TABLE)
"""Kinds that change what a table is, not its rows."""


class Priority(IntEnum):
    """Whose lock gives way: a higher priority takes a chunk from a lower one."""

    MAINTENANCE = 0
    USER = 10


@dataclass(frozen=True, slots=True)
class NewSegment:
    """A durable file that an operation wrote; ``path`` is relative to the warehouse."""

    path: str
    start: datetime
    end: datetime
    rows: int
    bytes: int
    has_row_ids: bool = False
    min: Mapping[str, Any] = field(default_factory=dict)
    max: Mapping[str, Any] = field(default_factory=dict)
    nulls: Mapping[str, int] = field(default_factory=dict)
    buckets: Buckets = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Begun:
    """An operation that the catalog knows: ``number`` is the catalog's, ``id`` names its folder.

    ``ordinal`` is the number that it drew at its start; None where its commit's number is its ordinal.
    """

    id: str
    number: int
    kind: Kind
    table: TableSpec
    base_version: int
    ordinal: int | None = None
    interval: Interval | None = None
    keys: KeyScope | None = None
    locks: int = 0


@dataclass(frozen=True, slots=True)
class Contribution:
    """One operation's part of a commit.

    ``inputs`` are the segments that a compaction read; ``target`` is the version that a restore goes back to.
    """

    begun: Begun
    segments: tuple[NewSegment, ...] = ()
    inputs: frozenset[int] = frozenset()
    target: int | None = None
    txn: tuple[str, int] | None = None
