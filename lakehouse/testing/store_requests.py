"""What a request to an object store asks for, read from its head; and bodies of HTTP/1.1, byte for byte."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum, auto
from urllib.parse import parse_qs, unquote, urlsplit

_BLOCK = 1 << 16
_MOST_HEAD = 1 << 17
_OF_A_LISTING = {"prefix", "marker", "delimiter", "max-keys", "encoding-type"}


class Kind(StrEnum):
    """What is asked of a store, whose answers cost and fail in different ways."""

    GET = auto()
    HEAD = auto()
    LIST = auto()
    PUT = auto()
    COPY = auto()
    DELETE = auto()
    DELETE_MANY = auto()
    CREATE_UPLOAD = auto()
    PUT_PART = auto()
    COMPLETE_UPLOAD = auto()
    ABORT_UPLOAD = auto()
    OTHER = auto()


WRITES = frozenset(Kind) - {Kind.GET, Kind.HEAD, Kind.LIST, Kind.OTHER}
"""The kinds that change a store."""


@dataclass(frozen=True, slots=True)
class Head:
    """The first line and the headers of a request or an answer, and the bytes that they are of."""

    raw: bytes
    first: tuple[str, str, str]
    headers: Mapping[str, str]

    @classmethod
    def of(cls, raw: bytes) -> Head:
        r"""Read it; names of headers become lower case.

        >>> Head.of(b"GET /lake/a HTTP/1.1\r\nRange: bytes=0-7\r\n\r\n").headers
        {'range': 'bytes=0-7'}
        """
        line, _, rest = raw.decode("latin-1").partition("\r\n")
        one, two, three = (*line.split(" ", 2), "", "")[:3]
        pairs = (header.partition(":") for header in rest.split("\r\n") if header)
        return cls(raw, (one, two, three), {name.strip().lower(): value.strip() for name, _, value in pairs})

    @property
    def length(self) -> int | None:
        """Bytes of the body, None where the head does not say."""
        text = self.headers.get("content-length", "")
        return int(text) if text.isdigit() else None

    @property
    def is_chunked(self) -> bool:
        """Whether the body comes in chunks."""
        return "chunked" in self.headers.get("transfer-encoding", "").lower()

    @property
    def keeps_open(self) -> bool:
        """Whether the connection lives on after the body."""
        version = self.first[2] if self.first[2].startswith("HTTP/") else self.first[0]
        return version == "HTTP/1.1" and self.headers.get("connection", "").lower() != "close"


@dataclass(frozen=True, slots=True)
class Request:
    """One request: ``path`` as it is named in the store (``/bucket/key``), ``length`` of the body in bytes."""

    kind: Kind
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    length: int

    @classmethod
    def of(cls, head: Head) -> Request:
        r"""What a head asks for.

        >>> head = Head.of(b"PUT /lake/a%20b?partNumber=1&uploadId=u HTTP/1.1\r\nContent-Length: 7\r\n\r\n")
        >>> one = Request.of(head)
        >>> str(one.kind), one.path, one.length
        ('put_part', '/lake/a b', 7)
        """
        method, target, _ = head.first
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        kind = _kind(method, parts.path, query, head.headers)
        return cls(kind, method, unquote(parts.path), query, head.headers, head.length or 0)


def _kind(method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> Kind:
    """By the words of S3, which Google's XML interface shares, and those of Azure."""
    match method:
        case "GET":
            lists = query.get("comp") == "list" or "list-type" in query or "uploads" in query or "uploadId" in query
            at_a_bucket = re.fullmatch(r"/[^/]*/?", path) and query.keys() <= _OF_A_LISTING
            return Kind.LIST if lists or at_a_bucket else Kind.GET
        case "HEAD":
            return Kind.HEAD
        case "PUT":
            return _kind_of_put(path, query, headers)
        case "POST" if "uploads" in query:
            return Kind.CREATE_UPLOAD
        case "POST" if "uploadId" in query:
            return Kind.COMPLETE_UPLOAD
        case "POST" if "delete" in query or query.get("comp") == "batch":
            return Kind.DELETE_MANY
        case "DELETE":
            return Kind.ABORT_UPLOAD if "uploadId" in query else Kind.DELETE
    return Kind.OTHER


def _kind_of_put(path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> Kind:
    if "uploadId" in query or query.get("comp") == "block":
        return Kind.PUT_PART
    if query.get("comp") == "blocklist":
        return Kind.COMPLETE_UPLOAD
    if query.get("restype") == "container" or re.fullmatch(r"/[^/]*/?", path):
        return Kind.OTHER
    return Kind.COPY if any(name.endswith("-copy-source") for name in headers) else Kind.PUT


class Wire:
    """One side of a connection, read as HTTP/1.1 and kept as it came."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._held = b""

    def head(self) -> Head | None:
        """The next head; None where the connection ended before one began. Raises `ConnectionError` in its middle."""
        while b"\r\n\r\n" not in self._held:
            more = self.connection.recv(_BLOCK)
            if not more and not self._held:
                return None
            if not more or len(self._held) > _MOST_HEAD:
                raise ConnectionError("no whole head came")
            self._held += more
        raw, _, self._held = self._held.partition(b"\r\n\r\n")
        return Head.of(raw + b"\r\n\r\n")

    def body(self, head: Head, *, until_closed: bool = False) -> Iterator[bytes]:
        """The bytes of a body, with the frames of its chunks; ``until_closed``, one without a length has no other end.

        Raises `ConnectionError` where it ends early.
        """
        if head.is_chunked:
            yield from self._chunks()
        elif head.length is not None:
            yield from self._exactly(head.length)
        elif until_closed:
            while data := self._some(_BLOCK):
                yield data

    def _chunks(self) -> Iterator[bytes]:
        while True:
            line = self._line()
            yield line
            size = int(line.split(b";")[0], 16)
            if size == 0:
                break
            yield from self._exactly(size + 2)
        while (trailer := self._line()) != b"\r\n":
            yield trailer
        yield trailer

    def _exactly(self, size: int) -> Iterator[bytes]:
        while size > 0:
            data = self._some(min(size, _BLOCK))
            if not data:
                raise ConnectionError("a body ended early")
            size -= len(data)
            yield data

    def _line(self) -> bytes:
        while b"\r\n" not in self._held:
            more = self.connection.recv(_BLOCK)
            if not more:
                raise ConnectionError("a body ended early")
            self._held += more
        line, _, self._held = self._held.partition(b"\r\n")
        return line + b"\r\n"

    def _some(self, most: int) -> bytes:
        if not self._held:
            return self.connection.recv(most)
        data, self._held = self._held[:most], self._held[most:]
        return data
