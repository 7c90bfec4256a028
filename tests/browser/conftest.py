"""A lake worth looking at, made in process: days appended, one replaced, a stretch dropped, a tag.

Tests marked ``looks`` share one, made once a process of tests, and write nothing to it; others have their own.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
import streamlit as st
from streamlit import config
from streamlit.components.v2.component_manager import BidiComponentManager
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


@pytest.fixture(scope="session")
def looked_at(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Where the lake of those that only look is."""
    folder = tmp_path_factory.mktemp("looked-at")
    found = Place(f"sqlite:///{folder}/catalog.db", str(folder / "warehouse"))
    with lakehouse.connect(*found) as lake:
        make_flights(lake)
    return found


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.node.get_closest_marker("looks"):
        found: Place = request.getfixturevalue("looked_at")
        return found
    return Place(f"sqlite:///{tmp_path}/catalog.db", str(tmp_path / "warehouse"))


@pytest.fixture
def lake(place: Place) -> Iterator[lakehouse.Lake]:
    with lakehouse.connect(*place) as opened:
        yield opened


@pytest.fixture
def flights(request: pytest.FixtureRequest, lake: lakehouse.Lake) -> Iterator[lakehouse.Table]:
    """The table of `make_flights`; a test that is marked to look and writes to the lake fails."""
    if not request.node.get_closest_marker("looks"):
        yield make_flights(lake)
        return
    before = (lake.head, lake.operations(), lake.tasks(), lake.tags())
    yield lake.table("flights")
    assert (lake.head, lake.operations(), lake.tasks(), lake.tags()) == before, "a test that only looks has written"


def make_flights(lake: lakehouse.Lake) -> lakehouse.Table:
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


@pytest.fixture(scope="module")
def console() -> Iterator[list[Place]]:
    """Of which lake the console in this process is; closed after the tests of a module.

    While they look at one lake it stays open, with its query processes, as it does for people.
    """
    of: list[Place] = []
    yield of
    st.cache_resource.clear()  # which closes the lake


@pytest.fixture
def open_page(place: Place, console: list[Place], monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """Open a page of the console on the test's lake by the name of its file, with query parameters; no browser.

    ``user``: what a login says of somebody.
    """
    for name, value in place.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(str(APP.parent))
    config.set_option("server.address", "127.0.0.1")
    if console != [place]:
        st.cache_resource.clear()
        console[:] = [place]
    st.cache_data.clear()

    def opened(name: str = "lake", *, user: dict[str, Any] | None = None, **parameters: str) -> AppTest:
        app = AppTest.from_file(str(APP), default_timeout=60)
        app._bidi_component_manager = BidiComponentManager()  # else it reads what all installed packages contain
        app.user = user or {}
        for key, value in parameters.items():
            app.query_params[key] = value
        if name != "lake":
            app.switch_page(f"views/{name}.py")
        return app.run()

    return opened
