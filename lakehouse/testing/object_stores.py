"""Object stores on loopback, each a process of its own that ends with its ``with`` block.

moto is a fake of S3 that is quick to start; versitygw is a real server over a folder; Azurite speaks Azure's protocol.
Google's XML interface, which `obstore` uses, is S3's but for some headers, and moto behind a proxy that changes these
stands for it (fake-gcs-server takes no PUT of that interface, and no condition in a header). Each context manager makes
a bucket and yields a `Store`, which says how to reach it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import importlib.util
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from lakehouse.testing import store_programs
from lakehouse.testing.processes import dies_with_parent, free_port, wait_until_it_listens
from lakehouse.testing.store_programs import Unavailable
from lakehouse.testing.store_proxy import StoreProxy
from lakehouse.testing.store_requests import Head

__all__ = ["SERVERS", "Store", "Unavailable", "azurite_server", "google_server", "moto_server", "versitygw_server"]

BUCKET = "lake"
REGION = "eu-central-1"
_SIGNED = f"AWS4-HMAC-SHA256 Credential=key/20240101/{REGION}/s3/aws4_request, SignedHeaders=host, Signature=0"
_MOTO = """
import sys
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server
MotoRequestHandler.protocol_version = "HTTP/1.1"  # or every request needs a connection of its own
stores = DomainDispatcherApplication(create_backend_app)
server = make_server("127.0.0.1", 0, stores, True, request_handler=MotoRequestHandler, fd=int(sys.argv[1]))
server.serve_forever()
"""


@dataclass(frozen=True, slots=True)
class Store:
    """A place in a bucket of a running server, and how to reach it.

    ``options`` are those of `obstore` in one dictionary of text (``aws_endpoint``, ``azure_storage_account_key``), with
    ``allow_http``, which `obstore` takes apart from the others: ``config`` and ``client_options`` are these two parts.
    """

    server: str
    url: str
    port: int
    options: Mapping[str, str]

    @property
    def bucket(self) -> str:
        """The bucket's name, or the container's."""
        return self.url.split("/")[2]

    @property
    def config(self) -> dict[str, str]:
        """The options without those of the HTTP client."""
        return {name: value for name, value in self.options.items() if name != "allow_http"}

    @property
    def client_options(self) -> dict[str, bool]:
        """The options of the HTTP client."""
        return {"allow_http": self.options["allow_http"] == "true"}

    def under(self, name: str) -> Store:
        """The same store, one prefix deeper: a warehouse for one test.

        >>> Store("moto", "s3://lake/warehouse", 9000, {}).under("first").url
        's3://lake/warehouse/first'
        """
        return replace(self, url=f"{self.url}/{name}")

    def through(self, port: int) -> Store:
        """The same store through another port, which is a proxy's.

        >>> store = Store("moto", "s3://lake/warehouse", 9000, {"aws_endpoint": "http://127.0.0.1:9000"})
        >>> store.through(9001).options
        {'aws_endpoint': 'http://127.0.0.1:9001'}
        """
        old, new = f"//127.0.0.1:{self.port}", f"//127.0.0.1:{port}"
        return replace(self, port=port, options={name: value.replace(old, new) for name, value in self.options.items()})


@contextmanager
def moto_server() -> Iterator[Store]:
    """The fake moto, in memory: no check of signatures, and one process. Raises `Unavailable` without its package."""
    if importlib.util.find_spec("moto") is None or importlib.util.find_spec("flask_cors") is None:
        raise Unavailable("moto is not installed: run pip install 'moto[s3]' flask flask-cors")
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        command = [sys.executable, "-c", _MOTO, str(listening.fileno())]
        port: int = listening.getsockname()[1]
        with _running(command, pass_fds=[listening.fileno()]) as process:
            listening.close()  # what connects now waits for the server, or is refused if that ends
            _check(process, port)
            _request(port, "PUT", f"/{BUCKET}", _LOCATION)
            yield _s3("moto", port, "key", secrets.token_hex(8))


@contextmanager
def versitygw_server(folder: Path, *, install: bool = True) -> Iterator[Store]:
    """The gateway versitygw over a folder, which another server may open later: signatures and conditions are checked.

    Raises `Unavailable` where there is no Go to build it, or where it is not built yet and ``install`` is false.
    """
    program = store_programs.versitygw(install=install)
    for name in (f"buckets/{BUCKET}", "metadata"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    port, access, secret = free_port(), secrets.token_hex(8), secrets.token_hex(16)
    command = [str(program), "--port", f"127.0.0.1:{port}", "--region", REGION, "--quiet", "--keep-alive"]
    command += ["posix", "--sidecar", str(folder / "metadata"), str(folder / "buckets")]
    own = {"ROOT_ACCESS_KEY_ID": access, "ROOT_SECRET_ACCESS_KEY": secret}
    with _running(command, environment=own) as process:
        _check(process, port)
        yield _s3("versitygw", port, access, secret)


@contextmanager
def azurite_server(folder: Path, *, install: bool = True) -> Iterator[Store]:
    """Azurite's blob service over a folder. Raises `Unavailable` as `versitygw_server` does, for Node and npm."""
    script = store_programs.azurite(install=install)
    folder.mkdir(parents=True, exist_ok=True)
    port, account, key = free_port(), "lake", base64.b64encode(secrets.token_bytes(32)).decode()
    command = ["node", str(script), "--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder)]
    command += ["--silent", "--disableTelemetry", "--skipApiVersionCheck"]
    with _running(command, environment={"AZURITE_ACCOUNTS": f"{account}:{key}"}) as process:
        _check(process, port)
        _make_container(port, account, key)
        options = {
            "azure_storage_account_name": account,
            "azure_storage_account_key": key,
            "azure_storage_endpoint": f"http://127.0.0.1:{port}/{account}",
            "allow_http": "true",
        }
        yield Store("azurite", f"az://{BUCKET}/warehouse", port, options)


class _GoogleProxy(StoreProxy):
    """Forwards what is asked in Google's words to a server that understands S3's."""

    def sent(self, head: Head) -> Head:
        """A head with S3's condition, and with what moto takes for a signature."""
        line, *headers = head.raw.decode("latin-1").split("\r\n")
        kept = [one for one in headers if not one.lower().startswith(("authorization:", "x-goog-"))]
        if head.headers.get("x-goog-if-generation-match") == "0":
            kept.insert(0, "If-None-Match: *")
        kept.insert(0, f"Authorization: {_SIGNED}")
        return Head.of("\r\n".join([line, *kept]).encode("latin-1"))


@contextmanager
def google_server() -> Iterator[Store]:
    """moto, asked in Google's words, without any login. Raises `Unavailable` as `moto_server` does."""
    with moto_server() as behind, _GoogleProxy(behind.port) as proxy:
        # The key of an account that asks nobody for a token; without one, obstore asks the machine's metadata server.
        account = {"private_key": "", "private_key_id": "", "client_email": "", "disable_oauth": True}
        account["gcs_base_url"] = f"http://127.0.0.1:{proxy.port}"
        options = {"google_service_account_key": json.dumps(account), "allow_http": "true"}
        yield Store("google", f"gs://{BUCKET}/warehouse", proxy.port, options)


SERVERS: Mapping[str, Callable[[Path], AbstractContextManager[Store]]] = {
    "moto": lambda folder: moto_server(),
    "versitygw": versitygw_server,
    "azurite": azurite_server,
    "google": lambda folder: google_server(),
}
"""Every server by its name, called with a folder for what it keeps."""


@contextmanager
def _running(
    command: Sequence[str], *, environment: Mapping[str, str] | None = None, pass_fds: Sequence[int] = ()
) -> Iterator[_Process]:
    """A command that runs as long as the block, and does not outlive this process."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [*dies_with_parent(), *command],
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=pass_fds,
        )
        try:
            yield _Process(process, lambda: _end_of(log.fileno()))
        finally:
            process.kill()  # it keeps nothing that it has not written
            process.wait()


@dataclass(frozen=True, slots=True)
class _Process:
    popen: subprocess.Popen[bytes]
    printed: Callable[[], str]


def _end_of(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, 2000, max(0, size - 2000)).decode(errors="replace")


def _check(process: _Process, port: int) -> None:
    """Wait until the server listens, or say what it printed."""
    if not wait_until_it_listens(port, process.popen):
        raise RuntimeError(f"the object store did not start: {process.printed()}")


def _s3(server: str, port: int, access: str, secret: str) -> Store:
    options = {
        "aws_endpoint": f"http://127.0.0.1:{port}",
        "aws_region": REGION,
        "aws_access_key_id": access,
        "aws_secret_access_key": secret,
        "aws_virtual_hosted_style_request": "false",
        "allow_http": "true",
    }
    return Store(server, f"s3://{BUCKET}/warehouse", port, options)


_LOCATION = f"""<CreateBucketConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">\
<LocationConstraint>{REGION}</LocationConstraint></CreateBucketConfiguration>""".encode()


def _make_container(port: int, account: str, key: str) -> None:
    """Make a container by a request signed with the account's key.

    The form is Microsoft's "Authorize with Shared Key"; of its twelve standard headers, none is sent here.
    """
    sent = {"x-ms-date": datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT"), "x-ms-version": "2021-08-06"}
    path = f"/{account}/{BUCKET}"
    headers = "".join(f"{name}:{value}\n" for name, value in sorted(sent.items()))
    text = "PUT" + 12 * "\n" + headers + f"/{account}{path}\nrestype:container"
    digest = hmac.digest(base64.b64decode(key), text.encode(), hashlib.sha256)
    sent["Authorization"] = f"SharedKey {account}:{base64.b64encode(digest).decode()}"
    _request(port, "PUT", f"{path}?restype=container", b"", sent)


def _request(port: int, method: str, target: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, target, body, dict(headers or {}))
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    if answer.status >= 300 and answer.status != 409:  # 409: an earlier server over this folder made it
        raise RuntimeError(f"the object store refused a bucket: {answer.status} {text.decode(errors='replace')[:500]}")
