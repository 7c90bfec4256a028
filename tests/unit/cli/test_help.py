"""What commands say of themselves in 80 columns, and of what they were given that is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from lakehouse.cli import app

Run = Callable[..., Any]
COMMANDS = [
    [],
    *([name] for name in typer.main.get_command(app).commands),  # type: ignore[attr-defined]
    *(["stream", name] for name in ("run", "list", "forget")),
]
ADVISED = {
    "a table that is there": (
        ("init", "trips", "--schema", "at timestamp", "--time", "at"),
        "choose another or add --if-not-exists (table=trips)",
    ),
    "one that create cannot leave alone": (
        ("create", "trips", "trips.csv"),
        "a table of that name exists; choose another (table=trips)",
    ),
    "no key": (("upsert", "trips", "trips.csv"), "create it with --primary-key, or use append, update or merge"),
    "a grain of no time": (("init", "x", "--schema", "a int", "--grain", "day"), "as in --time ts, or leave it out"),
    "no such consumer": (("consumers", "drop", "x"), "no such consumer; lakehouse consumers lists them"),
    "no value for ?": (("sql", "SELECT ?"), "add --arg, a value for each ?"),
    "no value for a name": (("sql", "SELECT :a"), "add --arg, a value for each :name"),
    "only of Spark": (("sql", "SELECT initcap(name) FROM trips", "--engine", "duckdb"), "use --engine spark"),
    "a point in history": (
        ("sql", "DELETE FROM trips", "--as-of", "1"),
        "only queries are run as of a version; leave --as-of out",
    ),
    "a filter": (("count", "trips", "--where", "cliant = 1"), "column=cliant nearest=client"),
    "a key": (("replace", "trips", "2013", "--empty", "--key", "cliant=1"), "column=cliant nearest=client"),
}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_fits_80_columns_and_cuts_nothing(run: Run, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = run(*command, "--help")
    assert ran.code == 0
    assert [line for line in ran.out.splitlines() if len(line) > 80] == []
    assert re.findall(r"\w\.\.\.", ran.out) == [], "a sentence is cut"
    assert re.findall(r"\w-$", ran.out, re.MULTILINE) == [], "a word is broken"
    assert re.findall(r"--\S+ <list|<\w+ range>", ran.out) == [], "an option says how it is stored"


def test_every_command_stands_under_a_heading(run: Run) -> None:
    ran = run("--help")
    headings = re.findall(r"^([A-Z][a-z ]+):$", ran.out, re.MULTILINE)
    assert headings == ["Options", "Begin", "Look", "Change rows", "Change tables", "Maintain", "Serve"]


@pytest.mark.parametrize(("command", "said"), ADVISED.values(), ids=ADVISED)
def test_an_error_advises_what_can_be_typed(run: Run, trips: Path, command: tuple[str, ...], said: str) -> None:
    ran = run(*command)
    assert ran.code == 1
    assert said in ran.err
    assert not re.search(r"=True|=\[|=\{|\blake\.", ran.err)


def test_values_for_question_marks_are_given_in_order(run: Run, trips: Path) -> None:
    assert run("sql", "SELECT ? + ? AS a", "--arg", "12", "--arg", "30").out.split()[-1] == "42"
    ran = run("sql", "SELECT ?, :a", "--arg", "12", "--arg", "a=30")
    assert (ran.code, "each name once; --arg value is for ?" in ran.err) == (1, True)
