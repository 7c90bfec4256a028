"""What an operation brings to its commit, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any

from lakehouse.core.bucket import Buckets
from lakehouse.core.checksum import Checksum
from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope
from lakehouse.core.segment import NewSegment
from lakehouse.core.spec import TableSpec
from lakehouse.core.tombstone import Tombstone, TombstoneKind
from lakehouse.errors import InternalError


class Kind(StrEnum):
    """What an operation does."""

    APPEND = "append"
    REPLACE = "replace"
    DELETE = "delete"
    UPDATE = "update"
    MERGE = "merge"
    UPSERT = "upsert"
    DELETE_KEYS = "delete_keys"
    ERASE = "erase"
    RESOLVE = "resolve"
    COMPACTION = "compact"
    CLEAN = "clean"
    SUMMARIZE = "summarize"
    RESTORE = "restore"
    CREATE = "create"
    RENAME = "rename"
    DROP_TABLE = "drop_table"
    ALTER = "alter"
    CREATE_VIEW = "create_view"
    DROP_VIEW = "drop_view"
    TRANSACTION = "transaction"
    RECOVER = "recover"


ENTRY_BITS = 20
"""An operation makes fewer than 2^20 segments and tombstones; the bits of an entry's id above are its number."""
REWRITES = (Kind.COMPACTION, Kind.CLEAN)
"""Kinds that take segments and write others, or none, and change no row."""
RESERVED = "reserved"
"""Stands for the kind of an operation that was registered ahead, and which nobody began."""
NEED_NO_BASE = (RESERVED, Kind.APPEND, Kind.REPLACE, Kind.UPSERT, Kind.DELETE_KEYS, Kind.SUMMARIZE)
"""Kinds whose commit needs nothing of the version that they began at."""
COPIERS = (Kind.UPDATE, Kind.MERGE, Kind.ERASE, Kind.COMPACTION, Kind.TRANSACTION)
"""Kinds that write what they make of rows that they read, or may."""
NAMINGS = (Kind.CREATE, Kind.RENAME, Kind.DROP_TABLE, Kind.CREATE_VIEW, Kind.DROP_VIEW)
"""Kinds that change nothing that is read of a table: neither rows nor columns."""
DEFINITIONS = (*NAMINGS, Kind.ALTER)
"""Kinds that change what a table or view is, not rows."""
CHANGE_NO_ROW = (*REWRITES, Kind.RESOLVE, Kind.RECOVER, *DEFINITIONS)
"""Kinds of which the change feed has nothing."""


def together(one: Kind, other: Kind) -> Kind:
    """What two operations of one commit are to a table; a rewrite for another layout changes no row.

    >>> together(Kind.ALTER, Kind.COMPACTION).value, together(Kind.ALTER, Kind.APPEND).value
    ('compact', 'transaction')
    """
    if one is other:
        return one
    rewrites = [kind for kind in (one, other) if kind in REWRITES]
    return rewrites[0] if rewrites and {one, other} <= {*REWRITES, *DEFINITIONS} else Kind.TRANSACTION


class NothingToDo(Exception):
    """What maintenance found when it looked under the head."""


class LookAgain(Exception):
    """What an erasure found under the head: others read rows since it looked, and wrote what they made of them."""


class Altered(Exception):
    """What an operation found when it began, or commits: the table has other columns than its caller knows."""


class Priority(IntEnum):
    """Whose lock gives way: a higher priority takes a chunk from a lower one."""

    MAINTENANCE = 0
    USER = 10


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Rows that were erased from a segment, and the file without them; ``new`` is None where nothing is left.

    ``rows_erased`` counts those that no rewrite before it in the same erasure counts. ``path`` is that of the file that
    was read.
    """

    segment: int
    path: str
    rows_erased: int
    new: NewSegment | None = None


@dataclass(frozen=True, slots=True)
class NewTombstone:
    """A key or row tombstone that an operation made; its set is in ``content``, or in the file at ``path``."""

    kind: TombstoneKind
    interval: Interval
    rows: int
    content: bytes = field(default=b"", repr=False)
    path: str = ""
    bytes: int = 0
    checksum: Checksum = field(default=b"", repr=False)
    min: Mapping[str, Any] = field(default_factory=dict)
    max: Mapping[str, Any] = field(default_factory=dict)
    buckets: Buckets = field(default_factory=dict)
    replaces: Tombstone | None = None
    """The key tombstone that a resolve put this one in the place of, at its ordinal."""


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

    @property
    def locked(self) -> Interval:
        """The interval of an operation that locks one."""
        if self.interval is None:
            raise InternalError("the operation locks no interval", operation=self.id, kind=self.kind)
        return self.interval
