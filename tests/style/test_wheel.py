"""The wheel: what is in it, and that it works without this tree."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's files alone, as an installer lays them out; its dependencies come from this environment."""
    folder = tmp_path_factory.mktemp("site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run(installed: Path, where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LAKEHOUSE_")}
    environment["PYTHONPATH"] = str(installed)
    return subprocess.run([sys.executable, *arguments], cwd=where, env=environment, capture_output=True, text=True)


COMMAND = ("-c", "from lakehouse.cli import main; main()")


def test_the_only_top_level_name_is_the_librarys(wheel: Path) -> None:
    names = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"lakehouse"}


def test_the_console_the_code_location_and_the_migrations_are_in_it(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        "lakehouse/py.typed",
        "lakehouse/_console/app.py",
        "lakehouse/_console/.streamlit/config.toml",
        "lakehouse/_code_location/assets/definitions.py",
        "lakehouse/_code_location/dagster.yaml",
        "lakehouse/catalog/migrations/env.py",
    }
    assert wanted <= names
    assert [name for name in names if "__pycache__" in name or name.startswith("lakehouse/_console/tests")] == []


def test_the_command_line_works_from_it(installed: Path, tmp_path: Path) -> None:
    done = run(installed, tmp_path, *COMMAND, "--help")
    assert done.returncode == 0, done.stderr
    assert all(command in done.stdout for command in ("demo", "doctor", "console", "timeline"))


def test_the_doctor_works_from_it(installed: Path, tmp_path: Path) -> None:
    done = run(installed, tmp_path, *COMMAND, "doctor", "--json")
    findings = {one["subject"]: one["status"] for one in json.loads(done.stdout)}
    assert done.returncode == 0, done.stdout + done.stderr
    assert findings["java"] == findings["sqlite"] == findings["spark"] == "ok"


def test_a_table_can_be_made_and_looked_at_from_it(installed: Path, tmp_path: Path) -> None:
    columns = ("--schema", "at timestamp, value double", "--time", "at")
    assert run(installed, tmp_path, *COMMAND, "init", "events", *columns).returncode == 0
    done = run(installed, tmp_path, *COMMAND, "tables", "--json")
    assert [one["name"] for one in json.loads(done.stdout)["tables"]] == ["events"]


def test_it_finds_the_console_and_the_demo_inside_itself(installed: Path, tmp_path: Path) -> None:
    program = "from lakehouse.cli.run import console_script; import lakehouse.demo; print(console_script())"
    done = run(installed, tmp_path, "-c", program)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()) == installed / "lakehouse/_console/app.py"
