"""Rows of a trade in the schema of TPC-H, some thousand of them, the same each time; and a lake that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

import lakehouse

FIRST_DAY = date(1992, 1, 1)
DAYS = 2500
LANDS, SUPPLIERS, CUSTOMERS, PARTS, ORDERS = 25, 40, 300, 200, 1500
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
SHAPES = tuple(f"{size} {coat} {metal}" for size in ("LARGE", "SMALL") for coat in ("BURNISHED", "PLATED")
               for metal in ("BRASS", "COPPER", "STEEL"))  # fmt: skip
BOXES = ("JUMBO PKG", "LG BOX", "MED BAG", "SM CASE", "WRAP JAR")
WORDS = ("blue", "forest", "green", "special", "requests", "Customer", "Complaints", "ironic", "pending")
_MONEY = pa.decimal128(15, 2)


def money(cents: Iterable[int | None]) -> pa.Array:
    """Cents as decimals of two places."""
    return pa.array([None if one is None else Decimal(int(one)) / 100 for one in cents], _MONEY)


def tables(seed: int = 1) -> dict[str, pa.Table]:
    """All tables. Some comments and discounts are null, as real ones are."""
    chance = np.random.default_rng(seed)

    def of(choices: Sequence[str], count: int) -> pa.Array:
        return pa.array([choices[place] for place in chance.integers(0, len(choices), count)])

    def words(count: int) -> pa.Array:
        places = chance.integers(0, len(WORDS), (count, 3))
        return pa.array([None if one[0] == 0 else " ".join(WORDS[place] for place in one) for one in places])

    def cents(least: int, most: int, count: int) -> pa.Array:
        return money(chance.integers(least, most, count))

    def numbered(what: str, count: int) -> pa.Array:
        return pa.array([f"{what}#{number:06}" for number in range(count)])

    def days(first: Any) -> pa.Array:
        return pa.array([FIRST_DAY + timedelta(days=int(one)) for one in first])

    order_day = chance.integers(0, DAYS, ORDERS)
    lines = chance.integers(1, 8, ORDERS)
    of_order = np.repeat(np.arange(ORDERS), lines)
    count = len(of_order)
    shipped = order_day[of_order] + chance.integers(1, 122, count)
    return {
        "region": pa.table(
            {
                "r_regionkey": pa.array(range(5), pa.int32()),
                "r_name": ["AFRICA", "AMERICA", "ASIA", "EUROPE", "OCEANIA"],
            }
        ),
        "nation": pa.table(
            {
                "n_nationkey": pa.array(range(LANDS), pa.int32()),
                "n_name": [f"LAND {number}" for number in range(LANDS)],
                "n_regionkey": pa.array([number % 5 for number in range(LANDS)], pa.int32()),
            }
        ),
        "supplier": pa.table(
            {
                "s_suppkey": pa.array(range(SUPPLIERS)),
                "s_name": numbered("Supplier", SUPPLIERS),
                "s_nationkey": pa.array(chance.integers(0, LANDS, SUPPLIERS), pa.int32()),
                "s_acctbal": cents(-99_999, 999_999, SUPPLIERS),
                "s_comment": words(SUPPLIERS),
            }
        ),
        "customer": pa.table(
            {
                "c_custkey": pa.array(range(CUSTOMERS)),
                "c_name": numbered("Customer", CUSTOMERS),
                "c_nationkey": pa.array(chance.integers(0, LANDS, CUSTOMERS), pa.int32()),
                "c_phone": [f"{number % 30 + 10}-555-{number:04}" for number in range(CUSTOMERS)],
                "c_acctbal": cents(-99_999, 999_999, CUSTOMERS),
                "c_mktsegment": of(SEGMENTS, CUSTOMERS),
            }
        ),
        "part": pa.table(
            {
                "p_partkey": pa.array(range(PARTS)),
                "p_name": words(PARTS),
                "p_brand": of([f"Brand#{number}" for number in range(11, 26)], PARTS),
                "p_type": of(SHAPES, PARTS),
                "p_size": pa.array(chance.integers(1, 51, PARTS), pa.int32()),
                "p_container": of(BOXES, PARTS),
                "p_retailprice": cents(90_000, 200_000, PARTS),
            }
        ),
        "partsupp": pa.table(
            {
                "ps_partkey": np.repeat(np.arange(PARTS), 4),
                "ps_suppkey": (np.repeat(np.arange(PARTS), 4) * 7 + np.tile(np.arange(4), PARTS) * 11) % SUPPLIERS,
                "ps_availqty": pa.array(chance.integers(1, 10_000, PARTS * 4), pa.int32()),
                "ps_supplycost": cents(100, 100_000, PARTS * 4),
            }
        ),
        "orders": pa.table(
            {
                "o_orderkey": pa.array(range(ORDERS)),
                "o_custkey": chance.integers(0, CUSTOMERS * 2 // 3, ORDERS),
                "o_orderstatus": of(("F", "O", "P"), ORDERS),
                "o_totalprice": cents(100_000, 50_000_000, ORDERS),
                "o_orderdate": days(order_day),
                "o_orderpriority": of(PRIORITIES, ORDERS),
                "o_comment": words(ORDERS),
            }
        ),
        "lineitem": pa.table(
            {
                "l_orderkey": of_order,
                "l_partkey": chance.integers(0, PARTS, count),
                "l_suppkey": chance.integers(0, SUPPLIERS, count),
                "l_linenumber": pa.array(np.arange(count) - np.repeat(np.cumsum(lines) - lines, lines), pa.int32()),
                "l_quantity": money(chance.integers(1, 51, count) * 100),
                "l_extendedprice": cents(90_000, 10_000_000, count),
                "l_discount": money(None if one == 11 else one for one in chance.integers(0, 12, count)),
                "l_tax": cents(0, 9, count),
                "l_returnflag": of(("A", "N", "R"), count),
                "l_linestatus": of(("F", "O"), count),
                "l_shipdate": days(shipped),
                "l_commitdate": days(order_day[of_order] + chance.integers(30, 91, count)),
                "l_receiptdate": days(shipped + chance.integers(1, 31, count)),
                "l_shipmode": of(MODES, count),
            }
        ),
    }


def fill(lake: lakehouse.Lake, made: dict[str, pa.Table]) -> None:
    """The tables in a lake, orders and their lines by year in several appends, and a few rows deleted again."""
    for name, rows in made.items():
        day = {"orders": "o_orderdate", "lineitem": "l_shipdate"}.get(name)
        at = rows[day] if day else pa.array([FIRST_DAY] * rows.num_rows)
        held = rows.append_column("at_", at.cast(pa.timestamp("us")))
        table = lake.create_table(name, held.schema, time="at_", grain="year")
        parts = 3 if day else 1
        for part in range(parts):
            begin, end = (rows.num_rows * place // parts for place in (part, part + 1))
            table.append(held.slice(begin, end - begin))
