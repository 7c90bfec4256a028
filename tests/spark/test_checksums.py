"""Spark reads and rewrites nothing but what was written."""

from __future__ import annotations

import random

import pytest
import xxhash

import lakehouse
from lakehouse.core.checksum import content_of
from lakehouse.engine.spark import read as spark_read
from lakehouse.errors import SegmentUnreadable
from lakehouse.testing.campaign.flips import SCHEMA, changed, rows_of
from lakehouse.testing.rows import tabled

COUNTS = (1500, 60)
FLIPS = 5


@pytest.fixture
def lake(tmp_path, spark):
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse", spark=spark) as opened:
        yield opened


@pytest.fixture
def written(lake, frame):
    """A table that Spark wrote, and the ids of its rows."""
    table = lake.create_table("flights", SCHEMA, time="ts", properties={"compression": "none", "verify": "pages"})
    chance, first = random.Random(5), 0
    for count in COUNTS:
        rows = tabled(([row[name] for name in SCHEMA.names] for row in rows_of(chance, first, count)), SCHEMA)
        table.append(frame(rows).repartition(1))
        first += count
    return table


def ids(table, **scan):
    return sorted(row.id for row in table.scan(columns=["id"], **scan).to_spark().collect())


def test_what_spark_writes_has_checksums(lake, written):
    for one in written.segments():
        assert content_of(one.checksum) == xxhash.xxh3_128_digest((lake.warehouse / one.path).read_bytes())
    assert lake.check(deep=True).findings == []
    written.compact(engine="spark")
    assert all(one.checksum for one in written.segments())
    assert lake.check(deep=True).findings == []


@pytest.mark.parametrize(("verify", "where"), [("pages", "driver"), ("pages", "tasks"), ("content", "tasks")])
def test_no_flip_is_silent(lake, written, monkeypatch, verify, where):
    if where == "tasks":
        monkeypatch.setattr(spark_read, "ALONE_BYTES", -1)
    written.set_properties({"verify": verify})
    expected, chance, refused = list(range(sum(COUNTS))), random.Random(7), 0
    assert ids(written) == expected
    for _ in range(FLIPS):
        one = chance.choice(written.segments())
        with changed(lake.warehouse / one.path, {chance.randrange(one.bytes): 1 << chance.randrange(8)}):
            try:
                assert ids(written) == expected
                assert verify == "pages"
            except SegmentUnreadable as error:
                assert one.path in str(error)  # noqa: PT017 - either is right
                refused += 1
    assert refused == FLIPS or verify == "pages"


def test_nothing_is_made_of_a_damaged_file(lake, written):
    one = written.segments()[0]
    head = lake.head
    with changed(lake.warehouse / one.path, {one.bytes // 2: 1}):
        for work in (
            lambda: written.compact(engine="spark"),
            lambda: written.erase("id = 3", engine="spark"),
            lambda: written.update({"tiny": "1"}, "id < 5", engine="spark"),
        ):
            with pytest.raises(SegmentUnreadable, match="not what was written"):
                work()
    assert lake.head == head
    assert ids(written) == list(range(sum(COUNTS)))
