"""Columns that two files have alike: the same bytes of pages hold the same values in the same order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse.storage.footer import DAMAGE, primitive_columns

_PIECE_BYTES = 1 << 20


def same_columns(one: Path, other: Path) -> frozenset[str]:
    """Columns, none of them nested, whose pages are the same bytes in both files, row group by row group.

    There may be more columns with the same values. Cost: the footers, the bytes of those columns, and of each other
    one those up to the first mebibyte that differs; no page is decoded. Of a file that cannot be read none is named.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = [Path(folder, name) for name in ("a.parquet", "b.parquet")]
    ...     for file, y in zip(files, ([1, 2], [1, 3])):
    ...         pq.write_table(pa.table({"x": [7, 8], "y": y}), file)
    ...     sorted(same_columns(*files))
    ['x']
    """
    try:
        with pq.ParquetFile(one) as first, pq.ParquetFile(other) as second:
            shared = _comparable(first, second)
            groups = [
                (first.metadata.row_group(one), second.metadata.row_group(one)) for one in range(first.num_row_groups)
            ]
        with pa.OSFile(str(one)) as file, pa.OSFile(str(other)) as other_file:
            return frozenset(
                name
                for name, (place, other_place) in shared.items()
                if all(_is_same(file, a.column(place), other_file, b.column(other_place)) for a, b in groups)
            )
    except DAMAGE:
        return frozenset()


def _comparable(one: pq.ParquetFile, other: pq.ParquetFile) -> dict[str, tuple[int, int]]:
    """Columns that both files have in one type and in row groups of one length, with their places."""
    if _lengths(one) != _lengths(other):
        return {}
    kinds, others = one.schema_arrow, other.schema_arrow
    places, other_places = primitive_columns(kinds), primitive_columns(others)
    return {
        name: (place, other_places[name])
        for name, place in places.items()
        if name in other_places
        and kinds.field(name).equals(others.field(name))
        and one.schema.column(place).equals(other.schema.column(other_places[name]))
    }


def _lengths(file: pq.ParquetFile) -> list[int]:
    return [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]


def _is_same(file: pa.NativeFile, one: pq.ColumnChunkMetaData, other_file: pa.NativeFile, other: Any) -> bool:
    is_like = (one.compression, one.num_values, one.total_compressed_size) == (
        other.compression,
        other.num_values,
        other.total_compressed_size,
    )
    if not (is_like and _says_where_it_starts(one) and _says_where_it_starts(other)):
        return False
    begin, other_begin = _start(one), _start(other)
    for place in range(0, one.total_compressed_size, _PIECE_BYTES):
        count = min(_PIECE_BYTES, one.total_compressed_size - place)
        if file.read_at(count, begin + place) != other_file.read_at(count, other_begin + place):
            return False
    return True


def _says_where_it_starts(column: pq.ColumnChunkMetaData) -> bool:
    """Whether a dictionary, of which other pages hold the places of their values, is where the footer says, if any."""
    if column.has_dictionary_page:
        return bool(0 < column.dictionary_page_offset < column.data_page_offset)
    return not any("DICTIONARY" in one for one in column.encodings)


def _start(column: pq.ColumnChunkMetaData) -> int:
    return int(column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset)
