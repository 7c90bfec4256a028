"""What an erasure did, and what it could not take away."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from lakehouse.core.commit import Commit


@dataclass(frozen=True, slots=True)
class Residue:
    """Something that may still tell of erased rows: what it is, where, and what takes it away."""

    what: str
    where: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what} in {self.where}: {self.remedy}"


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
        """Rows that were removed from files; one that lay in several is counted as often."""
        return self.rows_deleted

    @classmethod
    def of(cls, commit: Commit, **more: Any) -> Erased:
        """A commit with more to say."""
        return cls(**{one.name: getattr(commit, one.name) for one in fields(commit)}, **more)
