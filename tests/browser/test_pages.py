"""What is common to all pages of the console, run without a browser: pickers, addresses, empty and error states."""

from pathlib import Path
from typing import Any

import pytest

import lakehouse

APP = Path(__file__).resolve().parents[2] / "console/app.py"
PAGES = sorted(path.stem for path in (APP.parent / "views").glob("*.py"))


def words(app: Any) -> str:
    return "\n".join(str(one.value) for one in (*app.title, *app.caption, *app.info, *app.error, *app.code))


@pytest.mark.looks
@pytest.mark.parametrize("name", PAGES)
def test_every_page_draws_at_the_newest_version_and_at_an_older_one(
    open_page: Any, flights: lakehouse.Table, name: str
) -> None:
    for parameters in ({}, {"table": "flights", "version": "3", "interval": "2013-01-05"}):
        app = open_page(name, **parameters)
        assert not app.exception
        assert not app.error
        assert app.title


@pytest.mark.parametrize("name", PAGES)
def test_every_page_draws_a_table_without_rows(open_page: Any, lake: lakehouse.Lake, name: str) -> None:
    lake.create_table("empty", "at timestamp", time="at")
    app = open_page(name)
    assert not app.exception
    assert not app.error


@pytest.mark.looks
@pytest.mark.parametrize("name", PAGES)
def test_every_page_says_what_to_do_about_a_version_that_is_not_there(
    open_page: Any, flights: lakehouse.Table, name: str
) -> None:
    app = open_page(name, version="not-a-tag")
    assert not app.exception
    if app.error:
        assert "not in the lake" in app.error[0].value
        assert "not-a-tag" in app.code[0].value
        assert "Pick another version" in app.markdown[-1].value


@pytest.mark.looks
def test_table_version_and_time_come_from_the_address(open_page: Any, flights: lakehouse.Table) -> None:
    app = open_page("timeline", table="flights", version="before-the-drop", interval="2013-01-05")
    assert app.selectbox(key="table").value == "flights"
    assert app.selectbox(key="version").value == "before-the-drop"
    assert app.text_input(key="interval").value == "2013-01-05"


@pytest.mark.parametrize("name", PAGES)
def test_a_table_that_is_not_in_the_lake_is_reported_and_no_other_is_shown(
    open_page: Any, lake: lakehouse.Lake, flights: lakehouse.Table, name: str
) -> None:
    lake.create_table("dropped", "at timestamp", time="at")
    lake.drop_table("dropped")
    for missing in ("nowhere", "dropped", "Flights", "<b>x</b>", " "):
        app = open_page(name, table=missing)
        assert not app.exception
        assert app.error[0].value == "That is not in the lake."
        assert app.code[0].value == f"no table is called {missing}"
        assert not app.dataframe
        assert not app.metric
        assert [one.proto.label for one in app.get("page_link")] == ["flights", "weather"]


def test_a_table_that_goes_while_it_is_looked_at_is_reported(
    open_page: Any, lake: lakehouse.Lake, flights: lakehouse.Table
) -> None:
    app = open_page("timeline", table="weather")
    lake.drop_table("weather")
    for _ in range(2):
        app.run()
        assert not app.exception
        assert app.code[0].value == "no table is called weather"


@pytest.mark.looks
def test_an_interval_that_is_none_is_reported(open_page: Any, flights: lakehouse.Table) -> None:
    app = open_page("timeline", interval="yesterday")
    assert not app.exception
    assert "not a period" in app.code[0].value


def test_no_folder_is_called_pages() -> None:
    """Streamlit would run its files without the frame around them, for the first visitor after a start."""
    assert not (APP.parent / "pages").exists()


def test_an_empty_lake_says_how_to_fill_it(open_page: Any, lake: lakehouse.Lake) -> None:
    app = open_page()
    assert not app.exception
    assert "no tables yet" in app.info[0].value
    assert "lakehouse demo" in app.code[0].value


def test_a_catalog_that_is_down_is_named_with_a_remedy_and_no_stack_trace(
    open_page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHOUSE_CATALOG", "postgresql+psycopg://nobody:secret@127.0.0.1:1/none")
    app = open_page()
    assert not app.exception
    assert app.error[0].value == "The lake cannot be read."
    assert "127.0.0.1" in app.code[0].value
    assert "secret" not in app.code[0].value
    assert "lakehouse doctor" in app.markdown[-1].value
