"""Starting the console: who reaches it, and what they may do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LOGIN = '[auth]\nredirect_uri = "http://localhost:8501/oauth2callback"\n'


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """The command lines that would take this process's place; the test's home is its own folder."""
    lines: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _, line: lines.append([*line, os.environ["LAKEHOUSE_CONSOLE_ROLE"]]))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LAKEHOUSE_CONSOLE_ROLE", "admin")
    return lines


def secrets(folder: Path, text: str) -> None:
    (folder / ".streamlit").mkdir()
    (folder / ".streamlit/secrets.toml").write_text(text)


def test_it_listens_to_this_machine_and_only_looks_unless_options_say_otherwise(
    run: Callable[..., Any], started: list[list[str]]
) -> None:
    assert run("console").code == 0
    assert started[0][started[0].index("--server.address") + 1] == "127.0.0.1"
    assert started[0][-1] == "reader"


@pytest.mark.parametrize(
    ("options", "role"),
    [
        (("--allow-actions",), "maintainer"),
        (("--allow-actions", "--role", "admin"), "admin"),
        (("--role", "admin"), "reader"),
    ],
)
def test_actions_are_for_those_whose_role_allows_them(
    run: Callable[..., Any], started: list[list[str]], options: tuple[str, ...], role: str
) -> None:
    assert run("console", *options).code == 0
    assert started[0][-1] == role


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.1", "lake.example.org", ""])
def test_an_address_that_others_reach_takes_a_login(
    run: Callable[..., Any], started: list[list[str]], tmp_path: Path, address: str
) -> None:
    refused = run("console", "--address", address)
    assert refused.code == 1
    assert "without a login the console listens on this machine only" in refused.err
    assert started == []
    secrets(tmp_path, LOGIN)
    assert run("console", "--address", address).code == 0
    assert started[0][started[0].index("--server.address") + 1] == address


@pytest.mark.parametrize("text", ["[auth", "auth = 3", "[authentic]\nx = 1", ""])
def test_secrets_that_say_nothing_of_a_login_are_none(
    run: Callable[..., Any], started: list[list[str]], tmp_path: Path, text: str
) -> None:
    secrets(tmp_path, text)
    assert run("console", "--address", "0.0.0.0").code == 1
    assert started == []
