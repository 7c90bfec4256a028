"""Files have the codec for the age of their rows; the catalog knows it, and the service rewrites what has cooled."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

import lakehouse
from lakehouse.core.task import TaskKind
from lakehouse.service.planning import plan_table
from lakehouse.testing import behind
from lakehouse.testing.rows import SCHEMA, arrow, many, visible, with_row_ids

STEPS = {"compression": "lz4, zstd after 7d"}
STORED = {"zstd": "ZSTD", "lz4": "LZ4"}
ROWS = 150_000
"""Of numbers that no codec makes smaller than a mebibyte, below which nothing is rewritten for its codec."""


def numbers(day: str, rows: int = ROWS) -> pa.Table:
    made = many(rows, start=day, step_us=1)
    values = np.random.default_rng(3).integers(-(2**62), 2**62, rows)
    return made.set_column(2, made.schema.field(2), pa.array(values))


def codecs(lake, table, **at) -> list[str]:
    """Codecs by the order of segments, which are those of all pages of their files."""
    listed = list(table.segments(**at))
    for segment in listed:
        footer = pq.read_metadata(lake.warehouse / segment.path)
        groups = [footer.row_group(place) for place in range(footer.num_row_groups)]
        found = {group.column(place).compression for group in groups for place in range(group.num_columns)}
        assert found == {STORED[segment.codec]}
    return [one.codec for one in sorted(listed, key=lambda one: one.start)]


def tasks(lake):
    return [one for one in lake.maintain().tasks if one.kind not in (TaskKind.PLAN, TaskKind.COLLECT)]


@pytest.mark.parametrize("ragged", [False, True])
def test_every_write_gives_files_the_codec_for_their_age(lake, ragged):
    now = lake.catalog.now()
    old, young, future = "2013-01-05", now - timedelta(days=5), "8999-01-01"
    table = lake.create_table("t", SCHEMA, time="time", primary_key=["value"], properties={**STEPS, "ragged": ragged})
    table.append(arrow([(old, "a", 1), (young, "a", 2), (future, "a", 3)]))
    assert codecs(lake, table) == (["lz4"] if ragged else ["zstd", "lz4", "lz4"])
    for rows in ([(old, "a", 4), (old, "b", 5)], [(future, "a", 6), (future, "b", 7)]):
        table.append(arrow(rows))
    expected = ["lz4", "zstd", "lz4"] if ragged else ["zstd", "zstd", "lz4", "lz4", "lz4"]
    assert codecs(lake, table) == expected
    table.upsert(arrow([(old, "c", 1), (young, "c", 2)]))
    table.update({"client": "'d'"}, "value = 4")
    table.replace(arrow([(young, "e", 8)]), (young, young + timedelta(hours=1)))
    assert codecs(lake, table)[-1] == "lz4"
    before = visible(table)
    assert table.compact() is not None
    assert visible(table) == before
    if not ragged:
        assert codecs(lake, table) == ["zstd", "lz4", "lz4"]
    table.erase("value = 5 OR value = 7")
    if not ragged:
        assert codecs(lake, table) == ["zstd", "lz4", "lz4"]
    assert [one for one in before if one[2] not in (5, 7)] == visible(table)
    shown = lake.sql("SELECT codec FROM t.segments ORDER BY start", engine="duckdb").fetchall()
    assert [one for (one,) in shown] == [one.codec for one in sorted(table.segments(), key=lambda one: one.start)]


def test_what_has_cooled_is_rewritten_once_with_all_that_a_compaction_keeps(lake, table):
    table.set_properties({"compression": "lz4", "index": "value", "target_rows": ROWS})
    young = lake.catalog.now()
    table.append(numbers("2013-01-05"))
    table.append(numbers("2013-01-06"))
    table.append(numbers(f"{young:%Y-%m-%d}"))
    table.delete("value < 0 AND time < '2013-01-06' AND client = 'a' AND value % 50 = 0")
    assert len(tasks(lake)) > 0  # the indexes
    assert tasks(lake) == []
    assert codecs(lake, table) == ["lz4"] * 3
    first = table.version
    before = with_row_ids(table.scan()).sort_by("_row_id")
    sizes = {one.start: one.bytes for one in table.segments()}
    bounds = {one.start: (dict(one.min), dict(one.max)) for one in table.segments()}

    table.set_properties(STEPS)
    planned = [(one.kind, one.predicted.cost_ms) for one in lake.plan_tasks() if one.kind is TaskKind.COMPACT]
    assert planned == [(TaskKind.COMPACT, 0)] * 2
    done = tasks(lake)
    assert [one.kind for one in done].count(TaskKind.COMPACT) == 2
    assert all("have cooled: compression is lz4, zstd after 7d" in one.cause for one in done if one.kind == "compact")
    assert codecs(lake, table) == ["zstd", "zstd", "lz4"]
    assert codecs(lake, table, as_of=first) == ["lz4"] * 3
    assert with_row_ids(table.scan()).sort_by("_row_id").equals(before)
    for one in table.segments():
        low, high = bounds[one.start]
        assert {name: one.min[name] for name in low} == low
        assert {name: one.max[name] for name in high} == high
    assert sum(one.bytes for one in table.segments()) < sum(sizes.values())
    # The index of what was rewritten is made anew, in this round or the next, and that is the end of it.
    tasks(lake)
    assert [one for one in lake.maintain().tasks if one.kind is not TaskKind.PLAN] == []
    assert table.scan(where=f"value = {before['value'][7].as_py()}").count() > 0
    assert not lake.check(deep=True).findings


def test_a_table_is_planned_again_when_its_rows_will_have_cooled(lake, table):
    now = lake.catalog.now()
    table.set_properties(STEPS)
    table.append(arrow([(now, "a", 1)]))
    assert plan_table(lake.session, table).due_seconds == 3600
    behind.change(lake.catalog, text("UPDATE commit_log SET committed_us = 1"))
    due = plan_table(lake.session, table).due_seconds
    tomorrow = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    assert due == pytest.approx((tomorrow - now).total_seconds() + 7 * 86_400, abs=60)
    table.set_properties({"compression": "lz4"})
    behind.change(lake.catalog, text("UPDATE commit_log SET committed_us = 1"))
    assert plan_table(lake.session, table).due_seconds is None


def test_nothing_is_rewritten_for_one_codec_nor_where_no_codec_is_known(connect, tmp_path):
    with connect() as lake:
        table = lake.create_table("flights", SCHEMA, time="time", properties={"compression": "lz4"})
        table.append(numbers("2013-01-05"))
        table.set_properties({"compression": "zstd"})
        assert tasks(lake) == []
        # As in a catalog of before codecs were stored, or one of a later release.
        for stored in (None, 99):
            behind.change(lake.catalog, text("DELETE FROM key_frame"))
            behind.change(lake.catalog, text("UPDATE bin SET chain = 1"))
            behind.change(lake.catalog, text("UPDATE segment SET codec = :codec"), codec=stored)
            with connect() as again:
                seen = again.table("flights")
                assert [one.codec for one in seen.segments()] == [""]
                seen.set_properties(STEPS)
                assert tasks(again) == []
                assert seen.scan().count() == ROWS


def test_codecs_survive_the_loss_of_the_catalog(lake, table, tmp_path):
    table.set_properties(STEPS)
    table.append(arrow([("2013-01-05", "a", 1), (lake.catalog.now(), "a", 2)]))
    lake.export()
    url = f"sqlite:///{tmp_path}/again.db"
    lakehouse.recover(lake.warehouse, url)
    with lakehouse.connect(url, lake.warehouse) as again:
        assert codecs(again, again.table("flights")) == ["zstd", "lz4"]
