"""The bootstrap on machines that lack something: one line says what, and nothing is half done."""

import os
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "tools/bootstrap"


@pytest.fixture
def bootstrap() -> ModuleType:
    loader = SourceFileLoader("bootstrap", str(SCRIPT))
    spec = spec_from_loader("bootstrap", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)


def test_a_machine_that_has_everything_is_left_alone() -> None:
    done = run("--tests")
    assert (done.returncode, done.stderr) == (0, "")


def test_without_java_and_without_a_package_manager_one_line_says_what_to_install(tmp_path: Path) -> None:
    done = run(PATH=str(tmp_path), JAVA_HOME=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "Java runtime, 17 or newer" in done.stderr
    assert "apt-get install openjdk-17-jre-headless" in done.stderr
    assert "JAVA_HOME is set" in done.stderr


def test_what_tests_need_is_asked_for_by_tests_alone(bootstrap: ModuleType) -> None:
    assert [need.packages[0] for need in bootstrap.wanted_from_system(tests=False)] == ["openjdk-17-jre-headless"]
    assert {need.packages[0] for need in bootstrap.wanted_from_system(tests=True)} > {"postgresql", "chromium"}


@pytest.mark.parametrize(
    ("version", "is_enough"), [("17.0.15", True), ("21", True), ("11.0.2", False), ("1.8.0", False)]
)
def test_java_must_be_new_enough(
    bootstrap: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, is_enough: bool
) -> None:
    java = tmp_path / "bin/java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert bootstrap.has_java() is is_enough


def test_an_old_python_is_refused_in_one_line(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bootstrap"])
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    assert bootstrap.main() == 1
    assert "install Python 3.11 or newer" in capsys.readouterr().err


def test_a_command_that_fails_shows_what_it_printed(bootstrap: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert not bootstrap.run(["sh", "-c", "echo the reason; exit 3"])
    assert capsys.readouterr().err == "the reason\n"
    assert bootstrap.run(["sh", "-c", "echo quiet"])
    assert capsys.readouterr().err == ""
