"""An object store by `obstore`: objects are put once and read whole or by ranges. Nothing here relies on a listing.

Each request is repeated with back-off and jitter, by `obstore`, while a store throttles or breaks off, for a bounded
time. What an answer means is said here, once: `_ErrorOf`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import obstore
from obstore import exceptions
from obstore.store import from_url

from lakehouse.errors import InvalidAddress, SegmentUnreadable, StorageUnavailable
from lakehouse.storage.warehouse import Listed

_TOGETHER = 1000
"""Objects of one request to delete, at most."""
_ONE_PUT_BYTES = 64 << 20
_PART_BYTES = 16 << 20
_PARTS_TOGETHER = 8
_RETRY_SECONDS = 30.0
_CONNECT_SECONDS = 5.0
_SECRETS = ("secret", "token", "key", "password", "sas")

_NO_BUCKET = "there is no such bucket; make it, or correct the address"
_EXPIRED = "the credentials have expired; get new ones"
_UNKNOWN = "the store does not know these credentials; correct access key and secret"
_REGION = "the bucket is in another region; give it as region"
_NONE = "no credentials were found; give them in the environment or as storage_options"
_FORBIDDEN = "the credentials do not allow it; grant reading, writing, deleting and listing below the prefix"
_SILENT = "the store does not answer; check endpoint and network"
_FAILING = "the store is overloaded or failing; try again later"
_CLOCK = "this machine's clock is wrong by minutes; set it by NTP"
_MEANINGS = {
    "NoSuchBucket": _NO_BUCKET,
    "ContainerNotFound": _NO_BUCKET,
    "bucket does not exist": _NO_BUCKET,
    "RequestTimeTooSkewed": _CLOCK,
    "ExpiredToken": _EXPIRED,
    "TokenExpired": _EXPIRED,
    "InvalidAccessKeyId": _UNKNOWN,
    "SignatureDoesNotMatch": _UNKNOWN,
    "AuthenticationFailed": _UNKNOWN,
    "AuthorizationHeaderMalformed": _REGION,
    "PermanentRedirect": _REGION,
    "IllegalLocationConstraint": _REGION,
    "169.254.169.254": _NONE,
    "AccessDenied": _FORBIDDEN,
    "403 Forbidden": _FORBIDDEN,
    "SlowDown": _FAILING,
    "503": _FAILING,
    "500": _FAILING,
    "429": _FAILING,
    "error sending request": _SILENT,
    "Connection": _SILENT,
}
"""What the texts of a store's answers mean, the first that fits."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A store's options, which are never shown: neither by `repr` nor in an error."""

    options: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        hidden = {name: "***" if _is_secret(name) else value for name, value in self.options.items()}
        return f"Credentials({hidden})"


def _is_secret(name: str) -> bool:
    return any(part in name.lower() for part in _SECRETS)


@dataclass(frozen=True)
class Objects:
    """The objects below a bucket's prefix, by their stored paths. It can be pickled; a process opens it once.

    ``options`` are those of `obstore.store.from_url`, by its names (``endpoint``, ``region``, ``access_key_id``,
    ``secret_access_key``, ``session_token``, ``allow_http``, ...); what they leave out comes from the environment
    (``AWS_*``, ``GOOGLE_*``, ``AZURE_*``), which is where credentials that change are read from again.
    """

    url: str
    credentials: Credentials = field(default_factory=Credentials)
    retry_seconds: float = _RETRY_SECONDS

    @cached_property
    def _store(self) -> Any:
        options = dict(self.credentials.options)
        plain = str(options.pop("allow_http", "")).lower() in ("true", "1")
        client: Any = {
            "connect_timeout": timedelta(seconds=_CONNECT_SECONDS),
            "timeout": timedelta(minutes=5),
            "allow_http": plain or str(options.get("endpoint", "")).startswith("http://"),
        }
        retry: Any = {
            "max_retries": 1000,
            "retry_timeout": timedelta(seconds=self.retry_seconds),
            "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5), "base": 2},
        }
        try:
            config: Any = options
            return from_url(self.url, config=config, client_options=client, retry_config=retry)
        except (exceptions.BaseError, ValueError, TypeError) as error:
            raise InvalidAddress(
                "the store cannot be opened with these options; see docs/deployment.md for their names",
                warehouse=self.url,
                options=sorted(options),
                cause=_first_line(error),
            ) from error

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("url", "credentials", "retry_seconds")}

    def put(self, stored: str, file: Path) -> None:
        """Store a file under a name that nobody has used. Returns when the store has answered that it is kept.

        One request up to 64 MiB, parts of 16 MiB above. An object that is there already is this one, put by a request
        whose answer was lost, if its length and MD5 or its bytes agree. Raises `StorageUnavailable`, and
        `SegmentUnreadable` for another object of the name.
        """
        size = file.stat().st_size
        with self._named(stored, "put"):
            try:
                obstore.put(
                    self._store,
                    stored,
                    file,
                    mode="create",
                    use_multipart=size > _ONE_PUT_BYTES,
                    chunk_size=_PART_BYTES,
                    max_concurrency=_PARTS_TOGETHER,
                )
                return
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
                pass
            held = obstore.get(self._store, stored)
            if held.meta["size"] == size and _is_same(held, file):
                return
        raise SegmentUnreadable(
            "another object has the name of a file to write; names are used once, so something else writes there",
            path=f"{self.url}/{stored}",
        )

    def get(self, stored: str, into: Path, size: int) -> None:
        """Write an object to a file. Raises `SegmentUnreadable` if it is gone or not of its length."""
        with self._named(stored, "get"):
            found = obstore.get(self._store, stored)
            if found.meta["size"] != size:
                raise _of_other_length(self._path(stored), size, found.meta["size"])
            with into.open("wb") as file:
                for part in found.stream(min_chunk_size=4 << 20):
                    file.write(part)

    def get_ranges(self, stored: str, ranges: Sequence[tuple[int, int]]) -> list[Any]:
        """The bytes of some ranges (first, end), near ones by one request, in parallel. Raises `SegmentUnreadable`."""
        with self._named(stored, "get ranges of"):
            starts, ends = [first for first, _ in ranges], [end for _, end in ranges]
            return list(obstore.get_ranges(self._store, stored, starts=starts, ends=ends, coalesce=1 << 20))

    def size(self, stored: str) -> int:
        """The length of an object. Raises `FileNotFoundError`."""
        try:
            with self._named(stored, "look at"):
                return int(obstore.head(self._store, stored)["size"])
        except SegmentUnreadable as error:
            raise FileNotFoundError(self._path(stored)) from error

    def delete(self, stored: Iterable[str]) -> None:
        """Delete objects, many by one request; those that are gone are fine."""
        listed = list(stored)
        for first in range(0, len(listed), _TOGETHER):
            part = listed[first : first + _TOGETHER]
            with self._named(part[0], "delete"):
                try:
                    obstore.delete(self._store, part)
                except (exceptions.NotFoundError, FileNotFoundError):
                    if len(part) > 1:  # a store that deletes one by one stopped at it
                        for one in part:
                            self.delete([one])

    def listed(self, below: str = "") -> Iterator[Listed]:
        """Every object below a prefix of whole names."""
        with self._named(below, "list"):
            for batch in obstore.list(self._store, below or None, chunk_size=_TOGETHER):
                for one in batch:
                    yield Listed(one["path"], one["size"], one["last_modified"].timestamp())

    def _path(self, stored: str) -> str:
        return f"{self.url}/{stored}"

    @contextmanager
    def _named(self, stored: str, what: str) -> Iterator[None]:
        """Turn a store's errors into ours, with the object and what was asked of it."""
        try:
            yield
        except (exceptions.NotFoundError, FileNotFoundError) as error:
            if "NoSuchBucket" in str(error):
                raise self._unavailable(error, stored, what) from error
            raise SegmentUnreadable("data file is missing; restore it from a copy", path=self._path(stored)) from error
        except (exceptions.BaseError, PermissionError, ValueError) as error:
            raise self._unavailable(error, stored, what) from error

    def _unavailable(self, error: Exception, stored: str, what: str) -> StorageUnavailable:
        text = str(error)
        meaning = next(
            (meaning for part, meaning in _MEANINGS.items() if part in text),
            "the store refused a request",
        )
        return StorageUnavailable(meaning, path=self._path(stored), asked=what, cause=_first_line(error))


def _first_line(error: Exception) -> str:
    """What a store says, without the debugging that follows it."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:300]


def _is_same(held: Any, file: Path) -> bool:
    """Whether an object has a file's bytes."""
    with file.open("rb") as own:
        return all(own.read(len(part)) == bytes(part) for part in held.stream())


def _of_other_length(path: str, expected: int, found: int) -> SegmentUnreadable:
    what = "cut short" if found < expected else "longer than committed"
    return SegmentUnreadable(f"data file is {what}; restore it from a copy", path=path, expected=expected, found=found)
