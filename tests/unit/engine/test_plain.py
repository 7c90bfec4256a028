"""Files that are decoded without a statement give the rows that a statement over them gives."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.core.plan import plan_read
from lakehouse.core.spec import ROW_ID
from lakehouse.engine import Query, plain
from lakehouse.engine.hidden import plan_parts
from lakehouse.engine.plain import footers_that_fit, is_plain
from lakehouse.errors import SegmentUnreadable
from lakehouse.reading.scan import sets_of

COLUMNS = "at TIMESTAMP, id BIGINT, n INT, x FLOAT, name STRING, price DECIMAL(20, 4), day DATE, ok BOOLEAN, raw BINARY"
AT = datetime(2013, 1, 5, tzinfo=UTC)


def rows(first: int, count: int, schema: pa.Schema) -> pa.Table:
    chance = random.Random(first)
    made = [
        {
            "at": AT + timedelta(hours=one % 50), "id": one, "n": chance.choice([None, one]), "x": chance.random(),
            "name": chance.choice([None, "", "é\0", "a" * 40]), "price": Decimal(one) / 4, "day": AT.date(),
            "ok": chance.choice([None, True, False]), "raw": chance.choice([None, b"", b"\xff\0"]),
        }
        for one in range(first, first + count)
    ]  # fmt: skip
    return pa.Table.from_pylist(made, pa.schema([field.remove_metadata() for field in schema]))


def asked(lake: Any, table: Any, *, row_ids: bool) -> Query:
    segments, tombstones = lake.catalog.live(table.spec, table.version)
    plan = plan_read(segments, tombstones, version=table.version)
    names = tuple(table.schema.names)
    return Query(plan, table.spec, lake.session.warehouse, names, row_ids=row_ids, sets=sets_of(lake.session, plan))


def read(lake: Any, query: Query) -> tuple[list[Any], list[Any], bool]:
    """By both ways, and whether the first decodes."""
    found = lake.session.local_engine.read(query)
    decoded, stated = found.decoded().read_all(), found.reader().read_all()
    assert decoded.schema == stated.schema
    files = {one.path: lake.warehouse / one.path for one in query.plan.segments}
    footers = footers_that_fit(files, list(query.plan.segments), found.schema)
    decodes = is_plain(query, plan_parts(query)) and footers is not None
    by = "id"
    return decoded.sort_by(by).to_pylist(), stated.sort_by(by).to_pylist(), decodes


def test_rows_are_those_of_a_statement(sqlite_url: str, warehouse: Path) -> None:
    with lakehouse.connect(sqlite_url, warehouse) as lake:
        table = lake.create_table("t", COLUMNS, time="at")
        seen = []

        def look() -> None:
            for row_ids in (False, True):
                decoded, stated, decodes = read(lake, asked(lake, table, row_ids=row_ids))
                assert decoded == stated
                assert len(decoded) == table.count()
                assert (ROW_ID in decoded[0]) == row_ids
            seen.append(decodes)

        table.append(rows(0, 200, table.schema))
        table.append(rows(200, 30, table.schema))
        look()
        table.compact()  # files with row ids of their own
        look()
        table.delete("id % 7 = 0")
        look()
        table.compact()
        table.add_column("more", "STRING", default="x")
        look()
        table.rebuild()
        look()
        assert seen == [True, True, False, False, True]


@pytest.mark.parametrize("ahead", [plain.AHEAD_BYTES, 4 << 20, 1], ids=["many", "one", "none"])
def test_row_groups_come_in_order_however_many_are_decoded_ahead(
    sqlite_url: str, warehouse: Path, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    monkeypatch.setattr(plain, "AHEAD_BYTES", ahead)
    with lakehouse.connect(sqlite_url, warehouse) as lake:
        table, count = lake.create_table("t", "id BIGINT, name STRING"), 400_000
        for first, last in ((0, count - 5), (count - 5, count)):
            numbers = pa.array(range(first, last), pa.int64())
            table.append(pa.table({"id": numbers, "name": pa.array([f"{one % 7:99}" for one in range(first, last)])}))
        query = asked(lake, table, row_ids=True)
        found = lake.session.local_engine.read(query).decoded().read_all()
        assert found["id"].to_pylist() == list(range(count))
        assert {one.strip() for one in found["name"].unique().to_pylist()} == set("0123456")
        firsts = {one.first_row_id: one.rows for one in query.plan.segments}
        assert found[ROW_ID].to_pylist() == [n for first in sorted(firsts) for n in range(first, first + firsts[first])]
        batches = lake.session.local_engine.read(query).decoded()
        assert next(batches)["id"][0].as_py() == 0  # and whoever asks for no more leaves nothing behind


@pytest.mark.parametrize("harm", ["gone", "short", "changed"])
def test_a_file_that_is_not_what_was_committed_is_named(sqlite_url: str, warehouse: Path, harm: str) -> None:
    with lakehouse.connect(sqlite_url, warehouse) as lake:
        table = lake.create_table("t", COLUMNS, time="at")
        table.append(rows(0, 200, table.schema))
        query = asked(lake, table, row_ids=True)
        path = lake.warehouse / next(iter(query.plan.segments)).path
        held = path.read_bytes()
        match harm:
            case "gone":
                path.unlink()
            case "short":
                path.write_bytes(held[:-9])
            case _:
                path.write_bytes(held[:4] + bytes(200) + held[204:])
        with pytest.raises(SegmentUnreadable, match=path.name):
            lake.session.local_engine.read(query).decoded().read_all()
