"""DuckDB is told how many rows there are, so that it joins in a good order; one state of the catalog is asked."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime
from decimal import Decimal
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.errors import SegmentUnreadable
from tests.unit.sql.conftest import rows_of


def made(lake: lakehouse.Lake, name: str, sizes: list[int], **properties: str) -> lakehouse.Table:
    """A table with a file for each size."""
    table = lake.create_table(
        name, "at TIMESTAMP, id BIGINT", time="at", grain="year", primary_key=["id"], properties=properties
    )
    first = 0
    for size in sizes:
        ids = pa.array(range(first, first + size), pa.int64())
        at = pa.repeat(pa.scalar("2013-01-05").cast(pa.timestamp("us")), size)
        table.append(pa.table({"at": at, "id": ids}))
        first += size
    return table


def estimated(lake: lakehouse.Lake, text: str) -> int:
    """The rows that DuckDB expects of a query."""
    plan = lake.sql(f"EXPLAIN {text}", engine="duckdb").partition("\nduckdb: ")[2]
    found = re.search(r"~([\d,]+) row", plan)
    assert found is not None, plan
    return int(found[1].replace(",", ""))


@pytest.mark.parametrize(
    "sizes", [[1], [700], [400, 500, 600], [3, 5, 2000, 4], [1] * 30 + [3000], [3000, *[1] * 30], [10, 80, 640, 5120]]
)
def test_a_scan_is_expected_to_give_about_the_rows_of_its_files(lake: lakehouse.Lake, sizes: list[int]) -> None:
    made(lake, "sized", sizes)
    joined = "SELECT a.id FROM sized a CROSS JOIN (SELECT id FROM trips WHERE id = 1) b ORDER BY a.id"
    assert sum(sizes) / 3 <= estimated(lake, joined) <= 3 * sum(sizes)
    assert rows_of(lake, "SELECT count(*), sum(id) FROM sized") == [(sum(sizes), sum(range(sum(sizes))))]


def test_a_join_is_expected_to_give_as_many_rows_as_its_keys_have_values(lake: lakehouse.Lake) -> None:
    table = lake.create_table("repeated", "at TIMESTAMP, id BIGINT, day DATE", time="at")
    for size in (300, 400, 500):
        ids = pa.array([number % 10 for number in range(size)], pa.int64())
        rows = {"at": pa.repeat(pa.scalar(0, pa.timestamp("us")), size), "id": ids, "day": ids.cast(pa.int32())}
        table.append(pa.table({**rows, "day": rows["day"].cast(pa.date32())}))
    table.append(pa.table({"at": pa.array([1], pa.timestamp("us")), "id": [None], "day": [None]}, table.schema))
    for key in ("id", "day"):
        joined = f"SELECT a.id FROM repeated a JOIN repeated b ON a.{key} = b.{key}"
        assert 48_000 <= estimated(lake, f"{joined} ORDER BY a.id") <= 432_000
        assert rows_of(lake, f"SELECT count(*) FROM ({joined})") == [(144_000,)]
    assert rows_of(lake, "SELECT count(*) FROM repeated a JOIN trips t ON t.id > 3 WHERE a.id IS NULL") == [(1,)]


def test_files_of_one_value_are_expected_to_pass_a_condition_on_it(lake: lakehouse.Lake) -> None:
    table = lake.create_table("states", "at TIMESTAMP, id BIGINT, state STRING, kind STRING", time="at", grain="year")
    for year, states in ((2010, "FF"), (2011, "FF"), (2012, "FO"), (2013, "OO")):
        times = pa.array([datetime(year, 1, 1, tzinfo=UTC)] * 1000, pa.timestamp("us", "UTC"))
        kinds = pa.array([str(year + number % 7) for number in range(1000)])
        rows = {"at": times, "id": pa.array(range(1000)), "state": pa.array([*states] * 500), "kind": kinds}
        table.append(pa.table(rows))
    joined = (
        "SELECT a.id FROM states a CROSS JOIN (SELECT id FROM trips WHERE id = 1) b WHERE a.{} = '{}' ORDER BY a.id"
    )
    assert 1_300 <= estimated(lake, joined.format("state", "F")) <= 3_000  # they are 2500
    assert estimated(lake, joined.format("kind", "2012")) < 1_300
    assert rows_of(lake, f"SELECT count(*) FROM ({joined.format('state', 'F')})") == [(2500,)]
    assert rows_of(lake, f"SELECT count(*) FROM ({joined.format('state', 'P')})") == [(0,)]
    grouped = (
        "SELECT state, count(*) FROM states a JOIN trips b ON b.id = a.id WHERE state >= 'F' GROUP BY 1 ORDER BY 1"
    )
    assert rows_of(lake, grouped) == [("F", 10), ("O", 6)]


@pytest.mark.parametrize("kind", ["DECIMAL(7, 2)", "DECIMAL(38, 10)"])
def test_a_condition_that_no_price_can_meet_is_not_tried_and_bounds_lose_no_row(
    lake: lakehouse.Lake, kind: str
) -> None:
    digits = int(kind.split(",")[1].rstrip(")"))
    table = lake.create_table("priced", f"at TIMESTAMP, id BIGINT, price {kind}", time="at")
    least, most = Decimal(f"-1E-{digits}"), Decimal("99999.5")
    prices = [
        [least, Decimal(0), None],
        [Decimal("7.25"), most, None],
        [None, None, None],
        [Decimal(3), Decimal(-1), most],
    ]
    for number, part in enumerate(prices):
        ids = [len(prices[0]) * number + place for place in range(len(part))]
        at = datetime(2013, 1, 5, tzinfo=UTC)
        table.append([{"at": at, "id": one, "price": price} for one, price in zip(ids, part, strict=True)])
    flat = dict(enumerate(itertools.chain.from_iterable(prices)))
    joined = "SELECT a.id FROM priced a JOIN trips b ON b.id = 1 WHERE a.price {} {} OR b.id > 1000"
    for price in (Decimal(-2), Decimal(-1), least, Decimal(0), Decimal(3), most, Decimal(99999)):
        for sign, holds in (("<", lt), ("<=", le), ("=", eq), (">=", ge), (">", gt), ("<>", ne)):
            expected = sorted(one for one, of in flat.items() if of is not None and holds(of, price))
            assert rows_of(lake, f"{joined.format(sign, f'{price:f}')} ORDER BY 1") == [(one,) for one in expected]
    plan = lake.sql(f"EXPLAIN {joined.format('>', '99999.6')}", engine="duckdb").partition("\nduckdb: ")[2]
    assert "99999.6" not in plan.partition("\n")[2]


def test_rows_are_expected_of_files_that_store_row_ids_and_of_masked_ones_too(lake: lakehouse.Lake) -> None:
    table = made(lake, "masked", [300, 300, 300])
    table.compact()
    table.append(pa.table({"at": pa.array([1], pa.timestamp("us")), "id": pa.array([5000], pa.int64())}))
    table.delete("id % 3 = 0 AND id < 900")
    joined = "SELECT a.id FROM masked a CROSS JOIN (SELECT id FROM trips WHERE id = 1) b"
    assert 100 <= estimated(lake, joined) <= 1000  # a condition counts as a fifth
    table.delete_keys(pa.table({"id": [1, 5000]}))
    left = [one for one in range(900) if one % 3 and one != 1]
    assert rows_of(lake, "SELECT count(*), sum(id) FROM masked") == [(len(left), sum(left))]
    assert rows_of(lake, f"SELECT count(*), sum(id) FROM ({joined})") == [(len(left), sum(left))]
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == left


def test_hidden_rows_of_many_tables_do_not_end_in_products_of_them(lake: lakehouse.Lake) -> None:
    names = [f"t{number}" for number in range(9)]
    for number, name in enumerate(names):
        table = made(lake, name, [2000 * (number + 1)])
        table.delete("id % 100 = 7")
        table.upsert(pa.table({"at": pa.array([1, 1], pa.timestamp("us")), "id": pa.array([3, 4], pa.int64())}))
    joins = " ".join(f"JOIN {name} ON {name}.id = {before}.id" for before, name in itertools.pairwise(names))
    text = f"SELECT count(*), sum(t8.id) FROM t0 {joins} WHERE t4.id < 1000"
    assert "Cross Product" not in lake.sql(f"EXPLAIN {text}", engine="duckdb")
    left = [one for one in range(1000) if one % 100 != 7]
    assert rows_of(lake, text) == [(len(left), sum(left))]


def test_columns_with_the_names_that_duckdb_gives_to_places_are_the_tables_own(lake: lakehouse.Lake) -> None:
    table = lake.create_table("places", "at TIMESTAMP, file_row_number BIGINT, File_Index STRING", time="at")
    for first in (10, 20):
        table.append(
            pa.table(
                {
                    "at": pa.array([0, 1, 2], pa.timestamp("us")),
                    "file_row_number": [first, first + 1, first + 2],
                    "File_Index": ["a", "b", "c"],
                }
            )
        )
    table.delete("file_row_number IN (11, 20)")
    assert rows_of(lake, "SELECT file_row_number, file_index FROM places ORDER BY 1") == [
        (10, "a"), (12, "c"), (21, "b"), (22, "c"),
    ]  # fmt: skip


@pytest.mark.parametrize("place", [-2, -6])
def test_a_file_whose_footer_is_damaged_is_named(lake: lakehouse.Lake, place: int) -> None:
    damaged = lake.session.warehouse.root / lake.table("Clients").segments()[0].path
    held = bytearray(damaged.read_bytes())
    held[place] ^= 0xFF
    damaged.write_bytes(held)
    text = "SELECT sum(score) FROM trips JOIN clients ON client = name"
    with pytest.raises(SegmentUnreadable, match=str(damaged)):
        lake.query(text)
    for one in lake.table("Clients").segments():
        (lake.session.warehouse.root / one.path).write_bytes(held[: one.bytes].rjust(one.bytes, b"x"))
    with pytest.raises(SegmentUnreadable, match=str(damaged)):
        lake.sql(text, engine="duckdb")


def test_relations_outlive_their_lake(tmp_path: Path) -> None:
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse") as lake:
        made(lake, "kept", [5])
        rows = lake.sql("SELECT sum(id) FROM kept", engine="duckdb")
    assert rows.fetchall() == [(10,)]


def test_a_statement_can_reach_no_file_beside_the_warehouse(lake: lakehouse.Lake, tmp_path: Path) -> None:
    rows = lake.sql("SELECT 1 AS one", engine="duckdb")
    outside = tmp_path / "outside.csv"
    for _ in range(2):
        with pytest.raises(Exception, match="disabled by configuration"):
            rows.write_csv(str(outside))
    assert not outside.exists()
