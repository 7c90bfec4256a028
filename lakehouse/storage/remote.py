"""A warehouse in an object store: files are written and read below a folder of this machine, which caches the store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from lakehouse.errors import SegmentUnreadable
from lakehouse.storage.cache import Cache, cache_folder, chosen_folder, operation_of
from lakehouse.storage.checksums import check_content
from lakehouse.storage.credentials import Credentials as Credentials
from lakehouse.storage.files import require_operation
from lakehouse.storage.objects import Objects
from lakehouse.storage.partial import bring_parts, is_worth_it
from lakehouse.storage.paths import Locator
from lakehouse.storage.uploads import UploadNotes, marked
from lakehouse.storage.warehouse import Committed, Listed

_THREADS = 16
"""Requests at a time: a store answers each late, and many as soon as one."""
_ABANDON_SECONDS = 5.0
"""As long is deleting repeated after a failure, which is often that the store does not answer; a collection does it."""


@dataclass(frozen=True)
class Remote:
    """A `lakehouse.storage.warehouse.Warehouse` in an object store, with a cache on this machine."""

    objects: Objects
    root: Path
    cache_bytes: int | None = None
    is_placed: bool = False
    """Whether a caller chose the cache's folder, rather than this machine."""
    erasure: int | None = None
    """The newest erasure that the plans know whose files it fetches; None of what is fetched without one."""
    notes: UploadNotes | None = field(default=None, repr=False, compare=False)
    """Where uploads of operations' files are noted; in another process, which cannot ask the catalog, in the store."""

    @property
    def address(self) -> str:
        """The store's URL."""
        return self.objects.url

    @property
    def location(self) -> str:
        """The store's URL, and its endpoint."""
        return " at ".join([self.address, *self.objects.credentials.endpoints])

    @property
    def settings(self) -> Mapping[str, Any]:
        """The store's options, and the cache."""
        return {
            "storage_options": self.objects.credentials.named,
            "cache_dir": str(self.root.parent),
            "cache_bytes": self.cache_bytes,
        }

    @cached_property
    def cache(self) -> Cache:
        """The copies on this machine."""
        return Cache(self.root, self.cache_bytes)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("objects", "root", "cache_bytes", "is_placed", "erasure")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # In a process of another machine, that one's own cache: nothing but the store is shared.
        if not state["is_placed"] or chosen_folder():
            state["root"] = cache_folder() / state["root"].name
        self.__dict__.update(state)

    def exists(self) -> bool:
        """True: a bucket that is not there is an error of each request."""
        return True

    def file(self, stored: str) -> Path:
        """The copy at a stored path, if there is one."""
        return Locator(self.root).file(stored)

    def as_of_erasure(self, erasure: int) -> Remote:
        """The same store and copies."""
        return self._like(erasure=erasure)

    def noting(self, notes: UploadNotes) -> Remote:
        """The same store and copies."""
        return self._like(notes=notes)

    def _like(self, **changes: Any) -> Remote:
        made = replace(self, **changes)
        made.__dict__["cache"] = self.cache
        return made

    def make_folder(self, folder: Path) -> None:
        """Make it: a power cut may take it, since what lies in it is in the store, or unfinished."""
        folder.mkdir(parents=True, exist_ok=True)

    def publish(self, files: Iterable[Path]) -> None:
        """Put them, many at a time; they stay as copies."""
        small: list[str] = []
        large: list[str] = []
        for path in files:
            size = path.stat().st_size
            stored = path.relative_to(self.root).as_posix()
            self.objects.require_fits(stored, size)
            (large if size > self.objects.multipart_bytes else small).append(stored)
        _together(self._put, small)
        for stored in large:  # each in several parts at a time, or in memory while it is put
            self._put(stored)

    def _put(self, stored: str) -> None:
        self.cache.glance([stored])  # who wrote it reads it back
        with self.cache.keeping(stored):
            self.objects.put(stored, self.cache.path(stored), self.notes if operation_of(stored) else None)

    def fetch(
        self, files: Sequence[Committed], columns: Collection[str] | None = None, holder: object = None
    ) -> Mapping[str, SegmentUnreadable]:
        """Fetch what has no copy, many at a time, each whole and compared with its checksum."""
        listed = list({one.path: one for one in files}.values())
        if holder is None:
            self.cache.glance(one.path for one in listed)
        else:
            self.cache.hold([one.path for one in listed], holder)
        erasure = self._known_erasure()
        wanted = [one for one in listed if not self.cache.has(one.path, one.bytes)]
        found = _together(partial(self._bring, columns=columns, erasure=erasure), wanted)
        misses = sum(one is not True for one in found)
        self.cache.misses += misses
        self.cache.hits += len(listed) - misses
        self.cache.look_again()
        return {
            one.path: error for one, error in zip(wanted, found, strict=True) if isinstance(error, SegmentUnreadable)
        }

    def _known_erasure(self) -> int:
        """The newest erasure that what is fetched now is known by, which says when its copies have to go."""
        if self.erasure is None:
            return self.cache.erasure_begun
        if self.cache.erasure < self.erasure:
            # Readers have dropped what it replaced. So this is another machine, where nobody can ask the catalog what
            # that was.
            self.cache.drop_replaced(self.erasure, tuple)
        return self.erasure

    def _bring(
        self, file: Committed, columns: Collection[str] | None = None, erasure: int | None = None
    ) -> SegmentUnreadable | bool:
        """Whether what is asked for of a file was there; an error if it cannot be had."""

        def write(aside: Path) -> None:
            self.objects.get(file.path, aside, file.bytes)
            check_content(aside, file.checksum, file.bytes)

        try:
            self.file(file.path)
            if columns is not None and is_worth_it(file, columns):
                found = bring_parts(self.cache, self.objects, file, columns, erasure)
                if found is not None:
                    return found
            self.cache.add(file.path, write, erasure)
        except SegmentUnreadable as error:
            facts = {**error.facts, "path": f"{self.address}/{file.path}"}
            return SegmentUnreadable(error.said, **facts)
        return False

    def size(self, stored: str) -> int:
        """The length of an object."""
        return self.objects.size(stored)

    @contextmanager
    def fresh(self, file: Committed) -> Iterator[Path]:
        """The object, fetched again; its copy stays until the block ends, however little the cache may hold."""
        with self.cache.held([file.path]):
            error = self._bring(file, erasure=self._known_erasure())
            if isinstance(error, SegmentUnreadable):
                raise error
            yield self.file(file.path)

    def heal(self, path: str) -> bool:
        """Drop the copy at a path, as after a power cut: the object may be whole.

        One of this machine that is gone may have been dropped for an erasure while it was to be read.
        """
        is_copy = path.startswith(f"{self.root}/")
        stored = path.removeprefix(f"{self.address}/").removeprefix(f"{self.root}/")
        try:
            is_there = self.file(stored).is_file()
        except SegmentUnreadable:  # no path of a file in it
            return False
        if is_there:
            self.cache.distrust(stored)
        return is_copy or is_there

    def delete(self, stored: Iterable[str]) -> int:
        """Delete objects, and this machine's copies. All that are named count.

        A marker names an upload that was never completed, which is aborted before the marker goes.
        """
        names = list(stored)
        for one in names:
            self.file(one)
        self._abort_marked(names)
        self.objects.delete(names)
        self.cache.drop(names)
        return len(names)

    def abandon(self, stored: str) -> None:
        """Delete the objects of files that are in this machine's folder of an operation, and that folder."""
        require_operation(stored)
        written = [one.relative_to(self.root).as_posix() for one in (self.root / stored).rglob("*.*")]
        self.objects.delete(written, seconds=_ABANDON_SECONDS)
        self.cache.discard(stored)

    def delete_operation(self, stored: str) -> None:
        """Delete what an operation has put, and what it has written here."""
        require_operation(stored)
        found = [one.path for one in self.objects.listed(stored)]
        if self._abort_marked(found):
            found = [one.path for one in self.objects.listed(stored)]  # one may have been completed before
        self.objects.delete(found)
        self.cache.discard(stored)

    def _abort_marked(self, stored: list[str]) -> bool:
        """Abort the uploads whose markers are among some objects; whether there are any."""
        markers = marked(stored)
        for one in markers:
            self.objects.abort_marked(one)
        return bool(markers)

    def abort_uploads(self, uploads: Iterable[tuple[str, str]]) -> None:
        """Abort them, many at a time."""
        _together(lambda one: self.objects.abort(*one), list(uploads))

    def measure(self, stored: Iterable[str]) -> tuple[int, int]:
        """The number of objects and bytes: a request for each."""
        found = [size for size in _together(self._size, list(stored)) if size is not None]
        return len(found), sum(found)

    def _size(self, stored: str) -> int | None:
        try:
            return self.objects.size(stored)
        except FileNotFoundError:
            return None

    def listed(self, below: str = "") -> Iterator[Listed]:
        """Every object."""
        return self.objects.listed(below)


def _together(work: Any, items: Sequence[Any]) -> list[Any]:
    """Results in order, of many requests at a time."""
    if len(items) < 2:
        return [work(one) for one in items]
    with ThreadPoolExecutor(min(_THREADS, len(items)), "lakehouse-store") as pool:
        return list(pool.map(work, items))
