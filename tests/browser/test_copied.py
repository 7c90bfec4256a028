"""*Copy as* of every page, with its filters: copied into a fresh process and a shell elsewhere, it shows the same."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lakehouse

PAGES: dict[str, dict[str, str]] = {
    "lake": {},
    "schema": {"version": "5", "interval": "2013-01-05"},
    "versions": {"operation": "replace", "before": "9", "version": "7", "compare": "3"},
    "timeline": {"interval": "2013-01-05/2013-01-09", "laser": "2013-01-05T12:00", "keys": "carrier=it's, carrier=AA"},
    "tombstones": {"kind": "interval", "interval": "2013-01-07"},
    "key_frames": {"interval": "2013-01-05"},
    "segments": {"where": "delay > 100", "state": "visible", "order": "most rows", "interval": "2013-01-05/2013-01-09"},
    "query": {"sql": "SELECT max(delay) AS late FROM flights WHERE carrier = 'UA'", "version": "before-the-drop"},
    "service": {"of": "picked"},
    "streams": {},
    "serving": {},
    "locks": {},
}
ELSEWHERE = {
    "versions": ({"of": "lake", "operation": "append"}, {"interval": "2013-01-05"}),
    "tombstones": ({},),
    "segments": ({"order": "time"}, {"state": "visible", "order": "most bytes"}),
    "key_frames": ({"table": "codes"},),
    "schema": ({"table": "codes"},),
    "timeline": ({"table": "codes", "keys": "code=UA"},),
}
"""Other filters of pages, whose forms differ by them."""
ALONE = ("lake", "query")
"""Pages whose command lines are run as they are, each in a process of its own."""
RUNNER = """
import sys
from pathlib import Path

from lakehouse.cli import main

*commands, end = Path(sys.argv[1]).read_text().split("\\0\\0")
assert not end
for command in commands:
    sys.argv = ["lakehouse", *command.split("\\0")]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, (command, ended.code)
    print("=====", flush=True)
"""


def parts(app: Any) -> dict[str, str]:
    """What is copied: the code below each caption of the button."""
    captions = [one.value for one in app.caption]
    assert captions[-1] == "Address"
    count = next(place for place, one in enumerate(reversed(captions), 1) if one.startswith("First, for Python"))
    return dict(zip(captions[-count:], [one.value for one in app.code][-count:], strict=True))


@pytest.fixture
def copies(open_page: Any, lake: lakehouse.Lake, flights: lakehouse.Table) -> list[tuple[str, dict[str, str]]]:
    """What each page offers, by page."""
    codes = lake.create_table("codes", "code STRING NOT NULL, region STRING", primary_key=["code"])
    codes.upsert([{"code": "UA", "region": "west"}])
    asked = [(name, one) for name, first in PAGES.items() for one in (first, *ELSEWHERE.get(name, ()))]
    found = []
    for name, parameters in asked:
        app = open_page(name, **{"table": "flights", **parameters})
        assert not app.exception
        assert not app.error, (name, parameters, app.error)
        found.append((name, parts(app)))
    return found


def run(command: list[str], folder: Path) -> str:
    """Run something where nothing says where the lake is, and return what it prints."""
    environment = {name: held for name, held in os.environ.items() if not name.startswith("LAKEHOUSE_")}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command[-1]}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_every_page_is_copied_and_runs_in_a_fresh_process(
    copies: list[tuple[str, dict[str, str]]], tmp_path: Path, flights: lakehouse.Table
) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (where,) = {found["First, for Python and the command line: where the lake is"] for _, found in copies}
    script = folder / "copied.py"
    # One process for all, as each begins with its own imports and connection; a mark tells what each printed.
    script.write_text("\n".join(f"{found['Python']}\nprint('=====')\nlake.close()" for _, found in copies))
    printed = run(["sh", "-ec", f"{where}\n{sys.executable} {script}"], folder).split("=====\n")
    assert printed[-1] == ""
    assert len(printed) == len(copies) + 1
    assert all(one.strip() for one in printed[:-1])
    first = {name: printed[place] for place, (name, _) in reversed(list(enumerate(copies)))}
    assert "flights" in first["lake"]
    assert first["query"].count(str(max(flights.scan(where="carrier = 'UA'", as_of=5).to_arrow()["delay"].to_pylist())))
    assert first["segments"].count("Segment(") == 3
    assert "replace" in first["versions"]
    assert "append" not in first["versions"]

    commands = [(name, found["Command line"]) for name, found in copies if "Command line" in found]
    assert {name for name, _ in commands} == set(PAGES)
    alone = [text for name, text in commands if name in ALONE]
    assert "flights" in run(["sh", "-ec", "\n".join([where, *alone])], folder)
    # The rest in one process too: a shell reads the words of each, and the command line runs them one after the other.
    words, runner = folder / "words", folder / "commands.py"
    spelled = "lakehouse() { printf '%s\\0' \"$@\" ''; }"
    runner.write_text(RUNNER)
    rest = [text for name, text in commands if name not in ALONE]
    run(["sh", "-ec", "\n".join([where, spelled, f"{{\n{chr(10).join(rest)}\n}} > {words}"])], folder)
    ran = run(["sh", "-ec", f"{where}\n{sys.executable} {runner} {words}"], folder)
    assert ran.count("=====\n") == sum(text.count("\n") + 1 for text in rest)
