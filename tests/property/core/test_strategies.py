"""Laws of strategies and their combination: disjoint tasks within the budget, and an end."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse.core.codec import CODECS
from lakehouse.core.interval import from_us, to_us
from lakehouse.core.segment import Segment
from lakehouse.core.segments import Segments
from lakehouse.core.strategy import BUILT_IN, TableState, combine
from lakehouse.core.task import Candidate, TaskKind
from lakehouse.core.tombstone import Tombstone
from tests.unit.core.strategy.tables import NEW, OLD, segment, state

TARGET = 1_000
ORDINALS = st.sampled_from([10, 20, OLD, NEW])


@st.composite
def tables(draw: st.DrawFn) -> TableState:
    """A table of up to some dozens of segments in few chunks, with tombstones of each kind."""
    ragged = draw(st.booleans())
    held: list[Segment] = []
    for number in range(draw(st.integers(0, 40))):
        first = draw(st.integers(0, 23))
        length = draw(st.sampled_from([1, 6, 24, 24 * 5] if ragged else [1, 6, 24]))
        low = draw(st.integers(0, 50))
        held.append(
            segment(
                number,
                day=draw(st.integers(1, 3)),
                rows=draw(st.sampled_from([1, 7, 100, 400, 600, TARGET])),
                ordinal=draw(ORDINALS),
                hours=(first, first + length if ragged else min(first + length, 24)),
                min={"client": low},
                max={"client": low + draw(st.integers(0, 50))},
                size=draw(st.sampled_from([None, None, 2 << 20])),
                codec=draw(st.sampled_from(["", *CODECS])),
            )
        )
    gone: list[Tombstone] = []
    for number in range(draw(st.integers(0, 6))):
        kind = draw(st.sampled_from(["row", "key", "interval", "keyed"]))
        bounds = {"id": 1_000 + number, "ordinal": draw(ORDINALS) + 1, "rows": draw(st.integers(1, 500))}
        if kind == "row":
            one = held[draw(st.integers(0, len(held) - 1))] if held else None
            least = one.first_row_id if one else 0
            gone.append(Tombstone(kind="row", min={"_row_id": least}, max={"_row_id": least + 500}, **bounds))
        elif kind == "key":
            gone.append(Tombstone(kind="key", min={"client": 5}, max={"client": 20}, **bounds))
        else:
            keys = {"client": (3, 4)} if kind == "keyed" else None
            gone.append(Tombstone(start="2013-01-01T12", end="2013-01-02T05", keys=keys, **bounds))
    properties = {
        "target_rows": str(TARGET),
        "task_bytes": draw(st.sampled_from(["20kB", "60kB", "1GiB"])),
        "ragged": "true" if ragged else "false",
        "order": draw(st.sampled_from(["time", "zorder"])),
        "compression": draw(st.sampled_from(["zstd", "lz4, zstd after 7d", "none, lz4 after 56d, zstd after 58d"])),
    }
    properties |= draw(st.sampled_from([{}, {"segment_rows": "500", "segment_age": "5m"}, {"segment_bytes": "10kB"}]))
    return state(held, gone, properties=properties, cluster_by={"client": 64}, scans=draw(st.sampled_from([1.0, 1e6])))


def proposed(table: TableState) -> list[Candidate]:
    return [one for _, strategy in BUILT_IN for one in strategy(table)]


def rewritten(table: TableState, task: Candidate, ordinal: int) -> TableState:
    """The table after a task: the rows of what it takes, in order of time, in as few segments as hold them."""
    if task.kind is TaskKind.RESOLVE:
        gone = set(task.tombstones.tolist())
        return replace(table, tombstones=tuple(one for one in table.tombstones if one.id not in gone))
    taken = set(task.segments.tolist())
    left = [one for one in table.segments if one.id not in taken]
    inputs = [one for one in table.segments if one.id in taken]
    parts: dict[int, list[Segment]] = {}
    for one in inputs:
        for chunk in [one.interval] if table.spec.ragged else table.spec.grain.split(one.interval):
            where = 0 if table.spec.ragged else to_us(table.spec.grain.floor(chunk.start))
            share = (chunk.end - chunk.start) / (one.end - one.start)
            parts.setdefault(where, []).append(
                replace(one, start=chunk.start, end=chunk.end, rows=max(1, round(one.rows * share)))
            )
    number = max((one.id for one in table.segments), default=0) + 1
    for held in parts.values():
        rows = sum(one.rows for one in held)
        density = sum(one.bytes for one in held) / rows
        first, last = min(to_us(one.start) for one in held), max(to_us(one.end) for one in held)
        cuts = np.linspace(first, last, -(-rows // table.policy.target_rows) + 1).astype(np.int64).tolist()
        for begin, end in itertools.pairwise(cuts):
            rows_here = min(rows, table.policy.target_rows)
            rows -= rows_here
            bounds = {"min": {"client": 0}, "max": {"client": 99}}
            size = round(rows_here * density)
            codec = table.spec.codec_of(end - 1, to_us(table.now))
            made = segment(number, rows=rows_here, size=size, ordinal=ordinal, has_row_ids=True, codec=codec, **bounds)
            left.append(replace(made, start=from_us(begin), end=from_us(end)))
            number += 1
    return replace(table, segments=Segments.of(left))


@given(tables())
def test_strategies_name_only_what_they_were_given(table: TableState) -> None:
    ids = set(table.segments.ids.tolist())
    tombstones = {one.id for one in table.tombstones}
    for one in proposed(table):
        assert set(one.segments.tolist()) <= ids
        assert set(one.tombstones.tolist()) <= tombstones
        chosen = [segment for segment in table.segments if segment.id in set(one.segments.tolist())]
        assert all(one.interval.contains(segment.interval) for segment in chosen)
        assert one.bytes >= 0
        assert one.score >= 0


@given(tables(), st.integers(0, 100_000))
def test_tasks_are_disjoint_ordered_and_within_the_budget(table: TableState, budget: int) -> None:
    tasks = combine(table, proposed(table), rewritable_bytes=budget)
    merges = [one for one in tasks if one.kind is TaskKind.COMPACT]
    taken = [number for one in merges for number in one.segments.tolist()]
    assert len(taken) == len(set(taken))
    assert sum(one.bytes for one in merges) <= budget
    assert all(one.bytes <= table.policy.task_bytes or len(one.segments) == 1 for one in merges)
    assert [one.score for one in tasks] == sorted((one.score for one in tasks), reverse=True)
    unlimited = combine(table, proposed(table))
    assert bool(unlimited) == bool(proposed(table))


@settings(max_examples=60)
@given(tables())
def test_rewriting_comes_to_an_end_with_few_segments_a_chunk(table: TableState) -> None:
    ordinal = 3 * NEW
    for turn in range(60):
        tasks = combine(table, proposed(table))
        if turn and not tasks:
            break
        for task in tasks:
            table = rewritten(table, task, ordinal)
            ordinal += 1
        # Time goes on: all that is there grows old.
        table = replace(table, settled=dict.fromkeys(table.policy.ages, ordinal))
    assert combine(table, proposed(table)) == []
    if not table.spec.ragged:
        half = table.policy.target_rows / 2
        is_small = [one.rows < half and one.bytes * 2 < table.policy.task_bytes for one in table.segments]
        small = [one.start.date() for one in itertools.compress(table.segments, is_small)]
        assert all(small.count(day) <= 3 for day in small)


@given(st.integers(1, 9), st.integers(0, 3))
def test_a_settled_well_shaped_table_is_never_rewritten(full: int, small: int) -> None:
    day = [segment(n, rows=5_000_000, hours=(n, n + 1)) for n in range(full)]
    rest = [segment(50 + n, rows=40**n * 10, size=40 ** (n + 2) * 10, hours=(23, 24)) for n in range(small)]
    assert proposed(state([*day, *rest])) == []
