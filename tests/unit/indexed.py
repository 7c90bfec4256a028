"""Tables of the same hostile rows, one with indexes on every column and one without, and filters that use those."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lakehouse.operations.summarize import build_indexes, missing_indexes
from tests.unit.engine.harness import HOSTILE, hostile_rows

INDEXED = tuple(name for name in HOSTILE.names if not pa.types.is_nested(HOSTILE.field(name).type) and "," not in name)
EQUALITIES = [
    "id = 1.0",
    "id IN (1e0, 2.00, 2.5, NULL)",
    "id = 9223372036854775808",
    "tiny = 127.0 OR tiny = 128",
    "short IN (-32768, 40000)",
    "single = CAST(0.1 AS FLOAT) OR single = -1e39",
    "single = CAST('NaN' AS FLOAT)",
    "single = CAST('-Infinity' AS DOUBLE)",
    "single IN (0.5, CAST('NaN' AS DOUBLE))",
    "double = 0.50",
    "double = 0",
    "double = -0.0 AND id < 100",
    "double IN (5e-1, CAST('-NaN' AS DOUBLE))",
    "flag = TRUE AND text = ''",
    "text = 'it''s \\\\ \"quoted\" `x` % \U0001d4b3 é \n\t${HOME}'",
    "text = 'it''s \\\\ \"quoted\" `x` % \U0001d4b3 e\u0301 \n\t${HOME}'",
    "text IN ('', 'no')",
    f"bytes = X'{bytes(range(256)).hex()}'",
    "bytes = X'00' OR bytes = X''",
    "day = '0001-01-01' OR day = DATE '9999-12-31'",
    "day IN ('1582-10-04', '1582-10-15')",
    "ts = '2013-03-10T03:30:00-04:00'",
    "ts IN ('0001-01-01', '2012-12-31 00:00:00.000000')",
    "local = '0001-01-01 00:00:00'",
    "money = 99999999.990",
    "money = -99999999.99 OR money = 1e2",
    "huge = 1e-10",
    "huge = -9999999999999999999999999999.9999999999",
    "`verspätung in %.of day` = 1",
    "NOT (id <> 3) AND (text = 'x' OR double = 0.5)",
    "(id = 3 OR id = 77) AND NOT (double IS NULL) AND ts < '2100-01-01'",
    "id <=> 4",
    "CAST(ts AS DATE) = '2012-12-31' AND id = 9",
]
"""Filters with an equality in some spelling: of values that are there, and of others like them."""


def twins(lake: Any) -> tuple[Any, Any]:
    """A table with indexes and one without, each of five segments whose bounds overlap."""
    rows = hostile_rows()
    tables = []
    for name, properties in (("indexed", {"index": ", ".join(INDEXED)}), ("plain", {})):
        table = lake.create_table(name, HOSTILE, time="ts", grain="year", properties={"ragged": True, **properties})
        for first in range(5):
            table.append(rows.take([first, first + 5]))
        tables.append(table)
    indexed, plain = tables
    segments, _ = lake.catalog.live(indexed.spec, lake.head)
    wanted = missing_indexes(lake.session, indexed.spec, segments)
    assert build_indexes(lake.session, indexed.spec, wanted) == len(segments) * len(INDEXED)
    return indexed, plain


def opened(table: Any, where: str) -> int:
    """Segments that a read with a filter opens."""
    return len(table.scan(where=where).plan().segments)
