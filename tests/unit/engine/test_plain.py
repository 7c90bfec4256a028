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
from lakehouse.engine import Query
from lakehouse.engine.hidden import plan_parts
from lakehouse.engine.plain import fits, is_plain
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
    plain, stated = found.decoded().read_all(), found.reader().read_all()
    assert plain.schema == stated.schema
    files = {one.path: lake.warehouse / one.path for one in query.plan.segments}
    decodes = is_plain(query, plan_parts(query)) and fits(files, list(query.plan.segments), found.schema)
    by = "id"
    return plain.sort_by(by).to_pylist(), stated.sort_by(by).to_pylist(), decodes


def test_rows_are_those_of_a_statement(sqlite_url: str, warehouse: Path) -> None:
    with lakehouse.connect(sqlite_url, warehouse) as lake:
        table = lake.create_table("t", COLUMNS, time="at")
        seen = []

        def look() -> None:
            for row_ids in (False, True):
                plain, stated, decodes = read(lake, asked(lake, table, row_ids=row_ids))
                assert plain == stated
                assert len(plain) == table.count()
                assert (ROW_ID in plain[0]) == row_ids
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
