"""Tries whether an object store takes what operations ask of it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast
from uuid import uuid4

from lakehouse.durable import make_folder
from lakehouse.errors import LakehouseError, SegmentUnreadable, StorageUnavailable, writing_to
from lakehouse.storage.exports import EXPORTS
from lakehouse.storage.warehouse import Warehouse

if TYPE_CHECKING:
    from lakehouse.storage.objects import Objects
    from lakehouse.storage.remote import Remote

_CONTENT = b"lakehouse doctor"
_RETRY_SECONDS = 5.0
"""A store that does not answer for this long is reported; an operation would wait longer."""


def try_store(warehouse: Warehouse) -> dict[str, float]:
    """Put, get, list and delete one small object below the prefix; return the seconds of each.

    Another object of the same name has to be refused. Of S3 it also begins an upload in parts, as large files are put,
    and aborts it.

    Nothing stays, in the store or in the cache. Raises `StorageUnavailable` for the first step that the store refuses.
    """
    objects = replace(cast("Remote", warehouse).objects, retry_seconds=_RETRY_SECONDS)
    # Where exports lie, which a check does not take for data, and under a name that is none of an export.
    stored = f"{EXPORTS}/.probe-{uuid4().hex}"
    took: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="lakehouse-doctor-") as folder:
        sent, got = Path(folder, "sent"), Path(folder, "got")
        sent.write_bytes(_CONTENT)
        with _timed(took, "put"):
            objects.put(stored, sent)
        with _deleted_at_last(lambda: objects.delete([stored])):
            _require_kept(objects, stored, sent)
            if objects.puts_parts:
                with _timed(took, "upload"):
                    objects.try_upload(stored)
            with _timed(took, "get"):
                objects.get(stored, got, len(_CONTENT))
            with _timed(took, "list"):
                found = [one.path for one in objects.listed(EXPORTS)]
            if got.read_bytes() != _CONTENT or stored not in found:
                raise SegmentUnreadable(
                    "the store returned another object than was put, or does not list it; use one that is consistent",
                    path=f"{warehouse.address}/{stored}",
                )
        with _timed(took, "delete"):
            objects.delete([stored])
    return took


def _require_kept(objects: Objects, stored: str, sent: Path) -> None:
    """Raise `StorageUnavailable` for a store that replaces an object although it is told not to."""
    other = sent.with_name("other")
    other.write_bytes(_CONTENT[::-1])
    try:
        objects.put(stored, other)
    except SegmentUnreadable:
        return
    raise StorageUnavailable(
        "the store replaces an object although it is told not to (If-None-Match); use one that keeps it",
        path=f"{objects.url}/{stored}",
    )


def require_writable(warehouse: Warehouse) -> None:
    """Make a warehouse's folder, or try its store. Raises `StorageUnavailable`."""
    if warehouse.cache is not None:
        try_store(warehouse)
        return
    with writing_to(warehouse.address, then="begin again"):
        make_folder(warehouse.root)


@contextmanager
def _timed(took: dict[str, float], step: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    took[step] = time.perf_counter() - began


@contextmanager
def _deleted_at_last(delete: Callable[[], None]) -> Iterator[None]:
    """Leave nothing behind if the block fails."""
    try:
        yield
    except LakehouseError:
        with suppress(LakehouseError):
            delete()
        raise
