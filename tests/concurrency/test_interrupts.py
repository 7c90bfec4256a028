"""Ctrl-C and SIGTERM at every point of a command: nothing is written, or the command says what was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.interrupts import IN_STEPS, NOTHING, TOO_LATE

ROWS = "at,id,word\n2013-01-05T07:00:00,1,a\n2013-01-05T08:00:00,2,b\n2013-01-06T08:00:00,3,c\n"
COMMANDS = {
    "append": ["append", "words", "more.csv"],
    "replace": ["replace", "words", "2013-01-05", "more.csv"],
    "drop": ["replace", "words", "2013-01-05", "--empty"],
    "upsert": ["upsert", "words", "more.csv"],
    "delete": ["delete", "words", "id = 1"],
    "update": ["update", "words", "word='x'", "--where", "id = 2"],
    "erase": ["erase", "words", "id = 1", "--yes"],
    "compact": ["compact", "words"],
    "restore": ["restore", "words", "2"],
    "sql insert": ["sql", "INSERT INTO words VALUES (TIMESTAMP '2013-01-07 00:00:00', 7, 'g')"],
    "sql delete": ["sql", "DELETE FROM words WHERE id = 1"],
}
BEFORE = ["begin.registered", "write.before", "write.after", "commit.before", "commit.head", "commit.recorded"]
# A process that has everything loaded and forks for each command. That sends itself a signal at a point, once, and
# meets it there as if it came from outside; also where it is lost on its way: swallowed, or made into another error.
PARENT = """
import json, os, signal, sys
import duckdb, lakehouse.cli, lakehouse.lake, lakehouse.service, lakehouse.sql, pyarrow.csv, pyarrow.parquet
from lakehouse.command import main
from lakehouse.testing import faults as testing

def interrupt(number, lost):
    try:
        os.kill(os.getpid(), number)
    except BaseException:
        if lost == "raised":
            raise
        if lost == "changed":
            raise RuntimeError("Query interrupted")

def run(folder, point, number, lost, ignored, arguments):
    os.chdir(folder)
    os.environ["LAKEHOUSE_CATALOG"] = f"sqlite:///{folder}/catalog.db"
    os.environ["LAKEHOUSE_WAREHOUSE"] = f"{folder}/warehouse"
    os.dup2(os.open("stderr", os.O_CREAT | os.O_TRUNC | os.O_WRONLY), 2)
    os.dup2(os.open("stdout", os.O_CREAT | os.O_TRUNC | os.O_WRONLY), 1)
    if ignored:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.argv = ["lakehouse", *arguments]
    with testing.armed({point: testing.on_count(1, lambda: interrupt(number, lost))} if point else {}):
        main()

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            run(*json.loads(line))
            code = 0
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            import traceback
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
Run = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def parent() -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=pipe, stdout=pipe, text=True) as started:
        yield started
        assert started.stdin is not None
        started.stdin.close()


@pytest.fixture
def run(parent: subprocess.Popen[str], folder: Path) -> Run:
    """Run a command with a signal at a point: its exit code, and what it said on standard error."""

    def ran(
        *arguments: str, point: str = "", number: int = signal.SIGINT, lost: str = "raised", ignored: bool = False
    ) -> tuple[int, str]:
        assert parent.stdin is not None
        assert parent.stdout is not None
        parent.stdin.write(json.dumps([str(folder), point, int(number), lost, ignored, arguments]) + "\n")
        parent.stdin.flush()
        code = int(parent.stdout.readline())
        said = (folder / "stderr").read_text()
        assert "Traceback" not in said, said
        return code, said

    return ran


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_while_the_process_ends_does_not_undo_the_word_of_its_commit(folder: Path, number: int) -> None:
    places = {"LAKEHOUSE_CATALOG": f"sqlite:///{folder}/catalog.db", "LAKEHOUSE_WAREHOUSE": f"{folder}/warehouse"}
    program = "from lakehouse.command import main; main()"
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-u", "-c", program, "append", "words", "more.csv"],
            cwd=folder, env={**os.environ, **places}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as started:  # fmt: skip
            assert started.stdout is not None
            assert started.stderr is not None
            assert started.stdout.readline().startswith("version")
            started.send_signal(number)
            said = started.stderr.read()
        assert (started.returncode, NOTHING in said) == (0, False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "more.csv").write_text(ROWS.splitlines()[0] + "\n2013-01-05T07:30:00,2,z\n")
    (tmp_path / "rows.csv").write_text(ROWS)
    with open_lake(tmp_path) as lake:
        schema = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("id", pa.int64()), ("word", pa.string())])
        table = lake.create_table("words", schema, time="at", primary_key=["id"])
        for day in (5, 5, 6):
            rows = [{"at": f"2013-01-0{day}T07:00:00", "id": day, "word": "w"}, {"at": "2013-01-05", "id": 1}]
            table.append(pa.Table.from_pylist([{**one, "at": _time(one["at"])} for one in rows], schema=schema))
    return tmp_path


def _time(text: object) -> object:
    return lakehouse.core.interval.to_utc(text)


def open_lake(folder: Path) -> lakehouse.Lake:
    return lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse")


def state(folder: Path) -> tuple[list[int], list[dict[str, object]]]:
    with open_lake(folder) as lake:
        table = lake.table("words")
        return [one.version for one in table.log()], table.scan().to_arrow().sort_by("id").to_pylist()


@pytest.mark.parametrize("lost", ["raised", "swallowed", "changed"])
@pytest.mark.parametrize("name", COMMANDS)
def test_interrupted_at_any_point_before_the_commit_nothing_is_written(
    run: Run, folder: Path, name: str, lost: str
) -> None:
    before = state(folder)
    reached = []
    for number, point in enumerate(BEFORE):
        signum = (signal.SIGINT, signal.SIGTERM)[number % 2]
        code, said = run(*COMMANDS[name], point=point, number=signum, lost=lost)
        if code == 0:  # this command does not come by that point
            assert said == ""
            break
        reached.append(point)
        assert (code, said) == (128 + signum, f"lakehouse: {NOTHING}\n")
        assert state(folder) == before
        with open_lake(folder) as lake:  # one that was registered and nothing more is left to its lease
            for held in lake.operations():
                lake.catalog.release(held.operation)
    assert reached


@pytest.mark.parametrize("name", COMMANDS)
def test_interrupted_after_the_commit_it_is_reported_as_done(run: Run, folder: Path, name: str) -> None:
    before = state(folder)
    code, said = run(*COMMANDS[name], point="commit.after")
    assert (code, said) == (0, f"lakehouse: {TOO_LATE}\n")
    assert len(state(folder)[0]) == len(before[0]) + 1


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("arguments", "point"),
    [
        (["expire", "--keep-last", "1"], "expire.recorded"),
        (["expire", "--keep-last", "1"], "expire.forgotten"),
        (["collect", "--grace", "0s"], "collect.marked"),
        (["maintain", "--once"], "task.claimed"),
        (["export"], "export.written"),
    ],
)
def test_a_command_in_steps_says_that_they_stay(
    run: Run, folder: Path, arguments: list[str], point: str, signum: int
) -> None:
    rows = state(folder)[1]
    code, said = run(*arguments, point=point, number=signum)
    assert (code, said) == (128 + signum, f"lakehouse: {IN_STEPS}\n")
    assert state(folder)[1] == rows
    assert run(*arguments)[0] == 0
    assert state(folder)[1] == rows


def test_a_shell_that_ignores_interrupts_in_the_background_does_not_hide_them(run: Run, folder: Path) -> None:
    """As ``lakehouse append ... & kill -INT $!`` in a script: the child begins with SIGINT ignored."""
    before = state(folder)
    code, said = run("append", "words", "more.csv", point="write.before", ignored=True)
    assert (code, said) == (130, f"lakehouse: {NOTHING}\n")
    assert state(folder) == before


def test_locks_of_an_interrupted_replace_are_free_at_once(run: Run, folder: Path) -> None:
    assert run(*COMMANDS["replace"], point="write.before")[0] == 130
    with open_lake(folder) as lake:
        assert not lake.operations()
        assert not lake.table("words").locks()
