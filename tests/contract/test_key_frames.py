"""Key frames are derived: they make reads cheap and change no read."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakehouse.core.interval import to_utc
from lakehouse.core.version import LONGEST_CHAIN
from lakehouse.testing.reopened import forget_key_frames
from lakehouse.testing.rows import arrow

FIRST = to_utc("2013-01-05")


def state(table: Any, version: int) -> tuple[Any, Any]:
    return table.segments(as_of=version), table.tombstones(as_of=version)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 2)),
        st.tuples(st.just("replace"), st.integers(0, 2)),
        st.tuples(st.just("part"), st.integers(0, 2)),
        st.tuples(st.just("keys"), st.integers(0, 2)),
        st.tuples(st.just("compact"), st.integers(0, 2)),
        st.tuples(st.just("restore"), st.integers(0, 30)),
    ),
    max_size=25,
)


def run(table: Any, step: str, number: int) -> None:
    day = FIRST + timedelta(days=number)
    match step:
        case "append":
            table.append(arrow([(day, "a", 1), (day + timedelta(hours=7), "b", 2)]))
        case "replace":
            table.replace(arrow([(day, "a", 3)]), (day, day + timedelta(days=1)))
        case "part":
            table.replace(None, (day, day + timedelta(hours=6)))
        case "keys":
            table.replace(None, (day, day + timedelta(days=1)), keys={"client": "b"})
        case "compact":
            table.compact((day, day + timedelta(days=1)))
        case "restore":
            versions = [table.version, *(commit.version for commit in table.log())]
            table.restore(versions[number % len(versions)])


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_dropping_every_key_frame_changes_no_version(lake: Any, steps: list[tuple[str, int]]) -> None:
    if "flights" in lake.tables():
        lake.drop_table("flights")
    table = lake.create_table(
        "flights", "time TIMESTAMP, client STRING, value BIGINT", time="time", cluster_by="client"
    )
    for step, number in steps:
        run(table, step, number)
    versions = [commit.version for commit in table.log()]
    framed = {version: state(table, version) for version in versions}
    forget_key_frames(lake)
    assert {version: state(table, version) for version in versions} == framed


def test_no_read_replays_more_than_a_bounded_chain(lake: Any, table: Any) -> None:
    for value in range(LONGEST_CHAIN + 20):
        table.append(arrow([(FIRST, "a", value)]))
    versions = sorted(commit.version for commit in table.log())
    framed = [frame.version for frame in table.key_frames()]
    behind = [len([one for one in versions if max(f for f in framed if f <= v) < one <= v]) for v in versions]
    assert max(behind) <= LONGEST_CHAIN
    assert len(framed) < len(versions) / 4


def test_versions_share_the_key_frames_of_chunks_that_they_leave_alone(table: Any) -> None:
    for day in range(5, 9):
        table.append(arrow([(f"2013-01-0{day}", "a", day)]))
    before = table.key_frames()
    assert {str(frame.chunk) for frame in before} == {f"2013-01-0{day}/2013-01-0{day + 1}" for day in range(5, 9)}
    for value in range(LONGEST_CHAIN):
        table.append(arrow([("2013-01-06", "b", value)]))
    added = [frame for frame in table.key_frames() if frame not in before]
    assert [str(frame.chunk) for frame in added] == ["2013-01-06/2013-01-07"]
    assert [frame for frame in table.key_frames() if frame in before] == before
