"""An object store by `obstore`: objects are put once and read whole or by ranges. Nothing here relies on a listing.

Each request is repeated with back-off and jitter while a store throttles or breaks off, for a bounded time.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import obstore
from obstore import exceptions

from lakehouse.errors import SegmentUnreadable, StorageUnavailable
from lakehouse.extras import load
from lakehouse.storage.client import CONNECT_SECONDS, open_client
from lakehouse.storage.credentials import Credentials
from lakehouse.storage.refusals import first_line, meaning_of, says_expired
from lakehouse.storage.uploads import (
    MARK,
    MOST_BYTES,
    MULTIPART_BYTES,
    OPTION,
    UploadClient,
    UploadNotes,
    UploadRefused,
    abort_upload,
    part_bytes,
    put_in_parts,
    read_multipart_bytes,
)
from lakehouse.storage.warehouse import Listed

_TOGETHER = 1000
"""Objects of one request to delete, at most."""
_AS_LONG = 4 << 10
"""To delete or list an object may take as long as to send so many bytes."""
_STREAM_BYTES = 4 << 20
_NEAR_BYTES = 1 << 20
"""Ranges so near to each other are read as one."""
_RETRY_SECONDS = 30.0
SILENT_SECONDS = 15.0
"""As long a request is repeated that nobody answers although somebody is there."""
_PATIENT_SECONDS = 300.0
ANSWER_SECONDS = {256 << 10: 10.0, 4 << 20: 60.0}
"""How long an answer may take to a request of at most so many bytes; sixteen of them share the line."""
_FIRST_WAIT_SECONDS = 0.1
_MOST_WAIT_SECONDS = 5.0
_PASSING = re.compile(
    r"status code: (408|429|500|502|503|504)|error sending request|body error|timed out|Interrupted|"
    r"ConditionalRequestConflict|OperationAborted"
)
"""What a request that may succeed when it is repeated fails with."""
_NOBODY = re.compile(r"legacy::Error\(\s*Connect|ConnectionRefused|dns error|NotFound, |NetworkUnreachable|InvalidData")
"""No connection, so that nobody may be there; the last is what TLS says of an answer without TLS, or a certificate."""
_TOO_LATE = re.compile(r"kind: Timeout|Read timeout")
_NAMED = ("NoSuchBucket", "ContainerNotFound", "XAdminUserNotFound")
"""What some stores answer like a missing object."""
_IS_THERE = (exceptions.AlreadyExistsError, exceptions.PreconditionError, FileExistsError)
_asked_first: dict[int, int] = {}
"""The process that asked a store first, under 0: obstore's threads do not come along into a child."""
_opening = threading.Lock()
"""Held while a store is opened: requests side by side that fail ask for new credentials once."""
_T = TypeVar("_T")
_MOST_BYTES = {"s3": 5 << 30, "az": 5000 << 20}
"""What a store takes by one request; Google's takes 5 TiB."""
_CLIENTS = ("_clients", "_uploads", "puts_parts")
"""What is opened anew with new credentials."""


@dataclass(frozen=True)
class Objects:
    """The objects below a bucket's prefix, by their stored paths. It can be pickled; a process opens it once.

    ``options`` are those of `obstore.store.from_url`, by its names (``endpoint``, ``region``, ``access_key_id``,
    ``secret_access_key``, ``session_token``, ``allow_http``, ...); what they leave out comes from the environment
    (``AWS_*``, ``GOOGLE_*``, ``AZURE_*``), which is read again once they have expired. ``credential_provider`` is a
    function without arguments that returns credentials as `obstore` takes them, with ``expires_at``; it is called when
    they are about to expire, or have. What is put in S3 carries a checksum that the store compares, CRC64NVME unless
    ``checksum_algorithm`` says ``SHA256``; parts of a file carry CRC32 instead. In S3, files of more than
    ``multipart_bytes`` are put in parts.
    """

    url: str
    credentials: Credentials = field(default_factory=Credentials)
    retry_seconds: float = _RETRY_SECONDS

    @cached_property
    def _clients(self) -> dict[float, Any]:
        return {}

    def _client(self, sent_bytes: int = 0) -> Any:
        """A client that waits as long for an answer as it takes to send so many bytes, too."""
        seconds = next((seconds for most, seconds in ANSWER_SECONDS.items() if sent_bytes <= most), _PATIENT_SECONDS)
        if seconds not in self._clients:
            self._clients[seconds] = open_client(self.url, self.credentials, seconds)
        return self._clients[seconds]

    def require_options(self) -> None:
        """Raise `InvalidAddress` for options that are none, or that cannot be used. Asks no store."""
        self._client()

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("url", "credentials", "retry_seconds")}

    @cached_property
    def multipart_bytes(self) -> int:
        """The size up to which a file is put by one request. Raises `InvalidArgument` for an option that is none."""
        return read_multipart_bytes(self.credentials.options.get(OPTION, MULTIPART_BYTES))

    @cached_property
    def puts_parts(self) -> bool:
        """Whether the store is one that takes large files in parts, and how to reach it is understood."""
        if not self.url.startswith("s3://"):
            return False
        found: bool = load("lakehouse.storage.s3", "s3").speaks(self.credentials.options, urlsplit(self.url).netloc)
        return found

    @cached_property
    def _uploads(self) -> UploadClient:
        client: UploadClient = load("lakehouse.storage.s3", "s3").S3Uploads(self.url, lambda: self.credentials.current)
        return client

    def _ask_uploads(
        self, what: str, stored: str, call: Callable[[UploadClient], _T], *, seconds: float | None = None
    ) -> _T:
        return self._ask(what, stored, lambda: call(self._uploads), seconds)

    def require_fits(self, stored: str, size: int) -> None:
        """Raise `StorageUnavailable` for a file that is larger than the store takes."""
        most = _MOST_BYTES.get(self.url.partition(":")[0])
        if most is not None and size > most and self.puts_parts:
            most = MOST_BYTES
        if most is not None and size > most:
            raise StorageUnavailable(
                "the file is larger than the store takes; write fewer rows at a time, or give the table a finer grain",
                path=self._path(stored),
                bytes=size,
                most_bytes=most,
            )

    def put(self, stored: str, file: Path, notes: UploadNotes | None = None) -> None:
        """Store a file under a name that nobody has used. Returns when the store has answered that it is kept.

        One request, or for a file of more than `multipart_bytes` in S3 an upload in parts, whose id ``notes`` has from
        before its first part until it is over; without ``notes`` a marker beside the object has it. An object that is
        there already is this one, put by a request whose answer was lost, if it has the same bytes. Raises
        `StorageUnavailable`, and `SegmentUnreadable` for another object of the name.
        """
        size = file.stat().st_size
        if size > self.multipart_bytes and self.puts_parts:
            each_bytes = part_bytes(size, self.multipart_bytes)
            if not put_in_parts(self._ask_uploads, stored, file, size, each_bytes, notes or _Markers(self)):
                raise _another(self._path(stored))
            return

        def put() -> None:
            try:
                obstore.put(self._client(size), stored, file, mode="create", use_multipart=False)
            except (exceptions.BaseError, FileExistsError) as error:
                if not isinstance(error, _IS_THERE) and "PreconditionFailed" not in str(error):
                    raise
                try:
                    held = obstore.get(self._client(), stored)
                except FileNotFoundError:  # another request for the name goes on, or has just deleted it
                    raise error from None
                if held.meta["size"] != size or not _is_same(held, file):
                    raise _another(self._path(stored)) from None

        self._ask("put", stored, put)

    def try_upload(self, stored: str) -> None:
        """Begin an upload in parts and abort it. Raises `StorageUnavailable`."""
        self.abort(stored, self._ask_uploads("begin to put", stored, lambda client: client.begin(stored)))

    def mark_upload(self, stored: str, upload: str) -> None:
        """Put the id of an upload beside where its object will be."""
        self._ask("put", f"{stored}{MARK}", lambda: obstore.put(self._client(), f"{stored}{MARK}", upload.encode()))

    def abort_marked(self, marker: str) -> None:
        """Abort the upload whose id a marker holds; it is fine if either is gone."""
        try:
            upload = self._ask("get", marker, lambda: bytes(obstore.get(self._client(), marker).bytes()).decode())
        except SegmentUnreadable:
            return
        self.abort(marker.removesuffix(MARK), upload)

    def abort(self, stored: str, upload: str) -> None:
        """Abort an upload in parts; one that is over is fine. Raises `StorageUnavailable`."""
        abort_upload(self._ask_uploads, stored, upload)

    def get(self, stored: str, into: Path, size: int) -> None:
        """Write an object to a file. Raises `SegmentUnreadable` if it is gone or not of its length."""

        def get() -> None:
            found = obstore.get(self._client(), stored)
            if found.meta["size"] != size:
                raise _of_other_length(self._path(stored), size, found.meta["size"])
            with into.open("wb") as file:
                for part in found.stream(min_chunk_size=_STREAM_BYTES):
                    file.write(part)

        self._ask("get", stored, get)

    def get_ranges(self, stored: str, ranges: Sequence[tuple[int, int]]) -> list[Any]:
        """The bytes of some ranges (first, end), near ones by one request, in parallel. Raises `SegmentUnreadable`."""
        starts, ends = [first for first, _ in ranges], [end for _, end in ranges]

        def get() -> list[Any]:
            return list(obstore.get_ranges(self._client(), stored, starts=starts, ends=ends, coalesce=_NEAR_BYTES))

        found = self._ask("get a part of", stored, get)
        for (first, end), part in zip(ranges, found, strict=True):
            if len(part) != end - first:  # a range that ends beyond the object is cut without a word
                raise _of_other_length(self._path(stored), end, first + len(part))
        return found

    def size(self, stored: str) -> int:
        """The length of an object. Raises `FileNotFoundError`."""
        try:
            return self._ask("look at", stored, lambda: self._look(stored))
        except SegmentUnreadable as error:
            raise FileNotFoundError(self._path(stored)) from error

    def _look(self, stored: str) -> int:
        try:
            return int(obstore.head(self._client(), stored)["size"])
        except FileNotFoundError:
            raise
        except (exceptions.BaseError, PermissionError):
            # A refusal of HEAD has no body that says why, such as that credentials have expired; one of GET does.
            return int(obstore.get(self._client(), stored).meta["size"])

    def delete(self, stored: Iterable[str], *, seconds: float | None = None) -> None:
        """Delete objects, many by one request; those that are gone are fine.

        ``seconds`` is for how long a request is repeated, if not as long as usual.
        """
        listed = list(stored)
        for first in range(0, len(listed), _TOGETHER):
            self._delete(listed[first : first + _TOGETHER], seconds)

    def _delete(self, stored: list[str], seconds: float | None) -> None:
        def delete() -> None:
            try:
                obstore.delete(self._client(_AS_LONG * len(stored)), stored)
            except FileNotFoundError:
                if len(stored) > 1:  # a store that deletes one by one stopped at it
                    for one in stored:
                        self._delete([one], seconds)

        self._ask("delete", stored[0], delete, seconds)

    def listed(self, below: str = "") -> Iterator[Listed]:
        """Every object below a prefix of whole names, read before the first is returned."""

        def look() -> list[Listed]:
            return [
                Listed(one["path"], one["size"], one["last_modified"].timestamp())
                for batch in obstore.list(self._client(_AS_LONG * _TOGETHER), below or None, chunk_size=_TOGETHER)
                for one in batch
            ]

        yield from self._ask("list", below, look)

    def _path(self, stored: str) -> str:
        return f"{self.url}/{stored}"

    def _ask(self, what: str, stored: str, call: Callable[[], _T], seconds: float | None = None) -> _T:
        """Ask the store, again and again while it throttles or breaks off, at longer and longer intervals.

        That is ``retry_seconds``, or another number of ``seconds``.
        Raises `StorageUnavailable` that names the object, what was asked and what the answer means, and
        `SegmentUnreadable` for an object that is not there.
        """
        if _asked_first.setdefault(0, os.getpid()) != os.getpid():
            raise StorageUnavailable(
                "a process that was forked from one that has used an object store cannot use it; start processes by "
                "spawn",
                path=self._path(stored),
                asked=what,
            )
        started = time.monotonic()
        is_renewed = False
        for attempt in itertools.count():
            with _opening:
                self.require_options()  # if they are wrong, that is no fault of a request
                clients = self._clients
            try:
                return call()
            except FileNotFoundError as error:
                if what == "put" or any(one in str(error) for one in _NAMED):
                    raise self._unavailable(error, what, stored) from error
                raise SegmentUnreadable(
                    "data file is missing; restore it from a copy", path=self._path(stored)
                ) from error
            except (exceptions.BaseError, PermissionError, ValueError, UploadRefused) as error:
                if not is_renewed and says_expired(str(error)):  # also while it is repeated for another reason
                    is_renewed = True
                    with _opening:  # environment or provider may have new credentials
                        if self.__dict__.get("_clients") is clients:
                            for one in _CLIENTS:
                                self.__dict__.pop(one, None)
                    continue
                wait = random.uniform(0, min(_MOST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2**attempt))  # noqa: S311
                patience = self._patience(str(error))
                if time.monotonic() + wait > started + (patience if seconds is None else min(seconds, patience)):
                    raise self._unavailable(error, what, stored) from error
                time.sleep(wait)
        raise AssertionError

    def _patience(self, text: str) -> float:
        """For how many seconds a request is repeated that failed with a text."""
        if _NOBODY.search(text):
            return min(CONNECT_SECONDS, self.retry_seconds)
        if _TOO_LATE.search(text):
            return min(SILENT_SECONDS, self.retry_seconds)
        return self.retry_seconds if _PASSING.search(text) else 0.0

    def _unavailable(self, error: Exception, what: str, stored: str) -> StorageUnavailable:
        return StorageUnavailable(meaning_of(str(error)), path=self._path(stored), asked=what, cause=first_line(error))


@dataclass(frozen=True, slots=True)
class _Markers:
    """Notes of uploads in the store itself, for those who cannot ask the catalog: whoever deletes a marker aborts."""

    objects: Objects

    def began(self, stored: str, upload: str) -> None:
        self.objects.mark_upload(stored, upload)

    def ended(self, stored: str, upload: str) -> None:
        self.objects.delete([f"{stored}{MARK}"])


def _another(path: str) -> SegmentUnreadable:
    return SegmentUnreadable(
        "another object has the name of a file to write; names are used once, so something else writes there", path=path
    )


def _is_same(held: Any, file: Path) -> bool:
    """Whether an object has a file's bytes."""
    with file.open("rb") as own:
        return all(own.read(len(part)) == bytes(part) for part in held.stream())


def _of_other_length(path: str, expected: int, found: int) -> SegmentUnreadable:
    what = "cut short" if found < expected else "longer than committed"
    return SegmentUnreadable(f"data file is {what}; restore it from a copy", path=path, expected=expected, found=found)
