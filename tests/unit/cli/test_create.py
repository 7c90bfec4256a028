"""A table with the columns and rows of a file."""

import gzip
import io
import json
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

Run = Callable[..., Any]

ORDERS = """\
order id,placed at,customer,Größe,paid,due
1,2024-03-01T00:00:00,李雷,2,true,2024-03-10
2,2024-03-01T00:37:00,,1.5,,2024-03-10
3,2024-03-02T01:14:00,Zoë 🚲,,false,
"""


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    file = tmp_path / "orders.csv"
    file.write_text(ORDERS, encoding="utf-8")
    return file


def test_columns_come_from_all_rows_of_a_text(run: Run, orders: Path) -> None:
    done = run("create", "orders", str(orders))
    found = "order id BIGINT, placed at TIMESTAMP, customer STRING, Größe DOUBLE, paid BOOLEAN, due DATE"
    assert done.out.splitlines()[0] == f"orders: {found}, by day of placed at"
    (first, second, third) = json.loads(run("sql", "SELECT * FROM orders ORDER BY 1", "--json").out)["rows"]
    assert first == [1, "2024-03-01T00:00:00+00:00", "李雷", 2.0, True, "2024-03-10"]
    assert (second[2], second[4], third[3], third[5]) == (None, None, None, None)


def test_it_takes_packed_files_lines_of_json_and_arrow(run: Run, orders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = orders.with_name("orders.csv.gz")
    packed.write_bytes(gzip.compress(orders.read_bytes()))
    assert run("create", "packed", str(packed)).code == 0
    lines = orders.with_name("orders.jsonl")
    lines.write_text('{"at": "2024-03-01T00:00:00", "n": 1}\n{"at": "2024-03-02T00:00:00", "n": 1.5}\n')
    assert run("create", "lines", str(lines)).out.startswith("lines: at TIMESTAMP, n DOUBLE, by day of at")
    rows = pa.table({"at": [datetime(2024, 3, 1, tzinfo=UTC)], "day": [date(2024, 3, 1)], "tags": [["a", "b"]]})
    pq.write_table(rows, orders.with_name("events.parquet"))
    assert run("create", "events", str(orders.with_name("events.parquet")), "--grain", "month").code == 0
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, rows.schema) as writer:
        writer.write_table(rows)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stream.getvalue())))
    assert run("create", "piped", "-", "--format", "stream").code == 0
    assert [run("count", one).out for one in ("packed", "lines", "events", "piped")] == ["3\n", "2\n", "1\n", "1\n"]


def test_a_row_that_cannot_be_written_leaves_no_table(run: Run, orders: Path) -> None:
    orders.write_text("n,at\n1,2024-01-01T00:00:00\n2,\n")
    done = run("create", "orders", str(orders))
    assert (done.code, "null in a column that takes none" in done.err) == (1, True)
    assert json.loads(run("tables", "--json").out)["tables"] == []


def test_columns_without_rows_and_a_table_without_time(run: Run, orders: Path) -> None:
    made = json.loads(run("create", "empty", str(orders), "--empty", "--json").out)
    assert (made["time"], made["columns"]["Größe"]) == ("placed at", "DOUBLE")
    assert run("count", "empty").out == "0\n"
    assert json.loads(run("create", "people", str(orders), "--timeless", "--json").out)["rows_added"] == 3
    assert run("create", "wrong", str(orders), "--timeless", "--grain", "day").code == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a;at\n1;2024-01-01\n", "only commas separate columns"),
        ("a,b\n1,2\n", "name the column of a row's time by --time, or say --timeless"),
        ("a,from,until\n1,2024-01-01,2024-01-02\n", "times=['from', 'until']"),
    ],
)
def test_a_file_of_which_no_table_can_be_made_says_why(run: Run, orders: Path, text: str, said: str) -> None:
    orders.write_text(text)
    done = run("create", "orders", str(orders))
    assert (done.code, said in done.err) == (1, True), done.err
    assert not orders.with_name(".lakehouse").exists()


def test_text_of_a_pipe_and_a_name_that_is_taken_are_refused(run: Run, trips: Path) -> None:
    assert "lakehouse init TABLE --schema" in run("create", "piped", "-", "--format", "csv").err
    assert "a table of that name exists" in run("create", "trips", str(trips)).err
    assert run("count", "trips").out == "3\n"


def test_count_counts_at_a_version_of_an_interval_or_by_a_condition(run: Run, trips: Path) -> None:
    run("delete", "trips", "client = 77")
    assert run("count", "trips").out == "1\n"
    assert run("count", "trips", "--as-of", "2").out == "3\n"
    assert run("count", "trips", "--as-of", "2", "--interval", "2013-01-05").out == "2\n"
    counted = run("count", "trips", "--as-of", "2", "--where", "client = 77", "--json").out
    assert json.loads(counted) == {"table": "trips", "rows": 2}
