"""The Locks and operations page, run without a browser: what runs, what is held, and who may end it."""

import threading
from typing import Any

import pytest

import lakehouse


def frame(app: Any, column: str) -> Any:
    [found] = [one.value for one in app.dataframe if column in one.value]
    return found


@pytest.mark.looks
def test_a_quiet_lake_says_so(open_page: Any, flights: lakehouse.Table) -> None:
    app = open_page("locks")
    assert not app.exception
    assert [one.value for one in app.info] == [
        "Nothing runs now. This page refreshes by itself.",
        "No chunk is locked: an operation gets any chunk at once.",
    ]
    assert not [one for one in app.button if one.label == "Release"]


def test_operations_locks_and_waits_are_listed(
    open_page: Any, place: Any, lake: lakehouse.Lake, flights: lakehouse.Table
) -> None:
    holder = flights.begin_replace("2013-01-05", keys={"carrier": "<b>B6</b>"})

    def wait() -> None:
        with lakehouse.connect(*place) as other:
            other.table("flights").begin_replace("2013-01-05", wait_seconds=60).abort()

    waiter = threading.Thread(target=wait)
    waiter.start()
    pause = threading.Event()
    while not lake.activity().waits:
        pause.wait(0.01)
    app = open_page("locks")
    assert not app.exception
    assert list(frame(app, "reads at version")["operation"]) == [holder.id]
    held = frame(app, "held by").iloc[0]
    assert (held["table"], held["from"], held["until"]) == ("flights", "2013-01-05", "2013-01-06")
    assert (held["keys"], held["waiting"]) == ("carrier: '<b>B6</b>'", 1)
    assert frame(app, "waits for").iloc[0]["waits for"] == holder.id
    holder.abort()
    waiter.join(60)


@pytest.mark.parametrize("role", ["reader", "maintainer"])
def test_only_an_administrator_is_offered_a_release(
    open_page: Any, monkeypatch: pytest.MonkeyPatch, flights: lakehouse.Table, role: str
) -> None:
    monkeypatch.setenv("LAKEHOUSE_CONSOLE_ROLE", role)
    operation = flights.begin_append()
    app = open_page("locks")
    [release] = [one for one in app.button if one.label == "Release"]
    assert release.disabled
    operation.abort()


def test_an_administrator_releases_an_operation_by_typing_its_end(
    open_page: Any, monkeypatch: pytest.MonkeyPatch, lake: lakehouse.Lake, flights: lakehouse.Table
) -> None:
    monkeypatch.setenv("LAKEHOUSE_CONSOLE_ROLE", "admin")
    operation = flights.begin_replace("2013-01-05")
    key = f"release {operation.id}"
    app = open_page("locks").button(key=key).click().run()
    assert any(operation.id in one.value and "has to run again" in one.value for one in app.text)
    app = app.button(key=f"{key} yes").click().run()
    assert "not confirmed" in app.code[1].value
    assert [one.operation for one in lake.operations()] == [operation.id]
    app.text_input(key=f"{key} word").set_value(operation.id[-6:])
    app = app.button(key=f"{key} yes").click().run()
    assert not app.exception
    assert app.success[0].value == "Done."
    assert lake.operations() == []
    with pytest.raises(lakehouse.LockLost):
        operation.commit()


def test_what_was_asked_for_can_be_left(
    open_page: Any, monkeypatch: pytest.MonkeyPatch, lake: lakehouse.Lake, flights: lakehouse.Table
) -> None:
    monkeypatch.setenv("LAKEHOUSE_CONSOLE_ROLE", "admin")
    operation = flights.begin_append()
    key = f"release {operation.id}"
    app = open_page("locks").button(key=key).click().run()
    app = app.button(key=f"{key} no").click().run()
    assert not app.exception
    assert not [one for one in app.button if one.label == "Confirm"]
    assert len(lake.operations()) == 1
    operation.abort()
