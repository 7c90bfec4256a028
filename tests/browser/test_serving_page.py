"""The Serving page: which versions are live, what a handoff waits for, and why."""

from typing import Any

import lakehouse
from lakehouse.core.serving.group import Node, NodeReport, NodeStage, SlowQuery

BAD = "<img src=x onerror=alert(1)> data file is missing"


def test_a_lake_without_query_nodes_says_what_to_do(open_page: Any, flights: lakehouse.Table) -> None:
    app = open_page("serving")
    assert not app.exception
    assert any("lakehouse serve --group dashboards" in one.value for one in app.code)


def test_nodes_and_what_they_cannot_load_are_shown(
    open_page: Any, flights: lakehouse.Table, lake: lakehouse.Lake
) -> None:
    groups, head = lake.catalog.serving(), lake.head
    report = NodeReport(
        loaded=(head,), failed={head + 1: BAD}, held_bytes=1_000_000, queries=70, hits=3, misses=1, result_hits=60,
        slow=(SlowQuery("SELECT * FROM flights WHERE id = ?", 1.5, head),),
    )  # fmt: skip
    one = Node("a # node", "dashboards", "http://here:8100", NodeStage.SERVING, head, 0.0, report)
    groups.join(one, head, lease_seconds=600)
    lake.create_table("more", "at TIMESTAMP", time="at")
    assert groups.aim("dashboards", groups.group("dashboards").flips, None)
    app = open_page("serving")
    assert not app.exception
    frames = {name: frame.value for frame in app.dataframe for name in frame.value}
    group, node = frames["live version"].iloc[0], frames["answers at"].iloc[0]
    assert (group["live version"], group["next version"], group["waits for"]) == (head, str(lake.head), "a # node")
    assert (node["state"], node["from cache %"], node["queries"], node["known"]) == ("serving", 75.0, 70, 60)
    assert frames["statement"].iloc[0]["statement"] == "SELECT * FROM flights WHERE id = ?"
    assert any(BAD in shown.value for shown in app.code)
