"""Files put in parts: how a file is cut, who writes down the id of its upload, and what happens if that is never ended.

An upload is no object before it is completed, and what it holds is stored, and paid for, until it is completed or
aborted. So its id is written down before its first part, where whoever deletes what a dead operation left finds it:
`UploadNotes`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from lakehouse.errors import InvalidArgument, LakehouseError, coded

logger = logging.getLogger(__name__)

MULTIPART_BYTES = 64 << 20
"""Files up to this size are put by one request, unless the option `OPTION` gives another size."""
OPTION = "multipart_bytes"
MOST_BYTES = 5 << 40
"""The largest object of S3."""
MARK = ".upload"
"""The end of a marker's name, after that of its file."""
_LEAST_PART_BYTES = 5 << 20
"""S3 takes no smaller part but the last."""
_PART_BYTES = 16 << 20
_MOST_PARTS = 10_000
_MIB = 1 << 20
_NO_UPLOAD = "NoSuchUpload"
_TOGETHER = 4
"""Parts that are put at a time, each of which is in memory meanwhile."""
_Answer = TypeVar("_Answer")


class UploadRefused(Exception):
    """A request of an upload that the store refused, or that broke off: its text is read as those of `obstore` are."""

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code
        """The store's word for it, as in ``NoSuchUpload``."""


class UploadNotes(Protocol):
    """Where ids of uploads are written down from before their first part until they are over."""

    def began(self, stored: str, upload: str) -> None:
        """Write down the upload of a file, durably. Raises `LakehouseError`: no part of it is put then."""

    def ended(self, stored: str, upload: str) -> None:
        """Cross it out: it is completed or aborted."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part that a store has: its number from 1, the store's tag of it, and the checksum that it was sent with."""

    number: int
    tag: str
    checksum: bytes


class UploadClient(Protocol):
    """The requests of an upload, each made once. All raise `UploadRefused`."""

    def begin(self, stored: str) -> str:
        """Begin an upload, and return its id."""

    def put_part(self, stored: str, upload: str, number: int, content: bytes) -> Part:
        """Put one part with its checksum; what was put as this part before is replaced."""

    def complete(self, stored: str, upload: str, parts: list[Part]) -> None:
        """Make the parts an object, unless there is one of the name."""

    def abort(self, stored: str, upload: str) -> None:
        """Delete the parts; nothing can be put or completed afterwards."""

    def is_stored(self, stored: str, file: Path, parts: list[Part]) -> bool | None:
        """Whether the object of a name is that of these parts of a file; None if there is none."""


class Ask(Protocol):
    """Asks a store by its client, again while it throttles or breaks off. Raises `StorageUnavailable`."""

    def __call__(
        self, what: str, stored: str, call: Callable[[UploadClient], _Answer], *, seconds: float | None = None
    ) -> _Answer:
        """The answer to a request; ``seconds`` is for how long it is repeated, if not as long as usual."""


def read_multipart_bytes(given: Any) -> int:
    """The size that an option gives. Raises `InvalidArgument`."""
    try:
        size = int(given)
    except (TypeError, ValueError):
        size = 0
    if size < 1 or isinstance(given, bool):
        raise InvalidArgument(f"{OPTION} is a number of bytes; larger files are put in parts", multipart_bytes=given)
    return size


def part_bytes(size: int, multipart_bytes: int = MULTIPART_BYTES) -> int:
    """The size of the parts of a file, all but its last: 16 MiB, and more only for a file of more than 10,000 of them.

    >>> [part_bytes(gibibytes << 30) >> 20 for gibibytes in (1, 150, 300, 5 << 10)]
    [16, 16, 31, 525]
    """
    usual = max(_LEAST_PART_BYTES, min(_PART_BYTES, multipart_bytes))
    return max(usual, -(-size // (_MOST_PARTS * _MIB)) * _MIB)


def put_in_parts(ask: Ask, stored: str, file: Path, size: int, each_bytes: int, notes: UploadNotes) -> bool:
    """Put a file in parts, a few at a time; False if another object has its name.

    Nothing can be seen before the store has completed it. A completion that was repeated because its answer was lost is
    told from another object by size and checksum. Whatever fails, the upload is aborted, or its note stays.
    """
    starts = range(0, size, each_bytes)
    upload = ask("begin to put", stored, lambda client: client.begin(stored))
    is_over = False
    try:
        notes.began(stored, upload)

        def put(number: int) -> Part:
            with file.open("rb") as opened:
                opened.seek(starts[number - 1])
                content = opened.read(each_bytes)
            return ask("put a part of", stored, lambda client: client.put_part(stored, upload, number, content))

        with ThreadPoolExecutor(_TOGETHER, "lakehouse-parts") as pool:
            parts = list(pool.map(put, range(1, len(starts) + 1)))  # once one has failed, no other is begun
        is_ours = ask("put", stored, lambda client: _completed(client, stored, upload, file, parts))
        is_over = True
        return is_ours
    finally:
        if is_over or _aborted(ask, stored, upload):
            _crossed_out(notes, stored, upload)


def abort_upload(ask: Ask, stored: str, upload: str, *, seconds: float | None = None) -> None:
    """Abort an upload; one that is over already is fine."""
    ask("abort the upload of", stored, lambda client: _abort(client, stored, upload), seconds=seconds)


def _abort(client: UploadClient, stored: str, upload: str) -> None:
    try:
        client.abort(stored, upload)
    except UploadRefused as refused:
        if refused.code != _NO_UPLOAD:
            raise


def _completed(client: UploadClient, stored: str, upload: str, file: Path, parts: list[Part]) -> bool:
    """Complete an upload; whether the object of the name is its."""
    try:
        client.complete(stored, upload, parts)
    except UploadRefused as refused:
        # After a completion whose answer was lost there is an object, or no such upload any more.
        if refused.code not in (_NO_UPLOAD, "PreconditionFailed", "ConditionalRequestConflict"):
            raise
        is_ours = client.is_stored(stored, file, parts)
        if is_ours is None:
            raise
        _abort(client, stored, upload)  # the object may be of another upload
        return is_ours
    return True


def _aborted(ask: Ask, stored: str, upload: str) -> bool:
    """Abort an upload that failed, by one request: the error that the caller should see is another one."""
    try:
        abort_upload(ask, stored, upload, seconds=0)
    except LakehouseError as error:
        logger.warning("an upload of %s could not be aborted; the next collection aborts it: %s", stored, coded(error))
        return False
    return True


def _crossed_out(notes: UploadNotes, stored: str, upload: str) -> None:
    """Cross out an upload that is over; a note that stays is of an upload that a collection finds to be over."""
    try:
        notes.ended(stored, upload)
    except LakehouseError as error:
        logger.warning("the note of an upload of %s stays until the next collection: %s", stored, coded(error))


def marked(stored: Iterable[str]) -> list[str]:
    """Those of some stored paths that are markers, by which one who cannot ask the catalog notes an upload.

    >>> marked(["t/o/0.parquet", "t/o/1.parquet.upload"])
    ['t/o/1.parquet.upload']
    """
    return [one for one in stored if one.endswith(MARK)]
