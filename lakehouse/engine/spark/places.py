"""Hidden places of files as bits in literals: a scan tests its rows without a join, and without a job before it.

Per row, one look at a small bitmap in which the places of all files lie over each other, long files folded. Most rows
pass it. For each bit that is set a word tells of which files it is; it is found by counting the set bits before (rank;
Jacobson, FOCS 1989).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakehouse.core.column import Layout
from lakehouse.core.skyline import IntArray
from lakehouse.engine.hidden import Part
from lakehouse.engine.spark.arrays import Arrays
from lakehouse.engine.spark.scan import FILES_LOOKED_UP, NO_PLACE, PLACE, ByFile, scan
from lakehouse.engine.spark.stores import Files

MOST_FILES = 8 * FILES_LOOKED_UP
_MOST_PLACES = 1 << 20
_MOST_ROWS = 1 << 31
LEAST_FOLD = 18
_WORD = 64


def split_places(part: Part) -> list[Part] | None:
    """The part cut into those that `without_places` takes; None if there is too much of something for it."""
    too_much = (
        len(part.segments) > MOST_FILES
        or any(one.rows >= _MOST_ROWS for one in part.segments)
        or sum(len(places) for places in part.places) > _MOST_PLACES
    )
    if too_much:
        return None
    pairs = iter(zip(part.segments, part.places, strict=True))
    return [
        replace(part, segments=[one for one, _ in taken], places=tuple(places for _, places in taken))
        for taken in iter(lambda: list(islice(pairs, FILES_LOOKED_UP)), [])
    ]


def without_places(
    session: SparkSession,
    schema: pa.Schema,
    part: Part,
    files: Files,
    where: Sequence[str],
    extras: Sequence[str],
    layout: Layout | None = None,
) -> DataFrame:
    """The rows of a part that pass conditions and that no place hides; the columns of the table, and extra ones.

    The conditions are tested first: what comes after the test of the places, which asks Spark for the file's name,
    Spark does not push into the scan, if there are several files.
    """
    frame = scan(session, schema.append(pa.field(PLACE, pa.int64())), part.segments, files, layout)
    for condition in where:
        frame = frame.where(condition)
    arrays = Arrays()
    by_file = ByFile(frame, part.segments, files, arrays)
    seen = _is_seen(part, by_file, arrays)
    added = by_file.extras(extras, is_stored=False)
    return arrays.put_into(frame).where(seen).selectExpr(f"* EXCEPT ({', '.join([PLACE, *arrays.names])})", *added)


def _is_seen(part: Part, by_file: ByFile, arrays: Arrays) -> str:
    """Whether a row is not hidden. A fold of a file counts as a file."""
    rows = np.array([one.rows for one in part.segments])
    fold = LEAST_FOLD
    while (folds := -(-rows >> fold)).sum() > _WORD:
        fold += 1
    firsts = np.cumsum(folds) - folds
    bits = arrays.add(_bits(part.places, firsts, fold, min(int(rows.max()), 1 << fold)))
    # A bit at the top of a word is its sign. Numbers have the types that Spark would give them later.
    word = f"{bits}[shiftright({PLACE} & {(1 << fold) - 1}L, 5)]"
    bit = f"CAST({PLACE} & 31L AS INT)"
    before = f"CAST(bit_count({word} & ~shiftrightunsigned(-1L, {bit})) AS BIGINT)"
    owner = f"CAST({by_file.number(firsts)} + shiftright({PLACE}, {fold}) AS INT)"
    is_clear = f"shiftleft({bits}[({word} & {(1 << 32) - 1}L) + {before}], {owner}) >= 0L"
    # A row of which Spark tells no place has no bit, and so is looked at.
    return (
        f"CASE WHEN shiftleft({word}, {bit}) >= 0L THEN true ELSE coalesce({is_clear}, CAST({NO_PLACE} AS BOOLEAN)) END"
    )


def _bits(places: Sequence[IntArray], firsts: IntArray, fold: int, count: int) -> IntArray:
    """Which of so many folded places are hidden in some file; then for each of those, in which.

    The first are words with the bits of 32 places, from the top down, and in their lower half where the words begin
    that are about these places.
    """
    files = np.concatenate([first + (one >> fold) for first, one in zip(firsts, places, strict=True)])
    hidden, which = np.unique(np.concatenate(places) & ((1 << fold) - 1), return_inverse=True)
    counts = np.bincount(hidden >> 5, minlength=(count + 31) >> 5)
    near = len(counts) + np.cumsum(counts) - counts
    np.bitwise_or.at(near, hidden >> 5, _bit(hidden & 31))
    owners = np.zeros(len(hidden), dtype=np.int64)
    np.bitwise_or.at(owners, which, _bit(files))
    return np.concatenate([near, owners])


def _bit(number: IntArray) -> IntArray:
    """A word's bits, counted from the top."""
    found: IntArray = np.left_shift(np.int64(1), 63 - number)
    return found
