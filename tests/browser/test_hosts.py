"""A console that runs answers by its own names only, for pages, for what watches it, and for WebSockets."""

import base64
import http.client
from typing import Any
from urllib.parse import urlsplit

import lakehouse

STREAM = "/_stcore/stream"


def status(address: str, path: str, **headers: str) -> int:
    """What the server says to a request with headers of our own, also to one for a WebSocket."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=30)
    if path == STREAM:
        key = base64.b64encode(b"0123456789abcdef").decode()
        headers |= {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": key}
        headers |= {"Sec-WebSocket-Version": "13"}
    connection.putrequest("GET", path, skip_host=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse().status
    connection.close()
    return answer


def test_requests_under_other_names_or_from_other_places_are_refused(serve: Any, flights: lakehouse.Table) -> None:
    address = serve("--host", "lake.example.org")
    own = urlsplit(address).netloc
    port = urlsplit(address).port
    for path, well in (("/", 200), ("/healthz", 200), ("/metrics", 200), ("/_stcore/health", 200), (STREAM, 101)):
        assert status(address, path, Host=own) == well
        assert status(address, path, Host=own, Origin=f"http://{own}") == well
        assert status(address, path, Host=f"localhost:{port}", Origin=f"http://127.0.0.1:{port}") == well
        assert status(address, path, Host=own, Origin="http://127.0.0.1:1") == 403
        assert status(address, path, Host="evil.example.org", Origin="http://evil.example.org") == 403
        assert status(address, path, Host=f"evil.example.org:{port}") == 403
        assert status(address, path, Host=own, Origin="null") == 403
    assert status(address, STREAM, Host="lake.example.org", Origin="https://lake.example.org") == 101
    assert status(address, "/metrics", Host="lake.example.org") == 404
    assert status(address, "/metrics", Host=own, **{"X-Forwarded-Proto": "https"}) == 404
