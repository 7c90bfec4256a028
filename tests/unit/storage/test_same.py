"""Columns that are named as the same in two files hold the same values, however the files were written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse.storage.same import same_columns

NUMBERS = st.sampled_from([None, 0.0, -0.0, float("nan"), 1.0])
TEXTS = st.sampled_from([None, "", "a", "b", "a" * 300])
COLUMNS = {
    "id": (pa.int64(), st.sampled_from([None, 0, 1, -(2**63)])),
    "x": (pa.float64(), NUMBERS),
    "name": (pa.string(), TEXTS),
    "raw": (pa.binary(), st.sampled_from([None, b"", b"\0", b"a"])),
    "list": (pa.list_(pa.int64()), st.sampled_from([None, [], [1], [None]])),
}
HOW = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["none", "zstd", "lz4"]),
        "use_dictionary": st.booleans(),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "row_group_size": st.sampled_from([2, 100]),
        "write_statistics": st.booleans(),
    }
)


def written(path: Path, rows: pa.Table, **how: Any) -> Path:
    pq.write_table(rows, path, **how)
    return path


def bits(values: pa.ChunkedArray) -> list[str]:
    """Values as a plain list says them, which tells -0.0 from 0.0, and any NaN as one."""
    return [repr(one) for one in values.to_pylist()]


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_column_that_is_named_has_the_same_values(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder, tables, hows = tmp_path_factory.mktemp("same"), [], [data.draw(HOW)] * 2
    if data.draw(st.booleans()):
        hows[1] = data.draw(HOW)
    count = data.draw(st.integers(1, 6))
    first = {name: data.draw(st.lists(kind[1], min_size=count, max_size=count)) for name, kind in COLUMNS.items()}
    kept = data.draw(st.sets(st.sampled_from(sorted(COLUMNS))))
    second = {
        name: values if name in kept else data.draw(st.lists(COLUMNS[name][1], min_size=count, max_size=count))
        for name, values in first.items()
    }
    for values in (first, second):
        tables.append(pa.table({name: pa.array(values[name], kind) for name, (kind, _) in COLUMNS.items()}))
    files = [
        written(folder / f"{place}.parquet", rows, **how)
        for place, (rows, how) in enumerate(zip(tables, hows, strict=True))
    ]
    named = same_columns(*files)
    for name in named:
        assert bits(tables[0][name]) == bits(tables[1][name])
    if hows[0] == hows[1]:
        assert named >= kept - {"list"}


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_the_same_places_in_another_dictionary_are_other_values(tmp_path: Path, version: str) -> None:
    one, other = (pa.table({"name": [*words, words[0]] * 50, "n": [1] * 150}) for words in (["aa", "bb"], ["cc", "dd"]))
    how = {"data_page_version": version, "write_statistics": False}
    files = written(tmp_path / "a.parquet", one, **how), written(tmp_path / "b.parquet", other, **how)
    chunks = [pq.ParquetFile(file).metadata.row_group(0).column(0) for file in files]
    assert len({chunk.total_compressed_size for chunk in chunks}) == 1
    assert same_columns(*files) == {"n"}


def test_the_same_bytes_of_another_type_are_other_values(tmp_path: Path) -> None:
    numbers = pa.array([1, 2, 3])
    kinds = (pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns"))
    files = [
        written(tmp_path / f"{place}.parquet", pa.table({"at": numbers.cast(kind)})) for place, kind in enumerate(kinds)
    ]
    assert [same_columns(files[0], file) for file in files] == [{"at"}, frozenset(), frozenset(), frozenset()]
    required = pa.schema([pa.field("at", pa.int64(), nullable=False)])
    assert same_columns(files[0], written(tmp_path / "r.parquet", pa.table([numbers], required))) == frozenset()


def test_a_file_with_more_rows_has_other_columns(tmp_path: Path) -> None:
    files = [
        written(tmp_path / f"{count}.parquet", pa.table({"n": list(range(count))}), row_group_size=2)
        for count in (2, 4)
    ]
    assert same_columns(*files) == same_columns(*reversed(files)) == frozenset()


def test_of_a_file_that_is_damaged_or_gone_no_column_is_named(tmp_path: Path) -> None:
    file = written(tmp_path / "a.parquet", pa.table({"n": [1, 2]}))
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(file.read_bytes()[:-9])
    for other in (cut, tmp_path / "gone.parquet"):
        assert same_columns(file, other) == same_columns(other, file) == frozenset()
