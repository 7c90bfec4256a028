"""`lakehouse new` makes a project that loads and passes its test, refuses what would not, and then leaves nothing."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

Run = Callable[..., tuple[int, str, str]]
BIN = Path(sys.executable).parent
HOSTILE = """\
"Zeit, $package \\\\ {0}","a b"
2013-01-05 07:00:00,1
2013-01-05 23:59:59.5,2
"""


def test_a_project_of_a_hostile_file_loads_and_passes_its_test(run: Run, tmp_path: Path) -> None:
    (tmp_path / "odd name $x'.csv").write_text(HOSTILE)
    made = run("new", "shop", "--data", "odd name $x'.csv", "--table", "odd", "--grain", "hour")
    assert made[0] == 0, made[2]
    project = tmp_path / "shop"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["odd name $x'.csv", "shop"]
    environment = {**os.environ, "DAGSTER_HOME": str(tmp_path / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    (tmp_path / "home").mkdir()
    commands = ([BIN / "pytest", "-q", "-p", "no:cacheprovider"], [BIN / "dagster", "definitions", "validate"])
    started = [
        subprocess.Popen(one, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for one in commands
    ]
    told = [one.communicate()[0] for one in started]
    assert [one.returncode for one in started] == [0, 0], "\n".join(told)
    assert "2 passed" in told[0]


def test_the_example_is_a_project_too(run: Run, tmp_path: Path) -> None:
    code, out, err = run("new", "shop", "--json")
    assert (code, err) == (0, "")
    assert '"start": "2026-01-05"' in out
    code = (tmp_path / "shop/shop/defs/trips.py").read_text()
    compile(code, "trips.py", "exec")
    assert "`client` BIGINT" in code


def test_parquet_is_taken_with_its_types(run: Run, tmp_path: Path) -> None:
    rows = "SELECT TIMESTAMPTZ '2013-02-05 07:00+00' AS at, 1.5::DECIMAL(9, 2) AS price, DATE '2013-01-01' AS day"
    duckdb.connect().execute(f"COPY ({rows}) TO '{tmp_path}/sales.parquet'")
    assert run("new", "shop", "--data", "sales.parquet", "--grain", "month")[0] == 0  # the only timestamp is the time
    assert "`price` DECIMAL(9,2)" in (tmp_path / "shop/shop/defs/sales.py").read_text().replace(", 2)", ",2)")
    assert '"month", "2013-02-01"' in (tmp_path / "shop/shop/defs/partitions.py").read_text()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Shop", "bad name of a project"),
        ("my-shop", "bad name of a project"),
        ("9lives", "bad name of a project"),
        ("läden", "bad name of a project"),
        ("a b", "bad name of a project"),
        ("class", "bad name of a project"),
        ("x" * 65, "bad name of a project"),
        ("..", "bad name of a project"),
        ("json", "a Python module has that name"),
        ("dagster", "a Python module has that name"),
        ("tests", "a Python module has that name"),
        ("absent/shop", "there is no folder"),
    ],
)
def test_a_name_that_cannot_be_is_refused(run: Run, tmp_path: Path, name: str, message: str) -> None:
    code, _, err = run("new", name)
    assert (code, message in err) == (1, True), err
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_left_as_it_is(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("shop", "link"):
        code, _, err = run("new", name)
        assert (code, "there is something of that name already" in err) == (1, True), err
    assert list((tmp_path / "shop").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("trips.xls", "", (), "unknown file format"),
        ("trips.csv", None, (), "there is no such file"),
        ("trips.csv", "from,to\n2013-01-05,2013-01-06\n", (), "times=['from', 'to']"),
        ("trips.csv", "a,b\n1,2\n", (), "name the column of a row's time by --time (times=[]"),
        (
            "trips.csv",
            "at,b\n2013-01-05,2\n",
            ("--time", "when"),
            "name the column of a row's time by --time (time=when",
        ),
        ("trips.csv", "at,b\n2013-01-05,2\n,3\n", (), "every row needs a time"),
        ("trips.csv", "at,b\n0900-01-05 00:00:00,2\n", (), "Dagster has no partitions before"),
        ("trips.csv", "at,b\n2013-01-05,2\n", ("--grain", "fortnight"), "fortnight"),
        ("trips.csv", "at,b\n2013-01-05,2\n", ("--table", "a b"), "bad table name"),
        ("trips.csv", "at,b\n2013-01-05,2\n", ("--table", "resources"), "the project uses that name itself"),
        ("my trips.csv", "at,b\n2013-01-05,2\n", (), "bad table name"),
        ("trips.csv", 'at,"a`b"\n2013-01-05,2\n', (), "bad column name"),
        ("trips.parquet", "PAR1", (), "cannot read the file"),
    ],
)
def test_a_file_that_cannot_be_a_table_is_refused(
    run: Run, tmp_path: Path, name: str, text: str | None, options: tuple[str, ...], message: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    code, _, err = run("new", "shop", "--data", name, *options)
    assert (code, message in err) == (1, True), err
    assert [path.name for path in tmp_path.iterdir()] == ([] if text is None else [name])
