"""Query nodes under chaos, shortly; `lakehouse.testing.serving_trial` as a command does it for as long as one likes."""

import signal
import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import lakehouse
from lakehouse.faults import HANDOFF_POINTS
from lakehouse.serving.node import NodeSettings, ServingNode
from lakehouse.serving.wire import Question
from lakehouse.testing import faults
from lakehouse.testing.rows import SCHEMA, arrow
from lakehouse.testing.serving_nodes import NodeProcess
from lakehouse.testing.serving_trial import run_trial

SUM = "SELECT sum(value) AS total FROM flights"


def until(what: Callable[[], object], seconds: float = 120.0) -> None:
    """Wait for something that a process does, and that only the catalog shows."""
    give_up = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < give_up, "it never came"
        threading.Event().wait(0.02)


def test_every_answer_is_its_version_s_while_nodes_are_killed_paused_and_full(tmp_path: Path) -> None:
    report = run_trial(queries=2_000, seconds=6.0, seed=5, folder=tmp_path, nodes=2)
    assert report.wrong == []
    assert report.answers > 10, report
    assert report.versions > 2, report
    assert report.faults.total() > 0, report


def test_a_node_that_was_paused_in_a_handoff_is_not_waited_for_and_answers_at_the_new_version(tmp_path: Path) -> None:
    where, quick = (f"sqlite:///{tmp_path}/catalog.db", str(tmp_path / "warehouse")), ("--lease-seconds", "1")
    with lakehouse.connect(*where) as lake:
        flights = lake.create_table("flights", SCHEMA, time="time")
        flights.append(arrow([("2013-01-05", "a", 1)]))
        with NodeProcess(*where, *quick, "--name", "one") as one, NodeProcess(*where, *quick, "--name", "two") as two:
            until(lambda: [node.word for node in lake.serving()[0].nodes] == ["serving", "serving"])
            one.signal(signal.SIGSTOP)
            newest = flights.append(arrow([("2013-01-05", "a", 2)])).version
            with lakehouse.connect_serving(two.url, wait_seconds=60) as client:
                assert client.sql(SUM, at_least=newest).rows["total"].to_pylist() == [3]
            (paused, _) = lake.serving()[0].nodes
            assert (paused.word, paused.live < newest) == ("silent", True)
            one.signal(signal.SIGCONT)
            with lakehouse.connect_serving(one.url) as client:
                answer = client.sql(SUM)
                assert (answer.version, answer.rows["total"].to_pylist()) == (newest, [3])


def test_a_name_passes_on_from_a_node_that_is_killed_or_paused_beyond_its_lease(tmp_path: Path) -> None:
    where = (f"sqlite:///{tmp_path}/catalog.db", str(tmp_path / "warehouse"))
    named = ("--lease-seconds", "1", "--name", "one")
    with lakehouse.connect(*where) as lake:
        flights = lake.create_table("flights", SCHEMA, time="time")
        flights.append(arrow([("2013-01-05", "a", 1)]))
        with NodeProcess(*where, *named) as killed:
            until(lambda: [node.word for node in lake.serving()[0].nodes] == ["serving"])
            killed.kill()
        with NodeProcess(*where, *named) as paused:
            assert [node.url for node in lake.serving()[0].nodes] == [paused.url]
            paused.signal(signal.SIGSTOP)
            with NodeProcess(*where, *named) as last, lakehouse.connect_serving(paused.url) as client:
                paused.signal(signal.SIGCONT)
                newest = flights.append(arrow([("2013-01-05", "a", 2)])).version
                answer = client.sql(SUM, at_least=newest)
                assert answer.rows["total"].to_pylist() == [3], "it has no name any more, and answers as before"
                assert paused.stop() == 0
                assert [node.url for node in lake.serving()[0].nodes] == [last.url], "what leaves takes no other's row"


HELD = {"handoff.aimed": "handoff.look", "handoff.flip": "handoff.flip", "handoff.flipped": "handoff.flip"}
"""Steps that one node of a group takes for all, and where the other one is held so that it does not."""


@pytest.mark.parametrize("catalog_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("point", HANDOFF_POINTS)
def test_a_node_that_is_killed_in_a_handoff_holds_nobody_up_and_comes_back(
    lake: Any, table: Any, start: Callable[..., Any], tmp_path: Path, point: str
) -> None:
    table.append(arrow([("2013-01-05", "a", 1), ("2013-01-06", "a", 2)]))
    before, copies, gate = lake.head, tmp_path / "copies", faults.Gate()
    settings = NodeSettings(lease_seconds=60.0)
    with closing(ServingNode(lake, "test", "one", "http://127.0.0.1:2", settings)) as one:
        until(lambda: one.is_ready)
        killed = start("serve", point=point, cache_dir=str(copies), text=SUM)
        if point != "handoff.joined":
            assert killed.hear() == {"version": before, "rows": [{"total": 3}]}
            assert killed.hear() == {"armed": True}
        with faults.armed({HELD[point]: gate.hold} if point in HELD else {}):
            if HELD.get(point) == "handoff.look":
                gate.wait_reached()
            newest = table.replace(arrow([("2013-01-05", "a", 10)]), "2013-01").version
            assert killed.hear() == {}
            assert killed.end() == -signal.SIGKILL
            now = lake.catalog.now()
            two = next(node for node in lake.serving()[0].nodes if node.id == "two")
            rows, said = one.ask(Question(f"{SUM} -- {point}"))
            assert rows.to_pylist() == [{"total": {before: 3, newest: 10}[said.version]}]
            gate.open()
        until(lambda: one.live == newest)
        if two.state.counts and newest not in two.report.loaded:
            assert lake.serving()[0].flipped_at >= now + timedelta(seconds=two.lease_seconds), "it waits for the lease"
        again = start("serve", point=None, cache_dir=str(copies), text=SUM)
        assert again.hear() == {"version": newest, "rows": [{"total": 10}]}
        until(lambda: [node.report.loaded for node in lake.serving()[0].nodes] == [(newest,)] * 2)
        named = {Path(segment.path).name for segment in table.segments()}
        until(lambda: {path.name for path in copies.rglob("*.parquet")} == named)
