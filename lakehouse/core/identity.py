"""Which lake a catalog is of, and where the files of that lake lie."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse.core.check import StoredFile


@dataclass(frozen=True, slots=True)
class Identity:
    """A lake's name, the address of the warehouse that it first wrote to, and one of its live segments.

    ``warehouse`` is None before the first write, ``live`` while there is no segment.
    """

    name: str
    warehouse: str | None
    live: StoredFile | None
