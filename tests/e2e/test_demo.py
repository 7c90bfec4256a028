"""The demo from end to end, in a process of its own, as `lakehouse demo` runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from pathlib import Path

import dagster as dg
import pytest

import lakehouse


def run_demo(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("LAKEHOUSE_", "DAGSTER_"))}
    command = Path(sysconfig.get_path("scripts"), "lakehouse")
    return subprocess.run(
        [str(command), "demo"],
        cwd=folder,
        env=inherited | environment,
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
    )


@pytest.mark.timeout(1_700)
def test_the_demo_ends_well_on_a_fresh_folder_and_again_on_what_it_left(tmp_path: Path) -> None:
    first = run_demo(tmp_path)
    assert first.returncode == 0, first.stdout + first.stderr
    again = run_demo(tmp_path)
    assert again.returncode == 0, again.stdout + again.stderr
    for done in (first, again):
        assert [int(count.replace(",", "")) for count in re.findall(r"([\d,]+) rows", done.stdout)] == [
            80_687, 80_789, 80_457, 80_374, 78_624, 78_624, 79_394, 80_363, 80_363, 80_687,
        ]  # fmt: skip
        assert "Every count is right." in done.stdout
    with lakehouse.connect(f"sqlite:///{tmp_path}/.lakehouse/catalog.db", tmp_path / ".lakehouse/warehouse") as lake:
        assert {"flights", "weather", "airlines", "airports", "planes"} == set(lake.tables())
    with dg.DagsterInstance.from_config(str(tmp_path / ".dagster")) as instance:
        assert len(instance.get_materialized_partitions(dg.AssetKey("flights"))) == 90
        assert {run.status for run in instance.get_runs()} == {dg.DagsterRunStatus.SUCCESS}
        assert instance.get_runs_count() == 4


def test_the_demo_without_java_says_what_to_install_and_ends_with_1(tmp_path: Path) -> None:
    done = run_demo(tmp_path, JAVA_HOME=str(tmp_path))
    assert done.returncode == 1
    assert "install OpenJDK 17" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_demo_that_cannot_use_its_lake_says_why_and_ends_with_1(tmp_path: Path) -> None:
    (tmp_path / ".lakehouse").write_text("a file where the folder should be")
    done = run_demo(tmp_path)
    assert done.returncode == 1
    assert ".lakehouse" in done.stderr
    assert "Traceback" not in done.stderr
