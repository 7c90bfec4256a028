"""A query node's HTTP: POST /sql, DELETE /queries/ID, /status, /metrics, /health and /ready."""

from __future__ import annotations

import asyncio
import hmac
import json
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any
from uuid import uuid4

import pyarrow as pa
import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from lakehouse.core.serving.group import Group, Node
from lakehouse.errors import Forbidden, InternalError, InvalidArgument, LakehouseError, StatementCancelled
from lakehouse.serving.answering import too_much
from lakehouse.serving.asking import Asking
from lakehouse.serving.node import ServingNode
from lakehouse.serving.wire import (
    ARROW,
    JSON,
    Question,
    Said,
    read_question,
    status_of,
    write_error,
    write_json,
    write_rows,
)

_MOST_BODY = 4_000_000
_GRACE_SECONDS = 20
_MORE_THREADS = 40
"""Beside those that wait for a version or for their turn, of which a node refuses more, and those that run."""
_PIECE_BYTES = 65_536
_PIECES_IN_TIME = 16
_TRANSPORT = "lakehouse.transport"
QUERY_ID = "lakehouse-query"
READER = "lakehouse-reader"


def make_app(node: ServingNode, token: str | None = None) -> Starlette:
    """The application of a node; with a ``token``, nobody without it asks anything but whether it lives."""
    return _App(node, token).app


class _App:
    def __init__(self, node: ServingNode, token: str | None) -> None:
        self._node = node
        self._token = None if token is None else token.encode()
        settings = node.settings
        threads = 2 * settings.most_waiting + settings.at_once + _MORE_THREADS
        self._pool = ThreadPoolExecutor(threads, "lakehouse-query")
        self.app = Starlette(
            routes=[
                Route("/sql", self._guarded(self._sql), methods=["POST"]),
                Route("/queries/{id}", self._guarded(self._cancel), methods=["DELETE"]),
                Route("/status", self._guarded(self._status)),
                Route("/metrics", self._guarded(self._metrics)),
                Route("/health", self._health),
                Route("/ready", self._ready),
            ]
        )

    def _guarded(self, answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def guarded(request: Request) -> Response:
            try:
                self._check_token(request)
                return await answer(request)
            except LakehouseError as error:
                return _refused(error)
            except ClientDisconnect:
                return _refused(StatementCancelled("the client went away before all of its question had come"))

        return guarded

    def _check_token(self, request: Request) -> None:
        given = request.headers.get("authorization", "")
        if self._token is not None and not hmac.compare_digest(given.encode(), b"Bearer " + self._token):
            raise Forbidden(
                "the token is wrong or missing; give the one that the node was started with", path=request.url.path
            )

    async def _sql(self, request: Request) -> Response:
        size = int(request.headers.get("content-length") or 0)
        if size > _MOST_BODY:
            raise InvalidArgument("the question is too long", bytes=size, most=_MOST_BODY)
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BODY:
                raise InvalidArgument("the question is too long", most=_MOST_BODY)
        question = read_question(bytes(body), request.headers.get("content-type", ""))
        asking = Asking(request.headers.get(QUERY_ID) or uuid4().hex)
        reader = request.headers.get(READER) or (request.client.host if request.client else "")
        as_arrow = _wants_arrow(request.headers.get("accept", ""))
        work: asyncio.Future[Any] = asyncio.get_running_loop().run_in_executor(
            self._pool, partial(self._answer, question, reader, asking, as_arrow)
        )
        gone: asyncio.Future[Any] = asyncio.ensure_future(_disconnected(request.receive))
        try:
            await asyncio.wait([work, gone], return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                return _refused(StatementCancelled("the client went away; nothing was answered"))
            answer: Response = work.result()
            return answer
        finally:
            gone.cancel()
            if not work.done():  # the client went away, or the node stops
                asking.cancel()
                work.add_done_callback(lambda _: asking.sent())  # nobody will send what it may yet come to

    def _answer(self, question: Question, reader: str, asking: Asking, as_arrow: bool) -> Response:
        try:
            rows, said = self._node.ask(question, reader=reader, asking=asking)
            return self._written(rows, said, asking, as_arrow=as_arrow)
        except LakehouseError as error:
            return _refused(error)
        except Exception as error:  # noqa: BLE001 - reported by name to who asked
            cause = f"{type(error).__name__}: {error}"[:300]
            return _refused(
                InternalError("the node failed in a way that nobody foresaw; please report it", cause=cause)
            )

    def _written(self, rows: pa.Table, said: Said, asking: Asking, *, as_arrow: bool) -> Response:
        node, most = self._node, self._node.settings.bounds.bytes

        def go_on(size: int) -> None:
            asking.check()
            if size > most:
                raise too_much("bytes", most)

        try:
            body = write_rows(rows, said) if as_arrow else write_json(rows, said, go_on)
        except BaseException as error:
            asking.sent()
            if isinstance(error, LakehouseError):
                node.figures.failed(error.code)
            raise
        asking.resize(len(body))
        headers = {"lakehouse-version": str(said.version), "lakehouse-lake": said.lake, QUERY_ID: asking.id}
        return _Answer(body, ARROW if as_arrow else JSON, headers, asking, node)

    async def _cancel(self, request: Request) -> Response:
        is_there = self._node.cancel(request.path_params["id"])
        return JSONResponse({"cancelled": is_there}, status_code=202 if is_there else 404)

    async def _status(self, _: Request) -> Response:
        node, group = self._node.status()
        return JSONResponse(status_document(node, group, self._node.age_seconds))

    async def _metrics(self, _: Request) -> Response:
        return PlainTextResponse(self._node.metrics(), media_type="text/plain; version=0.0.4")

    async def _health(self, _: Request) -> Response:
        node = self._node
        said = {"node": node.id, "live": node.live, "age_seconds": node.age_seconds}
        return JSONResponse(said, status_code=200 if node.is_well else 503)

    async def _ready(self, _: Request) -> Response:
        is_ready = self._node.is_ready
        return JSONResponse({"ready": is_ready, "live": self._node.live}, status_code=200 if is_ready else 503)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _wants_arrow(accept: str) -> bool:
    """Whether an answer is to be in Arrow: unless JSON is named and Arrow is not."""
    return ARROW in accept or JSON not in accept


class _Answer(Response):
    """An answer in pieces, each sent once the client has taken those before it; who takes none for long is cut off."""

    def __init__(
        self, body: memoryview, media_type: str, headers: dict[str, str], asking: Asking, node: ServingNode
    ) -> None:
        super().__init__(body, headers=headers, media_type=media_type)
        self._asking, self._node = asking, node

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        transport: asyncio.Transport = scope["state"][_TRANSPORT]
        seconds = self._node.settings.send_seconds
        try:
            async with asyncio.timeout(seconds) as limit:
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                await self._send_body(send, transport, limit)
        except TimeoutError:
            self._node.figures.cut()
            transport.abort()
            await _disconnected(receive)
        finally:
            self._asking.sent()

    async def _send_body(self, send: Send, transport: asyncio.Transport, limit: asyncio.Timeout) -> None:
        body = memoryview(self.body)
        if len(body) <= _PIECE_BYTES:
            return await send({"type": "http.response.body", "body": body})
        clock, seconds = asyncio.get_running_loop().time, self._node.settings.send_seconds
        for place, first in enumerate(range(0, len(body), _PIECE_BYTES)):
            if transport.is_closing():
                return None
            if place % _PIECES_IN_TIME == 0:
                limit.reschedule(clock() + seconds)
            piece = bytes(body[first : first + _PIECE_BYTES])  # of its own: a connection that keeps it keeps no more
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        return await send({"type": "http.response.body", "body": b""})  # once all but a little is taken


def _refused(error: LakehouseError) -> Response:
    headers = {"www-authenticate": "Bearer"} if isinstance(error, Forbidden) else None
    return Response(json.dumps(write_error(error)), status_of(error), headers=headers, media_type=JSON)


def status_document(node: Node, group: Group, age_seconds: float) -> dict[str, Any]:
    """A node, and what it knows of its group."""
    report = node.report
    return {
        "node": node.id,
        "url": node.url,
        "group": group.name,
        "lake": group.lake,
        "stage": node.stage.value,
        "live": node.live,
        "group_live": group.live,
        "target": group.target,
        "loaded": list(report.loaded),
        "used": list(report.used),
        "failed": {str(version): cause for version, cause in report.failed.items()},
        "held_bytes": report.held_bytes,
        "held_files": report.held_files,
        "limit_bytes": report.limit_bytes,
        "catalog_age_seconds": round(age_seconds, 3),
        "queries": report.queries,
        "errors": report.errors,
    }


class _Protocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """HTTP whose requests know their connection, so that one can be cut off."""

    app_state: dict[str, Any]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.app_state = {**self.app_state, _TRANSPORT: transport}
        super().connection_made(transport)


def server_config(node: ServingNode, token: str | None = None, **more: Any) -> uvicorn.Config:
    """How uvicorn serves a node."""
    return uvicorn.Config(make_app(node, token), http=_Protocol, lifespan="off", **more)


class _Server(uvicorn.Server):
    """A server that a signal stops gracefully: what has begun is answered, for some seconds."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at SIGTERM and Ctrl-C; at a second one, at once."""
        before = {one: signal.signal(one, self._asked_to_stop) for one in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def _asked_to_stop(self, *_: Any) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 chooses a free one. Raises `InvalidArgument` where it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen(256)
    except OSError as error:
        found.close()
        raise InvalidArgument(
            "the node cannot listen there; choose another port or host", host=host, port=port, cause=error.strerror
        ) from error
    return found


def run_server(node: ServingNode, listener: socket.socket, token: str | None = None) -> None:
    """Answer until a signal asks to stop; what has begun then is answered first."""
    config = server_config(
        node,
        token,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        timeout_keep_alive=75,
        server_header=False,
    )
    server = _Server(config)
    server.run(sockets=[listener])
