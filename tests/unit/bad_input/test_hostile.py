"""Text from anyone: a documented error or an answer, within limits, never a bare exception."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import lakehouse
from lakehouse.cli import look, main
from lakehouse.errors import InvalidInput, LakehouseError, VersionNotFound
from lakehouse.sql.functions import NAMES
from lakehouse.testing.campaign import refusals

HALF = "\ud800"
DIGITS = "1" * 5000
WRONG = (
    "SELECT year()",
    "SELECT percentile(v) FROM t",
    "SELECT datediff(at) FROM t",
    "SELECT * FROM t JOIN u",
    "SELECT * FROM (SELECT 1) JOIN (SELECT 2) ON true",
    "SELECT * FROM t JOIN u ON (SELECT 1)",
    "SELECT * FROM t LIMIT 1e30",
    f"SELECT * FROM t LIMIT {DIGITS}",
    "SELECT * FROM t LIMIT 9223372036854775808",
    f"SELECT * FROM t VERSION AS OF 1{'0' * 30}",
    f"SELECT * FROM t VERSION AS OF {DIGITS}",
    f"SELECT * FROM t VERSION AS OF '{HALF}'",
    f"SELECT '{HALF}'",
    f"SELECT * FROM t WHERE id = {DIGITS}",
    f"DELETE FROM t WHERE id = {DIGITS}",
    f"UPDATE t SET id = {DIGITS}",
    f"INSERT INTO t (at, id) VALUES ('2013-01-05', {DIGITS})",
    f"CREATE TABLE x (at TIMESTAMP) PARTITIONED BY (days(at)) TBLPROPERTIES ('a' = '{HALF}')",
    "MERGE INTO t USING u ON (SELECT 1) WHEN MATCHED THEN DELETE",
)


@pytest.fixture(scope="module")
def small() -> Iterator[lakehouse.Lake]:
    """The lake that hostile statements are about."""
    with refusals.small_lake() as lake:
        yield lake


def ended(lake: lakehouse.Lake, text: str) -> str:
    """How a statement ends in process: what kind of error, or an answer."""
    try:
        found = lake.sql(text, engine="duckdb")
        if hasattr(found, "fetchall"):
            found.limit(1).fetchall()
    except (LakehouseError, duckdb.Error) as error:  # DuckDB's, where the caller asks its relation for a bad row
        return getattr(error, "kind", "a row")
    return "answer"


def asked(lake: lakehouse.Lake, text: str) -> str:
    """How it ends apart."""
    try:
        lake.query(text)
    except LakehouseError as error:
        return error.kind
    return "answer"


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:50].encode("ascii", "replace").decode())
def test_a_wrong_statement_ends_in_a_documented_error_or_an_answer(small: lakehouse.Lake, text: str) -> None:
    assert ended(small, text) in ("answer", "a row", "invalid_input", "table_not_found", "version_not_found")
    assert asked(small, text) in ("answer", "invalid_input", "table_not_found", "version_not_found")


@pytest.mark.parametrize("function", NAMES.split())
def test_every_function_takes_any_number_of_arguments_or_refuses_it(small: lakehouse.Lake, function: str) -> None:
    for arguments in ("", "v", "at, id", "s, 'x', NULL", "at, at, at, at", "*", "DISTINCT id", "(SELECT 1)"):
        assert ended(small, f"SELECT {function}({arguments}) FROM t") in ("answer", "a row", "invalid_input")


@pytest.mark.parametrize("properties", [{"a": HALF}, {HALF: "a"}, {"a": "\0"}, {"a": "b" * 2_000_000}])
def test_a_property_that_cannot_be_stored_is_refused_at_the_door(small: lakehouse.Lake, properties: dict) -> None:
    with pytest.raises(InvalidInput):
        small.create_table("z", "ts TIMESTAMP", time="ts", properties=properties)
    with pytest.raises(InvalidInput):
        small.table("u").set_properties(properties)
    assert "z" not in small.tables()
    small.sql("INSERT INTO u (ts) VALUES ('2013-01-01')")


def test_half_a_character_is_no_name(small: lakehouse.Lake) -> None:
    for call in (small.table, small.release, small.untag, small.tag, small.drop_table):
        with pytest.raises(LakehouseError):
            call(HALF)
    with pytest.raises(LakehouseError):
        small.table("t").version_at(HALF)


def test_numbers_beyond_64_bits_are_refused(small: lakehouse.Lake) -> None:
    for limit in (2**63, 2**70, 10**5000):
        with pytest.raises(InvalidInput):
            small.log(limit)
    for version in (2**63, -(2**70), 10**5000):
        with pytest.raises(VersionNotFound):
            small.table("t").scan(as_of=version)


def test_hostile_statements_end_within_their_limits() -> None:
    found = refusals.run(60, 11)
    assert (found.tried, found.wrong) == (60, [])
    assert 0 < found.refused < found.tried


def test_hostile_command_lines_end_with_an_exit_code() -> None:
    found = refusals.run_commands(25, 11)
    assert (found.tried, found.wrong) == (25, [])


LINES = (
    [b"sql", b"SELECT '\xff'"],
    [b"show", b"\xff", b"--json"],
    [b"log", b"--limit", b"1" + b"0" * 30],
    [b"sql", b"SELECT 1", b"--seconds", b"1e300"],
    [b"sql", b"SELECT 1", b"--memory", b"1MB"],
    [b"sql", b"SELECT 1", b"--as-of", b"9" * 5000],
)


@pytest.mark.parametrize("line", LINES, ids=lambda line: b" ".join(line)[:40].decode("ascii", "replace"))
def test_a_real_command_says_what_is_wrong_in_one_line(tmp_path: Path, line: list[bytes]) -> None:
    environment = {**os.environ, "LAKEHOUSE_CATALOG": f"sqlite:///{tmp_path}/c.db", "LAKEHOUSE_WAREHOUSE": "w"}
    program = "from lakehouse.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, *line], env=environment, cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode in (0, 1, 2)
    assert b"Traceback" not in done.stderr
    assert b"bug of lakehouse" not in done.stderr


def test_what_nobody_foresaw_is_one_line_and_a_way_to_report_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["lakehouse", "tables"])
    monkeypatch.setattr(look, "open_lake", lambda *_: 1 / 0)
    with pytest.raises(SystemExit) as end:
        main()
    [line] = capsys.readouterr().err.splitlines()
    assert end.value.code == 1
    assert "ZeroDivisionError" in line
    assert "report it" in line
    monkeypatch.setenv("LAKEHOUSE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main()


@pytest.mark.parametrize("seconds", [1e10, float("inf"), 2**2000, -1, float("nan"), True, "1"])
def test_a_time_that_no_timer_holds_is_refused(tmp_path: Path, seconds: object) -> None:
    for name in ("lease_seconds", "pin_seconds"):
        with pytest.raises(InvalidInput, match=name):
            lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path, **{name: seconds})
