"""A search for values in everything that a lake keeps: what an erasure left, and what takes it away.

Compressed values are no bytes of a file, so Parquet and Arrow files are decoded too, as are the catalog's pages.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse.catalog.inspect.cells import Held, keys_in, texts_of, told_in, unpacked
from lakehouse.catalog.inspect.whereabouts import Whereabouts
from lakehouse.core.erased import Residue, Verified
from lakehouse.core.predicate import Compare, In, Or, Predicate
from lakehouse.core.spec import TableSpec
from lakehouse.core.wanted import Value, needles_of
from lakehouse.engine.duckdb import spill_folders
from lakehouse.errors import InvalidArgument, LakehouseError, SegmentUnreadable, StorageUnavailable
from lakehouse.predicate import parse
from lakehouse.session.session import Session
from lakehouse.storage.exports import EXPORTS, STREAMS
from lakehouse.storage.footer import DAMAGE
from lakehouse.storage.warehouse import Listed, Warehouse

_BLOCK_BYTES = 1 << 20
_BATCH_ROWS = 1 << 16
_COPY = "import shutil, sys; shutil.copyfileobj(open(sys.argv[1], 'rb'), sys.stdout.buffer)"
_OF_LOG = "expire these versions; one with a txn stays in the log as long as its mark (txn_retention)"
_REMEDIES = {
    "segment.statistics": "erase these rows",
    "key_frame.page": "run check with --rebuild-key-frames",
    "tombstone.keys": "erase by a whole key (column = value)",
    "tombstone.statistics": "run resolve, then expire the versions before it",
    "tombstone_set.content": "run resolve, then expire the versions before it",
    "operation.keys": "wait for the operation or release it",
    "chunk_lock.keys": "wait for the operation or release it",
    "lock_wait.keys": "wait for the operation or release it",
    "commit_log.message": _OF_LOG,
    "commit_log.properties": _OF_LOG,
    "txn.app": "they stay, so that no pair commits twice; name what writes, and nobody, in a txn",
    "tag.name": "untag them",
    "topic.report": "wait for its next report, or forget the topic: lakehouse stream forget NAME",
    "topic.name": "forget the topic: lakehouse stream forget NAME",
    "lake_table.definition": "change the column's default, comment or property",
    "table_schema.definition": "change the column's default, comment or property, and expire the versions before it",
    "lake_view.query": "replace the view, and expire the versions before it",
    "lake_view.comment": "replace the view, and expire the versions before it",
    "task.error": "it goes with the task, some days after its end",
}
_SPILLED = "what a query of this machine put on the disk", "end the query; delete the folder of one that was killed"
_IN_PAGES = "free pages or its log: run again with --vacuum; what rows of the catalog hold has to go first"
_PACKED = "what was deleted from the catalog's file and is packed there: run again with --vacuum"
_ELSEWHERE = "copies in the caches of other machines: run cache --clear there, or read there"
_IN_PART = "a copy in part of a file that the store no longer has, which cannot be decoded; run cache --clear"
_OF_SERVER = (
    "the files of the catalog's server: deleted rows stay there until VACUUM FULL, its log (WAL) until it is reused, "
    "archived logs and backups as long as they are kept"
)


def search(session: Session, values: Sequence[Value], *, vacuum: bool = False) -> Verified:
    """Read every byte of the warehouse and of the catalog for some values.

    ``vacuum`` first writes a SQLite file anew, without what was deleted from it. Cost: all of it is read and decoded.
    Raises `InvalidArgument` for ``vacuum`` of a server's database.
    """
    if vacuum:
        session.catalog.vacuum()
    looking = _Looking(values)
    root = Path(os.path.realpath(session.warehouse.root))
    # Listed before the catalog is read, which registers each operation before its first byte.
    listed = list(_files(root, looking.unread))
    cache = session.warehouse.cache
    objects = [] if cache is None else list(session.warehouse.listed())
    stored = {one.path for one in objects}
    known = session.catalog.search(looking.begin)
    for path in listed:
        name = path.relative_to(root).as_posix()
        shown, what = name, partial(_what_it_is, name, known)
        if cache is not None:
            if cache.is_partial(name):
                if name not in stored:
                    looking.unread.append(f"{path}: {_IN_PART}")
                continue  # its parts are those of the object, which is read below
            shown, what = str(path), partial(_copied_here, what, is_stored=name in stored)
        looking.at_file(path, shown, what)
    for one in objects:
        _at_object(looking, session.warehouse, one, partial(_what_it_is, one.path, known))
    if cache is not None:
        looking.unread.append(_ELSEWHERE)
    for path in (file for folder in spill_folders() for file in _files(folder, looking.unread)):
        looking.at_file(path, str(path), lambda: _SPILLED)
    for path in session.catalog.files:
        with _copied(path) as content:
            looking.at_bytes(content, f"the catalog's file {path.name}", _IN_PAGES)
    if not session.catalog.files:
        looking.unread.append(_OF_SERVER)
    elif not vacuum:
        looking.unread.append(_PACKED)
    looking.unread += [
        f"bytes that are not decoded, for value {place}: it is so short that it is there by chance"
        for place, value in enumerate(values, start=1)
        if not value.needles
    ]
    return looking.verified()


def _at_object(looking: _Looking, warehouse: Warehouse, stored: Listed, known: Callable[[], tuple[str, str]]) -> None:
    """Look at an object of a store, fetched for it alone: a copy that was not there does not stay."""
    cache = warehouse.cache
    assert cache is not None
    was_there = cache.path(stored.path).exists()
    try:
        with warehouse.fresh(stored) as path:
            looking.at_file(path, f"{warehouse.address}/{stored.path}", known)
    except SegmentUnreadable as error:
        with suppress(FileNotFoundError):  # it was collected meanwhile
            warehouse.size(stored.path)
            looking.unread.append(f"{stored.path}: {str(error)[:200]}")
    finally:
        if not was_there:
            cache.drop([stored.path])


def _copied_here(known: Callable[[], tuple[str, str]], *, is_stored: bool) -> tuple[str, str]:
    """What a copy on this machine is, and what takes it away."""
    what, remedy = known()
    if not is_stored:
        return "a copy on this machine of a file that the store no longer has", "run cache --clear"
    return f"a copy on this machine of {what}", f"{remedy}; then run cache --clear"


def read_wanted(
    session: Session, spec: TableSpec | None, where: str | None, values: Any, *, vacuum: bool
) -> list[Value]:
    """The values of a search: those given, else those that a condition lists. Raises `InvalidArgument`.

    What a search would refuse is refused here, so that it can be asked before an erasure.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise InvalidArgument("values are a list of texts, numbers, dates and times", values=repr(values)[:100])
    if vacuum and not session.catalog.files:
        raise InvalidArgument("only a SQLite file is written anew; ask who runs the server for VACUUM FULL")
    if values:
        return [Value.of(one) for one in values]
    if spec is None or where is None:
        raise InvalidArgument("name the values to search for, or the table and the condition of the erasure")
    return wanted_by(where, spec)


def wanted_by(where: str, spec: TableSpec) -> list[Value]:
    """The values that a condition lists. Raises `InvalidArgument` where it is more than a list of values."""
    found = list(_listed(parse(where, spec.schema).tree))
    if not found or any(one is None for one in found):
        raise InvalidArgument(
            "the condition is no list of column = value, joined by OR; name the part of it that tells whom it is "
            "about, or the values to search for",
            table=spec.name,
            where=where,
        )
    stored = spec.stored_names
    return [Value.of(value, {column, stored.get(column, column)}) for column, value in filter(None, found)]


def _listed(tree: Predicate) -> Iterator[tuple[str, Any] | None]:
    """What a condition lists; None for a part that chooses others. Each value alone of an AND is in others' rows."""
    match tree:
        case Or(parts):
            for part in parts:
                yield from _listed(part)
        case Compare(column=column, operator="=", value=value):
            yield column, value
        case In(column=column, values=values):
            yield from ((column, value) for value in values)
        case _:
            yield None


@dataclass
class _Looking:
    """What was found so far."""

    values: Sequence[Value]
    files: int = 0
    size: int = 0
    cells: int = 0
    found: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    unread: list[str] = field(default_factory=list)
    unread_cells: set[str] = field(default_factory=set)

    def verified(self) -> Verified:
        """What the search says."""
        findings = [
            Residue(what if count == 1 else f"{what} ({count} times)", where, remedy)
            for (what, where, remedy), count in sorted(self.found.items())
        ]
        damaged = [f"the catalog, {place}: some are damaged, run check" for place in sorted(self.unread_cells)]
        return Verified(self.files, self.size, self.cells, tuple(findings), (*self.unread, *damaged))

    def begin(self) -> Callable[[Held], None]:
        """Look at the catalog, from its first cell."""
        self.cells = 0
        self.found.clear()
        self.unread_cells.clear()
        return self.at_cell

    def at_cell(self, held: Held) -> None:
        """Look at a cell of the catalog."""
        self.cells += 1
        if held.is_damaged:
            self.unread_cells.add(held.place)
        self._note(self._in(held), f"the catalog, {held.place}", _REMEDIES.get(held.place, "erase these rows"))

    def at_file(self, path: Path, name: str, known: Callable[[], tuple[str, str]]) -> None:
        """Look at a file's name, its bytes and what it holds. ``known`` says what it is, and what takes it away."""
        places = self._in(Held("", texts=(name,)))
        try:
            with path.open("rb") as file:
                places |= self._in_bytes(file)
            self.files += 1
            for held in _content(path):
                places |= self._in(held)
                if held.is_damaged:
                    self.unread.append(f"{name}: it is damaged")
        except FileNotFoundError:
            return  # it was collected meanwhile
        except (LakehouseError, *DAMAGE) as error:
            self.unread.append(f"{name}: {str(error)[:200]}")
        if places:
            what, remedy = known()
            self._note(places, f"{name}, {what}", remedy)

    def at_bytes(self, blocks: IO[bytes], where: str, remedy: str) -> None:
        """Look at the bytes of something."""
        self._note(self._in_bytes(blocks), where, remedy)
        self.files += 1

    def _note(self, places: Iterable[int], where: str, remedy: str) -> None:
        for place in places:
            self.found[f"value {place + 1}", where, remedy] += 1

    def _in(self, held: Held) -> set[int]:
        return {
            place
            for place, value in enumerate(self.values)
            if any(map(value.is_in_text, held.texts))
            or any(map(value.is_in_words, held.words))
            or any(value.is_value(one, column) for column, one in held.values)
            or any(value.is_in_column(one, column) for column, one in held.columns)
        }

    def _in_bytes(self, file: IO[bytes]) -> set[int]:
        needles = needles_of(self.values)
        most = max((len(needle) for _, needle in needles), default=1)
        places: set[int] = set()
        before = b""
        while block := file.read(_BLOCK_BYTES):
            self.size += len(block)
            window = before + block
            places |= {place for place, needle in needles if needle in window}
            before = window[-(most - 1) :] if most > 1 else b""
        return places


def _content(path: Path) -> Iterator[Held]:
    """What a file holds whose bytes do not show it."""
    match path.suffix:
        case ".parquet":
            yield from _parquet(path)
        case ".arrow":
            yield from _arrow(path)
        case ".keys":
            yield keys_in("", path.read_bytes())


def _parquet(path: Path) -> Iterator[Held]:
    """What a Parquet file holds: its footer's texts and bounds, and every column; of texts their dictionaries."""
    with pq.ParquetFile(path) as plain:
        metadata, columns = plain.metadata, plain.schema_arrow.names
        leaves = [plain.schema.column(number) for number in range(len(plain.schema))]
    for text in (held.decode(errors="replace") for held in (metadata.metadata or {}).values()):
        words, values = told_in(text)
        yield Held("", texts=tuple(texts_of(text)), words=words, values=values)
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for place in range(group.num_columns):
            yield Held("", values=_bounds(group.column(place), columns))
    # As dictionaries they show what no row refers to, too.
    texts = [one.path for one in leaves if one.physical_type == "BYTE_ARRAY"]
    with pq.ParquetFile(path, read_dictionary=texts) as file:
        for batch in file.iter_batches(_BATCH_ROWS):
            yield Held("", columns=_columns(batch))


def _bounds(chunk: Any, columns: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    """The least and greatest value in a part of a column, by the column's name."""
    path = chunk.path_in_schema
    name = max((one for one in columns if path == one or path.startswith(f"{one}.")), key=len, default=path)
    with suppress(*DAMAGE):  # of a type that has none in Python; its values are read below
        held = chunk.statistics
        if held is not None and held.has_min_max:
            return (name, held.min), (name, held.max)
    return ()


def _columns(batch: pa.RecordBatch) -> tuple[tuple[str, pa.ChunkedArray], ...]:
    return tuple((name, pa.chunked_array([one])) for name, one in zip(batch.schema.names, batch.columns, strict=True))


def _arrow(path: Path) -> Iterator[Held]:
    """What a part of an export holds, which has the columns of a table of the catalog."""
    with pa.memory_map(str(path)) as source:
        file = pa.ipc.open_file(source)
        for number in range(file.num_record_batches):
            batch = file.get_batch(number)
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                yield from (unpacked(path.stem, name, cell) for cell in column.to_pylist() if cell is not None)


def _files(root: Path, unread: list[str]) -> Iterator[Path]:
    """Every file below a folder, through no link."""

    def refused(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            unread.append(str(error))

    for folder, folders, names in os.walk(root, onerror=refused):
        links = [Path(folder, name) for name in folders if Path(folder, name).is_symlink()]
        for path in links + [Path(folder, name) for name in sorted(names)]:
            if path.is_file() and not path.is_symlink():
                yield path
            else:
                unread.append(f"{path.relative_to(root)}: a link or a special file")


def _what_it_is(name: str, known: Whereabouts) -> tuple[str, str]:
    """What a file in the warehouse is, and what takes a value away that it holds."""
    parts = name.split("/")
    if parts[0] == STREAMS:
        return "a checkpoint of Spark's", 'end the topic, and delete its checkpoint (resume = "table" makes it again)'
    if parts[0] != EXPORTS:
        return known.of(name)
    if len(parts) > 1 and parts[1].startswith(".partial"):
        return "an unfinished export", "export again a day after it began"
    return "an export", "export again, which keeps three, or delete it"


@contextmanager
def _copied(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file that another process reads: closing it here would end this one's locks on it."""
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", _COPY, str(path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        yield child.stdout
    if child.returncode:
        raise StorageUnavailable("the catalog's file cannot be read; allow it", path=path)
