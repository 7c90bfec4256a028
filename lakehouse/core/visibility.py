"""The one rule of visibility, said row by row. Everything faster must agree with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from lakehouse.core.keys import scope_matches
from lakehouse.core.tombstone import Tombstone


def is_visible(
    time: datetime,
    values: Mapping[str, Any],
    row_id: int | None,
    primary_key: tuple[Any, ...] | None,
    ordinal: int,
    tombstones: Iterable[Tombstone],
) -> bool:
    """Whether a row of a live segment of that ordinal can be seen under the live tombstones.

    >>> tombstone = Tombstone(id=1, start="2013-01-05", end="2013-01-06", ordinal=4)
    >>> noon = datetime.fromisoformat("2013-01-05T12:00:00+00:00")
    >>> [is_visible(noon, {}, None, None, ordinal, [tombstone]) for ordinal in (3, 4, 5)]
    [False, True, True]
    """
    return not any(
        tombstone.ordinal > ordinal and matches(tombstone, time, values, row_id, primary_key)
        for tombstone in tombstones
    )


def matches(
    tombstone: Tombstone,
    time: datetime,
    values: Mapping[str, Any],
    row_id: int | None = None,
    primary_key: tuple[Any, ...] | None = None,
) -> bool:
    """Whether a tombstone is about a row, whatever the row's ordinal.

    The interval of a tombstone of keys or rows says no more than where the rows with them are, so that a plan can leave
    it out elsewhere.
    """
    match tombstone.kind:
        case "interval":
            return tombstone.start <= time < tombstone.end and scope_matches(tombstone.keys, values)
        case "key":
            return primary_key is not None and primary_key in (tombstone.primary_keys or ())
        case "row":
            return row_id is not None and row_id in (tombstone.row_ids or ())
