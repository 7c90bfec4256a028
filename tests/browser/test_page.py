"""The console's page, run without a browser: what it shows in every state that a lake can be in."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import lakehouse

APP = Path(__file__).resolve().parents[2] / "console/app.py"


@pytest.fixture
def page(place: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """Open the page on the test's lake, with query parameters."""
    for name, value in place.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(str(APP.parent))
    st.cache_resource.clear()

    def opened(**parameters: str) -> AppTest:
        app = AppTest.from_file(str(APP), default_timeout=30)
        for name, value in parameters.items():
            app.query_params[name] = value
        return app.run()

    return opened


def figures(app: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def test_the_newest_version_of_the_first_table_is_shown(page: Any, flights: lakehouse.Table) -> None:
    app = page()
    assert not app.exception
    assert app.selectbox(key="table").value == "flights"
    assert app.selectbox(key="version").value == flights.version
    live = flights.segments()
    assert figures(app)["Segments"] == str(len(live))
    assert figures(app)["Rows stored"] == str(sum(one.rows for one in live))
    assert figures(app)["Tombstones"] == str(len(flights.tombstones()))


def test_a_version_in_the_address_is_shown(page: Any, flights: lakehouse.Table) -> None:
    app = page(table="flights", version="3")
    assert app.selectbox(key="version").value == 3
    assert figures(app)["Segments"] == str(len(flights.segments(as_of=3)))
    assert figures(app)["Tombstones"] == "0"


def test_another_table_can_be_picked(page: Any, lake: lakehouse.Lake, flights: lakehouse.Table) -> None:
    app = page()
    app.selectbox(key="table").select("weather").run()
    assert not app.exception
    assert app.selectbox(key="version").value == lake.table("weather").version
    assert figures(app)["Chunks"] == "24"


def test_a_table_that_is_not_in_the_lake_is_ignored_in_the_address(page: Any, flights: lakehouse.Table) -> None:
    app = page(table="nowhere", version="9999")
    assert not app.exception
    assert app.selectbox(key="table").value == "flights"
    assert app.selectbox(key="version").value == flights.version


def test_the_log_lists_every_version_with_its_tags(page: Any, flights: lakehouse.Table) -> None:
    log = page().dataframe[-1].value
    assert list(log["version"]) == [commit.version for commit in flights.log()]
    assert log.set_index("version").loc[5, "tags"] == "before-the-drop"


def test_an_empty_lake_says_how_to_fill_it(page: Any, lake: lakehouse.Lake) -> None:
    app = page()
    assert not app.exception
    assert "no tables yet" in app.info[0].value
    assert "lakehouse demo" in app.code[0].value


def test_an_empty_table_says_so(page: Any, lake: lakehouse.Lake) -> None:
    lake.create_table("empty", "at timestamp", time="at")
    app = page()
    assert not app.exception
    assert "Nothing is stored" in app.info[0].value


def test_a_catalog_that_is_down_is_named_with_a_remedy_and_no_stack_trace(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHOUSE_CATALOG", "postgresql+psycopg://nobody:secret@127.0.0.1:1/none")
    app = page()
    assert not app.exception
    assert app.error[0].value == "The lake cannot be read."
    assert "127.0.0.1" in app.code[0].value
    assert "secret" not in app.code[0].value
    assert "lakehouse doctor" in app.markdown[-1].value
