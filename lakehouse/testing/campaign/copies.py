"""Readers of one small folder of copies that are killed wherever they are; others drop copies meanwhile.

Every value follows from its row's id, so that a reader knows each sum that it asks for. Columns are not compressed: a
hole in a copy would be read as zeros, without an error.
"""

from __future__ import annotations

import multiprocessing
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lakehouse
from lakehouse.errors import LakehouseError
from lakehouse.storage.cache import Cache
from lakehouse.storage.checksums import check_content
from lakehouse.testing.campaign.outcome import Outcome
from lakehouse.testing.object_stores import Store, moto_server
from lakehouse.testing.store_proxy import StoreProxy

READERS = 3
FILES = 4
COLUMNS = ("one", "two", "three")
_ROWS = 250_000
_LIMIT_PART = 3
"""The folder may take this part of what the files take."""
_LATENCY_SECONDS = 0.003
_MOST_SECONDS = 0.15
"""Somebody is killed so long at most after all have been asked to read."""
_PATIENCE_SECONDS = 60.0
_DISTURBED = 0.4
"""How often somebody finds fault with a copy before a kill, fetches it again, or empties the folder."""


def run(count: int, seed: int) -> Outcome:
    """Kill ``count`` readers; ``refused`` counts the answers that they gave before."""
    with (
        tempfile.TemporaryDirectory(prefix="lakehouse-copies-") as folder,
        moto_server() as store,
        StoreProxy(store.port, latency_seconds=_LATENCY_SECONDS) as proxy,
    ):
        trial = CopiesTrial(store.through(proxy.port), Path(folder), seed)
        trial.run(count)
    return Outcome("copies", count, trial.answers, [f"copies --seed {seed}: {one}" for one in trial.wrong])


def values(column: str, ids: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What a column holds in the rows of some ids; never zero."""
    return ids * (7 + 4 * COLUMNS.index(column)) % 1_000_003 + 1


@dataclass(frozen=True, slots=True)
class Place:
    """A lake in a store, and the folder of copies that its readers share."""

    catalog: str
    store: Store
    copies: str
    limit_bytes: int

    @contextmanager
    def opened(self) -> Iterator[lakehouse.Lake]:
        """The lake as each of them opens it."""
        with lakehouse.connect(
            self.catalog,
            self.store.url,
            storage_options=dict(self.store.options),
            cache_dir=self.copies,
            cache_bytes=self.limit_bytes,
        ) as lake:
            yield lake


@dataclass(slots=True)
class Reader:
    """A process that reads when it is asked to."""

    process: BaseProcess
    pipe: connection.Connection
    is_busy: bool = True
    """It has not said yet that it is there, or what it has read."""


@dataclass(slots=True)
class CopiesTrial:
    """Kills readers one after another, and keeps what was wrong."""

    store: Store
    folder: Path
    seed: int
    answers: int = 0
    wrong: list[str] = field(default_factory=list)
    _readers: list[Reader] = field(default_factory=list)

    def run(self, kills: int) -> None:
        """Kill so many, then look at what they left."""
        choose = random.Random(self.seed)  # noqa: S311 - what is asked and who is killed
        place = self._made()
        with place.opened() as lake:
            cache = lake.cache
            assert cache is not None
            segments = lake.table("events").segments()
            try:
                for number in range(READERS):
                    self._readers.append(_started(place, self.seed * 1000 + number))
                for number in range(kills):
                    self._listen()
                    for one in self._readers:
                        one.pipe.send("read")
                        one.is_busy = True
                    self._listen(choose.uniform(0, _MOST_SECONDS))
                    if choose.random() < _DISTURBED:
                        _disturb(lake, choose)
                    victim = choose.randrange(READERS)
                    _end(self._readers[victim])
                    self._readers[victim] = _started(place, self.seed * 1000 + READERS + number)
                self._listen()
            finally:
                for one in self._readers:
                    _end(one)
            self._look_at_what_is_left(place, cache, segments)

    def _made(self) -> Place:
        place = Place(f"sqlite:///{self.folder}/catalog.db", self.store, str(self.folder / "first"), 1 << 40)
        with place.opened() as lake:
            definition = ", ".join(f"{name} BIGINT" for name in ("id", *COLUMNS))
            table = lake.create_table("events", definition, properties={"compression": "none"})
            for number in range(FILES):
                ids = np.arange(number * _ROWS, (number + 1) * _ROWS)
                table.append(pa.table({"id": ids, **{name: values(name, ids) for name in COLUMNS}}))
            size = sum(one.bytes for one in table.segments())
        return Place(place.catalog, self.store, str(self.folder / "shared"), size // _LIMIT_PART)

    def _listen(self, seconds: float | None = None) -> None:
        """Hear what readers say, for some time, or until none is busy."""
        end = time.monotonic() + (_PATIENCE_SECONDS if seconds is None else seconds)
        while (left := end - time.monotonic()) > 0:
            busy = [one for one in self._readers if one.is_busy]
            if not busy and seconds is None:
                return
            ready = connection.wait([one.pipe for one in busy], left)
            for one in busy:
                if one.pipe in ready:
                    self._hear(one)
        if seconds is None:
            raise TimeoutError("a reader has not answered for a minute")

    def _hear(self, one: Reader) -> None:
        try:
            answers: list[str] = one.pipe.recv()
        except EOFError as error:
            one.process.join()
            raise RuntimeError(f"a reader ended with {one.process.exitcode}") from error
        one.is_busy = False
        self.answers += len(answers)
        self.wrong += [said for said in answers if said]

    def _look_at_what_is_left(self, place: Place, cache: Cache, segments: Sequence[Any]) -> None:
        taken = cache.bytes
        if taken > place.limit_bytes:
            self.wrong.append(f"copies take {taken} bytes of {place.limit_bytes} although nobody reads")
        if left := [one.name for one in (cache.root / ".aside").iterdir()]:
            self.wrong.append(f"{len(left)} files that nobody writes any more are left")
        for one in segments:
            if cache.has(one.path, one.bytes):
                try:
                    check_content(cache.path(one.path), one.checksum, one.bytes)
                except LakehouseError as error:
                    self.wrong.append(f"a copy is called whole: {error}")
        with place.opened() as again:
            asked = [(name, 0, FILES * _ROWS) for name in COLUMNS]
            self.wrong += [said for said in (ask(again.table("events"), *one) for one in asked) if said]
        cache.clear()
        if kept := cache.copies():
            self.wrong.append(f"{len(kept)} copies are held although nobody lives that could")
        if records := [one for one in (cache.root / ".parts").rglob("*") if one.is_file()]:
            self.wrong.append(f"{len(records)} records are left of copies that have gone")


def _disturb(lake: lakehouse.Lake, choose: random.Random) -> None:
    """What other processes do to a copy, in use or not."""
    warehouse, segment = lake.session.warehouse, choose.choice(lake.table("events").segments())
    match choose.randrange(3):
        case 0:
            warehouse.heal(str(warehouse.root / segment.path))
        case 1:
            with warehouse.fresh(segment):
                pass
        case _:
            lake.cache.clear()


def ask(table: lakehouse.Table, column: str, first: int, end: int) -> str:
    """Read a column of some rows; return what is wrong with it, if anything."""
    try:
        found = table.scan(where=f"id >= {first} AND id < {end}", columns=[column]).to_arrow()[column].to_numpy()
    except LakehouseError as error:
        return f"{column} of {first}..{end}: {type(error).__name__}: {error}"
    wanted = values(column, np.arange(first, end))
    if np.array_equal(np.sort(found), np.sort(wanted)):
        return ""
    return f"{column} of {first}..{end}: {len(found)} rows of {len(wanted)}, {np.count_nonzero(found == 0)} are zero"


def _started(place: Place, seed: int) -> Reader:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "lakehouse.storage.remote", "lakehouse.engine.duckdb"])
    ours, theirs = context.Pipe()
    process = context.Process(target=_read, args=(place, seed, theirs), daemon=True)
    process.start()
    theirs.close()
    return Reader(process, ours)


def _end(one: Reader) -> None:
    one.process.kill()
    one.process.join()
    one.pipe.close()


def _read(place: Place, seed: int, pipe: connection.Connection) -> None:
    """Whenever it is asked, read two columns at a time, of some rows of one file or of several."""
    choose = random.Random(seed)  # noqa: S311
    with ExitStack() as stack:
        lake = stack.enter_context(place.opened())
        pool = stack.enter_context(ThreadPoolExecutor(2))
        pipe.send([])
        while pipe.recv():
            first = choose.randrange(FILES) * _ROWS + choose.randrange(_ROWS // 2)
            end = min(FILES * _ROWS, first + choose.choice([1000, _ROWS, 2 * _ROWS]))
            columns = choose.sample(COLUMNS, 2)
            tables = [lake.table("events") for _ in columns]
            pipe.send(list(pool.map(ask, tables, columns, [first] * 2, [end] * 2)))
