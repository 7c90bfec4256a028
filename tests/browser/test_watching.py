"""Watching the console: whether it answers, and figures of its lake, for this machine only."""

import urllib.error
import urllib.request
from typing import Any

import pytest

import lakehouse
from lakehouse.core.topic import Progress, TopicState


def got(url: str, **headers: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_health_and_figures_are_reported_to_this_machine_only(
    serve: Any, lake: lakehouse.Lake, flights: lakehouse.Table
) -> None:
    address = serve()
    told = Progress("flights", "kafka orders", batches=7, lag=30, lag_unit="records")
    lake.catalog.claim_topic("orders", "here:1:1", told)
    lake.catalog.report_topics("here:1:1", {"orders": (TopicState.RUNNING, told)})
    operation = flights.begin_replace("2013-01-05")
    assert got(f"{address}/healthz") == (200, "ok\n")
    code, text = got(f"{address}/metrics")
    found = dict(line.split() for line in text.splitlines() if not line.startswith("#"))
    assert (code, found["lakehouse_tables"], found["lakehouse_operations_running"]) == (200, "2", "1")
    assert found["lakehouse_locks"] == "1"
    of_topic = [found[f'lakehouse_topic_{one}{{topic="orders"}}'] for one in ("up", "stalled", "batches_total", "lag")]
    assert of_topic == ["1", "0", "7", "30"]
    assert "flights" not in text
    assert got(f"{address}/metrics", **{"X-Forwarded-For": "192.0.2.1"})[0] == 404
    operation.abort()


def test_a_catalog_that_is_down_is_reported(serve: Any, monkeypatch: pytest.MonkeyPatch, lake: lakehouse.Lake) -> None:
    address = serve("--catalog", "postgresql+psycopg://nobody:secret@127.0.0.1:1/none")
    for path in ("healthz", "metrics"):
        code, text = got(f"{address}/{path}")
        assert (code, "secret" in text) == (503, False)
