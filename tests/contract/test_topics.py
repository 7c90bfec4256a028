"""What processes say of topics, and which of them runs one, on each catalog."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakehouse
from lakehouse.catalog.catalog import Catalog
from lakehouse.core.topic import Health, Progress, Topic, TopicState
from lakehouse.streaming.topics.figures import exposition
from lakehouse.streaming.topics.process import is_dead, process_name

TOLD = Progress(
    "flights", "kafka 'ü'", rows=7, batch=3, version=9, error="no; <b>\x1b[31m", error_ago=2.0, batch_ago=1.0
)


def test_a_topic_is_as_its_process_said_last(lake: Any, connect: Callable[..., Any]) -> None:
    assert lake.topics() == []
    assert lake.catalog.claim_topic("ticks", "me", replace(TOLD, rows=0)) is None
    assert lake.catalog.report_topics("me", {"ticks": (TopicState.WAITING, TOLD)}) == set()
    (found,) = connect().topics()
    assert (found.name, found.process, found.state, found.progress) == ("ticks", "me", "waiting", TOLD)
    assert (found.reported_at - found.at(2.0)).total_seconds() == 2
    assert 0 <= found.silent_seconds < 60
    assert found.table == "flights"
    lake.forget_topic("ticks")
    assert lake.topics() == []
    with pytest.raises(lakehouse.errors.TopicNotFound):
        lake.forget_topic("ticks")


def test_one_process_runs_a_topic_and_another_gets_it_when_that_is_over(lake: Any) -> None:
    catalog: Catalog = lake.catalog
    assert catalog.claim_topic("ticks", "one", TOLD) is None
    assert catalog.claim_topic("ticks", "one", TOLD) is None
    assert catalog.claim_topic("ticks", "two", TOLD) == "one"
    assert catalog.claim_topic("ticks", "two", TOLD, dead=("other",)) == "one"
    assert catalog.claim_topic("ticks", "two", TOLD, dead=("one",)) is None
    assert catalog.report_topics("one", {"ticks": (TopicState.RUNNING, TOLD)}) == {"ticks"}
    assert [one.process for one in lake.topics()] == ["two"]
    for ended in (TopicState.STOPPED, TopicState.DONE, TopicState.FAILED):
        owner = lake.topics()[0].process
        assert catalog.report_topics(owner, {"ticks": (ended, TOLD)}) == set()
        assert catalog.claim_topic("ticks", f"after {ended}", TOLD) is None


def test_of_many_processes_one_gets_a_topic(lake: Any, connect: Callable[..., Any]) -> None:
    others = [connect() for _ in range(4)]
    got: list[str | None] = []
    together = threading.Barrier(len(others))

    def claim(number: int) -> None:
        together.wait()
        got.append(others[number].catalog.claim_topic("ticks", f"process {number}", TOLD))

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(len(others))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (owner,) = {one.process for one in lake.topics()}
    assert sorted(got, key=str) == sorted([None, *[owner] * 3], key=str)


def test_a_topic_that_was_forgotten_while_it_runs_is_listed_again(lake: Any) -> None:
    lake.catalog.claim_topic("ticks", "me", TOLD)
    lake.forget_topic("ticks")
    assert lake.catalog.report_topics("me", {"ticks": (TopicState.RUNNING, TOLD)}) == set()
    assert [one.name for one in lake.topics()] == ["ticks"]


def topic(state: TopicState = TopicState.RUNNING, silent: float = 0.0, **told: Any) -> Topic:
    return Topic("ticks", state, "me", datetime(2026, 1, 1, tzinfo=UTC), silent, Progress("t", "rate", **told))


@pytest.mark.parametrize(
    ("found", "health", "said"),
    [
        (topic(), Health.WELL, None),
        (topic(started_ago=1e6, lag=1000, batch_ago=1e5), Health.WELL, None),  # it waits for its trigger
        (topic(silent=61), Health.STALLED, "not reported"),
        (topic(silent=59), Health.WELL, None),
        (topic(busy_seconds=301), Health.STALLED, "a batch has lasted 301 s"),
        (topic(TopicState.WAITING, failures=3, started_ago=301, error="no"), Health.STALLED, "3 failures"),
        (topic(TopicState.WAITING, failures=3, started_ago=301, batch_ago=10, error="no"), Health.WELL, None),
        (topic(TopicState.FAILED, error="no"), Health.FAILED, "it failed: no"),
        (topic(TopicState.STOPPED, silent=1e6), Health.ENDED, None),
        (topic(TopicState.DONE, silent=1e6, failures=3, started_ago=1e6), Health.ENDED, None),
    ],
)
def test_a_topic_is_stalled_if_it_is_to_run_and_makes_no_progress(
    found: Topic, health: Health, said: str | None
) -> None:
    assert found.health() is health
    why = found.stall()
    assert why is None if said is None else why is not None and said in why


@given(
    st.text(max_size=50),
    st.integers(0, 2**62),
    st.none() | st.text(max_size=3000),
    st.none() | st.floats(0, 1e9, allow_nan=False),
)
def test_a_report_survives_being_stored(table: str, rows: int, error: str | None, ago: float | None) -> None:
    told = Progress(table, "rate", rows=rows, error=error, batch_ago=ago)
    kept = None if error is None else error[:2000]
    assert Progress.from_json(told.to_json()) == replace(told, error=kept)


def test_figures_leave_out_what_is_not_known_and_escape_names() -> None:
    odd = Topic('a\n"\\', TopicState.WAITING, "me", datetime.now(UTC), 2.0, Progress("t", "rate", batch_ago=1.0))
    text = exposition([odd, topic(lag=3)])
    lines = [one for one in text.splitlines() if not one.startswith("#")]
    assert 'lakehouse_topic_lag{topic="ticks",table="t"} 3' in lines
    assert r'lakehouse_topic_up{topic="a\n\"\\",table="t"} 0' in lines
    assert r'lakehouse_topic_batch_age_seconds{topic="a\n\"\\",table="t"} 3.0' in lines
    assert not [one for one in lines if "last_version" in one]
    helped = [one.split()[2] for one in text.splitlines() if one.startswith("# TYPE")]
    assert len(helped) == len(set(helped))
    assert exposition([]) == ""


def test_a_process_that_is_gone_is_known_on_its_machine_only() -> None:
    host, number, started = process_name().rsplit(":", 2)
    assert is_dead(f"{host}:{number}:{int(started) - 1}")  # its number is used again
    assert is_dead(f"{host}:{2**22 + 1}:5")
    assert not is_dead(f"elsewhere-{host}:{2**22 + 1}:5")
    assert not is_dead("")
