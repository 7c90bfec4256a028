"""Hidden places of files as bits in literals: a scan tests its rows without a join, and without a job before it.

Per row, one look at a small bitmap in which the places of all files lie over each other. Only rows that it does not let
pass, few of them, are told by file: a bitmap has one bit for each 64 rows (a block), and those that are set have a word
of 64 bits each, found by counting the set bits before (rank; Jacobson, FOCS 1989).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name in every Spark program

from lakehouse.core.skyline import IntArray
from lakehouse.engine.hidden import Part
from lakehouse.engine.spark.columns import quoted
from lakehouse.engine.spark.scan import FILES_LOOKED_UP, NO_PLACE, PLACE, ByFile, scan

_BLOCK = "_block"
_MOST_FILES = 8 * FILES_LOOKED_UP
_COARSE_BITS = 1 << 18
_MOST_BLOCKS = 1 << 17
_MOST_ROWS = 1 << 31


def split_places(part: Part) -> list[Part] | None:
    """The part cut into those that `without_places` takes; None if there is too much of something for it."""
    too_much = (
        len(part.segments) > _MOST_FILES
        or any(one.rows >= _MOST_ROWS for one in part.segments)
        or sum(len(np.unique(places >> 6)) for places in part.places) > _MOST_BLOCKS
    )
    if too_much:
        return None
    pairs = iter(zip(part.segments, part.places, strict=True))
    return [
        Part([one for one, _ in taken], part.condition, places=tuple(places for _, places in taken))
        for taken in iter(lambda: list(islice(pairs, FILES_LOOKED_UP)), [])
    ]


def without_places(
    session: SparkSession,
    schema: pa.Schema,
    part: Part,
    files: Mapping[str, Path],
    where: Sequence[str],
    extras: Sequence[str],
) -> DataFrame:
    """The rows of a part that pass conditions and that no place hides; the columns of the table, and extra ones.

    The conditions are tested first: what comes after the test of the places, which asks Spark for the file's name,
    Spark does not push into the scan, if there are several files.
    """
    frame = scan(session, schema.append(pa.field(PLACE, pa.int64())), part.segments, files)
    for condition in where:
        frame = frame.where(F.expr(condition))
    columns = [F.col(quoted(name)) for name in schema.names]
    blocks = [(one.rows + 63) >> 6 for one in part.segments]
    starts = np.concatenate([[0], np.cumsum(blocks)])
    by_file = ByFile(frame, part.segments, files)
    start = by_file.number(starts.tolist()[:-1])
    block = (
        f"CASE WHEN {PLACE} IS NULL THEN {NO_PLACE}"
        f" WHEN {_may_be_hidden(part)} THEN {start} + shiftright({PLACE}, 6) END"
    )
    told = frame.select(*columns, F.col(PLACE), F.expr(block).alias(_BLOCK))
    return told.where(F.expr(_is_seen(part, starts))).select(*columns, *by_file.extras(extras, is_stored=False))


def _may_be_hidden(part: Part) -> str:
    """Whether some file has a hidden row near the row's place."""
    rows = max(one.rows for one in part.segments)
    width = max(0, (rows - 1).bit_length() - (_COARSE_BITS - 1).bit_length())
    near = np.unique(np.concatenate(part.places) >> width)
    words = _bits(near, (rows >> width) + 1)
    at = f"CAST(shiftright({PLACE}, {width + 6}) AS INT)"
    return f"{_bit(f'{_array(words)}[{at}]', f'shiftright({PLACE}, {width})')} = 1"


def _is_seen(part: Part, starts: IntArray) -> str:
    """Whether a row is not hidden; its block is null if it cannot be."""
    blocks, words = zip(*_hidden_words(part, starts), strict=True)
    some = np.concatenate(blocks)
    masks = _bits(some, int(starts[-1]))
    before = np.cumsum(np.bitwise_count(masks.view(np.uint64)).astype(np.int64))
    at = f"CAST(shiftright({_BLOCK}, 6) AS INT)"
    mask = f"{_array(masks)}[{at}]"
    ranks = np.concatenate([[0], before[:-1]])
    lower = f"bit_count({mask} & ~shiftleft(-1L, CAST({_BLOCK} & 63 AS INT)))"
    word = f"{_array(np.concatenate(words))}[CAST({_array(ranks)}[{at}] + {lower} AS INT)]"
    return f"{_BLOCK} IS NULL OR {_bit(mask, _BLOCK)} = 0 OR {_bit(word, PLACE)} = 0"


def _hidden_words(part: Part, starts: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """For each file, the numbers of its blocks with hidden rows, and these as bits."""
    for start, places in zip(starts.tolist(), part.places, strict=False):
        blocks, inverse = np.unique(places >> 6, return_inverse=True)
        words = np.zeros(len(blocks), dtype=np.int64)
        np.bitwise_or.at(words, inverse, np.left_shift(np.int64(1), places & 63))
        yield start + blocks, words


def _bits(places: IntArray, count: int) -> IntArray:
    """A bitmap of so many bits as words of 64."""
    words = np.zeros((count + 63) >> 6, dtype=np.int64)
    np.bitwise_or.at(words, places >> 6, np.left_shift(np.int64(1), places & 63))
    return words


def _array(values: IntArray) -> str:
    """Numbers as one literal, since those that the parser sees one by one cost it far more."""
    return f"CAST(split('{','.join(map(str, values.tolist()))}', ',') AS ARRAY<BIGINT>)"


def _bit(word: str, number: str) -> str:
    """One bit of a word; as in Java, only the last six bits of its number count."""
    return f"(shiftright({word}, CAST({number} & 63 AS INT)) & 1)"
