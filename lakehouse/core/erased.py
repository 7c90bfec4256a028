"""What an erasure did, and what it could not take away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any

from lakehouse.core.commit import Commit

_NUMBERS = ("segments_rewritten", "segments_removed", "files_to_go", "grace_seconds", "versions_readable")
RECEIPT = tuple(f"erased.{one}" for one in _NUMBERS)
"""Properties of an erasure's commit, all of them numbers: what it did, and what is left of it."""


def receipt(**numbers: int) -> dict[str, str]:
    """An erasure's receipt, as properties of its commit.

    >>> receipt(segments_removed=1)
    {'erased.segments_removed': '1'}
    """
    return {f"erased.{name}": str(number) for name, number in numbers.items()}


def words_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties but for a receipt's numbers: what users may have written there about rows."""
    return {name: text for name, text in properties.items() if name not in RECEIPT or not text.isdecimal()}


def receipt_text(commit: Commit) -> str:
    """An erasure's receipt in words; nothing for other commits, and for one without.

    >>> from datetime import UTC, datetime
    >>> held = receipt(segments_rewritten=2, segments_removed=1, files_to_go=3, grace_seconds=3600, versions_readable=9)
    >>> held |= {"by": "ada", "reason": "request 17"}
    >>> commit = Commit(10, "erase", datetime(2013, 1, 5, tzinfo=UTC), (), properties=held)
    >>> for part in receipt_text(commit).split("; "):
    ...     print(part)
    2 segments rewritten, 1 removed
    3 files go with a collection from 2013-01-05 01:00 UTC on
    9 versions readable
    by ada
    reason: request 17
    """
    held = commit.properties
    if not all(held.get(one, "").isdecimal() for one in RECEIPT):
        return ""
    rewritten, removed, files, grace, readable = (int(held[one]) for one in RECEIPT)
    goes = commit.committed_at + timedelta(seconds=grace)
    parts = [
        f"{rewritten} segments rewritten, {removed} removed",
        f"{files} files go with a collection from {goes:%Y-%m-%d %H:%M} UTC on",
        f"{readable} versions readable",
    ]
    said = {"by ": held.get("by"), "reason: ": held.get("reason")}
    return "; ".join([*parts, *(f"{what}{text}" for what, text in said.items() if text)])


@dataclass(frozen=True, slots=True)
class Residue:
    """Something that may still tell of erased rows: what it is, where, and what takes it away."""

    what: str
    where: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what} in {self.where}: {self.remedy}"


@dataclass(frozen=True, slots=True)
class Verified:
    """What a search for erased values read, and each place where it found one.

    ``files`` and their ``bytes`` were read, and ``cells``, the texts and contents of the catalog's database. ``unread``
    says what could not be read, or is out of reach.

    >>> Verified(3, 4096, 20, unread=("the files of the catalog's server",)).is_clean
    True
    """

    files: int
    bytes: int
    cells: int
    findings: tuple[Residue, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


@dataclass(frozen=True, slots=True)
class Erased(Commit):
    """The commit of an erasure, with what it did to files and what is left.

    ``versions_readable`` counts the table's versions that can still be read, without the rows; ``files_to_go`` files of
    the table that wait for `Lake.collect`. ``residue`` names all in reach of the lake that may still hold values of the
    rows; copies elsewhere (backups, logs, what consumers have read) are not known to it.

    >>> Residue("files", "the warehouse", "run collect")
    Residue(what='files', where='the warehouse', remedy='run collect')
    """

    segments_rewritten: int = 0
    segments_removed: int = 0
    files_to_go: int = 0
    versions_readable: int = 0
    residue: tuple[Residue, ...] = ()

    @property
    def rows(self) -> int:
        """Rows that were removed; one that lay in several files, as after an update, is counted once."""
        return self.rows_deleted

    @classmethod
    def of(cls, commit: Commit, **more: Any) -> Erased:
        """A commit with more to say."""
        return cls(**{one.name: getattr(commit, one.name) for one in fields(commit)}, **more)
