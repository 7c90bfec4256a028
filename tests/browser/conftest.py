"""A lake worth looking at, made in process: days appended, one replaced, a stretch dropped, a tag."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
import streamlit as st
from streamlit import config
from streamlit.testing.v1 import AppTest

import lakehouse
from tests.browser.chromium import browser, page, serve

__all__ = ["browser", "flights", "lake", "open_page", "page", "place", "serve"]

APP = Path(__file__).resolve().parents[2] / "console/app.py"
START = datetime(2013, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("carrier", pa.string()), ("delay", pa.int64())])


class Place(NamedTuple):
    """Where a lake is."""

    catalog: str
    warehouse: str

    def environment(self) -> dict[str, str]:
        return {"LAKEHOUSE_CATALOG": self.catalog, "LAKEHOUSE_WAREHOUSE": self.warehouse}


def hours_of(first_day: int, days: int) -> pa.Table:
    times = [START + timedelta(days=first_day, hours=hour) for hour in range(24 * days)]
    carriers = [("UA", "AA", "<b>B6</b>")[number % 3] for number in range(len(times))]
    return pa.table([times, carriers, list(range(len(times)))], schema=SCHEMA)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(f"sqlite:///{tmp_path}/catalog.db", str(tmp_path / "warehouse"))


@pytest.fixture
def lake(place: Place) -> Iterator[lakehouse.Lake]:
    with lakehouse.connect(*place) as opened:
        yield opened


@pytest.fixture
def flights(lake: lakehouse.Lake) -> lakehouse.Table:
    """Versions: 1 creates, 2 and 3 append, 5 replaces a day, 7 drops a stretch, 9 replaces one carrier of a day."""
    table = lake.create_table("flights", SCHEMA, time="at", cluster_by=["carrier"])
    table.append(hours_of(0, 10), message="first ten days")
    table.append(hours_of(8, 6), message="# late *rows* <img src=x onerror=alert(1)>")
    table.replace(hours_of(4, 1), "2013-01-05")
    table.drop(("2013-01-07T12:00", "2013-01-08T06:00"))
    table.replace(None, "2013-01-12", keys={"carrier": "UA"})
    lake.tag("before-the-drop", 5)
    lake.create_table("weather", SCHEMA, time="at", grain="hour").append(hours_of(0, 1))
    return table


@pytest.fixture
def open_page(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., AppTest]]:
    """Open a page of the console on the test's lake by the name of its file, with query parameters; no browser.

    ``user``: what a login says of somebody.
    """
    for name, value in place.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(str(APP.parent))
    config.set_option("server.address", "127.0.0.1")
    st.cache_resource.clear()
    st.cache_data.clear()

    def opened(name: str = "lake", *, user: dict[str, Any] | None = None, **parameters: str) -> AppTest:
        app = AppTest.from_file(str(APP), default_timeout=60)
        app.user = user or {}
        for key, value in parameters.items():
            app.query_params[key] = value
        app.run()
        if name != "lake":
            app.switch_page(f"views/{name}.py")
            app.run()
        return app

    yield opened
    st.cache_resource.clear()  # which closes the lake
