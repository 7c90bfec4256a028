"""A lake through a master with worker processes, and through Spark Connect; and errors where Spark cannot start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]


def run(script: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *script],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=540,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


@pytest.mark.parametrize("kind", ["cluster", "connect"])
def test_a_lake_works_through(kind: str, tmp_path: Path) -> None:
    done = run([str(Path(__file__).with_name("child.py")), kind, str(tmp_path)])
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["failed_once"] is (kind == "cluster")
    assert found["appended"] == [20_000, 20_000, 20_000]
    assert found["in_process"] == 20_000
    assert found["replaced"] == [600, 600]
    assert found["rows"] == [19_933, 19_933]
    assert "column=client expected=int64 found=string" in found["wrong_type"]
    assert "column=client" in found["wrong_value"]
    assert found["settings"] == "INT96"
    assert found["missing"]
    statements = found["sql"]
    if kind == "cluster":
        assert statements["at_once"] == [[334, 11]]
    else:
        assert "set spark.sql.session.timeZone to UTC" in statements["zone"]
    assert statements["first"] == statements["again"] == [[334, 11]]
    assert (statements["inserted"], statements["views"]) == (5, 0)
    assert found["changed"] == [[True, count] for count in (19_800, 19_800, 19_801, 19_781, 19_801, 19_801)]
    assert found["vanished"]


OPEN = """
import lakehouse
try:
    lakehouse.connect("sqlite:///{folder}/catalog.db", "{folder}/warehouse").spark
except lakehouse.LakehouseError as error:
    print(error.kind, error)
"""


def _opened(folder: Path, before: str = "", **environment: str) -> str:
    done = run(["-c", before + OPEN.format(folder=folder)], **environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_missing_java_is_named_with_the_remedy(tmp_path: Path) -> None:
    said = _opened(tmp_path, PATH=str(tmp_path), JAVA_HOME="")
    assert said.startswith("engine_unavailable Java is missing")
    assert "openjdk-17-jre-headless" in said


def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    said = _opened(tmp_path, JAVA_HOME=str(tmp_path))
    assert said.startswith("engine_unavailable Java does not run")
    assert str(tmp_path / "bin" / "java") in said


def test_an_old_java_is_named_with_both_versions(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    said = _opened(tmp_path, JAVA_HOME=str(tmp_path))
    assert "Java is too old" in said
    assert "found=11.0.2 needed=17" in said


def test_a_java_that_cannot_run_spark_is_reported(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text('#!/bin/sh\necho \'openjdk version "17.0.2" 2022-01-18\' >&2\n[ "$1" = -version ]\n')
    java.chmod(0o755)
    assert "engine_unavailable Spark does not start" in _opened(tmp_path, JAVA_HOME=str(tmp_path))


def test_missing_spark_is_named_with_the_remedy(tmp_path: Path) -> None:
    said = _opened(tmp_path, "import sys; sys.modules['pyspark'] = None\n")
    assert said.startswith("engine_unavailable pyspark is missing")
    assert "pip install" in said
