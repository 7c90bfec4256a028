"""The doctor's findings, each with what is right and what is wrong."""

import os
import sys
from pathlib import Path

import pytest

import lakehouse
from lakehouse.admin import doctor


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "LAKEHOUSE_CATALOG", "LAKEHOUSE_WAREHOUSE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_machine_that_runs_these_tests_is_well() -> None:
    findings = doctor.examine()
    assert [one for one in findings if one.status == "fail"] == []
    assert {"python", "java", "spark", "sqlite", "catalog", "warehouse", "disk", "free space"} <= {
        one.subject for one in findings
    }


def test_what_is_not_right_has_a_remedy() -> None:
    assert all(one.remedy for one in doctor.examine() if one.status != "ok")


def test_looking_makes_nothing(tmp_path: Path) -> None:
    doctor.examine()
    assert list(tmp_path.iterdir()) == []


def test_java_is_missing_from_path_or_from_java_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor.check_java().status == "fail"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = doctor.check_java()
    assert (finding.status, str(tmp_path) in finding.found) == ("fail", True)
    assert "openjdk" in finding.remedy


@pytest.mark.parametrize(
    ("printed", "status"),
    [
        ('openjdk version "17.0.15" 2025-04-15', "ok"),
        ('java version "21" 2023-09-19', "ok"),
        ('java version "1.8.0_402"', "fail"),
        ('openjdk version "11.0.2"', "fail"),
        ("no java at all", "fail"),
    ],
)
def test_java_must_be_new_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, printed: str, status: str) -> None:
    program(tmp_path / "bin/java", f"echo '{printed}' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert doctor.check_java().status == status


def test_workers_must_run_the_same_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert doctor.check_workers().status == "ok"
    monkeypatch.setenv("PYSPARK_PYTHON", str(program(tmp_path / "python", "echo '(3, 8)'")))
    assert doctor.check_workers().status == "fail"
    monkeypatch.setenv("PYSPARK_PYTHON", str(tmp_path / "absent"))
    assert doctor.check_workers().status == "fail"


def test_a_package_that_is_missing_is_named_with_how_to_install_it() -> None:
    finding = doctor.check_package("no-such-package", "spark")
    assert (finding.status, finding.found) == ("warn", "no-such-package is not installed")
    assert 'pip install "lakehouse-timeline[spark]"' in finding.remedy


def test_a_catalog_is_absent_empty_ready_or_newer(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalog.db"
    assert doctor.check_catalog(url).status == "warn"
    (tmp_path / "catalog.db").touch()
    assert "empty" in doctor.check_catalog(url).found
    with lakehouse.connect(url, str(tmp_path / "w")):
        assert doctor.check_catalog(url).status == "ok"
    database = doctor.Database(url)
    database.run(lambda connection: connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'"))
    database.close()
    assert doctor.check_catalog(url).status == "fail"


def test_a_catalog_that_does_not_answer_or_has_no_address_fails() -> None:
    assert doctor.check_catalog("postgresql+psycopg://nobody@127.0.0.1:1/none").status == "fail"
    assert doctor.check_catalog("nonsense").status == "fail"


def test_a_catalog_on_postgresql_is_ready_once_it_was_opened(postgres_url: str) -> None:
    finding = doctor.check_catalog(postgres_url)
    assert finding.status == "ok", finding


def test_a_warehouse_that_is_a_file_or_of_another_kind_fails(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert [one.status for one in doctor.check_warehouse(str(tmp_path / "file"))] == ["fail"]
    assert [one.status for one in doctor.check_warehouse("hdfs://host/lake")] == ["fail"]


def test_a_warehouse_that_cannot_be_written_fails() -> None:
    findings = list(doctor.check_warehouse("/proc/lake"))
    assert findings[0].status == "fail"


def test_a_network_disk_is_a_warning(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("/dev/vda / ext4 rw 0 0\nserver:/export /mnt/my\\040share nfs4 rw 0 0\n")
    assert doctor.filesystem(Path("/mnt/my share/lake"), mounts) in doctor.NETWORK_FILESYSTEMS
    assert doctor.filesystem(Path("/srv"), mounts) == "ext4"
    assert doctor.filesystem(Path("/srv"), tmp_path / "absent") == "unknown"


@pytest.mark.parametrize(("free_bytes", "status"), [(1 << 20, "fail"), (1 << 30, "warn"), (1 << 40, "ok")])
def test_little_room_is_a_warning_and_no_room_a_failure(free_bytes: int, status: str) -> None:
    assert doctor.check_space(free_bytes).status == status


def test_the_environment_is_left_as_it_was() -> None:
    before = dict(os.environ)
    doctor.examine()
    assert dict(os.environ) == before
