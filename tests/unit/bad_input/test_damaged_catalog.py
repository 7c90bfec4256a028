"""A catalog's file that is damaged, or is no file: reported as such, with what to do, and never waited for."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import lakehouse
from lakehouse.errors import CatalogUnavailable

SEED = 20


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "catalog.db"
    with lakehouse.connect(f"sqlite:///{path}", tmp_path / "warehouse") as lake:
        lake.create_table("words", "at timestamp, word string", time="at")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def statement(text: str) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("PRAGMA foreign_keys=OFF")
            connection.execute("PRAGMA writable_schema=ON")
            connection.execute(text)

    return damage


def other_kind(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.unlink()
        make(path)

    return damage


DAMAGES: dict[str, Callable[[Path], object]] = {
    "garbage": lambda path: path.write_bytes(random.Random(SEED).randbytes(50_000)),
    "not UTF-8": lambda path: path.write_bytes(b"\xff\xfe" * 5_000),
    "a text": lambda path: path.write_text("this is no database\n" * 100),
    "half of it": lambda path: os.truncate(path, path.stat().st_size // 2),
    "a hundred bytes": lambda path: os.truncate(path, 100),
    "one page": lambda path: os.truncate(path, 4096),
    "no revision that is known": statement("UPDATE alembic_version SET version_num = 'f00d'"),
    "a revision before the first": statement("UPDATE alembic_version SET version_num = '0000'"),
    "a newer revision": statement("UPDATE alembic_version SET version_num = '9999'"),
    "a revision of bytes": statement("UPDATE alembic_version SET version_num = x'ff00'"),
    "a revision of no text": statement("UPDATE alembic_version SET version_num = CAST(x'ff00' AS TEXT)"),
    "two revisions": statement("INSERT INTO alembic_version VALUES ('0003')"),
    "no revision": statement("DELETE FROM alembic_version"),
    "a schema of nonsense": statement("UPDATE sqlite_master SET sql = 'nonsense' WHERE name = 'lake'"),
    "a schema that is no text": statement("UPDATE sqlite_master SET sql = x'ff00', name = x'ff' WHERE name = 'lake'"),
    "a folder": other_kind(Path.mkdir),
    "a FIFO": other_kind(os.mkfifo),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_catalog_is_reported(file: Path, name: str) -> None:
    DAMAGES[name](file)
    with pytest.raises(CatalogUnavailable) as refused, lakehouse.connect(f"sqlite:///{file}", file.parent) as lake:
        lake.tables()
    assert str(file) in str(refused.value) or name == "a newer revision"


def test_bytes_that_changed_in_its_first_page_never_end_opening_by_another_error(file: Path) -> None:
    chance, whole = random.Random(SEED), file.read_bytes()
    reported = 0
    for _ in range(60):
        place, length = chance.randrange(4096), chance.choice((1, 16, 300))
        file.write_bytes(whole[:place] + chance.randbytes(length) + whole[place + length :])
        for left in ("-wal", "-shm"):
            Path(f"{file}{left}").unlink(missing_ok=True)
        try:
            lakehouse.connect(f"sqlite:///{file}", file.parent).close()
        except CatalogUnavailable:
            reported += 1
    assert reported
