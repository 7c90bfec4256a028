"""Host names to which the console answers: a page of another site that points its own name here gets nothing."""

import os
import tomllib
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from lakehouse.actions.reach import is_loopback

VARIABLE = "LAKEHOUSE_CONSOLE_HOSTS"
"""Host names of the console, separated by commas, each with a port unless it is the standard one."""
_OWN = ("127.0.0.1", "localhost", "[::1]")
_WEB_PORTS = (80, 443)
_REFUSED = "this console does not answer to that name; start it with --host NAME\n"


class Hosts:
    """Refuses every request, also for a WebSocket, whose Host or Origin is not one of the console's own addresses."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self.app(scope, receive, send)
        headers = Headers(scope=scope)
        if is_allowed(headers.getlist("host"), headers.getlist("origin"), allowed()):
            return await self.app(scope, receive, send)
        if scope["type"] == "websocket":
            return await WebSocketClose(1008)(scope, receive, send)
        return await PlainTextResponse(_REFUSED, 403)(scope, receive, send)


def is_allowed(hosts: list[str], origins: list[str], names: Iterable[tuple[str, int | None]]) -> bool:
    """Whether a request names one of the hosts, and its Origin, if any, is one of them too."""
    known = frozenset(names)
    if len(hosts) != 1 or len(origins) > 1 or read_host(hosts[0]) not in known:
        return False
    for origin in origins:
        scheme, separator, rest = origin.partition("://")
        if scheme not in ("http", "https") or not separator or read_host(rest) not in known:
            return False
    return True


def read_host(text: str) -> tuple[str, int | None] | None:
    """Name and port as in a Host header, without a standard port; None if it is not a host."""
    try:
        parts = urlsplit(f"//{text}")
        name, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not name or parts.path or parts.query or parts.fragment or parts.username is not None or not text.isprintable():
        return None
    return name, None if port in _WEB_PORTS else port


def allowed() -> frozenset[tuple[str, int | None]]:
    """The console's own addresses: this machine's, the one it listens on, the login's, and those given by options."""
    port = int(st.get_option("server.port"))
    address = st.get_option("server.address")
    own = [f"{name}:{port}" for name in _OWN]
    if address and not is_loopback(address):
        own.append(f"[{address}]:{port}" if ":" in address else f"{address}:{port}")
    given = (one.strip() for one in os.environ.get(VARIABLE, "").split(","))
    found = (read_host(one) for one in (*own, *_of_login(), *given) if one)
    return frozenset(one for one in found if one is not None)


def _of_login() -> list[str]:
    """The address to which a login returns, by which people reach the console."""
    found = []
    for path in map(Path, st.get_option("secrets.files")):
        if path.is_file():
            try:
                login = tomllib.loads(path.read_text("utf-8")).get("auth")
            except (OSError, ValueError):  # reported when somebody logs in
                continue
            if isinstance(login, dict):
                found.append(urlsplit(str(login.get("redirect_uri", ""))).netloc)
    return found
