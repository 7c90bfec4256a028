"""Every page over a lake whose files are in an object store, with nothing of them on this machine."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import lakehouse
from lakehouse.testing.object_stores import Store
from tests.browser.conftest import Place
from tests.browser.test_pages import PAGES


@pytest.fixture
def place(store: Store, tmp_path: Path) -> Place:
    return Place(f"sqlite:///{tmp_path}/catalog.db", store.url)


@pytest.fixture
def secret(store: Store) -> str:
    return store.options["aws_secret_access_key"]


def shown(app: Any) -> str:
    """All that a page has in words."""
    parts = [*app.text, *app.markdown, *app.code, *app.caption, *app.error, *app.warning, *app.info]
    return "\n".join(str(one.value) for one in parts)


@pytest.mark.usefixtures("flights")
def test_every_page_works_and_shows_no_credential(open_page: Any, lake: lakehouse.Lake, secret: str) -> None:
    lake.cache.clear()
    for name in PAGES:
        app = open_page(name, table="flights")
        assert not app.exception, name
        assert not app.error, name
        assert secret not in shown(app)


@pytest.mark.usefixtures("flights")
def test_the_lake_page_says_where_the_files_and_the_copies_are(
    open_page: Any, lake: lakehouse.Lake, store: Store, tmp_path: Path
) -> None:
    lines = [one.value for one in open_page().text]
    assert any(store.url in one for one in lines)
    held = lake.cache.usage()
    (line,) = [one for one in lines if one.startswith("cache on this machine")]
    assert f"{held.files:,} copies" in line
    assert str(tmp_path / "cache") in line
    assert "found 0 there and fetched 0" in line


def test_a_folder_has_no_cache(open_page: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAKEHOUSE_WAREHOUSE", str(tmp_path / "warehouse"))
    assert not any("cache" in one.value for one in open_page().text)


@pytest.mark.parametrize("page", ["light"], indirect=True)
@pytest.mark.usefixtures("flights")
def test_rows_are_fetched_for_who_asks_in_a_browser(
    serve: Any, page: Page, lake: lakehouse.Lake, store: Store, secret: str
) -> None:
    lake.cache.clear()
    address = serve()
    page.goto(address)
    expect(page.get_by_text(store.url)).to_be_visible()
    expect(page.get_by_text("cache on this machine: 0 copies")).to_be_visible()
    page.goto(f"{address}/query?sql=SELECT+count(*)+AS+n,+min(delay)+AS+least+FROM+flights")
    expect(page.get_by_text("1 row in")).to_be_visible()
    assert lake.cache.usage().files > 0, "a query process fetched them"
    assert secret not in page.content()
    commands = subprocess.run(["ps", "-e", "-o", "args"], capture_output=True, text=True, check=True).stdout
    assert "lakehouse.queryprocess" in commands
    assert secret not in commands
