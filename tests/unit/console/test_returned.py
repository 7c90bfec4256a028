"""Where a login ends: on the page on which it began, and nowhere else."""

import asyncio
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.routing import Route

from returned import COOKIE, Returned, place_of

SHARED = "/timeline?table=fl%C3%BCge&interval=2013-01-01%2F2013-02-01&laser=2013-01-02%2012:00"
PROVIDER = "https://login.example.org/authorize"
SERVER = Starlette(
    routes=[
        Route("/", lambda _: PlainTextResponse("front")),
        Route("/auth/login", lambda _: RedirectResponse(PROVIDER, 302)),
        Route("/oauth2callback", lambda _: RedirectResponse("/", 302)),
    ],
    middleware=[Middleware(Returned)],
)
"""A server whose login ends at the front page, as Streamlit's does."""


def ask(path: str, **headers: str) -> dict[str, str]:
    """The headers that a browser gets for a path."""
    found: dict[str, str] = {}

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        found.update((name.decode(), value.decode()) for name, value in message.get("headers", ()))

    sent = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": sent, "root_path": ""}
    asyncio.run(SERVER(scope, receive, send))
    return found


def test_a_login_ends_where_it_began() -> None:
    begun = ask("/auth/login", referer=f"http://lake.example.org{SHARED}")
    assert begun["location"] == PROVIDER
    cookie, *attributes = begun["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=lax", "Max-Age=600"} <= set(attributes)
    ended = ask("/oauth2callback", cookie=f"other=1; {cookie}")
    assert ended["location"] == SHARED
    assert ended["set-cookie"].startswith(f'{COOKIE}=""')
    assert "Max-Age=0" in ended["set-cookie"]


def test_a_login_of_which_nothing_is_known_ends_at_the_front_page() -> None:
    assert ask("/auth/login")["set-cookie"].startswith(f'{COOKIE}=""')
    assert ask("/oauth2callback")["location"] == "/"
    assert "set-cookie" not in ask("/", referer=f"http://lake.example.org{SHARED}")


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("https://lake.example.org/locks", "/locks"),
        ("https://lake.example.org/behind/locks?table=a#part", "/behind/locks?table=a"),
        ("https://lake.example.org/", "/"),
        ("https://lake.example.org", ""),
        ("https://lake.example.org?table=a", ""),
        ("https://lake.example.org//evil.example.org/", ""),
        ("//evil.example.org", ""),
        ("/\\evil.example.org", ""),
        ("/%2f/evil.example.org", ""),
        ("javascript:alert(1)", ""),
        ("http://[", ""),
        ("https://lake.example.org/timeline?" + 2_000 * "a", ""),
        ("", ""),
    ],
)
def test_nobody_is_sent_to_another_host(address: str, place: str) -> None:
    assert place_of(address) == place


@pytest.mark.parametrize("held", ["https://evil.example.org/", "//evil.example.org/", "%2F%2Fevil.example.org%2F"])
def test_a_cookie_of_another_hand_leads_to_no_other_host(held: str) -> None:
    assert ask("/oauth2callback", cookie=f"{COOKIE}={held}")["location"] == "/"
