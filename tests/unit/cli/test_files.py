"""Rows of users' files, in every format."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from lakehouse.cli.files import open_rows
from lakehouse.errors import InvalidInput

SCHEMA = pa.schema(
    [("at", pa.timestamp("us", tz="UTC")), ("client", pa.int32()), ("name", pa.string()), ("day", pa.date32())]
)
AT = datetime(2013, 1, 5, 7, tzinfo=UTC)
ROWS = pa.table([[AT, AT], [1, None], ["a", None], [AT.date(), None]], schema=SCHEMA)


def write_stream(table: pa.Table, path: str) -> None:
    with pa.ipc.new_stream(path, table.schema) as stream:
        stream.write_table(table)


@pytest.mark.parametrize(
    ("suffix", "write"),
    [
        (".parquet", pa.parquet.write_table),
        (".arrow", pa.feather.write_feather),
        (".arrows", write_stream),
        (".csv", pa.csv.write_csv),
    ],
)
def test_rows_come_back_as_they_were_written(tmp_path: Path, suffix: str, write: Callable[..., None]) -> None:
    path = tmp_path / f"rows{suffix}"
    write(ROWS, str(path))
    assert open_rows(path, SCHEMA).read_all().to_pylist() == ROWS.to_pylist()


def test_json_lines_take_the_types_of_the_table(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    first = '{"at": "2013-01-05T07:00:00", "client": 1, "name": "a", "day": "2013-01-05"}'
    path.write_text(first + '\n{"at": "2013-01-05T08:00+01:00"}\n')
    assert open_rows(path, SCHEMA).read_all().cast(SCHEMA).to_pylist() == ROWS.to_pylist()


def test_json_lines_hold_vectors_as_lists_of_any_length_for_the_table_to_refuse(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"v": [1, 2.5], "s": {"v": [1]}}\n{"v": [1], "s": null}\n')
    vector = pa.list_(pa.float32(), 2)
    found = open_rows(path, pa.schema([("v", vector), ("s", pa.struct([("v", vector)]))])).read_all()
    assert found.to_pylist() == [{"v": [1.0, 2.5], "s": {"v": [1.0]}}, {"v": [1.0], "s": None}]


def test_columns_that_the_table_lacks_are_kept_for_the_table_to_refuse(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("at,extra\n2013-01-05T07:00:00,x\n")
    assert open_rows(path, SCHEMA).read_all().to_pylist() == [{"at": AT, "extra": "x"}]


CSV = ("rows.csv", "at,client,name\n", "2013-01-05T07:00:00,1," + "x" * 1000 + "\n")
JSON = ("rows.jsonl", "", '{"at": "2013-01-05T07:00:00", "client": 1, "name": "' + "x" * 1000 + '"}\n')


@pytest.mark.parametrize(("name", "head", "line"), [CSV, JSON], ids=["csv", "jsonl"])
def test_a_large_text_file_is_read_in_parts(tmp_path: Path, name: str, head: str, line: str) -> None:
    path = tmp_path / name
    path.write_text(head + line * 20_000)
    reader = open_rows(path, SCHEMA)
    first = reader.read_next_batch()
    assert first.num_rows < 20_000
    assert first.num_rows + sum(batch.num_rows for batch in reader) == 20_000


@pytest.mark.parametrize(
    ("last", "message"),
    [
        ('{"client": "many"}', "row=20000 "),
        ('{"client": ', "row=20000 "),
        ('{"client": 1.5}', "rows_before="),
        ('{"other": 1}', "neither the table nor the first rows"),
    ],
)
def test_a_fault_late_in_json_lines_is_found_there(tmp_path: Path, last: str, message: str) -> None:
    path = tmp_path / JSON[0]
    path.write_text(JSON[2] * 20_000 + last + "\n")
    reader = open_rows(path, SCHEMA)
    assert reader.read_next_batch().num_rows > 0
    with pytest.raises(InvalidInput, match=message):
        list(reader)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.txt", b"at\n"),
        ("rows.parquet", b"PAR1 and then nothing"),
        ("rows.arrow", b"nonsense"),
        ("rows.csv", b"at,client\n2013-01-05T07:00:00,many\n"),
        ("rows.csv", b"at\nyesterday\n"),
        ("rows.csv", b"at,client\n2013-01-05T07:00:00\n"),
        ("rows.jsonl", b'{"at": '),
        ("rows.csv", b""),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as error:
        open_rows(path, SCHEMA).read_all()
    assert str(path) in str(error.value)
