"""A power cut takes back nothing that anybody saw: not a writer, not a reader, not another process."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lakehouse
from lakehouse.catalog.store.opening import sqlite
from lakehouse.testing.powercut import Disk, replay
from lakehouse.testing.rows import many
from tests.crash import power

PROCESSES = multiprocessing.get_context("forkserver")
SCHEMES = ("wal", "journal")


def run(do: Callable[..., None], *arguments: Any) -> Any:
    """Start a process that records."""
    PROCESSES.set_forkserver_preload(["lakehouse.lake", "tests.crash.power"])
    process = PROCESSES.Process(target=do, args=arguments)
    process.start()
    return process


def finish(*processes: Any) -> None:
    """Wait for processes, none of which may have failed."""
    for process in processes:
        process.join(120)
        assert process.exitcode == 0


def cuts(folder: Path) -> Iterator[tuple[Path, dict[int, str]]]:
    """What a power cut would have left, each time before that changed, and every commit that was seen by then."""
    disk, learned, is_new, left = Disk(), {}, False, 0
    for event in [*replay(folder / "record"), {"do": "end"}]:
        if event["do"] == "learned":
            seen = {int(version): message for version, message in event["seen"].items()}
            assert all(learned.get(one, message) == message for one, message in seen.items()), (
                "one version, two contents"
            )
            learned |= seen
            is_new = True
        elif is_new and event["do"] in ("synced", "delete", "end"):
            image = folder / f"image{left}"
            disk.leave(image)
            yield image, dict(learned)
            left, is_new = left + 1, False
        if event["do"] in ("write", "truncate", "sync", "synced", "delete"):
            disk.apply(event)


def lost(image: Path, learned: dict[int, str]) -> dict[int, str]:
    """What somebody had seen and a power cut took; the rest is sound."""
    connection = sqlite.connect(image / "catalog.db")
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        found = dict(connection.execute("SELECT version, message FROM commit_log"))
    except sqlite.DatabaseError:
        return learned  # not even its tables
    finally:
        connection.close()
    return {version: message for version, message in learned.items() if found.get(version, 0) != message}


def written_and_read(folder: Path, scheme: str) -> None:
    """Two processes append, two look on."""
    stop = PROCESSES.Event()
    finish(run(power.make, str(folder), scheme))
    writers = [run(power.write, str(folder), scheme, name, 12) for name in "ab"]
    readers = [run(power.read, str(folder), scheme, stop) for _ in range(2)]
    finish(*writers)
    stop.set()
    finish(*readers)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_power_cut_takes_back_no_version_that_anybody_saw(tmp_path, scheme):
    written_and_read(tmp_path, scheme)
    images = list(cuts(tmp_path))
    assert len(images) > 12
    assert [lost(*one) for one in images] == [{}] * len(images)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_after_a_power_cut_the_lake_goes_on_above_every_version_that_was_seen(tmp_path, scheme):
    written_and_read(tmp_path, scheme)
    for image, learned in list(cuts(tmp_path))[5::8]:
        with lakehouse.connect(f"sqlite:///{image}/catalog.db", f"{tmp_path}/warehouse") as lake:
            table = lake.table("flights")
            assert table.scan().count() == 3 * (len(lake.log()) - 1)
            assert table.append(many(3)).version > max(learned)


@pytest.mark.parametrize("scheme", ["wal, normal", "journal, normal"])
def test_a_catalog_that_syncs_less_is_found_out(tmp_path, scheme):
    written_and_read(tmp_path, scheme)
    assert any(lost(*one) for one in cuts(tmp_path))


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("nth", [0, 5])
@pytest.mark.parametrize(
    ("scheme", "what"),
    [("wal", "log"), ("wal", "database"), ("journal", "journal"), ("journal", "database"), ("journal", "folder")],
)
def test_what_is_answered_after_a_refused_sync_survives_a_power_cut(tmp_path, scheme, what, nth, times):
    finish(run(power.make, str(tmp_path), scheme))
    finish(run(power.fail, str(tmp_path), scheme, what, nth, times))
    images = list(cuts(tmp_path))
    assert [lost(*one) for one in images] == [{}] * len(images)
    failed = [event for event in replay(tmp_path / "record") if event["do"] == "failed"]
    if what in ("log", "journal"):
        assert failed
    answered = {message for _, learned in images for message in learned.values()}
    known = {event["message"] for event in failed if event["error"] == "CatalogUnavailable"}
    assert not known & answered, "an error that says that nothing is there, and it is"


@pytest.mark.parametrize("refused", [0, 1, 99])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_a_killed_process_had_not_synced_is_seen_only_once_it_is(tmp_path, scheme, refused):
    finish(run(power.make, str(tmp_path), scheme))
    for do, *arguments in ((power.die, refused), (power.look,)):
        process = run(do, str(tmp_path), scheme, *arguments)
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
    images = list(cuts(tmp_path))
    assert max(images[-1][1]) >= 4
    assert [lost(*one) for one in images] == [{}] * len(images)
