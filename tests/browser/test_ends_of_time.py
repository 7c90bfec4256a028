"""Every page on a table with rows at both ends of time."""

from __future__ import annotations

from typing import Any

import pytest

from lakehouse.testing.rows import SCHEMA, arrow

FIRST, LAST = "0001-01-01T00:00:00", "9999-12-31T23:59:59.999998"
PAGES = (
    "lake",
    "schema",
    "versions",
    "timeline",
    "segments",
    "tombstones",
    "key_frames",
    "locks",
    "query",
    "service",
    "streams",
    "serving",
)


@pytest.mark.parametrize("grain", ["hour", "week", "year"])
def test_no_page_fails_on_rows_at_the_ends_of_time(open_page: Any, lake: Any, grain: str) -> None:
    table = lake.create_table("ends", SCHEMA, time="time", grain=grain, cluster_by=["client"])
    table.append(arrow([(FIRST, "a", 1), ("2013-01-05", "a", 2), (LAST, "b", 3)]))
    table.replace(arrow([(LAST, "b", 4)]), "9999-12-31T23", keys={"client": "b"})
    table.delete("value = 1")
    for page in PAGES:
        app = open_page(page, table="ends")
        assert not app.exception, (page, app.exception)
        assert not app.error, (page, app.error)
    for page in ("timeline", "segments", "versions"):
        for interval in ("9999", "0001", "9999-12-31T23"):
            app = open_page(page, table="ends", interval=interval)
            assert not app.exception, (page, interval, app.exception)
            assert not app.error, (page, interval, app.error)
