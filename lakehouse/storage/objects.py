"""An object store by `obstore`: objects are put once and read whole or by ranges. Nothing here relies on a listing.

Each request is repeated with back-off and jitter while a store throttles or breaks off, for a bounded time. What a
store's errors mean is said here, once.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import obstore
from obstore import exceptions
from obstore.store import from_url

from lakehouse.errors import InvalidAddress, SegmentUnreadable, StorageUnavailable
from lakehouse.storage.warehouse import Listed

_TOGETHER = 1000
"""Objects of one request to delete, at most."""
_STREAM_BYTES = 4 << 20
_NEAR_BYTES = 1 << 20
"""Ranges so near to each other are read as one."""
_RETRY_SECONDS = 30.0
_CONNECT_SECONDS = 3.0
"""As long nobody may answer at all: an address is more often wrong than a store is away."""
_FIRST_WAIT_SECONDS = 0.1
_MOST_WAIT_SECONDS = 5.0
_PASSING = re.compile(r"status code: (408|429|500|502|503|504)|error sending request|body error|timed out|Interrupted")
"""What a request that may succeed when it is repeated fails with."""
_NOBODY = re.compile(r"legacy::Error\(\s*Connect|ConnectionRefused|dns error|NotFound, |NetworkUnreachable|InvalidData")
"""No connection, so that nobody may be there; the last is what TLS says of an answer without TLS, or a certificate."""
_NAMED = ("NoSuchBucket", "ContainerNotFound", "XAdminUserNotFound")
"""What some stores answer like a missing object."""
_IS_THERE = (exceptions.AlreadyExistsError, exceptions.PreconditionError, FileExistsError)
_asked_first: dict[int, int] = {}
"""The process that asked a store first, under 0: obstore's threads do not come along into a child."""
_opening = threading.Lock()
"""Held while a store is opened: requests side by side that fail ask for new credentials once."""
_T = TypeVar("_T")
_PROVIDER = "credential_provider"
_MOST_BYTES = {"s3": 5 << 30, "az": 5000 << 20}
"""What a store takes by one request; Google's takes 5 TiB."""
_ENDPOINTS = ("AWS_ENDPOINT", "AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")

_NO_BUCKET = "there is no such bucket; make it, or correct the address"
_EXPIRED = "the credentials have expired; get new ones"
_UNKNOWN = "the store does not know these credentials; correct access key and secret"
_REGION = "the bucket is in another region; give it as region"
_NONE = "no credentials were found; give them in the environment or as storage_options"
_FORBIDDEN = "the credentials do not allow it; grant reading, writing, deleting and listing below the prefix"
_SILENT = "the store does not answer; check endpoint and network"
_FAILING = "the store is overloaded or failing; try again later"
_NO_TLS = "the store does not answer by TLS, or shows a wrong certificate; check http or https of the endpoint"
_CLOCK = "this machine's clock is wrong by minutes; set it by NTP"
_MEANINGS = {
    _PROVIDER: "credential_provider failed; mend it, or what it asks",
    "NoSuchBucket": _NO_BUCKET,
    "ContainerNotFound": _NO_BUCKET,
    "bucket does not exist": _NO_BUCKET,
    "RequestTimeTooSkewed": _CLOCK,
    "ExpiredToken": _EXPIRED,
    "TokenExpired": _EXPIRED,
    "InvalidAccessKeyId": _UNKNOWN,
    "XAdminUserNotFound": _UNKNOWN,
    "SignatureDoesNotMatch": _UNKNOWN,
    "AuthenticationFailed": _UNKNOWN,
    "Server failed to authenticate the request": _UNKNOWN,
    "AuthorizationHeaderMalformed": _REGION,
    "PermanentRedirect": _REGION,
    "IllegalLocationConstraint": _REGION,
    "169.254.169.254": _NONE,
    "AccessDenied": _FORBIDDEN,
    "403 Forbidden": _FORBIDDEN,
    "SlowDown": _FAILING,
    "status code: 503": _FAILING,
    "status code: 500": _FAILING,
    "status code: 429": _FAILING,
    "InvalidData": _NO_TLS,
    "error sending request": _SILENT,
    "Connection": _SILENT,
}
"""What the texts of a store's answers mean, the first that fits."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A store's options, which are never shown: neither by `repr` nor in an error."""

    options: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Credentials({', '.join(sorted(self.options))})"

    @property
    def named(self) -> dict[str, Any]:
        """The options for another process, with a function by its name, as ``module:function``."""
        provider = self.options.get(_PROVIDER)
        if provider is None or isinstance(provider, str):
            return dict(self.options)
        kind = provider if hasattr(provider, "__qualname__") else type(provider)
        return {**self.options, _PROVIDER: f"{kind.__module__}:{kind.__qualname__}"}

    @property
    def endpoints(self) -> list[str]:
        """The addresses of the store that the options name, without a login in them."""
        return sorted(_without_login(str(value)) for name, value in self.options.items() if "endpoint" in name)

    @property
    def provider(self) -> Callable[[], Any] | None:
        """The function that returns credentials, None without one. Raises `InvalidAddress` for what is none."""
        given = self.options.get(_PROVIDER)
        if given is None:
            return None
        found = _imported(given) if isinstance(given, str) else given
        if not callable(found):
            raise _no_provider(given)

        def provide() -> Any:
            try:
                given = found()
            except Exception as error:
                raise RuntimeError(f"{_PROVIDER} raised {type(error).__name__}") from error  # its text may hold secrets
            return _as_credentials(given)

        return provide

    @property
    def current(self) -> dict[str, Any]:
        """The options with the credentials of now, for a client that calls no function."""
        options, provider = dict(self.options), self.provider
        return options if provider is None else {**options, **provider()}


@dataclass(frozen=True)
class Objects:
    """The objects below a bucket's prefix, by their stored paths. It can be pickled; a process opens it once.

    ``options`` are those of `obstore.store.from_url`, by its names (``endpoint``, ``region``, ``access_key_id``,
    ``secret_access_key``, ``session_token``, ``allow_http``, ...); what they leave out comes from the environment
    (``AWS_*``, ``GOOGLE_*``, ``AZURE_*``), which is read again once they have expired. ``credential_provider`` is a
    function without arguments that returns credentials as `obstore` takes them, with ``expires_at``; it is called when
    they are about to expire, or have. What is put in S3 carries a checksum that the store compares, CRC64NVME unless
    ``checksum_algorithm`` says ``SHA256``.
    """

    url: str
    credentials: Credentials = field(default_factory=Credentials)
    retry_seconds: float = _RETRY_SECONDS

    @cached_property
    def _store(self) -> Any:
        options = dict(self.credentials.options)
        provider: Any = self.credentials.provider
        options.pop(_PROVIDER, None)
        _require_scheme(options)
        plain = str(options.pop("allow_http", "")).lower() in ("true", "1")
        if self.url.startswith("s3://") and not {"checksum_algorithm", "aws_checksum_algorithm"} & options.keys():
            options["checksum_algorithm"] = "CRC64NVME"
        client: Any = {
            "connect_timeout": timedelta(seconds=_CONNECT_SECONDS),
            "timeout": timedelta(minutes=5),
            "allow_http": plain or any(value.startswith("http://") for value in _endpoints(options)),
        }
        retry: Any = {"max_retries": 0}  # it repeats neither 429 nor a body that breaks off
        try:
            config: Any = options
            return from_url(
                self.url, config=config, client_options=client, retry_config=retry, credential_provider=provider
            )
        except BaseException as error:
            # A value that it cannot convert is a PanicException, of no class that can be imported.
            if (
                not isinstance(error, exceptions.BaseError | ValueError | TypeError)
                and "Panic" not in type(error).__name__
            ):
                raise
            raise InvalidAddress(
                "the store cannot be opened with these options; see docs/deployment.md for their names",
                warehouse=self.url,
                options=sorted(options),
                cause=_first_line(error),
            ) from error

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("url", "credentials", "retry_seconds")}

    def require_fits(self, stored: str, size: int) -> None:
        """Raise `StorageUnavailable` for a file that is larger than the store takes by one request."""
        most = _MOST_BYTES.get(self.url.partition(":")[0])
        if most is not None and size > most:
            raise StorageUnavailable(
                "the file is larger than the store takes by one request; write fewer rows at a time, or give the table "
                "a finer grain",
                path=self._path(stored),
                bytes=size,
                most_bytes=most,
            )

    def put(self, stored: str, file: Path) -> None:
        """Store a file under a name that nobody has used. Returns when the store has answered that it is kept.

        One request, whatever the size (a store takes 5 GiB): uploads in parts cannot be refused where there is an
        object, and leave parts behind. An object that is there already is this one, put by a request whose answer was
        lost, if it has the same bytes. Raises `StorageUnavailable`, and `SegmentUnreadable` for another object of the
        name.
        """
        size = file.stat().st_size

        def put() -> None:
            try:
                obstore.put(self._store, stored, file, mode="create", use_multipart=False)
            except (exceptions.BaseError, FileExistsError) as error:
                if not isinstance(error, _IS_THERE) and "PreconditionFailed" not in str(error):
                    raise
                held = obstore.get(self._store, stored)
                if held.meta["size"] != size or not _is_same(held, file):
                    raise SegmentUnreadable(
                        "another object has the name of a file to write; names are used once, so something else "
                        "writes there",
                        path=self._path(stored),
                    ) from None

        self._ask("put", stored, put)

    def get(self, stored: str, into: Path, size: int) -> None:
        """Write an object to a file. Raises `SegmentUnreadable` if it is gone or not of its length."""

        def get() -> None:
            found = obstore.get(self._store, stored)
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
            return list(obstore.get_ranges(self._store, stored, starts=starts, ends=ends, coalesce=_NEAR_BYTES))

        found = self._ask("get a part of", stored, get)
        for (first, end), part in zip(ranges, found, strict=True):
            if len(part) != end - first:  # a range that ends beyond the object is cut without a word
                raise _of_other_length(self._path(stored), end, first + len(part))
        return found

    def size(self, stored: str) -> int:
        """The length of an object. Raises `FileNotFoundError`."""
        try:
            return self._ask("look at", stored, lambda: int(obstore.head(self._store, stored)["size"]))
        except SegmentUnreadable as error:
            raise FileNotFoundError(self._path(stored)) from error

    def delete(self, stored: Iterable[str]) -> None:
        """Delete objects, many by one request; those that are gone are fine."""
        listed = list(stored)
        for first in range(0, len(listed), _TOGETHER):
            self._delete(listed[first : first + _TOGETHER])

    def _delete(self, stored: list[str]) -> None:
        def delete() -> None:
            try:
                obstore.delete(self._store, stored)
            except FileNotFoundError:
                if len(stored) > 1:  # a store that deletes one by one stopped at it
                    for one in stored:
                        self._delete([one])

        self._ask("delete", stored[0], delete)

    def listed(self, below: str = "") -> Iterator[Listed]:
        """Every object below a prefix of whole names, read before the first is returned."""

        def look() -> list[Listed]:
            return [
                Listed(one["path"], one["size"], one["last_modified"].timestamp())
                for batch in obstore.list(self._store, below or None, chunk_size=_TOGETHER)
                for one in batch
            ]

        yield from self._ask("list", below, look)

    def _path(self, stored: str) -> str:
        return f"{self.url}/{stored}"

    def _ask(self, what: str, stored: str, call: Callable[[], _T]) -> _T:
        """Ask the store, again and again while it throttles or breaks off, at longer and longer intervals.

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
        for attempt in itertools.count():
            with _opening:
                store = self._store  # options that are wrong are no fault of a request
            try:
                return call()
            except FileNotFoundError as error:
                if what == "put" or any(one in str(error) for one in _NAMED):
                    raise self._unavailable(error, what, stored) from error
                raise SegmentUnreadable(
                    "data file is missing; restore it from a copy", path=self._path(stored)
                ) from error
            except (exceptions.BaseError, PermissionError, ValueError) as error:
                if "ExpiredToken" in str(error) and not attempt:
                    with _opening:  # environment or provider may have new credentials
                        if self.__dict__.get("_store") is store:
                            del self.__dict__["_store"]
                    continue
                wait = random.uniform(0, min(_MOST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2**attempt))  # noqa: S311
                if time.monotonic() + wait > started + self._patience(str(error)):
                    raise self._unavailable(error, what, stored) from error
                time.sleep(wait)
        raise AssertionError

    def _patience(self, text: str) -> float:
        """For how many seconds a request is repeated that failed with a text."""
        if _NOBODY.search(text):
            return min(_CONNECT_SECONDS, self.retry_seconds)
        return self.retry_seconds if _PASSING.search(text) else 0.0

    def _unavailable(self, error: Exception, what: str, stored: str) -> StorageUnavailable:
        return StorageUnavailable(meaning_of(str(error)), path=self._path(stored), asked=what, cause=_first_line(error))


def meaning_of(text: str) -> str:
    """What a store's answer means, with the remedy."""
    return next((meaning for part, meaning in _MEANINGS.items() if part in text), "the store refused a request")


def _imported(name: str) -> Any:
    """What ``module:function`` names; of a class, an instance."""
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise _no_provider(name) from error
    return found() if isinstance(found, type) else found


def _as_credentials(given: Any) -> dict[str, Any]:
    """What a function returned, as the client takes it. Raises `RuntimeError` that says what is wrong, and no value."""
    if not isinstance(given, Mapping):
        raise RuntimeError(f"{_PROVIDER} returned {type(given).__name__}, not a dict of credentials")
    made = {"expires_at": None, **given}
    if "access_key_id" in made or "secret_access_key" in made:
        made.setdefault("token", None)
        missing = sorted({"access_key_id", "secret_access_key"} - made.keys())
        if missing:
            raise RuntimeError(f"{_PROVIDER} returned no {missing[0]}, but {', '.join(sorted(given))}")
    until = made["expires_at"]
    if until is not None and (not isinstance(until, datetime) or until.tzinfo is None):
        raise RuntimeError(f"{_PROVIDER} returned an expires_at that is no datetime with a time zone, nor None")
    return made


def _no_provider(given: object) -> InvalidAddress:
    return InvalidAddress(
        "credential_provider is a function without arguments, or its name as module:function, which every process can "
        "import",
        credential_provider=given,
    )


def _require_scheme(options: Mapping[str, Any]) -> None:
    """Raise `InvalidAddress` for an endpoint that is no URL, with which obstore would panic."""
    given = {name: str(value) for name, value in options.items() if "endpoint" in name.lower()}
    given |= {name: value for name, value in os.environ.items() if name.startswith(_ENDPOINTS)}
    for name, value in given.items():
        if not re.match(r"https?://[^/]", value):
            raise InvalidAddress(
                "an endpoint is a URL, as in https://store.example.org:9000",
                option=name,
                endpoint=_without_login(value),
            )


def _endpoints(options: Mapping[str, Any]) -> Iterator[str]:
    """Addresses of a store as given, and as the environment names them."""
    yield from map(str, options.values())
    yield from (value for name, value in os.environ.items() if name.startswith(_ENDPOINTS))


def _without_login(text: str) -> str:
    return re.sub(r"://[^\s/@]*@", "://", text)


def _first_line(error: BaseException) -> str:
    """What a store says, without the debugging that follows it, and without what addresses may hold of secrets."""
    said = " ".join(str(error).partition("Debug source:")[0].split())
    said = _without_login(said)
    return re.sub(r"(://[^\s?]*)\?\S*", r"\1", said)[:300] or type(error).__name__


def _is_same(held: Any, file: Path) -> bool:
    """Whether an object has a file's bytes."""
    with file.open("rb") as own:
        return all(own.read(len(part)) == bytes(part) for part in held.stream())


def _of_other_length(path: str, expected: int, found: int) -> SegmentUnreadable:
    what = "cut short" if found < expected else "longer than committed"
    return SegmentUnreadable(f"data file is {what}; restore it from a copy", path=path, expected=expected, found=found)
