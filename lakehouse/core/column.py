"""How the files of a table hold its columns, whatever was altered since they were written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ColumnHistory:
    """What became of a column since the table was created.

    ``stored`` is its name in files and in the catalog's statistics, which no renaming changes. ``steps`` are the types
    that it has in files, each from a schema number on, ascending; None where files lack it. Without steps every file
    has it with its current type. Rows of files without it have the value ``default``; rows that are written without it,
    ``default_for_new``.
    """

    stored: str
    steps: tuple[tuple[int, pa.DataType | None], ...] = ()
    default: Any = None
    default_for_new: Any = None
    comment: str = ""

    def type_in(self, number: int, current: pa.DataType) -> pa.DataType | None:
        """The column's type in files of a schema number; None if they lack it.

        >>> widened = ColumnHistory("delay", ((0, None), (2, pa.int32()), (5, pa.int64())))
        >>> [str(widened.type_in(number, pa.int64())) for number in (1, 4, 5)]
        ['None', 'int32', 'int64']
        """
        found: pa.DataType | None = current
        for first, kind in self.steps:
            if first <= number:
                found = kind
        return found


class Held(NamedTuple):
    """A column of a table in some files: the one called ``stored``, of ``type``, or where that is None a value."""

    name: str
    stored: str
    type: pa.DataType | None
    wanted: pa.DataType
    default: Any = None

    @property
    def is_plain(self) -> bool:
        """Whether the files hold it as it is."""
        return self.name == self.stored and self.type == self.wanted


Layout = tuple[Held, ...]
"""A table's columns, in its order, as the files of one schema number hold them."""
