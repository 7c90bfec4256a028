"""What is forgotten is what no retained version holds: against a look at every range and every version."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lakehouse.core.expire import newest_at, reached_by_none
from lakehouse.core.version import ADD, DROP, replay

NUMBERS = st.integers(1, 12)
POINTS = st.lists(NUMBERS, max_size=5)
RANGES = st.lists(st.tuples(NUMBERS, NUMBERS).map(lambda pair: (min(pair), max(pair) + 1)), max_size=20)


@given(ranges=RANGES, points=POINTS)
def test_a_range_is_dead_if_it_holds_no_point(ranges, points):
    found = reached_by_none([a for a, _ in ranges], [d for _, d in ranges], points).tolist()
    assert found == [not any(a <= point < d for point in points) for a, d in ranges]


@given(pairs=st.sets(st.tuples(st.integers(1, 3), NUMBERS), max_size=20), points=POINTS)
def test_a_version_is_kept_if_a_reader_of_some_point_is_given_it(pairs, points):
    listed = sorted(pairs, key=lambda pair: (pair[1] * 7 % 5, pair))
    found = newest_at([table for table, _ in listed], [version for _, version in listed], points).tolist()
    given_to_readers = {
        (table, max(held))
        for table in {table for table, _ in listed}
        for point in points
        if (held := [version for other, version in listed if other == table and version <= point])
    }
    assert found == [pair in given_to_readers for pair in listed]


@given(
    steps=st.lists(st.sets(st.integers(0, 6)), min_size=1, max_size=14),
    horizon=st.integers(1, 14),
    tags=st.lists(st.integers(1, 14), max_size=3),
)
def test_taking_the_deltas_of_dead_entries_out_changes_no_retained_version(steps, horizon, tags):
    """Each step toggles entries: live ones are dropped, the others added, as appends, replaces and restores do."""
    deltas, live = [], set()
    states = {0: set()}
    for version, entries in enumerate(steps, start=1):
        deltas += [(version, DROP if entry in live else ADD, entry) for entry in sorted(entries)]
        live ^= entries
        states[version] = set(live)
    clean = min(horizon, len(steps))
    points = [clean, *(tag for tag in tags if tag < clean)]
    added, dropped = {}, {}
    for version, action, entry in deltas:
        added.setdefault(entry, version)
        dropped[entry] = version if action == DROP else None
    gone = [entry for entry, version in dropped.items() if version is not None and version <= clean]
    is_dead = reached_by_none([added[entry] for entry in gone], [dropped[entry] for entry in gone], points)
    dead = {entry for entry, dies in zip(gone, is_dead.tolist(), strict=True) if dies}
    for version in (*points, *range(clean, len(steps) + 1)):
        kept = [delta for delta in deltas if delta[0] <= version and delta[2] not in dead]
        columns = zip(*kept, strict=True) if kept else ([], [], [])
        versions, actions, ids = columns
        assert set(replay([], versions, actions, ids).tolist()) == states[version]
