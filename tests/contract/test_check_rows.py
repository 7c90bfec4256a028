"""A deep check reads every row: what is damaged inside a file, and maintenance that changed rows, are found."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse.engine.duckdb import DuckDBEngine
from lakehouse.testing.rows import arrow, many

DAY = "2013-01-05"


@pytest.fixture
def maintained(lake, table):
    """Appends, deletes and upserts' like, with maintenance between them, and versions that are forgotten."""
    for n in range(12):
        table.append(arrow([(DAY, "a", n), ("2013-01-06", "b", n)]))
    table.delete("value = 3")
    table.compact()
    table.update({"client": "'z'"}, "value = 4")
    table.append(many(100))
    lake.maintain()
    return table


def test_a_sound_lake_has_no_findings(lake, maintained):
    assert lake.check(deep=True).findings == []
    lake.expire(keep_last=2)
    lake.collect(grace_seconds=0)
    assert lake.check(deep=True).findings == []


def test_a_page_that_does_not_decode_is_found(lake, maintained, warehouse):
    path = warehouse / maintained.segments()[0].path
    content = bytearray(path.read_bytes())
    content[4:60] = bytes(56)
    path.write_bytes(content)
    assert lake.check().findings == []
    assert "content" in {one.kind for one in lake.check(deep=True).findings}


@pytest.mark.parametrize("harm", ["loses", "changes", "repeats"])
def test_a_rewrite_that_changes_rows_is_found(lake, table, monkeypatch, harm):
    for n in range(4):
        table.append(arrow([(DAY, "a", n)]))
    ordered = DuckDBEngine.ordered

    def harmful(self, query, by):
        rows = ordered(self, query, by).read_all()
        match harm:
            case "loses":
                return rows.slice(1)
            case "changes":
                return rows.set_column(1, rows.schema.field(1), pa.array(["b"] * len(rows)))
            case "repeats":
                return rows.set_column(3, rows.schema.field(3), pa.array([9, *range(1, len(rows))], pa.int64()))

    monkeypatch.setattr(DuckDBEngine, "ordered", harmful)
    version = table.compact().version
    (found,) = lake.check(deep=True).findings
    assert (found.kind, found.subject) == ("maintenance", f"flights at version {version}")
