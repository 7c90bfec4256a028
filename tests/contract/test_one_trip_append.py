"""Appends that are committed in one trip leave what those leave that ask the head first, and are refused alike."""

from __future__ import annotations

import logging

import pytest
from sqlalchemy import select

import lakehouse
from lakehouse.catalog.store import models
from lakehouse.core.operation import ENTRY_BITS
from lakehouse.errors import LockLost, TableNotFound
from lakehouse.testing import behind
from lakehouse.testing.rows import SCHEMA, many

KEPT = (models.commit_log, models.commit_table, models.segment, models.delta, models.bin, models.lake_table)
DIFFER = {"committed_us", "path", "checksum", "folder", "table_id", "lake_table.id"}


def kept(lake) -> dict[str, list[dict[str, object]]]:
    """All that the catalog holds about rows, but for times, names and checksums; operations count from the first."""

    def question(connection):
        return {table.name: [row._asdict() for row in connection.execute(select(table))] for table in KEPT}

    found = behind.ask(lake.catalog, question)
    first = min(row["operation"] for row in found["segment"])
    for row in found["segment"]:
        row |= {"operation": row["operation"] - first, "id": row["id"] - (first << ENTRY_BITS)}
    for row in found["delta"]:
        row["entry"] -= first << ENTRY_BITS
    return {
        table: sorted(({k: v for k, v in row.items() if not {k, f"{table}.{k}"} & DIFFER} for row in rows), key=str)
        for table, rows in found.items()
    }


def appended(lake) -> dict[str, list[dict[str, object]]]:
    table = lake.create_table("flights", SCHEMA, time="time")
    for rows, step_us in ((3, 1000), (500, 3_600_000_000), (0, 1), (1, 1), (40, 7_000_000_000)):
        table.append(many(rows, step_us=step_us), message=f"{rows} rows", properties={"rows": str(rows)})
    return kept(lake)


@pytest.mark.parametrize("catalog_url", ["postgresql"], indirect=True)
def test_what_an_append_leaves_is_the_same_either_way(connect, tmp_path, monkeypatch):
    with connect() as lake:
        one_trip = appended(lake)
        assert lake.check().findings == []
    monkeypatch.setattr("lakehouse.catalog.commit.one_trip_append.fits_one_trip", lambda _: False)
    with lakehouse.connect(f"sqlite:///{tmp_path}/other.db", tmp_path / "other") as other:
        assert appended(other) == one_trip


@pytest.fixture
def tried(caplog):
    caplog.set_level(logging.DEBUG, logger="lakehouse.catalog.writer")
    return lambda: [one.message for one in caplog.records if "in one trip" in one.message]


def test_an_append_whose_operation_was_ended_commits_nothing(lake, table, tried):
    table.append(many(3, step_us=1000))
    op = table.begin_append()
    op.write(many(4, step_us=1000))
    lake.catalog.release(op.id)
    head = lake.head
    with pytest.raises(LockLost):
        op.commit()
    assert len(tried()) == (0 if behind.is_on_sqlite(lake.catalog) else 1)
    assert lake.head == head
    table.append(many(5, step_us=1000))
    assert table.scan().count() == 8
    assert lake.check().findings == []


def test_an_append_to_a_table_that_was_dropped_commits_nothing(lake, table, tried):
    op = table.begin_append()
    op.write(many(4, step_us=1000))
    lake.drop_table(table.name)
    head = lake.head
    with pytest.raises(TableNotFound):
        op.commit()
    assert len(tried()) == (0 if behind.is_on_sqlite(lake.catalog) else 1)
    assert lake.head == head


def test_a_second_commit_of_one_append_is_the_first(lake, table):
    op = table.begin_append()
    op.write(many(4, step_us=1000))
    contribution = op.contribution()
    first = op.commit()
    again = lake.catalog.commit([contribution])
    assert again.version == first.version == lake.head
    assert table.scan().count() == 4
