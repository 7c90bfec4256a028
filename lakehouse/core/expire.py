"""Forgetting versions: what may go once some versions need no longer be readable, and what that came to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse.core.duration import MOST_SECONDS, age_seconds
from lakehouse.core.interval import to_us, to_utc
from lakehouse.core.listing import Listing
from lakehouse.errors import InvalidArgument

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
LIVE = np.iinfo(np.int64).max
"""The version that drops what is live."""


_MOST_VERSIONS = 2**62


GRACE_SECONDS = 3600.0
"""How long files that nothing can reach are kept, if a collection does not say: readers may have planned before."""


@dataclass(frozen=True, slots=True)
class RetentionRequest:
    """What a caller wants kept: versions of this many seconds, or since a time, or this many; or what either keeps."""

    age_seconds: float | None = None
    before_us: int | None = None
    keep_last: int | None = None

    @classmethod
    def of(cls, older_than: Any = None, keep_last: Any = None) -> RetentionRequest:
        """Read what users write. Raises `InvalidInput`.

        >>> RetentionRequest.of("30d", 10)
        RetentionRequest(age_seconds=2592000.0, before_us=None, keep_last=10)
        >>> RetentionRequest.of("1970-01-02").before_us
        86400000000
        """
        if keep_last is not None and (isinstance(keep_last, bool) or not isinstance(keep_last, int) or keep_last < 1):
            raise InvalidArgument("keep_last is a number of versions, at least 1", keep_last=repr(keep_last))
        keep_last = None if keep_last is None else min(keep_last, _MOST_VERSIONS)
        match older_than:
            case None if keep_last is None:
                raise InvalidArgument(
                    'say what to keep: older_than="30d" forgets what is older, keep_last=10 all but ten versions'
                )
            case None:
                return cls(keep_last=keep_last)
            case str() if older_than.replace(".", "", 1).isdecimal():
                raise InvalidArgument(
                    "say what the number counts, as in 30d, 12h or 90s; a time is written as 2013-01-05",
                    older_than=older_than,
                )
            case str() if (seconds := age_seconds(older_than)) is not None:
                return cls(age_seconds=seconds, keep_last=keep_last)
            case str() | date():
                return cls(before_us=to_us(to_utc(older_than)), keep_last=keep_last)
            case timedelta():
                older_than = older_than.total_seconds()
        if (
            isinstance(older_than, bool)
            or not isinstance(older_than, int | float)
            or not 0 <= older_than <= MOST_SECONDS
        ):
            raise InvalidArgument(
                "older_than is a time, or an age such as 30d, a timedelta or seconds", found=repr(older_than)
            )
        return cls(age_seconds=float(older_than), keep_last=keep_last)


@dataclass(frozen=True, slots=True)
class Expired:
    """What an expiry forgot: ``versions`` of the lake, and the segments (of ``bytes``) and tombstones of them alone.

    Versions below ``horizon`` can no longer be read, but for tagged ones and each table's newest. ``held`` says what
    kept more from being expired, "a reader" for example, and is empty if nothing did.
    """

    versions: int
    segments: int
    tombstones: int
    bytes: int
    horizon: int
    held: str = ""

    def to_arrow(self) -> pa.Table:
        """An Arrow table of one row."""
        return Listing([self]).to_arrow()


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection deleted: ``files`` of ``bytes``, and the folders of ``operations`` that never committed."""

    files: int
    bytes: int
    operations: int

    def to_arrow(self) -> pa.Table:
        """An Arrow table of one row."""
        return Listing([self]).to_arrow()


def reached_by_none(added: npt.ArrayLike, dropped: npt.ArrayLike, points: npt.ArrayLike) -> Mask:
    """Which of some ranges of versions ``[added, dropped)`` hold none of ``points``, the versions that are retained.

    Whatever came and went inside its range (as a restore makes it do) counts as live throughout, so that this never
    says too much. Takes O((n + m) log m).

    >>> reached_by_none([1, 1, 4], [3, 5, 9], points=[4, 9]).tolist()
    [True, False, False]
    """
    first, end = _int64(added), _int64(dropped)
    known = np.append(np.sort(_int64(points)), LIVE)
    following = known[np.searchsorted(known, first, side="left")]
    dead: Mask = following >= end
    return dead


def newest_at(tables: npt.ArrayLike, versions: npt.ArrayLike, points: npt.ArrayLike) -> Mask:
    """Which versions are the newest of their table at some point, and so what a reader of that point is given.

    ``tables`` and ``versions`` hold one pair a place, in any order, none twice. Takes O((n + m) log n).

    >>> newest_at([7, 7, 7, 8], [1, 4, 6, 2], points=[5]).tolist()
    [False, True, False, True]
    """
    table, version = _int64(tables), _int64(versions)
    order = np.lexsort((version, table))
    following = np.full(len(order), LIVE)
    same = table[order][1:] == table[order][:-1]
    following[:-1][same] = version[order][1:][same]
    retained = np.empty(len(order), dtype=np.bool_)
    retained[order] = ~reached_by_none(version[order], following, points)
    return retained


def _int64(values: npt.ArrayLike) -> Numbers:
    return np.asarray(values, dtype=np.int64)
