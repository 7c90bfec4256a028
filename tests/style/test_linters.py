"""The form of the code is tested like its behaviour, so that CI runs one command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("ruff", "check", "--no-cache", "."), id="the linter finds nothing"),
        pytest.param(("ruff", "format", "--no-cache", "--check", "."), id="every file has the common form"),
        pytest.param(("mypy", "--cache-dir", os.devnull), id="types are strict and sound"),
        pytest.param(("lint-imports", "--no-cache"), id="imports point down only"),
    ],
)
def test_the_code_keeps_its_form(command: tuple[str, ...]) -> None:
    done = subprocess.run([BIN / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
