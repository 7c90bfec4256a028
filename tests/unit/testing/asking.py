"""Requests to a store on loopback, each over a connection of its own, without a library that tries again."""

from __future__ import annotations

from contextlib import closing
from http.client import HTTPConnection


def ask(
    port: int, method: str, target: str, body: bytes = b"", *, timeout: float = 30, **headers: str
) -> tuple[int, bytes]:
    """The status and the body of the answer; names of headers have ``_`` for ``-``."""
    sent = {"Authorization": "AWS somebody"}  # moto checks no signature, but lets nobody read without one
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    with closing(HTTPConnection("127.0.0.1", port, timeout=timeout)) as connection:
        connection.request(method, target, body, sent)
        with connection.getresponse() as answer:
            return answer.status, answer.read()
