"""What a power cut would leave of a SQLite database: a recording of writes and syncs, and its replay.

`Recorder` puts itself between SQLite and the operating system, in this process, and appends every write, sync, cut and
deletion of a database's files to a record that many processes share, with whatever else the test notes. `Disk` replays
a record and holds, at each point, the bytes of a disk that keeps nothing unsynced: the least that a power cut may
leave. A sync can be refused; its pages are then lost, and a later sync of the same file succeeds without them, as on
Linux.
"""

from __future__ import annotations

import base64
import ctypes
import itertools
import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakehouse.catalog.store.opening import sqlite

PAGE = 4096
_CREATE, _DATABASE, _JOURNAL, _LOG = 0x4, 0x100, 0x800, 0x80000
_METHODS = 19
_WRITE, _TRUNCATE, _SYNC = 3, 4, 5
_UNSYNCED, _FOLDER_UNSYNCED = 10 | 4 << 8, 10 | 5 << 8
_P, _I, _L = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
_OPEN_TYPE = ctypes.CFUNCTYPE(_I, _P, _P, _P, _I, _P)
_DELETE_TYPE = ctypes.CFUNCTYPE(_I, _P, ctypes.c_char_p, _I)
_WRITE_TYPE = ctypes.CFUNCTYPE(_I, _P, _P, _I, _L)
_TRUNCATE_TYPE = ctypes.CFUNCTYPE(_I, _P, _L)
_SYNC_TYPE = ctypes.CFUNCTYPE(_I, _P, _I)


class _FileSystem(ctypes.Structure):
    """The beginning of ``sqlite3_vfs``."""

    _fields_ = (
        ("version", _I), ("file_bytes", _I), ("path_bytes", _I), ("next", _P), ("name", ctypes.c_char_p), ("own", _P),
        ("open", _P), ("delete", _P),
    )  # fmt: skip


class Recorder:
    """Records what SQLite does to files, from `install` on until the process ends."""

    def __init__(self, record: Path) -> None:
        self._handle = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
        self._paths: dict[int, str] = {}
        self._new: set[int] = set()
        self._methods: dict[int, Any] = {}
        self._kept: list[Any] = []
        self._syncs = itertools.count()
        self._refused: Counter[str] = Counter()
        self._dies = False

    def note(self, **facts: Any) -> None:
        """Append a line to the record, in one write, so that lines are in order of time."""
        os.write(self._handle, (json.dumps(facts) + "\n").encode())

    def refuse(self, what: str, times: int = 1) -> None:
        """Refuse the next syncs of ``database``, ``log`` or ``journal``, or of the ``folder`` after a deletion."""
        self._refused[what] = times

    def die(self) -> None:
        """Kill this process at its next sync, before that reaches the disk."""
        self._dies = True

    def install(self) -> None:
        """Stand between SQLite's library, as the catalog loads it, and the files that it opens from now on."""
        library = ctypes.CDLL(__import__(f"{sqlite.__name__.split('.')[0]}._sqlite3", fromlist=["_sqlite3"]).__file__)
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_FileSystem)
        system = library.sqlite3_vfs_find(None).contents
        genuine_open, genuine_delete = _OPEN_TYPE(system.open), _DELETE_TYPE(system.delete)

        def opened(own: int, name: int, file: int, flags: int, out: int) -> int:
            code: int = genuine_open(own, name, file, flags, out)
            if code == 0 and name and flags & (_DATABASE | _JOURNAL | _LOG):
                self._paths[file] = Path(os.fsdecode(ctypes.string_at(name))).name
                # SQLite syncs the folder too with the first sync of a journal or log that it may have made.
                self._new.discard(file)
                if flags & _CREATE and flags & (_JOURNAL | _LOG):
                    self._new.add(file)
                methods = ctypes.cast(file, ctypes.POINTER(_P))
                methods[0] = ctypes.addressof(self._watched(methods[0] or 0))
            return code

        def deleted(own: int, name: bytes, durably: int) -> int:
            code: int = genuine_delete(own, name, durably)
            refused = bool(durably) and self._is_refused("folder")
            self.note(do="delete", file=Path(os.fsdecode(name)).name, durably=bool(durably) and not refused)
            return _FOLDER_UNSYNCED if refused else code

        self._kept += [_OPEN_TYPE(opened), _DELETE_TYPE(deleted), genuine_open, genuine_delete]
        system.open, system.delete = (ctypes.cast(one, _P).value for one in self._kept[:2])

    def _is_refused(self, what: str) -> bool:
        self._refused[what] -= 1
        return self._refused[what] >= 0

    def _watched(self, methods: int) -> Any:
        """A copy of a file's methods, with recording ones in place."""
        if methods in self._methods:
            return self._methods[methods]
        copy = (_P * _METHODS).from_buffer_copy((_P * _METHODS).from_address(methods))
        write, truncate = _WRITE_TYPE(copy[_WRITE] or 0), _TRUNCATE_TYPE(copy[_TRUNCATE] or 0)
        sync = _SYNC_TYPE(copy[_SYNC] or 0)

        def written(file: int, data: int, size: int, at: int) -> int:
            code: int = write(file, data, size, at)
            text = base64.b64encode(ctypes.string_at(data, size)).decode()
            self.note(do="write", file=self._paths[file], at=at, data=text)
            return code

        def truncated(file: int, size: int) -> int:
            code: int = truncate(file, size)
            self.note(do="truncate", file=self._paths[file], size=size)
            return code

        def synced(file: int, flags: int) -> int:
            name, key = self._paths[file], f"{os.getpid()}.{next(self._syncs)}"
            kind = "log" if name.endswith("-wal") else "journal" if name.endswith("-journal") else "database"
            if self._dies:
                os.kill(os.getpid(), signal.SIGKILL)
            self.note(do="sync", file=name, key=key)
            code = _UNSYNCED if self._is_refused(kind) else sync(file, flags)
            self.note(do="synced", file=name, key=key, taken=code == 0, folder=code == 0 and file in self._new)
            if code == 0:
                self._new.discard(file)
            return code

        for place, mine in (
            (_WRITE, _WRITE_TYPE(written)), (_TRUNCATE, _TRUNCATE_TYPE(truncated)), (_SYNC, _SYNC_TYPE(synced)),
        ):  # fmt: skip
            self._kept.append(mine)
            copy[place] = ctypes.cast(mine, _P).value
        self._kept += [write, truncate, sync]
        self._methods[methods] = copy
        return copy


@dataclass(slots=True)
class _File:
    held: bytearray = field(default_factory=bytearray)
    durable: bytearray | None = None
    dirty: set[int] = field(default_factory=set)
    is_deleted: bool = False


class Disk:
    """The files of a record: their current state, and what a power cut would leave."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._syncs: dict[str, tuple[int, dict[int, bytes]]] = {}

    def apply(self, event: dict[str, Any]) -> bool:
        """Apply one line of a record; True if it changed what a power cut would leave."""
        name = event["file"]
        file = self._files.setdefault(name, _File())
        match event["do"]:
            case "write":
                data, at = base64.b64decode(event["data"]), event["at"]
                file.held.extend(bytes(max(at + len(data) - len(file.held), 0)))
                file.held[at : at + len(data)] = data
                file.dirty.update(range(at // PAGE, (at + len(data) - 1) // PAGE + 1))
            case "truncate":
                del file.held[event["size"] :]
                file.held.extend(bytes(event["size"] - len(file.held)))
            case "sync":
                pages = {one: bytes(file.held[one * PAGE : (one + 1) * PAGE]) for one in file.dirty}
                self._syncs[event["key"]] = len(file.held), pages
            case "synced":
                self._synced(file, *self._syncs.pop(event["key"]), taken=event["taken"])
                if event["folder"]:
                    self._synced_folder()
                return bool(event["taken"])
            case "delete":
                # Its name comes back after a power cut, unless the folder is synced too.
                file.held, file.dirty, file.is_deleted = bytearray(), set(), True
                if event["durably"]:
                    self._synced_folder()
                return bool(event["durably"])
        return False

    def _synced_folder(self) -> None:
        for file in self._files.values():
            if file.is_deleted:
                file.durable, file.is_deleted = None, False

    def _synced(self, file: _File, size: int, pages: dict[int, bytes], *, taken: bool) -> None:
        if taken:
            durable = file.durable if file.durable is not None else bytearray()
            del durable[size:]
            durable.extend(bytes(size - len(durable)))
            for one, data in pages.items():
                durable[one * PAGE : one * PAGE + len(data)] = data[: max(size - one * PAGE, 0)]
            file.durable, file.is_deleted = durable, False
            unchanged = {one for one in pages if file.held[one * PAGE : (one + 1) * PAGE] == pages[one]}
            file.dirty -= unchanged
        else:
            file.dirty -= pages.keys()

    def leave(self, folder: Path) -> None:
        """Write into an empty folder what a power cut would leave now."""
        folder.mkdir()
        for name, file in self._files.items():
            if file.durable is not None:
                (folder / name).write_bytes(file.durable)


def replay(record: Path) -> Iterator[dict[str, Any]]:
    """The lines of a record, in the order in which they happened."""
    with record.open() as lines:
        for line in lines:
            yield json.loads(line)
