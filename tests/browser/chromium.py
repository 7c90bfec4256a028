"""A real Chromium, and the console as a user starts it."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

SCREENSHOTS = Path(__file__).resolve().parents[2] / "build/screenshots"
CHROMIUM_COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# A browser that starts as root, in a container, and asks nobody on the network for anything.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
ONE_THEME = pytest.mark.parametrize("page", ["light"], indirect=True)
"""For what does not depend on colours: test_journey.py checks every page in both themes."""
START_SECONDS = 180
PATIENCE_MS = 30_000


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_it_answers(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    pytest.fail(f"the console did not start: {log.read_text()}")


@pytest.fixture
def serve(place: Any, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Start the console of the test's lake with options of its command line; gives its address.

    It fails the test if the console does not end in order, or has failed on the way.
    """
    started: list[subprocess.Popen[bytes]] = []
    logs: list[Path] = []

    def served(*options: str, port: int | None = None) -> str:
        port, log = port or free_port(), tmp_path / f"console-{len(started)}.log"
        command = [Path(sys.executable).with_name("lakehouse"), "console", "--port", str(port), *options]
        with log.open("wb") as output:
            environment = {**os.environ, **place.environment()}
            server = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT, cwd=tmp_path)
        started.append(server)
        logs.append(log)
        wait_until_it_answers(f"http://127.0.0.1:{port}/_stcore/health", server, log)
        return f"http://127.0.0.1:{port}"

    yield served
    for server in started:
        server.terminate()
        assert server.wait(timeout=30) is not None
    for log in logs:
        assert not any(word in log.read_text() for word in ("Traceback", "leaked")), log.read_text()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = [path for path in map(shutil.which, CHROMIUM_COMMANDS) if path]
    if not found:
        pytest.fail("Chromium is not installed: run apt-get install chromium", pytrace=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found[0], args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture(params=["light", "dark"])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page that fails the test if it meets an error or asks for anything beyond this machine."""
    context = browser.new_context(viewport={"width": 1280, "height": 1500}, color_scheme=request.param)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on(
        "request",
        lambda asked: None if asked.url.startswith(LOCAL) else complaints.append(f"asked the web for {asked.url}"),
    )
    yield page
    context.close()
    assert complaints == []


LOCAL = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:", "file:")
