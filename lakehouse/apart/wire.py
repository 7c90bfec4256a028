"""Messages between a process and its query processes: one JSON document and one body of bytes each.

Plain values only, so a compromised query process can send wrong data and no more.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from lakehouse import errors
from lakehouse.errors import InternalError, InvalidVersion, LakehouseError

TOLD = "told"
"""In a message that is no answer yet: per cent of the query that are done."""
_SIZES = struct.Struct(">QQ")
_MOST_JSON = 64_000_000


class Ended(Exception):
    """The process at the other end is gone."""


class TooMuch(Exception):
    """The other end sends more than was allowed."""


def send(channel: socket.socket, document: Mapping[str, Any], body: bytes | memoryview = b"") -> None:
    """Send one message. Raises `Ended` if nobody listens, `TimeoutError` past the channel's time-out."""
    text = json.dumps(document, ensure_ascii=True).encode()
    try:
        for part in (_SIZES.pack(len(text), len(body)), text, body):
            channel.sendall(part)
    except (BrokenPipeError, ConnectionResetError) as error:
        raise Ended from error


def receive(channel: socket.socket, *, most_bytes: int, seconds: float | None = None) -> tuple[dict[str, Any], bytes]:
    """The next message, with a body of at most ``most_bytes``, within ``seconds``.

    Raises `Ended`, `TooMuch`, and `TimeoutError`.
    """
    until = None if seconds is None else time.monotonic() + seconds
    length, size = _SIZES.unpack(_read(channel, _SIZES.size, until))
    if length > _MOST_JSON or size > most_bytes:
        raise TooMuch
    document: dict[str, Any] = json.loads(_read(channel, length, until))
    return document, bytes(_read(channel, size, until))


def _read(channel: socket.socket, size: int, until: float | None) -> bytearray:
    found = bytearray(size)
    view, place = memoryview(found), 0
    while place < size:
        left = None if until is None else until - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError
        channel.settimeout(left)
        try:
            count = channel.recv_into(view[place:])
        except ConnectionResetError as error:
            raise Ended from error
        if not count:
            raise Ended
        place += count
    return found


def write_point(as_of: Any) -> Any:
    """A version, tag or time as JSON. Raises `InvalidInput` for anything else."""
    match as_of:
        case None | str():
            return as_of
        case datetime():
            return {"time": as_of.isoformat()}
        case date():
            return {"date": as_of.isoformat()}
        case _ if hasattr(as_of, "__index__") and not isinstance(as_of, bool):
            return {"version": format(int(as_of), "x")}  # without Python's limit on decimal digits
        case _:
            raise InvalidVersion("not a version; pass a number, a tag or a time", as_of=repr(as_of)[:200])


def read_point(value: Any) -> Any:
    """Read what `write_point` wrote.

    >>> read_point(write_point(date(2013, 1, 5))), read_point(write_point(-7)), read_point(write_point("nightly"))
    (datetime.date(2013, 1, 5), -7, 'nightly')
    """
    match value:
        case {"time": text}:
            return datetime.fromisoformat(text)
        case {"date": text}:
            return date.fromisoformat(text)
        case {"version": text}:
            return int(text, 16)
        case _:
            return value


def write_error(error: LakehouseError) -> dict[str, Any]:
    """An error with its class and facts; a fact that JSON cannot express becomes text, as in the message."""
    facts = {
        name: held if held is None or isinstance(held, bool | int | float | str) else str(held)
        for name, held in error.facts.items()
    }
    return {"error": type(error).__name__, "message": str(error.args[0]), "facts": facts}


def read_error(answer: Mapping[str, Any]) -> LakehouseError:
    """Read the error that `write_error` wrote.

    >>> found = read_error(write_error(InvalidVersion("too long; cut it", most=7)))
    >>> str(found), found.most, type(found).__name__
    ('too long; cut it (most=7)', 7, 'InvalidVersion')
    """
    kind = getattr(errors, str(answer["error"]), InternalError)
    if not (isinstance(kind, type) and issubclass(kind, LakehouseError)):
        kind = InternalError
    found = LakehouseError.__new__(kind)
    Exception.__init__(found, answer["message"])
    found.facts = dict(answer["facts"])
    return found
