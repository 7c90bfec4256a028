"""What processes do whose machine will lose its power: each records what it asks of the disk and what it learns."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import lakehouse
from lakehouse.catalog.store import opening
from lakehouse.errors import CatalogUnavailable, CommitUnknown
from lakehouse.testing.powercut import Recorder
from lakehouse.testing.rows import SCHEMA, many


def recorded(folder: str, scheme: str) -> Recorder:
    """A recorder of this process, which uses SQLite in one way: as shipped (``wal``, ``journal``) or a broken one."""
    recorder = Recorder(Path(folder, "record"))
    recorder.install()
    if scheme == "wal, normal":
        opening._FULL = 1
    elif scheme == "journal, normal":
        opening._EXTRA = 1
    if scheme.startswith("journal"):
        opening.WRITES_AHEAD = False
    return recorder


def opened(folder: str) -> lakehouse.Lake:
    """The lake of a folder."""
    return lakehouse.connect(f"sqlite:///{folder}/catalog/catalog.db", f"{folder}/warehouse")


def make(folder: str, scheme: str) -> None:
    """A table."""
    recorder = recorded(folder, scheme)
    with opened(folder) as lake:
        lake.create_table("flights", SCHEMA, time="time")
        recorder.note(do="learned", seen={commit.version: commit.message for commit in lake.log()})


def write(folder: str, scheme: str, name: str, times: int) -> None:
    """Append some times, and note each answer."""
    recorder = recorded(folder, scheme)
    with opened(folder) as lake:
        table = lake.table("flights")
        for turn in range(times):
            commit = table.append(many(3), message=f"{name}.{turn}")
            recorder.note(do="learned", seen={commit.version: commit.message})


def read(folder: str, scheme: str, stop: Any) -> None:
    """Look at the log again and again, and note what is new there."""
    recorder, seen = recorded(folder, scheme), {}
    with opened(folder) as lake:
        while not stop.is_set():
            found = {commit.version: commit.message for commit in lake.log(limit=20)}
            if not found.keys() <= seen.keys():
                recorder.note(do="learned", seen=found)
                seen |= found


def fail(folder: str, scheme: str, what: str, nth: int, times: int) -> None:
    """Append ten times; before the ``nth`` the disk begins to refuse syncs. Tell of answers, and of what is there."""
    recorder = recorded(folder, scheme)
    with opened(folder) as lake:
        table = lake.table("flights")
        for turn in range(10):
            if turn == nth:
                recorder.refuse(what, times)
            try:
                commit = table.append(many(3), message=f"f.{turn}")
            except (CommitUnknown, CatalogUnavailable) as error:
                recorder.note(do="failed", error=type(error).__name__, message=f"f.{turn}", text=str(error))
            else:
                recorder.note(do="learned", seen={commit.version: commit.message})
        recorder.refuse(what, 0)
        recorder.note(do="learned", seen={commit.version: commit.message for commit in lake.log()})


def die(folder: str, scheme: str, refused: int) -> None:
    """Append three times, then once more and be killed: as it syncs, or after the disk refused so many syncs."""
    recorder = recorded(folder, scheme)
    table = opened(folder).table("flights")
    for turn in range(3):
        table.append(many(3), message=f"d.{turn}")
    if not refused:
        recorder.die()
    recorder.refuse("log" if scheme == "wal" else "folder", refused)
    with suppress(CommitUnknown, CatalogUnavailable):
        table.append(many(3), message="d.last")
    os.kill(os.getpid(), signal.SIGKILL)


def look(folder: str, scheme: str) -> None:
    """Tell of what is there, and be killed: nothing is closed."""
    recorder = recorded(folder, scheme)
    recorder.note(do="learned", seen={commit.version: commit.message for commit in opened(folder).log()})
    os.kill(os.getpid(), signal.SIGKILL)
