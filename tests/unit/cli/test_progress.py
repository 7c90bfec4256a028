"""Progress on a terminal: lines with done, total and rate for what takes long; nothing anywhere else."""

import gzip
import io
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse import progress
from lakehouse.cli import progress as shown_progress
from lakehouse.cli.files import measured, open_rows
from lakehouse.cli.progress import Lines, hush, shown

Run = Callable[..., Any]
SCHEMA = pa.schema([("at", pa.timestamp("us", "UTC")), ("client", pa.int64())])
LINE = "2013-01-05T07:00:00,12\n"


class Terminal(io.StringIO):
    """A terminal that knows when a text was shown."""

    def __init__(self, wanted: str) -> None:
        super().__init__()
        self._wanted = wanted
        self.seen = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        count = super().write(text)
        if self._wanted in self.plain():
            self.seen.set()
        return count

    def plain(self) -> str:
        """What was written, without the codes that move and colour."""
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.getvalue())


class Slow(io.RawIOBase):
    """Bytes whose end comes when a terminal has shown what it should."""

    def __init__(self, content: bytes, until: threading.Event) -> None:
        self._content: bytes | None = content
        self._until = until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._content is None:
            assert self._until.wait(20), "the terminal showed nothing"
            return 0
        part, self._content = self._content[: len(buffer)], self._content[len(buffer) :] or None
        buffer[: len(part)] = part
        return len(part)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(shown_progress, "DELAY_SECONDS", 0.0)
    return Terminal("read standard input")


def test_a_command_that_takes_long_shows_lines_that_fit_and_leaves_none(
    run: Run, trips: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    slow = io.BufferedReader(Slow(trips.read_bytes(), terminal.seen))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(slow))
    assert run("append", "trips", "-", "--format", "csv").code == 0
    lines = [line for line in terminal.plain().replace("\r", "\n").splitlines() if line.strip()]
    assert any(line.startswith("read standard input") and " rows" in line for line in lines)
    assert max(map(len, lines)) <= 80
    assert "\x1b[2K" in terminal.getvalue().rpartition("read standard input")[2]  # what was shown is wiped out


@pytest.mark.parametrize("option", ["--quiet", "-q", "--json"])
def test_nothing_is_shown_if_that_is_asked_for(
    run: Run, trips: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    assert run("append", "trips", str(trips), option).code == 0
    assert terminal.getvalue() == ""


def test_nobody_listens_without_a_terminal_or_when_hushed(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    with shown():
        assert progress.listener() is not None
        assert hush(False) is False
        assert progress.listener() is not None
        assert hush(True) is True
        assert progress.listener() is None
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with shown():
        assert progress.listener() is None


def test_what_is_done_sooner_than_the_delay_shows_nothing(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.listening(Lines(delay_seconds=3600)), progress.step("append trips", "rows", 3) as step:
        step.advance(3)
    assert terminal.getvalue() == ""


def test_a_line_has_a_bar_where_the_total_is_known(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    lines = Lines(delay_seconds=0)
    with progress.listening(lines), progress.step("read standard input", "files", 2_000) as step:
        step.advance(500)
        assert terminal.seen.wait(20)
    assert re.search(r"read standard input +━+.* 500/2,000 files", terminal.plain())


def test_reading_is_counted_in_bytes_of_the_file_or_rows_of_parquet(tmp_path: Path) -> None:
    plain, packed, parquet, lines = (tmp_path / name for name in ("a.csv", "a.csv.gz", "a.parquet", "a.jsonl"))
    content = "at,client\n" + LINE * 50
    plain.write_text(content)
    packed.write_bytes(gzip.compress(content.encode()))
    lines.write_text('{"at": "2013-01-05", "client": 1}\n' * 50)
    pq.write_table(open_rows(plain, SCHEMA).read_all(), parquet)
    for path in (plain, packed, parquet, lines):
        unit, total = measured(path)
        step = progress.Step("read", unit, total)
        assert open_rows(path, SCHEMA, step=step).read_all().num_rows == 50
        assert step.done == total == (50 if path == parquet else path.stat().st_size)
    assert measured(Path("-"), "csv") == ("rows", None)
    assert measured(tmp_path / "missing.csv") == ("bytes", None)
