"""A proxy in front of an object store that counts what is asked of it, and breaks it as stores and networks do."""

from __future__ import annotations

import socket
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from lakehouse.testing.proxy import LoopbackProxy
from lakehouse.testing.store_faults import ANSWERS, Fault, Rule, Schedule
from lakehouse.testing.store_requests import Head, Kind, Request, Wire

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER for no time at all: closing sends a reset


@dataclass(slots=True)
class Exchange:
    """A request and what came of it: the fault it met, else the status and length of the store's answer."""

    request: Request
    fault: Fault | None = None
    status: int | None = None
    answered: int | None = None


class StoreProxy(LoopbackProxy):
    r"""Forwards requests to a store, byte for byte, so that signatures stay valid; some meet a fault instead.

    Rules come before the schedule. ``latency_seconds`` is waited before each request is forwarded or refused, in its
    connection's thread: requests side by side wait side by side. Counts are of requests, those that failed included.

    Examples
    --------
    >>> from contextlib import closing
    >>> from http.client import HTTPConnection
    >>> with StoreProxy(server_port=1) as proxy, closing(HTTPConnection("127.0.0.1", proxy.port)) as client:
    ...     proxy.add(Rule(Fault.SLOW_DOWN, kinds=[Kind.PUT], path=r"\.parquet$"))
    ...     client.request("PUT", "/lake/a.parquet", b"rows")
    ...     client.getresponse().status, proxy.counts()[Kind.PUT]
    (503, 1)
    """

    def __init__(self, server_port: int, *, schedule: Schedule | None = None, latency_seconds: float = 0.0) -> None:
        self.schedule = schedule
        self.latency_seconds = latency_seconds
        self._rules: list[tuple[Rule, Counter[str]]] = []
        self._exchanges: list[Exchange] = []
        super().__init__(server_port)

    def add(self, *rules: Rule) -> None:
        """Follow more rules; the first that hits a request decides."""
        with self._guard:
            self._rules += [(rule, Counter()) for rule in rules]

    def clear(self) -> None:
        """Follow no rule and no schedule any more."""
        with self._guard:
            self._rules, self.schedule = [], None

    @contextmanager
    def following(self, *rules: Rule) -> Iterator[None]:
        """Follow rules until the block ends."""
        added = [(rule, Counter[str]()) for rule in rules]
        with self._guard:
            self._rules += added
        try:
            yield
        finally:
            with self._guard:
                self._rules = [one for one in self._rules if not any(one is other for other in added)]

    @property
    def exchanges(self) -> list[Exchange]:
        """Every request since the start, or since `forget`, in the order in which their heads came."""
        with self._guard:
            return list(self._exchanges)

    def counts(self) -> Counter[Kind]:
        """How many requests of each kind came."""
        return Counter(one.request.kind for one in self.exchanges)

    def faults(self) -> Counter[Fault]:
        """How many requests met each fault."""
        return Counter(one.fault for one in self.exchanges if one.fault is not None)

    def forget(self) -> None:
        """Count from zero."""
        with self._guard:
            self._exchanges = []

    def serve(self, client: socket.socket) -> None:
        """Serve the requests of one connection, one after another."""
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wire = Wire(client)
        while (head := wire.head()) is not None:
            exchange = self._begin(Request.of(head))
            self._closed.wait(self.latency_seconds)
            if not self._answer(wire, head, exchange):
                return

    def sent(self, head: Head) -> Head:
        """The head that the server gets for one of a client."""
        return head

    def answered(self, head: Head) -> Head:
        """The head that a client gets for one of the server."""
        return head

    def _begin(self, request: Request) -> Exchange:
        """Count a request, and decide what it meets."""
        with self._guard:
            found = None
            for rule, seen in self._rules:
                if rule.matches(request):
                    seen["requests"] += 1
                    found = found or (rule.fault if rule.hits(seen["requests"]) else None)
            if found is None and self.schedule is not None:
                found = self.schedule.draw(request)
            exchange = Exchange(request, found)
            self._exchanges.append(exchange)
            return exchange

    def _answer(self, client: Wire, head: Head, exchange: Exchange) -> bool:
        """Answer one request; False where its connection is of no more use."""
        fault = exchange.fault
        if fault is Fault.RESET:
            _reset(client.connection)
            return False
        if fault is Fault.HANG:
            self._closed.wait()
            return False
        _continue(client.connection, head)
        if fault in ANSWERS:
            for _ in client.body(head):
                pass  # a client that is still sending would see a reset instead of the answer
            exchange.status = ANSWERS[fault][0]
            client.connection.sendall(_refusal(fault, exchange.request))
            return head.keeps_open
        server = self.connect()
        try:
            _send(client, head, self.sent(head), server)
            return self._relay(Wire(server), client, head, exchange)
        finally:
            self.drop(server)

    def _relay(self, server: Wire, client: Wire, asked: Head, exchange: Exchange) -> bool:
        """Pass the store's answer on, as far as the fault lets it; False where the connection is of no more use."""
        head = server.head()
        while head is not None and head.first[1].startswith("1"):
            head = server.head()
        if head is None:
            raise ConnectionError("the store did not answer")
        head = self.answered(head)
        status = int(head.first[1])
        has_body = asked.first[0] != "HEAD" and status not in (204, 304)
        exchange.status, exchange.answered = status, head.length if has_body else 0
        body = server.body(head, until_closed=True) if has_body else iter(())
        if exchange.fault is Fault.LOST:
            for _ in body:
                pass
            _reset(client.connection)
            return False
        client.connection.sendall(head.raw)
        if exchange.fault is Fault.CUT:
            whole = b"".join(body)
            client.connection.sendall(whole[: len(whole) // 2])
            return False
        for data in body:
            client.connection.sendall(data)
        has_end = not has_body or head.is_chunked or head.length is not None
        return has_end and head.keeps_open and asked.keeps_open


def _send(client: Wire, head: Head, sent: Head, server: socket.socket) -> None:
    """Send a request on; a store may answer and close before it has read all of it."""
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server.sendall(sent.raw)
    is_open = True
    for data in client.body(head):
        if is_open:
            try:
                server.sendall(data)
            except OSError:
                is_open = False


def _continue(client: socket.socket, head: Head) -> None:
    """Say that a body may come, where the client waits to hear so; the store's own word for it is not passed on."""
    if head.headers.get("expect", "").lower() == "100-continue":
        client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")


def _refusal(fault: Fault, request: Request) -> bytes:
    status, reason, code, message = ANSWERS[fault]
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
    text = text if code else "<html>This is no object store.</html>"
    body = b"" if request.method == "HEAD" else text.encode()
    head = f"HTTP/1.1 {status} {reason}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _reset(client: socket.socket) -> None:
    """Break a connection so that its other side sees a reset, not an end."""
    with suppress(OSError):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    client.close()
