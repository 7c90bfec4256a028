"""A person's way through the console in a real Chromium: find why rows vanished, go back, share what is seen."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

import lakehouse
from lakehouse.core.contribution import AppendContribution
from lakehouse.core.operation import Kind
from lakehouse.core.segment import NewSegment
from queries.timeline import MOST_DRAWN
from tests.browser.accessible import PHONE, findings
from tests.browser.chromium import ONE_THEME, SCREENSHOTS
from tests.browser.conftest import SCHEMA, START

APP = Path(__file__).resolve().parents[2] / "console"
PAGES = sorted(path.stem for path in (APP / "views").glob("*.py"))
QUERIES = {
    "versions": "&version=7&compare=3",
    "timeline": "&laser=2013-01-07T13:00",
    "key_frames": "&interval=2013-01-08",
    "segments": "&where=delay+>+100",
    "query": "&title=late&sql=SELECT+carrier,+count(*)+AS+flights+FROM+flights+GROUP+BY+carrier",
}
OF_A_TABLE = ("key_frames", "schema", "segments", "timeline", "tombstones", "versions")


ROW_PIXELS = 33


def figure(page: Page, label: str) -> Any:
    return page.get_by_test_id("stMetric").filter(has_text=label).get_by_test_id("stMetricValue")


def at_rest(page: Page) -> None:
    page.wait_for_function("document.querySelector('[data-test-script-state=notRunning]')")


@ONE_THEME
def test_why_rows_of_a_day_vanished_is_found(serve: Any, page: Page, flights: lakehouse.Table) -> None:
    page.goto(serve())
    page.get_by_role("link", name="Timeline").first.click()
    expect(figure(page, "Tombstones")).to_have_text(str(len(flights.tombstones())))
    chart = page.get_by_test_id("stVegaLiteChart")
    expect(chart.locator("canvas, svg").first).to_be_visible()
    page.get_by_label("At", exact=True).fill("2013-01-07 13:00")
    page.keyboard.press("Enter")
    hiding = flights.tombstones(interval="2013-01-07")[0]
    expect(page.get_by_text(f"Nothing is visible: interval tombstone {hiding.id}")).to_be_visible()
    expect(page).to_have_url(re.compile("laser=2013-01-07"))

    page.get_by_label("Time", exact=True).fill("2013-01-07")
    page.keyboard.press("Enter")
    expect(figure(page, "Segments")).to_have_text("1")
    page.get_by_role("link", name="Versions").first.click()
    expect(page.get_by_text("From version 5 to version 7")).to_be_visible()
    assert parse_qs(urlsplit(page.url).query)["interval"] == ["2013-01-07"]


@ONE_THEME
def test_two_versions_are_compared_and_the_older_one_is_restored(
    serve: Any, page: Page, flights: lakehouse.Table
) -> None:
    address = serve("--allow-actions")
    page.goto(f"{address}/versions?table=flights")
    log = page.get_by_test_id("stDataFrame").first
    expect(log.locator("canvas").first).to_be_visible()
    at_rest(page)
    log.click(position={"x": 14, "y": 50})
    expect(page.get_by_text("From version 7 to version 9")).to_be_visible()
    log.click(position={"x": 14, "y": 50 + 3 * ROW_PIXELS})
    expect(page.get_by_text("From version 3 to version 9")).to_be_visible()

    page.goto(f"{address}/versions?table=flights&version=7")
    page.get_by_label("Compare with").fill("3")
    page.keyboard.press("Enter")
    expect(page.get_by_text("From version 3 to version 7")).to_be_visible()
    expect(figure(page, "Tombstones")).to_have_text("+2")

    flights.rename_column("delay", "late")
    page.goto(f"{address}/versions?table=flights")
    expect(page.get_by_text("No segment and no tombstone differs between them here.")).to_be_visible()
    for name in ("Changes of columns", "Columns over time"):
        expect(page.get_by_role("region", name=name)).to_be_visible()

    page.goto(f"{address}/versions?table=flights&version=3")
    page.get_by_role("button", name="Restore this version").click()
    expect(page.get_by_text("Make flights what it was at version 3, by a new version.")).to_be_visible()
    expect(page.get_by_text("50 rows added, 24 rows removed, in 4 chunks.")).to_be_visible()
    expect(page.get_by_role("region", name="Rows that a restore changes")).to_be_visible()
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_text("is what version 3 was.")).to_be_visible()
    assert flights.log(1)[0].operation == "restore"
    assert len(flights.segments()) == len(flights.segments(as_of=3))


@ONE_THEME
def test_a_shared_address_shows_the_same_to_the_first_visitor_of_a_fresh_console(
    serve: Any, page: Page, browser: Browser, flights: lakehouse.Table
) -> None:
    address = serve()
    page.goto(f"{address}/timeline?table=flights&version=before-the-drop&interval=2013-01-05%2F2013-01-09")
    segments = str(len(flights.segments(as_of=5, interval=("2013-01-05", "2013-01-09"))))
    expect(figure(page, "Segments")).to_have_text(segments)
    expect(page.get_by_role("link", name="Key frames").first).to_be_visible()

    page.get_by_role("button", name="Copy as").click()
    shared = page.get_by_test_id("stCode").filter(has_text=address).inner_text().strip()
    assert parse_qs(urlsplit(shared).query) == {
        "table": ["flights"],
        "version": ["5"],
        "interval": ["2013-01-05/2013-01-09"],
    }
    flights.drop("2013-01-06")
    context = browser.new_context()
    other = context.new_page()
    other.goto(shared)
    expect(figure(other, "Segments")).to_have_text(segments)
    context.close()


def test_every_page_is_accessible_named_and_has_its_picture_taken(
    serve: Any, page: Page, flights: lakehouse.Table, request: pytest.FixtureRequest
) -> None:
    """As a desktop and a phone show it. Pictures are to be looked at by people: nothing is compared."""
    address = serve("--allow-actions")
    flights.delete("delay < 7")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    scheme, desktop = request.node.callspec.params["page"], page.viewport_size
    assert desktop is not None
    found = []
    for name in PAGES:
        for view, size in (("", desktop), ("-phone", PHONE)):
            page.set_viewport_size(size)
            page.goto(f"{address}/{'' if name == 'lake' else name}?table=flights{QUERIES.get(name, '')}")
            heading = page.get_by_role("heading", level=1)
            expect(heading).to_be_in_viewport()
            at_rest(page)
            expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
            assert page.get_by_test_id("stException").count() == 0
            if name in OF_A_TABLE:
                assert heading.inner_text().endswith(" of flights"), name
                expect(page.get_by_text(re.compile(r"^Version \d+"), exact=True).first).to_be_visible()
            expect(page).to_have_title(re.compile(f"^(late · Query|{heading.inner_text()})( · Lakehouse)?$"))
            page.screenshot(path=SCREENSHOTS / f"{name}-{scheme}{view}.png")
            if not view:
                page.get_by_role("button", name="Copy as").click()
                expect(page.get_by_text("Address", exact=True)).to_be_visible()
            found += [f"{name}{view}: {one}" for one in findings(page)]
            wide = page.evaluate("document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth")
            assert wide <= 0, f"{name}{view} is wider than its window"
    assert found == []


def crowd(lake: lakehouse.Lake) -> lakehouse.Table:
    """A table of more segments than are drawn one by one; no file is behind them."""
    table = lake.create_table("crowd", SCHEMA, time="at")
    begun = lake.catalog.begin(table.spec, Kind.APPEND)
    hours = [(START + timedelta(hours=one), START + timedelta(hours=one + 1)) for one in range(MOST_DRAWN + 100)]
    made = [
        NewSegment(f"{table.spec.folder}/{begun.id}/{place}.parquet", start, end, rows=1, bytes=1)
        for place, (start, end) in enumerate(hours)
    ]
    lake.catalog.commit([AppendContribution(begun, segments=tuple(made))])
    return table


def ready(page: Page) -> dict[str, float]:
    """Where the picture is, once it is drawn."""
    chart = page.get_by_test_id("stVegaLiteChart")
    expect(chart.locator("canvas, svg").first).to_be_visible()
    at_rest(page)
    box = chart.bounding_box()
    assert box is not None
    return dict(box)


@ONE_THEME
def test_a_stretch_drawn_over_many_segments_zooms_in_and_a_click_aims_the_laser(
    serve: Any, page: Page, lake: lakehouse.Lake
) -> None:
    table = crowd(lake)
    page.goto(f"{serve()}/timeline?table=crowd")
    expect(figure(page, "Segments")).to_have_text(str(len(table.segments())))
    expect(page.get_by_text("Too many to draw one by one")).to_be_visible()
    box = ready(page)
    y = box["y"] + box["height"] * 0.6
    page.mouse.move(box["x"] + box["width"] * 0.5, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.55, y, steps=5)
    page.mouse.move(box["x"] + box["width"] * 0.6, y, steps=5)
    page.mouse.up()
    expect(page).to_have_url(re.compile("interval="))
    expect(page.get_by_text("Too many to draw one by one")).to_have_count(0)

    box = ready(page)
    page.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.6)
    page.mouse.move(0, 0)  # away from what the pointer shows
    page.get_by_role("button", name="Put the laser here").click()
    expect(page.get_by_text("The laser crosses 1 segment: 1 not hidden by anything.")).to_be_visible()
    expect(page).to_have_url(re.compile("laser="))


CUT = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.innerText)"


@ONE_THEME
def test_no_figure_is_cut_on_a_small_laptop(serve: Any, page: Page, flights: lakehouse.Table) -> None:
    address = serve()
    page.set_viewport_size({"width": 1100, "height": 700})
    for name in PAGES:
        page.goto(f"{address}/{'' if name == 'lake' else name}?table=flights{QUERIES.get(name, '')}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        at_rest(page)
        assert page.locator("[data-testid=stMetricValue] *").evaluate_all(CUT) == [], name


@ONE_THEME
def test_sizes_of_segments_are_drawn_when_they_are_asked_for(serve: Any, page: Page, flights: lakehouse.Table) -> None:
    page.goto(f"{serve()}/segments?table=flights")
    sizes = page.get_by_text("Sizes", exact=True)
    expect(sizes).to_be_visible()
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(0)
    sizes.click()
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg").first).to_be_visible()
