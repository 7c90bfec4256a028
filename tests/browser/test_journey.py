"""A person's way through the console in a real Chromium: look, pick a version, share the address."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

import lakehouse
from tests.browser.chromium import SCREENSHOTS


@pytest.fixture
def address(serve: Any, flights: lakehouse.Table) -> str:
    """The console of the test's lake, started as a user starts it."""
    found: str = serve()
    return found


def figure(page: Page, label: str) -> Any:
    return page.get_by_test_id("stMetric").filter(has_text=label).get_by_test_id("stMetricValue")


def test_a_version_is_picked_seen_and_shared(
    address: str, page: Page, flights: lakehouse.Table, request: pytest.FixtureRequest
) -> None:
    page.goto(address)
    expect(page.get_by_role("heading", name="Versions")).to_be_visible()
    expect(figure(page, "Segments")).to_have_text(str(len(flights.segments())))
    chart = page.get_by_test_id("stVegaLiteChart")
    expect(chart).to_be_visible()
    expect(chart.locator("canvas, svg").first).to_be_visible()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    scheme = request.node.callspec.params["page"]
    page.screenshot(path=SCREENSHOTS / f"console-{scheme}.png")

    page.get_by_role("combobox", name="Version").click()
    page.get_by_role("option", name="3", exact=True).click()
    expect(figure(page, "Segments")).to_have_text(str(len(flights.segments(as_of=3))))
    expect(figure(page, "Tombstones")).to_have_text("0")
    expect(page).to_have_url(f"{address}/?version=3")

    page.goto(f"{address}/?table=flights&version=5")
    expect(figure(page, "Tombstones")).to_have_text(str(len(flights.tombstones(as_of=5))))
    expect(figure(page, "Segments")).to_have_text(str(len(flights.segments(as_of=5))))
