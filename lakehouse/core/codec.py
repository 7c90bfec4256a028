"""How the pages of files are compressed: the codecs, and which of them a file gets for the age of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from lakehouse.core.chunk import Grain
from lakehouse.core.steps import read_steps, steps_text
from lakehouse.errors import InvalidProperty

CODECS = ("zstd", "lz4", "snappy", "none")
"""What is known by name. The number of a codec, which catalogs store, is its place here counted from 1; 0 is none
known, as of a file that was written before catalogs stored it."""

IntArray = npt.NDArray[np.int64]


def codec_number(codec: str) -> int:
    """The number of a codec; 0 for a name that is none.

    >>> codec_number("zstd"), codec_number("")
    (1, 0)
    """
    return CODECS.index(codec) + 1 if codec in CODECS else 0


def codec_name(number: int | None) -> str:
    """The inverse of `codec_number`; nothing for a number of a later release.

    >>> codec_name(2), codec_name(0), codec_name(99)
    ('lz4', '', '')
    """
    return CODECS[number - 1] if number and 0 < number <= len(CODECS) else ""


@dataclass(frozen=True, slots=True)
class Codecs:
    """The property ``compression``: pairs of an age in seconds and the codec from then on, the first of age 0.

    The age of a file is the time since the end of the chunk in which its newest row lies, whenever it was written: what
    lies long ago is seldom read. All rows of a chunk are of one age, and so are those that lie in the future: of none.

    >>> codecs = Codecs.of("lz4, zstd after 7d")
    >>> codecs.at(0), codecs.at(7 * 86400), codecs.at(-5), str(codecs)
    ('lz4', 'zstd', 'lz4', 'lz4, zstd after 7d')
    """

    steps: tuple[tuple[float, str], ...]

    @classmethod
    def of(cls, text: str) -> Codecs:
        """Read ``CODEC[, CODEC after AGE ...]``, ages growing, each codec once. Raises `InvalidProperty`."""
        return _read(text)

    def at(self, age_seconds: float) -> str:
        """The codec at an age."""
        return next(codec for age, codec in reversed(self.steps) if age_seconds >= age or age == 0.0)

    def bounds(self, grain: Grain, now_us: int) -> IntArray:
        """For each step but the first the time before which rows have reached it, in microseconds since 1970.

        It is the start of a chunk: of that in which a row would lie that were of the step's age now.

        >>> day_us = 86_400_000_000
        >>> Codecs.of("lz4, zstd after 2d").bounds(Grain.DAY, 9 * day_us + 1).tolist() == [7 * day_us]
        True
        """
        return grain.floor_us(np.array([now_us - int(age * 1e6) for age, _ in self.steps[1:]], dtype=np.int64))

    def outgrown(self, codecs: IntArray, last_us: IntArray, bounds: IntArray) -> npt.NDArray[np.bool_]:
        """Whether files are to be written anew, of their codecs' numbers and the times of their newest rows.

        So are those with the codec of an earlier step than that of their age and, once the last step has come, those
        with a codec of no step. What is not known stays, as does a codec of a later step. Each codec is of one step, so
        what was written anew is at no later step than its codec's: nothing is written twice for one step.

        >>> codecs = Codecs.of("lz4, zstd after 2d")
        >>> held = np.array([codec_number(name) for name in ("lz4", "zstd", "snappy", "", "lz4")])
        >>> codecs.outgrown(held, np.array([5, 5, 5, 5, 9]), np.array([9])).tolist()
        [True, False, True, False, False]
        """
        last = len(self.steps) - 1
        of_codec = np.full(len(CODECS) + 1, max(last - 1, 0), dtype=np.int64)
        of_codec[0] = last
        for place, (_, codec) in enumerate(self.steps):
            of_codec[codec_number(codec)] = place
        known = np.where((codecs > 0) & (codecs <= len(CODECS)), codecs, 0)
        found: npt.NDArray[np.bool_] = of_codec[known] < _reached(last_us, bounds)
        return found

    def __str__(self) -> str:
        return steps_text(self.steps)


def _reached(last_us: IntArray, bounds: IntArray) -> IntArray:
    """How many steps each has reached beside the first; bounds descend."""
    found: IntArray = len(bounds) - np.searchsorted(bounds[::-1], last_us, side="right")
    return found


@lru_cache(maxsize=256)
def _read(text: str) -> Codecs:
    steps = read_steps(text, lambda name: name if name in CODECS else None)
    if steps is None or len({codec for _, codec in steps}) < len(steps):
        known = ", ".join(CODECS)
        raise InvalidProperty(
            f"property compression is one of {known}, or several for growing ages, each once, as in "
            "'lz4, zstd after 7d'",
            compression=text,
        )
    return Codecs(steps)
