"""What a probe reports agrees with the rule of visibility, asked row by row."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lakehouse.core import Interval
from lakehouse.core.explain import explain
from lakehouse.testing.strategies import key_scopes
from tests.property.core.histories import State, seen, states, times


@given(states(), st.booleans())
def test_a_verdict_is_true_of_every_row_at_the_instant(state: State, keyed: bool) -> None:
    for segment in state.segments:
        for row in state.rows[segment.id]:
            found = explain(state.segments, state.tombstones, row.time, {"client": row.client} if keyed else None)
            verdict = next(one.verdict for one in found if one.segment.id == segment.id)
            visible = seen(row, segment.ordinal, state.tombstones)
            assert verdict in (("visible", "masked") if visible else ("hidden", "masked"))


@given(states())
def test_asked_for_a_primary_key_a_verdict_knows_key_tombstones_for_certain(state: State) -> None:
    by_key = [one for one in state.tombstones if one.kind == "key"]
    for segment in state.segments:
        for row in state.rows[segment.id]:
            asked = {"number": row.primary_key[0]}
            found = explain(state.segments, by_key, row.time, asked, primary_key=["number"])
            verdict = next(one.verdict for one in found if one.segment.id == segment.id)
            assert verdict == ("visible" if seen(row, segment.ordinal, by_key) else "hidden")


@given(states(), times(), st.one_of(st.none(), key_scopes()))
def test_every_segment_over_the_instant_is_struck_once_and_meets_every_tombstone_there(
    state: State, instant: object, keys: dict[str, tuple[str, ...]] | None
) -> None:
    found = explain(state.segments, state.tombstones, instant, keys)
    assert sorted(one.segment.id for one in found) == sorted(
        one.id for one in state.segments if one.interval.contains(instant)
    )
    over = {one.id for one in state.tombstones if one.interval.contains(instant)}
    for probed in found:
        if probed.verdict == "elsewhere":
            assert keys is not None
        else:
            assert {one.tombstone.id for one in probed.met} == over
        assert all(one.ordinal > probed.segment.ordinal for one in probed.blocking)
        assert (probed.verdict == "hidden") == bool(probed.blocking)


@given(states(), times())
def test_what_hides_without_keys_hides_every_row_of_the_instant(state: State, instant: object) -> None:
    for probed in explain(state.segments, state.tombstones, instant):
        if probed.verdict == "hidden":
            rows = [row for row in state.rows[probed.segment.id] if row.time == instant]
            assert not any(seen(row, probed.segment.ordinal, state.tombstones) for row in rows)
    assert explain(state.segments, (), instant) == tuple(
        one for one in explain(state.segments, (), instant) if one.verdict == "visible"
    )
    assert explain((), state.tombstones, Interval.of("2013-01-05").start) == ()
