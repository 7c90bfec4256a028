"""Exports of the catalog in the warehouse: written whole or not at all, and verified before use.

An export is a folder ``<warehouse>/_catalog/<version>-<time>-<random>`` with one Arrow file for each part and a
manifest that lists each file's length and checksum. It is written under another name, flushed, and renamed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from lakehouse.errors import SegmentUnreadable, coded
from lakehouse.faults import reach
from lakehouse.storage.checksums import check_plain, opened, read_content
from lakehouse.storage.files import make_folder, sync
from lakehouse.storage.uploads import MARK
from lakehouse.storage.warehouse import Listed, Warehouse, fetch_all, fetched

logger = logging.getLogger(__name__)

EXPORTS = "_catalog"
"""The folder of exports in a warehouse. A table's folder is 32 hexadecimal digits, so none can have this name."""
STREAMS = "_streams"
"""The folder of the checkpoints of topics, which are Spark's."""
_FORM = 1
_MANIFEST = "manifest.json"
_NAME = re.compile(r"\d{20}-\d{16}-[0-9a-f]{8}")
_PARTIAL = re.compile(r"\.partial-[0-9a-f]{32}")
_ABANDONED_SECONDS = 24 * 3600
"""An unfinished export of this age no longer has a writer."""
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")


@dataclass(frozen=True, slots=True)
class Manifest:
    """An export's manifest. ``parts`` has each file's length and SHA-256; ``folders`` are its tables'."""

    form: int
    version: int
    folders: Sequence[str]
    segments: int
    parts: Mapping[str, tuple[int, str]]


class _HashedPart:
    """A sink for Arrow's writer that computes the checksum of what is written, not of what the disk stored."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self.checksum = hashlib.sha256()
        self.close, self.flush = self._file.close, self._file.flush

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._file.closed

    def write(self, data: Any) -> int:
        """Add bytes."""
        self.checksum.update(data)
        return self._file.write(data)


class ExportWriter:
    """Writes one export; nothing of it looks like an export before `finish` has returned."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._home = warehouse.root / EXPORTS
        self._folder = self._home / f".partial-{uuid4().hex}"
        self._parts: dict[str, tuple[int, str]] = {}
        self.bytes = 0
        """Of the finished export."""
        make_folder(self._folder)

    def write(self, name: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        """Write a part and flush it, overwriting an earlier one."""
        path = self._folder / f"{name}.arrow"
        with closing(_HashedPart(path)) as sink, pa.ipc.new_file(sink, schema, options=_COMPRESSED) as to:
            for batch in batches:
                to.write_batch(batch)
        sync(path)
        self._parts[name] = (path.stat().st_size, sink.checksum.hexdigest())

    def finish(self, version: int, folders: Sequence[str], segments: int) -> Path:
        """Write the manifest, rename the export to its final name, and return its folder. It is then durable."""
        reach("export.written")
        text = json.dumps(asdict(Manifest(_FORM, version, folders, segments, self._parts)))
        manifest = self._folder / _MANIFEST
        manifest.write_text(f"{text}\n{hashlib.sha256(text.encode()).hexdigest()}\n")
        sync(manifest)
        sync(self._folder)
        self.bytes = manifest.stat().st_size + sum(size for size, _ in self._parts.values())
        reach("export.before_rename")
        final = self._home / f"{version:020d}-{time.time_ns() // 1000:016d}-{uuid4().hex[:8]}"
        self._folder.rename(final)
        sync(self._home)
        self._warehouse.publish(sorted(final.glob("*.arrow")))
        self._warehouse.publish([final / _MANIFEST])
        return final

    def abandon(self) -> None:
        """Delete the files of a failed export."""
        shutil.rmtree(self._folder, ignore_errors=True)


def find_exports(warehouse: Warehouse) -> list[Path]:
    """Folders of finished exports, highest version first, without a check that they are sound."""
    return _finished(warehouse, warehouse.listed(EXPORTS))


def _finished(warehouse: Warehouse, listed: Iterable[Listed]) -> list[Path]:
    names = {one.path.split("/")[1] for one in listed}
    return [warehouse.root / EXPORTS / name for name in sorted(names, reverse=True) if _NAME.fullmatch(name)]


def count_exports(warehouse: Warehouse) -> tuple[int, int]:
    """How many exports are finished, and how many are being written or were abandoned."""
    home = warehouse.root / EXPORTS
    unfinished = sum(_PARTIAL.fullmatch(one.name) is not None for one in home.iterdir()) if home.is_dir() else 0
    return len(find_exports(warehouse)), unfinished


def read_manifest(warehouse: Warehouse, export: Path, holder: object) -> Manifest:
    """An export's manifest, after verifying every byte of its parts, which can be read for as long as ``holder`` lives.

    Raises `SegmentUnreadable` for a damaged one.
    """
    fetch_all(warehouse, _stored(warehouse, export), holder=holder)
    manifest = _manifest(export)
    for name, (size, checksum) in manifest.parts.items():
        path = export / f"{name}.arrow"
        try:
            found_size, found = check_plain(path).st_size, _checksum(path)
        except (SegmentUnreadable, OSError) as error:
            raise _damaged(path, "missing or cannot be read", cause=error) from error
        if found_size != size:
            raise _damaged(path, "not of the length that was written", expected=size, found=found_size)
        if found != checksum:
            raise _damaged(path, "not what was written")
    return manifest


def read_part(export: Path, manifest: Manifest, name: str) -> Iterator[pa.RecordBatch]:
    """The batches of a part; none of one that the release which wrote the export did not have."""
    if name not in manifest.parts:
        return
    path = export / f"{name}.arrow"
    with pa.memory_map(str(path)) as source:
        file = pa.ipc.open_file(source)
        for number in range(file.num_record_batches):
            yield file.get_batch(number)


def prune_exports(warehouse: Warehouse, export: Path, folders: Iterable[str], keep: int) -> None:
    """Delete all but the newest ``keep`` of the exports that ``export`` supersedes, and leftovers of dead writers.

    It supersedes exports up to its version of which it holds all tables, whose ``folders`` are given: it may be
    superseded and deleted itself by now. Exports of a lost catalog do not qualify and are kept.
    """
    mine = set(folders)
    kept = 0
    listed = list(warehouse.listed(EXPORTS))
    for one in _finished(warehouse, listed):
        if one.name > export.name or not _is_held(warehouse, one, mine):
            continue
        kept += 1
        if kept > keep:
            discard_export(warehouse, one)
    delete_markers(warehouse, listed, time.time() - _ABANDONED_SECONDS)
    for one in (warehouse.root / EXPORTS).iterdir():
        if _PARTIAL.fullmatch(one.name) and not one.is_symlink() and _age_seconds(one) > _ABANDONED_SECONDS:
            shutil.rmtree(one, ignore_errors=True)


def delete_markers(warehouse: Warehouse, listed: Iterable[Listed], before: float) -> None:
    """Delete markers that dead writers of exports left before a time (seconds since 1970), and abort their uploads.

    ``listed`` is what lies below the folder of exports.
    """
    warehouse.delete(one.path for one in listed if one.path.endswith(MARK) and one.modified < before)


def discard_export(warehouse: Warehouse, export: Path) -> None:
    """Delete an export such that half of it is never taken for one; a missing one is fine."""
    stored = sorted((one.path for one in _stored(warehouse, export)), key=lambda path: not path.endswith(_MANIFEST))
    doomed = export.with_name(f".partial-{uuid4().hex}")
    with suppress(FileNotFoundError):
        export.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)
    for path in stored:
        warehouse.delete([path])


def _stored(warehouse: Warehouse, export: Path) -> list[Listed]:
    return list(warehouse.listed(f"{EXPORTS}/{export.name}"))


def _age_seconds(folder: Path) -> float:
    try:
        return time.time() - folder.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _is_held(warehouse: Warehouse, export: Path, folders: set[str]) -> bool:
    try:
        with fetched(warehouse, _stored(warehouse, export)):
            theirs = set(_manifest(export).folders)
    except SegmentUnreadable as error:
        if not export.exists():  # another process has just deleted it
            return False
        logger.warning("a damaged export is left in place: %s", coded(error))
        return False
    if theirs <= folders:
        return True
    logger.warning("an export of another catalog is in the warehouse and is kept: %s; was a catalog lost?", export)
    return False


def _manifest(export: Path) -> Manifest:
    path = export / _MANIFEST
    try:
        text, checksum, *rest = read_content(path).decode().split("\n")
    except (SegmentUnreadable, ValueError) as error:
        raise _damaged(path, "missing or cannot be read", cause=error) from error
    if rest != [""] or hashlib.sha256(text.encode()).hexdigest() != checksum:
        raise _damaged(path, "not what was written")
    manifest = Manifest(**json.loads(text))
    if manifest.form != _FORM:
        raise _damaged(path, "of a newer release", found=manifest.form, expected=_FORM)
    return manifest


def _damaged(path: Path, what: str, **facts: object) -> SegmentUnreadable:
    return SegmentUnreadable(f"a file of an export is {what}; an older export is used", path=str(path), **facts)


def _checksum(path: Path) -> str:
    with opened(path) as handle, os.fdopen(handle, "rb", closefd=False) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
