"""Bins: where the catalog keeps what spans many time chunks, so that it is kept a few times and not once a chunk.

A bin of level L is a run of 8**L chunks that starts at a multiple of its length; a chunk is a bin of level 0. What
touches few chunks is kept in each of them; what touches more in the smallest bins of which it touches few. A look at
some chunks then also looks at the few larger bins that hold them. This is the binning scheme of the UCSC Genome Browser
(Kent et al., Genome Research 12, 2002, p. 996-1006), with several bins for one interval.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse.core.chunk import Grain
from lakehouse.core.interval import Interval
from lakehouse.errors import InternalError

MOST_BINS = 4
"""Bins in which one interval is kept at the most."""
_LEVEL_BITS = 3
_LEVEL_SHIFT = 40
_MIDDLE = 1 << 39
_LEVELS = 10
"""Levels that there are: enough for the hours of the years 1 to 9999."""


def bins_of(grain: Grain, interval: Interval) -> list[int]:
    """The bins in which something with this interval is kept, 1 to `MOST_BINS`, in order of time.

    >>> day, spring = Interval.of("2013-03-05"), Interval("2013-03-01", "2013-06-01")
    >>> [str(bin_interval(Grain.DAY, one)) for one in bins_of(Grain.DAY, day)]
    ['2013-03-05/2013-03-06']
    >>> [str(bin_interval(Grain.DAY, one)) for one in bins_of(Grain.DAY, spring)]
    ['2013-02-08/2013-04-13', '2013-04-13/2013-06-16']
    """
    first, last = _indexes(grain, interval)
    level = 0
    while last - first >= MOST_BINS:
        first >>= _LEVEL_BITS
        last >>= _LEVEL_BITS
        level += 1
    return [_bin(level, index) for index in range(first, last + 1)]


def bin_ranges(grain: Grain, interval: Interval | None) -> Sequence[tuple[int, int]]:
    """Closed ranges of bins that hold everything that touches an interval (None: all there is), one a level.

    >>> [last - first + 1 for first, last in bin_ranges(Grain.DAY, Interval.of("2013-01"))][:3]
    [31, 5, 1]
    """
    if interval is None:
        return [(0, _LEVELS << _LEVEL_SHIFT)]
    first, last = _indexes(grain, interval)
    return [
        (_bin(level, first >> level * _LEVEL_BITS), _bin(level, last >> level * _LEVEL_BITS))
        for level in range(_LEVELS)
    ]


def bin_interval(grain: Grain, bin: int) -> Interval:
    """The interval of a bin's chunks, cut at the first and last time that there is."""
    level, index = divmod(bin, 1 << _LEVEL_SHIFT)
    index -= _MIDDLE
    if not 0 <= level < _LEVELS:
        raise InternalError("the catalog names a bin that cannot be", bin=bin)
    length = 1 << level * _LEVEL_BITS
    return Interval(grain.start_of(index * length), grain.start_of((index + 1) * length))


def _indexes(grain: Grain, interval: Interval) -> tuple[int, int]:
    """Numbers of the first and last chunk that an interval touches."""
    first, last = grain.number_of(interval.start_us), grain.number_of(interval.end_us - 1)
    return first, last


def _bin(level: int, index: int) -> int:
    return level << _LEVEL_SHIFT | (index + _MIDDLE)
