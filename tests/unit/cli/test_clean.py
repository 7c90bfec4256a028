"""Commands that keep a lake tidy."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import update

import lakehouse
from lakehouse.catalog.store.models import segment
from lakehouse.testing import behind
from lakehouse.testing.campaign.flips import changed

Run = Callable[..., Any]


def replaced(run: Run, tmp_path: Path, count: int = 3) -> None:
    day = tmp_path / "day.jsonl"
    day.write_text('{"at": "2013-01-05T10:00:00Z", "client": 5, "name": "new", "price": 9.0}\n')
    for _ in range(count):
        assert run("replace", "trips", "2013-01-05", str(day)).code == 0


def test_expire_and_collect_say_what_goes_and_what_went(run: Run, trips: Path, tmp_path: Path) -> None:
    replaced(run, tmp_path)
    foreseen = run("expire", "--keep-last", "1", "--dry-run").out
    assert foreseen.startswith("4 versions would be expired, with 3 segments (")
    assert foreseen.endswith("and 0 tombstones; readable from version 8\n")
    done = json.loads(run("expire", "--older-than", "0s", "--keep-last", "1", "--json").out)
    assert (done["versions"], done["segments"], done["horizon"]) == (4, 3, 8)
    assert run("collect").out == "0 files (0 B) deleted, with those of 0 operations that never committed\n"
    assert run("collect", "--grace", "0s", "--dry-run").out.startswith("3 files (")
    collected = json.loads(run("collect", "--grace", "0s", "--json").out)
    assert collected == {"files": 3, "bytes": done["bytes"], "operations": 0}


def test_expire_needs_to_know_what_to_keep(run: Run, trips: Path) -> None:
    assert run("expire").code == 2
    assert run("expire", "--keep-last", "0").code == 2
    assert run("expire", "--older-than", "soon").code == 1
    assert run("collect", "--grace", "soon").code == 2


def test_check_exits_with_1_if_anything_is_wrong(run: Run, trips: Path, tmp_path: Path) -> None:
    assert run("check").out.endswith("0 problems\n")
    with lakehouse.connect() as lake:
        path = lake.warehouse / lake.table("trips").segments()[0].path
    path.unlink()
    ran = run("check")
    assert ran.code == 1
    assert "missing" in ran.out
    assert "1 problems" in ran.out
    ran = run("check", "--json", "--rebuild-key-frames", "--delete-unknown")
    assert ran.code == 1
    assert json.loads(ran.out)["findings"][0]["kind"] == "missing"


def test_a_deep_check_compares_bytes_and_gives_old_files_checksums(run: Run, trips: Path) -> None:
    with lakehouse.connect() as lake:
        path = lake.warehouse / lake.table("trips").segments()[0].path
    with changed(path, {40: 1}):
        assert run("check").code == 0
        ran = run("check", "--deep")
        assert (ran.code, "content" in ran.out) == (1, True)
    forget = update(segment).values(checksum=None)
    with lakehouse.connect() as lake:
        behind.change(lake.catalog, forget)
    assert "2 files have no checksum; --add-checksums gives them one" in run("check", "--rebuild-key-frames").out
    assert "no checksum" not in run("check", "--deep", "--add-checksums").out
    assert json.loads(run("check", "--json").out)["unsummed"] == 0
    assert run("alter", "trips", "verify=pages").code == 0
    assert run("alter", "trips", "verify=all").code == 1
