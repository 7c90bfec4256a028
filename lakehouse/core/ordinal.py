"""The write order: the ordinal that each kind of operation gives to what it adds. The whole rule is here.

A tombstone hides what has a smaller ordinal, so an operation takes the number of the moment whose rows it knows:

=========================================  ================================  ===================================
append, delete, update, merge,             its commit's number               it comes after all committed before
upsert, delete by key
append in write order ``start``            the number drawn when it began    late rows stay behind a replace
replace                                    the number drawn with its locks   appends beside it come after it
compact                                    the version at which it read      what was hidden since stays hidden
resolve                                    that of each key tombstone        they hide what that one hid
                                           that it replaces
clean, restore, erase                      none                              they add nothing new
=========================================  ================================  ===================================
"""

from __future__ import annotations

from lakehouse.core.operation import Begun, Kind
from lakehouse.core.spec import WriteOrder


def draws_number(kind: Kind, write_order: WriteOrder) -> bool:
    """Whether an operation draws its ordinal when it begins.

    >>> draws_number(Kind.REPLACE, "commit"), draws_number(Kind.APPEND, "commit"), draws_number(Kind.APPEND, "start")
    (True, False, True)
    """
    return kind is Kind.REPLACE or (kind is Kind.APPEND and write_order == "start")


def known_ordinal(kind: Kind | str, *, drawn: int | None, base_version: int) -> int | None:
    """The ordinal that an operation has while it runs; None where it is its commit's number.

    >>> known_ordinal(Kind.REPLACE, drawn=7, base_version=5), known_ordinal(Kind.COMPACTION, drawn=None, base_version=5)
    (7, 5)
    """
    if drawn is not None:
        return drawn
    return base_version if kind == Kind.COMPACTION else None


def ordinal_of(begun: Begun, version: int) -> int:
    """The ordinal of what an operation adds by the commit with number ``version``."""
    known = known_ordinal(begun.kind, drawn=begun.ordinal, base_version=begun.base_version)
    return version if known is None else known
