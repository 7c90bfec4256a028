"""Returns users to their page after a login: Streamlit's login ends at the front page, whatever address was opened."""

import re
from urllib.parse import quote, unquote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "lakehouse_return"
SECONDS = 600
_MOST_CHARACTERS = 2_000
_PLACE = re.compile(r"/|(/[\w.-]+)+/?", re.ASCII)


class Returned:
    """Keeps the page on which a login begins in a cookie until the login ends, and sends the browser back there."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        begins, ends = path.endswith("/auth/login"), path.endswith("/oauth2callback")

        async def send_with_place(message: Message) -> None:
            if message["type"] == "http.response.start":
                asked, answer = Headers(scope=scope), MutableHeaders(scope=message)
                if begins:
                    answer.append("set-cookie", kept(place_of(asked.get("referer", ""))))
                elif answer.get("location"):
                    held = cookie_parser(asked.get("cookie", "")).get(COOKIE, "")
                    answer["location"] = place_of(unquote(held)) or answer["location"]
                    answer.append("set-cookie", kept(""))
            await send(message)

        await self.app(scope, receive, send_with_place if begins or ends else send)


def place_of(address: str) -> str:
    """Path and query of an address of this console; empty for another host, to which nobody is sent."""
    try:
        parts = urlsplit(address)
    except ValueError:  # not an address, such as http://[
        return ""
    if len(address) > _MOST_CHARACTERS or not _PLACE.fullmatch(parts.path):
        return ""
    return parts._replace(scheme="", netloc="", fragment="").geturl()


def kept(place: str) -> str:
    """The header that stores a place, or clears it."""
    response = Response()
    if place:
        response.set_cookie(COOKIE, quote(place, safe=""), max_age=SECONDS, httponly=True, samesite="lax")
    else:
        response.delete_cookie(COOKIE, httponly=True, samesite="lax")
    return response.headers["set-cookie"]
