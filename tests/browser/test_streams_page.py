"""The Streams page: how topics are, which make no progress and why, and who reads tables by name."""

from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import lakehouse
from lakehouse.core.topic import Progress, TopicState
from tests.browser.chromium import ONE_THEME, SCREENSHOTS
from tests.browser.conftest import hours_of

BAD = "<img src=x onerror=alert(1)> InvalidRows: unknown column"
TOLD = Progress(
    "flights", "kafka orders", rows=1200, batches=7, batch=6, rows_per_second=41.5, batch_seconds=0.25, lag=30,
    lag_unit="records", batch_ago=2.0,
)  # fmt: skip


@pytest.fixture
def topics(lake: lakehouse.Lake, flights: lakehouse.Table) -> None:
    """A topic that runs, one that fails again and again, one that has ended; and a reader."""
    told = {
        "orders": (TopicState.RUNNING, replace(TOLD, version=flights.version)),
        "a # bad *one*": (TopicState.WAITING, replace(TOLD, error=BAD, failures=9, restarts=9, batch_ago=1e4)),
        "old": (TopicState.STOPPED, Progress("weather", "rate")),
    }
    for name, (_, progress) in told.items():
        lake.catalog.claim_topic(name, "here:1:1", progress)
    lake.catalog.report_topics("here:1:1", told)
    flights.append(hours_of(30, 1))
    next(flights.follow(since=2, consumer="ledger", wait_seconds=0))


def frame(app: Any, column: str) -> Any:
    return next(one.value for one in app.dataframe if column in one.value)


def test_a_lake_without_streams_says_what_to_do(open_page: Any, flights: lakehouse.Table) -> None:
    app = open_page("streams")
    assert not app.exception
    assert any("No topic has been run" in one.value for one in app.info)
    assert any("lakehouse stream run topics.toml" in one.value for one in app.code)
    assert any("No named reader" in one.value for one in app.info)


def test_topics_are_listed_with_those_in_trouble_first(open_page: Any, topics: None, lake: lakehouse.Lake) -> None:
    app = open_page("streams")
    assert not app.exception
    found = frame(app, "last error")
    assert list(found["topic"]) == ["a # bad *one*", "orders", "old"]
    assert list(found["health"]) == ["stalled", "well", "ended"]
    orders = found.iloc[1]
    assert (orders["rows"], orders["lag"], orders["last batch"], orders["restarts"]) == (1200, "30 records", 6, 0)
    assert orders["made"].startswith("/versions?table=flights&version=")
    assert found.iloc[0]["last error"] == BAD
    assert any("9 failures and no batch" in one.value for one in app.code)
    (reader,) = lake.consumers()
    listed = frame(app, "consumer").iloc[0]
    assert (listed["consumer"], listed["versions to read"]) == ("ledger", reader.lag)


@ONE_THEME
def test_somebody_finds_out_why_a_topic_stands_still(
    serve: Any, page: Page, topics: None, request: pytest.FixtureRequest
) -> None:
    page.goto(serve())
    page.get_by_role("link", name="Streams").first.click()
    expect(page.get_by_test_id("stMetric").filter(has_text="Stalled or failed")).to_contain_text("1")
    expect(page.get_by_text("9 failures and no batch")).to_be_visible()
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    page.wait_for_function("document.querySelector('[data-test-script-state=notRunning]')")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"streams-{request.node.callspec.params['page']}.png")
    page.get_by_text("Copy as").click()
    expect(page.get_by_text("lakehouse stream list")).to_be_visible()
