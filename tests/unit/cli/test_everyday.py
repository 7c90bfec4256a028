"""What the command line is for on an ordinary day: any input, any output, in 80 columns."""

import gzip
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import lakehouse
from lakehouse.cli.options import complete_table
from lakehouse.cli.output import print_table

Run = Callable[..., Any]


def standard_input(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_the_version_is_printed(run: Run) -> None:
    assert run("--version").out == f"lakehouse {lakehouse.__version__}\n"


def test_rows_come_from_standard_input_and_packed_files(run: Run, trips: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = trips.with_name("packed.csv.gz")
    packed.write_bytes(gzip.compress(trips.read_bytes()))
    assert run("append", "trips", str(packed)).code == 0
    standard_input(monkeypatch, trips.read_bytes())
    assert run("append", "trips", "-", "--format", "csv").code == 0
    standard_input(monkeypatch, b'{"at": "2013-01-05", "client": 1, "name": "a", "price": 1.5}\n')
    assert run("append", "trips", "-", "--format", "jsonl").code == 0
    stream = io.BytesIO()
    with lakehouse.connect() as lake, pa.ipc.new_stream(stream, lake["trips"].schema) as writer:
        writer.write_table(lake["trips"].head(1))
    standard_input(monkeypatch, stream.getvalue())
    assert run("append", "trips", "-", "--format", "stream").code == 0
    assert json.loads(run("sql", "SELECT count(*) FROM trips", "--json").out)["rows"] == [[11]]


def test_what_cannot_be_read_as_a_stream_says_so(run: Run, trips: Path) -> None:
    assert "--format csv, jsonl or stream" in run("append", "trips", "-").err
    assert "not compressed" in run("append", "trips", "-", "--format", "parquet").err
    missing = run("append", "trips", "nowhere.csv")
    assert (missing.code, "nowhere.csv does not exist" in missing.err) == (2, True)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("2013-01-05,x,a,1", "line=3 cause=In CSV column #1: CSV conversion error to int64"),
        ("2013-01-05,1,a", "line=3 cause=CSV parse error: Expected 4 columns, got 3"),
        ("2013-99-05,1,a,1", "ISO 8601.*line=3"),
    ],
)
def test_an_error_in_csv_names_its_line(
    run: Run, trips: Path, monkeypatch: pytest.MonkeyPatch, bad: str, said: str
) -> None:
    content = f"at,client,name,price\n2013-01-05,1,a,1\n{bad}\n"
    trips.write_text(content)
    ran = run("append", "trips", str(trips))
    assert ran.code == 1
    assert re.search(said, ran.err)
    standard_input(monkeypatch, content.encode())
    assert "line=3" in run("append", "trips", "-", "--format", "csv").err


def test_rows_go_out_as_csv_parquet_and_arrow(run: Run, trips: Path, tmp_path: Path) -> None:
    for name, read in (
        ("out.csv", pa.csv.read_csv),
        ("out.parquet", pq.read_table),
        ("out.arrow", lambda path: pa.ipc.open_file(path).read_all()),
    ):
        out = tmp_path / name
        assert run("sql", "SELECT client, name FROM trips ORDER BY 1, 2", "--output", str(out)).code == 0
        assert read(out).to_pydict() == {"client": [1, 77, 77], "name": ["a", "b", "c, d"]}
    assert run("head", "trips", "-n", "1", "--output", str(out)).code == 0
    assert pa.ipc.open_file(out).read_all().num_rows == 1
    assert "--format csv, parquet or arrow" in run("head", "trips", "--output", "out.txt").err
    assert "--limit writes more" in run("sql", "SELECT * FROM trips", "-n", "1", "-o", str(out)).err


def test_head_drop_and_rename(run: Run, trips: Path) -> None:
    assert len(json.loads(run("head", "trips", "-n", "2", "--json").out)["rows"]) == 2
    assert run("rename", "trips", "tours").out == "version 3: trips is tours now\n"
    assert run("drop", "tours").code == 2
    assert run("drop", "tours", "--yes").out == "version 4: dropped tours\n"
    assert json.loads(run("tables", "--json").out)["tables"] == []


def test_an_erasure_is_counted_first(run: Run, trips: Path) -> None:
    said = run("erase", "trips", "client = 77", "--dry-run").out
    assert said == "2 rows of trips would be removed, and from all of its 1 versions\n"
    assert run("erase", "trips", "client = 77", "--dry-run", "--yes").code == 2
    assert json.loads(run("sql", "SELECT count(*) FROM trips", "--json").out)["rows"] == [[3]]


def test_names_of_tables_are_completed_without_making_a_lake(
    run: Run, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    class Context:
        params: dict[str, Any] = {}  # noqa: RUF012

    context: Any = Context()
    assert complete_table(context, "t") == []
    assert list(tmp_path.iterdir()) == []
    request.getfixturevalue("trips")
    assert (complete_table(context, "tr"), complete_table(context, "x")) == (["trips"], [])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_table_fits_80_columns_by_leaving_out_whole_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", Terminal())
    names = [f"a_long_heading_{one}" for one in range(8)]
    print_table(names, [[one * 1000 for one in range(8)]], spare=[names[1]])
    print_table(["name", "text"], [["a", "word " * 40]])
    lines = re.sub(r"\x1b\[[0-9;]*m", "", sys.stdout.getvalue()).splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("left out for want of width: a_long_heading_1, ")
    heading = next(one for one in lines if one.startswith(names[0]))
    assert names[2] in heading
    assert names[1] not in heading
    assert lines[-1].rstrip().endswith("…")
