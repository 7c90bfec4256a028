"""The Service page, run without a browser: what waits, runs and was done, and the buttons for those who may."""

import threading
from typing import Any

import pytest

import background
import lakehouse
from tests.browser.conftest import SCHEMA, hours_of


@pytest.fixture
def small(lake: lakehouse.Lake) -> lakehouse.Table:
    """A table of twelve small segments in one chunk, planned: one merge waits."""
    table = lake.create_table("small", SCHEMA, time="at", grain="month")
    for day in range(12):
        table.append(hours_of(day, 1))
    lake.plan_tasks()
    return table


def frame(app: Any, column: str) -> Any:
    return next(one.value for one in app.dataframe if column in one.value)


def until_ended(lake: lakehouse.Lake, task: int) -> Any:
    pause = threading.Event()
    for _ in range(3000):
        [found] = [one for one in lake.tasks() if one.id == task]
        if found.state in ("done", "failed", "cancelled"):
            return found
        pause.wait(0.01)
    raise AssertionError("the task did not end")


def test_an_idle_service_says_so(open_page: Any, flights: lakehouse.Table) -> None:
    app = open_page("service")
    assert not app.exception
    words = [one.value for one in app.info]
    assert "No task runs now. This page refreshes by itself." in words
    assert any("Nothing waits" in one for one in words)
    assert "No task has ended yet." in words
    assert set(frame(app, "ratio")["table"]) == {"flights", "weather"}


def test_the_queue_shows_score_cause_and_what_is_gained(open_page: Any, small: lakehouse.Table) -> None:
    app = open_page("service")
    assert not app.exception
    waiting = frame(app, "score").iloc[0]
    assert (waiting["kind"], waiting["table"], waiting["segments"]) == ("compact", "small", 12)
    assert "small" in waiting["cause"]
    assert waiting["files less"] == 11
    assert waiting["score"] > 0


def test_a_dry_run_lists_what_would_be_done_and_writes_nothing(
    open_page: Any, lake: lakehouse.Lake, flights: lakehouse.Table
) -> None:
    tasks = lake.tasks()
    app = open_page("service")
    app = app.toggle(key="dry").set_value(True).run()
    assert not app.exception
    assert lake.tasks() == tasks
    frames = [one.value for one in app.dataframe if "cause" in one.value]
    assert frames or any("would do nothing" in one.value for one in app.info)


@pytest.mark.parametrize("role", ["reader", "maintainer", "admin"])
def test_buttons_are_for_those_who_may(
    open_page: Any, monkeypatch: pytest.MonkeyPatch, small: lakehouse.Table, role: str
) -> None:
    monkeypatch.setenv("LAKEHOUSE_CONSOLE_ROLE", role)
    app = open_page("service")
    disabled = {
        one.label: one.disabled for one in app.button if one.label in ("Do a round now", "Run now", "Cancel it")
    }
    assert disabled == dict.fromkeys(("Do a round now", "Run now", "Cancel it"), role == "reader")


def test_a_maintainer_runs_a_task_and_finds_it_in_the_history(
    open_page: Any, monkeypatch: pytest.MonkeyPatch, lake: lakehouse.Lake, small: lakehouse.Table
) -> None:
    monkeypatch.setenv("LAKEHOUSE_CONSOLE_ROLE", "maintainer")
    [task] = lake.tasks(state="waiting")
    app = open_page("service").button(key=f"run {task.id}").click().run()
    assert any(f"Run task {task.id} now" in one.value for one in app.text)
    app = app.button(key=f"run {task.id} yes").click().run()
    assert not app.exception
    assert app.success
    ended = until_ended(lake, task.id)
    assert (ended.state, ended.error) == ("done", None)
    assert len(small.segments()) == 1
    assert "by" in next(one for one in small.log() if one.version == ended.version).properties
    app = open_page("service")
    done = frame(app, "gained ms").iloc[0]
    assert (done["task"], done["state"], done["kind"]) == (task.id, "done", "compact")
    assert done["gained ms"] == pytest.approx(done["predicted ms"], rel=0.5)
    assert done["made"] == f"/versions?table=small&version={ended.version}"


def test_a_maintainer_cancels_a_task(
    open_page: Any, monkeypatch: pytest.MonkeyPatch, lake: lakehouse.Lake, small: lakehouse.Table
) -> None:
    monkeypatch.setenv("LAKEHOUSE_CONSOLE_ROLE", "maintainer")
    [task] = lake.tasks(state="waiting")
    app = open_page("service").button(key=f"cancel {task.id}").click().run()
    app = app.button(key=f"cancel {task.id} yes").click().run()
    assert not app.exception
    assert until_ended(lake, task.id).state == "cancelled"
    assert len(small.segments()) == 12


def test_what_was_begun_and_failed_is_reported(open_page: Any, small: lakehouse.Table) -> None:
    open_page("service")

    def fail() -> None:
        raise lakehouse.LockLost("the operation was fenced; <b>nothing</b> was committed")

    background.begin("Run task 7.", fail)
    pause = threading.Event()
    while not background.failures():
        pause.wait(0.01)
    app = open_page("service")
    assert not app.exception
    assert app.error[0].value == "An action that was started has failed."
    assert "Run task 7.\nthe operation was fenced; <b>nothing</b>" in app.code[0].value


def test_one_table_is_looked_at_where_that_is_picked(
    open_page: Any, lake: lakehouse.Lake, flights: lakehouse.Table, small: lakehouse.Table
) -> None:
    app = open_page("service", table="weather", of="picked")
    assert not app.exception
    assert list(frame(app, "ratio")["table"]) == ["weather"]
    assert any("Nothing waits" in one.value for one in app.info)
