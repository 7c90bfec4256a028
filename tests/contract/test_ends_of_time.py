"""Rows in the first and the last microsecond that an interval can hold, by every grain, through all that tables do."""

from __future__ import annotations

import pytest

from lakehouse.errors import InvalidInput
from lakehouse.testing.rows import SCHEMA, arrow, values

FIRST, LAST, END = "0001-01-01T00:00:00", "9999-12-31T23:59:59.999998", "9999-12-31T23:59:59.999999"
GRAINS = ("hour", "day", "week", "month", "year")


@pytest.fixture(params=GRAINS)
def ends(lake, request):
    """A table with a row at each end of time and one between, by each grain in turn."""
    table = lake.create_table("ends", SCHEMA, time="time", grain=request.param, cluster_by=["client"])
    table.append(arrow([(FIRST, "a", 1), ("1969-12-31T23:59:59.999999", "a", 2), (LAST, "b", 3)]))
    return table


def test_rows_at_the_ends_of_time_are_found_by_interval_filter_and_period(ends):
    assert values(ends) == [1, 2, 3]
    for period in ("9999", "9999-12", "9999-W52", "9999-12-31", "9999-12-31T23", f"{LAST}/{END}"):
        assert values(ends, interval=period) == [3], period
    for period in ("0001", "0001-01", "0001-W01", "0001-01-01", "0001-01-01T00"):
        assert values(ends, interval=period) == [1], period
    assert values(ends, where=f"time <= '{FIRST}'") == [1]
    assert values(ends, where=f"time >= '{LAST}'") == [3]
    assert ends.scan().to_pandas()["value"].tolist() == [1, 2, 3]
    assert sorted(row[2] for row in ends.scan().to_duckdb().fetchall()) == [1, 2, 3]


def test_rows_at_the_ends_of_time_are_replaced_changed_compacted_and_erased(lake, ends):
    first = ends.version
    ends.replace(arrow([(LAST, "b", 4)]), "9999-12-31")
    ends.replace(arrow([(FIRST, "a", 5)]), "0001-01-01", keys={"client": "a"})
    assert values(ends) == [2, 4, 5]
    ends.update({"value": "value + 10"}, "time < '0002-01-01'")
    ends.delete("time >= '9999-01-01'")
    assert values(ends) == [2, 15]
    for value in range(20, 40):
        ends.append(arrow([(FIRST, "a", value), (LAST, "b", value + 100)]))
    assert ends.compact() is not None
    shown = sorted([2, 15, *range(20, 40), *range(120, 140)])
    assert values(ends) == shown
    assert ends.chunks()[0].start.year == 1
    assert ends.timeline().slices[-1].end.isoformat() == f"{END}+00:00"
    assert ends.chunks().to_arrow().num_rows == ends.segments().to_arrow().num_rows == 3
    changed = ends.changes(first).to_arrow()
    assert changed.num_rows > 0
    lake.export()
    ends.erase("time > '9999-01-01' AND value < 130")
    assert values(ends) == [one for one in shown if not 120 <= one < 130]
    ends.restore(first)
    assert values(ends) == [1, 2]
    assert lake.check(deep=True).findings == []


def test_the_end_of_time_itself_is_refused_by_every_write(lake, ends):
    versions = len(ends.log())
    for attempt in (
        lambda: ends.append(arrow([(FIRST, "a", 1), (END, "a", 1)])),
        lambda: ends.replace(arrow([(END, "a", 1)]), (None, None)),
        lambda: ends.update({"time": f"TIMESTAMP '{END}'"}, "value = 3"),
        lambda: ends.merge(arrow([(END, "c", 9)]), ["client"]),
    ):
        with pytest.raises(InvalidInput, match="the end of time"):
            attempt()
    ragged = lake.create_table("ragged", SCHEMA, time="time", properties={"ragged": True})
    with pytest.raises(InvalidInput, match=r"the end of time.*row=0"):
        ragged.append(arrow([(END, "a", 1)]))
    assert len(ragged.segments()) == 0
    assert len(ends.log()) == versions
    assert values(ends) == [1, 2, 3]


def test_both_engines_read_the_ends_of_time_whatever_the_session_says_of_old_dates(connect, ends, spark):
    before = spark.conf.get("spark.sql.parquet.datetimeRebaseModeInRead")
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY")
    try:
        frame = connect(spark=spark).table("ends").scan().to_spark()
        assert frame.toArrow().sort_by("value").to_pylist() == ends.scan().to_arrow().sort_by("value").to_pylist()
    finally:
        spark.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", before)
