"""Acting in a real Chromium: an administrator releases an operation, and no value of the lake runs as a script."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

import lakehouse
from lakehouse.service.running import run_claim
from tests.browser import hostile
from tests.browser.chromium import ONE_THEME, SCREENSHOTS
from tests.browser.conftest import SCHEMA, hours_of

PAGES = sorted(path.stem for path in (Path(__file__).resolve().parents[2] / "console/views").glob("*.py"))


@pytest.fixture
def address(serve: Any, lake: lakehouse.Lake) -> str:
    """The console of the test's lake, for an administrator at this machine."""
    found: str = serve("--allow-actions", "--role", "admin")
    return found


def picture(page: Page, name: str, request: pytest.FixtureRequest) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}-{request.node.callspec.params['page']}.png")


@ONE_THEME
def test_an_administrator_releases_an_operation(
    address: str,
    page: Page,
    lake: lakehouse.Lake,
    flights: lakehouse.Table,
    request: pytest.FixtureRequest,
) -> None:
    operation = flights.begin_replace("2013-01-05", keys={"carrier": "UA"})
    page.goto(f"{address}/locks")
    page.get_by_role("button", name="Release").click()
    expect(page.get_by_text("it has to run again")).to_be_visible()
    word = page.get_by_role("textbox", name="The word")
    word.fill(operation.id[-6:])
    word.press("Enter")
    picture(page, "locks", request)
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_text("Done.", exact=True)).to_be_visible()
    assert lake.operations() == []
    expect(page.get_by_text("Nothing runs now")).to_be_visible()


def figure(page: Page, label: str) -> Any:
    return page.get_by_test_id("stMetric").filter(has_text=label).get_by_test_id("stMetricValue")


@ONE_THEME
def test_a_compaction_is_followed_from_the_queue_to_the_history(
    address: str, page: Page, lake: lakehouse.Lake, request: pytest.FixtureRequest
) -> None:
    table = lake.create_table("small", SCHEMA, time="at", grain="month")
    for day in (*range(12), *range(40, 52)):
        table.append(hours_of(day, 1))
    first, second = lake.plan_tasks()
    page.goto(f"{address}/service")
    expect(figure(page, "Waiting")).to_have_text("2")
    expect(figure(page, "Running")).to_have_text("0")

    claim = lake.catalog.tasks().claim(task_id=first.id)
    assert claim is not None
    expect(figure(page, "Running")).to_have_text("1")
    expect(page.get_by_role("region", name="running")).to_be_visible()
    picture(page, "service-running", request)
    assert run_claim(lake.session, claim).state == "done"
    expect(figure(page, "Running")).to_have_text("0")
    expect(figure(page, "Waiting")).to_have_text("1")

    page.reload()
    page.get_by_role("button", name="Run now").click()
    expect(page.get_by_text(f"Run task {second.id} now")).to_be_visible()
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_text("Begun.", exact=True)).to_be_visible()
    expect(figure(page, "Waiting")).to_have_text("0")
    expect(page.get_by_role("region", name="history")).to_be_visible()
    expect(page.get_by_text("each point is a task")).to_be_visible()
    picture(page, "service", request)
    assert [one.state for one in lake.tasks() if one.kind == "compact"] == ["done", "done"]
    assert len(table.segments()) == 2
    assert "by" in table.log(1)[0].properties


@ONE_THEME
def test_no_value_runs_as_a_script_on_any_page(
    address: str,
    page: Page,
    lake: lakehouse.Lake,
    request: pytest.FixtureRequest,
) -> None:
    table = hostile.fill(lake)
    operation = table.begin_replace("2013-01-03", keys={"what": hostile.SCRIPT})
    sql = f"SELECT at, length(what) AS n, what, `{hostile.COLUMN}` AS `<img src=x onerror=alert(1)>` FROM hostile"
    for name in PAGES:
        parameters = {"table": "hostile", "sql": sql} if name == "query" else {"table": "hostile"}
        page.goto(f"{address}/{'' if name == 'lake' else name}?{urlencode(parameters)}")
        expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator('[data-testid="stSkeleton"]')).to_have_count(0)
        for chart in page.get_by_test_id("stVegaLiteChart").filter(visible=True).all():
            for part in (0.2, 0.5, 0.8):
                box = chart.bounding_box()
                if box is not None:
                    page.mouse.move(box["x"] + part * box["width"], box["y"] + part * box["height"])
        for frame in page.get_by_test_id("stDataFrame").filter(visible=True).all()[:2]:
            frame.dblclick(position={"x": 60, "y": 52})
            page.keyboard.press("Escape")
        picture(page, f"hostile-{name}", request)
        assert page.evaluate(f"window.{hostile.TOKEN}") is None
        assert page.locator('img[src="x"], script:has-text("h0st1le")').count() == 0
    operation.abort()
