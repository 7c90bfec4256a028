"""A login by OpenID Connect from end to end: a real provider, a real browser, and what the console then lets one do."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import lakehouse
from tests.browser.chromium import LOCAL, PATIENCE_MS, free_port, wait_until_it_answers

SECRETS = """
[auth]
redirect_uri = "http://127.0.0.1:{port}/oauth2callback"
cookie_secret = "what nobody else knows"
client_id = "lakehouse"
client_secret = "what only the provider knows"
server_metadata_url = "http://127.0.0.1:{provider}/.well-known/openid-configuration"
"""


PEOPLE = (
    {"sub": "1", "email": "ada@example.org", "email_verified": True},
    {"sub": "2", "email": "ada@example.org", "email_verified": False},
)


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[int]:
    """The port of a provider that knows some people."""
    port, log = free_port(), tmp_path / "provider.log"
    known = [part for one in PEOPLE for part in ("--user-claims", json.dumps(one))]
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), *known]
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as server:
        wait_until_it_answers(f"http://127.0.0.1:{port}/.well-known/openid-configuration", server, log)
        yield port
        server.terminate()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that reaches this machine only: the provider's own would have a style sheet from the web."""
    with browser.new_context() as context:
        context.route(lambda url: not url.startswith(LOCAL), lambda route: route.abort())
        context.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        yield context.new_page()


@pytest.mark.timeout(300)
def test_people_log_in_and_may_what_the_file_of_roles_says(
    serve: Any,
    page: Page,
    provider: int,
    lake: lakehouse.Lake,
    flights: lakehouse.Table,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = free_port()
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit/secrets.toml").write_text(SECRETS.format(port=port, provider=provider))
    (tmp_path / "roles.toml").write_text('admin = ["ada@example.org"]')
    monkeypatch.setenv("LAKEHOUSE_ROLES", str(tmp_path / "roles.toml"))
    address = serve(port=port)
    operation = flights.begin_append()

    def log_in(sub: str) -> None:
        page.context.clear_cookies()
        page.goto(f"{address}/locks?version=1")
        expect(page.get_by_text("Log in to see this lake.")).to_be_visible()
        expect(page.get_by_text("flights")).to_have_count(0)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("button", name=sub, exact=True).click()
        expect(page.get_by_role("heading", name="Locks and operations")).to_be_visible()
        expect(page).to_have_url(f"{address}/locks?version=1")

    log_in("2")  # whoever says that they are ada, but the provider did not verify it
    release = page.get_by_role("button", name="Release").first
    expect(release).to_be_disabled()
    log_in("1")
    expect(release).to_be_enabled()
    release.click()
    word = page.get_by_role("textbox", name="The word")
    word.fill(operation.id[-6:])
    word.press("Enter")
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_text("Done.", exact=True)).to_be_visible()
    assert lake.operations() == []
