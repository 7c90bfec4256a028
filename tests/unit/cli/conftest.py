"""The command line in this process, on a lake of the test's own."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from lakehouse.cli import main

TRIPS = """\
at,client,name,price
2013-01-05T07:00:00,1,a,2.5
2013-01-05 09:00:00+02:00,77,b,
2013-01-07T01:02:03.5Z,77,"c, d",1
"""


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run ``lakehouse ...`` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("LAKEHOUSE_CATALOG", "LAKEHOUSE_WAREHOUSE"):
        monkeypatch.delenv(name, raising=False)

    def ran(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["lakehouse", *arguments])
        code: object = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        out, err = capsys.readouterr()
        assert isinstance(code, int)
        return Ran(code, out, err)

    return ran


@pytest.fixture
def trips(run: Callable[..., Ran], tmp_path: Path) -> Path:
    """A lake with table ``trips`` and three rows in it; the file that they came from."""
    file = tmp_path / "trips.csv"
    file.write_text(TRIPS)
    schema = "at timestamp, client bigint, name string, price double"
    assert run("init", "trips", "--schema", schema, "--time", "at", "--cluster-by", "client").code == 0
    assert run("append", "trips", str(file), "--message", "three rows").code == 0
    return file
