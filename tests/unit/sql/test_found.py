"""DELETE and UPDATE with what only queries take: their rows are found at one version, and again after conflicts."""

from __future__ import annotations

from contextlib import AbstractContextManager
from decimal import Decimal
from typing import Any

import duckdb
import pytest

import lakehouse
from lakehouse.errors import DuplicateKey, InvalidInput, TableNotFound, WriteConflict
from lakehouse.testing.faults import armed
from tests.unit.sql.conftest import rows_of


def trips(lake: lakehouse.Lake) -> list[tuple[Any, ...]]:
    return rows_of(lake, "SELECT id, client, price FROM trips ORDER BY id, price")


TRIPS = [(1, "UA", 1.5), (2, "it's", 2.0), (3, None, None), (4, "UA", -4.0)]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("DELETE FROM trips WHERE client IN (SELECT name FROM clients)", [2, 3]),
        ("DELETE FROM trips WHERE client NOT IN (SELECT name FROM clients)", [1, 3, 4]),
        ("DELETE FROM trips WHERE client NOT IN (SELECT CAST(NULL AS STRING) FROM clients)", [1, 2, 3, 4]),
        (
            "DELETE FROM trips AS t WHERE EXISTS (SELECT 1 FROM clients c WHERE c.name = t.client AND t.id > 1)",
            [1, 2, 3],
        ),
        ("DELETE FROM trips WHERE NOT EXISTS (SELECT * FROM clients WHERE name = client)", [1, 4]),
        ("DELETE FROM default.trips WHERE price < (SELECT avg(price) FROM trips)", [1, 2, 3]),
        (
            "DELETE FROM trips WHERE id = (SELECT max(id) FROM trips VERSION AS OF 3) OR upper(client) = 'IT''S'",
            [1, 3],
        ),
        ("DELETE FROM trips WHERE id IN (WITH c AS (SELECT id FROM trips) SELECT id + 1 FROM c)", [1]),
        ("DELETE FROM trips WHERE (SELECT count(*) FROM clients WHERE score > 100) > 0", [1, 2, 3, 4]),
        ("DELETE FROM trips WHERE at >= '2013-01-07' AND id IN (SELECT id FROM trips)", [1, 2]),
        ("DELETE FROM trips USING clients c WHERE c.name = client AND id < 3", [2, 3, 4]),
        ("DELETE FROM trips AS t USING clients, range(4) AS r(n) WHERE r.n = t.id", [4]),
        ("DELETE FROM trips USING clients JOIN range(4) r ON r.id = score - 9 WHERE trips.id = r.id", [2, 3, 4]),
        ("DELETE FROM trips USING trips o WHERE o.client = trips.client AND o.id > trips.id", [2, 3, 4]),
        ("DELETE FROM trips t WHERE t.id IN (SELECT u.id FROM trips u JOIN clients ON u.client = name)", [2, 3]),
    ],
)
def test_delete_looks_at_other_rows(lake: lakehouse.Lake, text: str, left: list[int]) -> None:
    commit = lake.sql(text)
    assert [row[0] for row in trips(lake)] == left
    assert commit.rows_deleted == 4 - len(left)
    assert rows_of(lake, "SELECT count(*) FROM trips", as_of=3) == [(4,)]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("DELETE FROM bills WHERE upper(name) RLIKE '^[AÄ]'", [2, 4]),
        ("DELETE FROM bills b WHERE b.total * 2 >= 3", [2, 3]),
        ("DELETE FROM bills WHERE at < TIMESTAMP '2013-01-05' - INTERVAL '2' DAYS", [1, 3, 4]),
        ("DELETE FROM bills WHERE name LIKE concat('a', '%') OR abs(total) = 0.05", [3, 4]),
        ("DELETE FROM bills WHERE place.stop = 'x' OR bills.place.stop IS NULL AND id < 4", [4]),
        ("DELETE FROM bills WHERE CAST(id AS STRING) IN ('2', '3') AND at < current_timestamp()", [1, 4]),
    ],
)
def test_delete_takes_what_queries_take(lake: lakehouse.Lake, text: str, left: list[int]) -> None:
    bills(lake)
    assert lake.sql(text).rows_deleted == 4 - len(left)
    assert rows_of(lake, "SELECT id FROM bills ORDER BY id") == [(one,) for one in left]


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("UPDATE bills SET total = total * 3, name = upper(name) WHERE id < 3",
         {1: ("A", Decimal("4.50"), 4), 2: (None, Decimal("-0.15"), 1)}),
        ("UPDATE bills t SET at = t.at + INTERVAL '1' DAY, name = concat(t.name, '!') WHERE name IS NOT NULL",
         {1: ("a!", Decimal("1.50"), 5), 3: ("Ä!", None, 7), 4: ("b!", Decimal("7.00"), 8)}),
        ("UPDATE bills SET total = round(total / 3, 2) WHERE false", {}),
        ("UPDATE bills SET total = CAST(total / 4 AS DECIMAL(8, 2)), name = NULL WHERE id = 4",
         {4: (None, Decimal("1.75"), 7)}),
        ("UPDATE bills SET name = place.stop WHERE place.stop IS NOT NULL", {2: ("x", Decimal("-0.05"), 1)}),
    ],
)  # fmt: skip
def test_update_takes_what_queries_take(lake: lakehouse.Lake, text: str, changed: dict[int, Any]) -> None:
    bills(lake)
    before = {row[0]: row[1:] for row in rows_of(lake, BILLS)}
    commit = lake.sql(text)
    assert (commit.rows_added, commit.rows_deleted) == (len(changed), len(changed))
    assert {row[0]: row[1:] for row in rows_of(lake, BILLS)} == {**before, **changed}


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE bills SET total = total * 10000000",
        "UPDATE bills SET total = total * 1.001",
        "UPDATE bills SET name = max(upper(name))",
        "UPDATE bills SET name = upper(nothing)",
        "UPDATE bills SET name = reflect('a', 'b')",
        "DELETE FROM bills WHERE upper(name)",
        "DELETE FROM bills WHERE CAST(name AS INT) = 1",
        "DELETE FROM bills WHERE id > 1 AND rand() < 0.5",
        "BEGIN; DELETE FROM bills WHERE id = 1; UPDATE clients SET name = repeat(name, 2000); COMMIT",
    ],
)
def test_what_queries_refuse_changes_nothing(lake: lakehouse.Lake, text: str) -> None:
    bills(lake)
    before = rows_of(lake, BILLS)
    with pytest.raises((InvalidInput, duckdb.Error)):
        lake.sql(text)
    assert rows_of(lake, BILLS) == before


BILLS = "SELECT id, name, total, day(at) FROM bills ORDER BY id"


def bills(lake: lakehouse.Lake) -> None:
    """A table of what filters do not calculate with, one row of it deleted."""
    lake.sql(
        "CREATE TABLE bills (id BIGINT, name STRING, total DECIMAL(8, 2), at TIMESTAMP, place STRUCT<stop: STRING>) "
        "PARTITIONED BY (days(at))"
    )
    lake.sql(
        "INSERT INTO bills SELECT 1, 'a', 1.50, TIMESTAMP '2013-01-04', NULL UNION ALL "
        "SELECT 2, NULL, -0.05, TIMESTAMP '2013-01-01', named_struct('stop', 'x') UNION ALL "
        "SELECT 3, 'Ä', NULL, TIMESTAMP '2013-01-06', named_struct('stop', NULL) UNION ALL "
        "SELECT 4, 'b', 7, TIMESTAMP '2013-01-07', NULL UNION ALL SELECT 5, 'a', 1.5, TIMESTAMP '2013-01-08', NULL"
    )
    lake.sql("DELETE FROM bills WHERE id = 5")


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("UPDATE trips SET id = (SELECT max(score) FROM clients) WHERE id = 1", {1: (20, "UA", 1.5)}),
        ("UPDATE trips t SET price = (SELECT score FROM clients WHERE name = t.client)",
         {1: (1, "UA", 10.0), 2: (2, "it's", None), 4: (4, "UA", 10.0)}),
        ("UPDATE trips SET client = 'x', price = price * 2 WHERE client IN (SELECT name FROM clients WHERE score = 10)",
         {1: (1, "x", 3.0), 4: (4, "x", -8.0)}),
        ("UPDATE trips SET at = '2013-01-06', day = NULL, price = -3 WHERE id > (SELECT 3)", {4: (4, "UA", -3.0)}),
        ("UPDATE trips SET client = NULL, price = 1.5 WHERE id > (SELECT 3)", {4: (4, None, 1.5)}),
        ("UPDATE trips SET id = (SELECT count(*) FROM trips) WHERE EXISTS (SELECT 1 FROM clients WHERE 1 = 0)", {}),
    ],
)  # fmt: skip
def test_update_looks_at_other_rows(lake: lakehouse.Lake, text: str, changed: dict[int, Any]) -> None:
    lake.sql(text)
    assert trips(lake) == sorted(
        (changed.get(row[0], row) for row in TRIPS), key=lambda row: (row[0], row[2] is None, row[2] or 0)
    )


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("UPDATE trips SET price = score FROM clients WHERE name = client",
         {1: (1, "UA", 10.0), 4: (4, "UA", 10.0)}),
        ("UPDATE trips t SET t.price = c.score + id, client = NULL FROM clients c WHERE c.name = t.client AND id > 1",
         {4: (4, None, 14.0)}),
        ("UPDATE trips t SET price = n FROM (SELECT client AS c, count(*) AS n FROM trips GROUP BY c) WHERE c = client",
         {1: (1, "UA", 2.0), 2: (2, "it's", 1.0), 4: (4, "UA", 2.0)}),
        ("UPDATE trips SET price = o.price FROM trips VERSION AS OF 3 o JOIN range(5) r ON o.id = r.id WHERE o.id = 4",
         {one: (one, client, -4.0) for one, client, _ in TRIPS}),
        # a row that several rows give the same value is no conflict
        ("UPDATE trips SET price = 7 FROM clients, range(3) WHERE client <> name",
         {1: (1, "UA", 7.0), 2: (2, "it's", 7.0), 4: (4, "UA", 7.0)}),
        ("UPDATE trips SET price = 7 FROM clients WHERE score < 0", {}),
    ],
)  # fmt: skip
def test_update_takes_values_of_rows_beside_its_own(lake: lakehouse.Lake, text: str, changed: dict[int, Any]) -> None:
    lake.sql(text)
    assert trips(lake) == sorted(
        (changed.get(row[0], row) for row in TRIPS), key=lambda row: (row[0], row[2] is None, row[2] or 0)
    )


def test_update_by_two_values_for_one_row_is_refused_by_name(still_lake: lakehouse.Lake) -> None:
    with pytest.raises(DuplicateKey, match="several rows of the source would change one row"):
        still_lake.sql("UPDATE trips SET price = score FROM clients WHERE id = 1")


def test_equal_rows_are_told_apart_and_keep_their_ids(lake: lakehouse.Lake) -> None:
    lake.sql("INSERT INTO trips SELECT * FROM trips", engine="duckdb")
    lake.sql("UPDATE trips SET price = (SELECT 9) WHERE id IN (SELECT 1)")
    lake.table("trips").compact()
    lake.sql("UPDATE trips SET price = price + (SELECT 1) WHERE price = 9")
    assert [row[2] for row in trips(lake) if row[0] == 1] == [10.0, 10.0]
    assert lake.sql("DELETE FROM trips WHERE id = (SELECT 1)").rows_deleted == 2
    assert lake.table("trips").count() == 6


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM trips WHERE id = (SELECT id FROM trips)",
        "DELETE FROM trips WHERE id IN (SELECT id, at FROM trips)",
        "DELETE FROM trips WHERE id IN (SELECT nothing FROM clients)",
        "DELETE FROM trips WHERE _row_id IN (SELECT 1)",
        "DELETE FROM trips WHERE id IN (SELECT `_ROW_ID` FROM trips)",
        "DELETE FROM trips WHERE id IN (SELECT id FROM range(10000000))",
        "DELETE FROM trips WHERE id IN (SELECT reflect('a', 'b'))",
        "DELETE FROM trips WHERE reflect('a', 'b') = (SELECT 1)",
        "DELETE FROM trips WHERE id IN (SELECT 1) LIMIT 1",
        "DELETE FROM trips WHERE id = (DELETE FROM clients)",
        "DELETE FROM trips WHERE id = ? AND id IN (SELECT 1)",
        "DELETE FROM trips WHERE id IN (SELECT 1 FROM nowhere)",
        "DELETE FROM trips t WHERE trips.id IN (SELECT 1)",
        "UPDATE trips SET id = (SELECT 'x')",
        "UPDATE trips SET at = (SELECT CAST(NULL AS TIMESTAMP))",
        "UPDATE trips SET id = (SELECT id, at FROM trips LIMIT 1)",
        "UPDATE trips SET id = (SELECT 1), ID = 2",
        "UPDATE trips SET _row_id = (SELECT 1)",
        "UPDATE trips SET id = (SELECT id FROM trips)",
        "UPDATE trips SET id = max(id) WHERE id IN (SELECT 1)",
        "UPDATE trips SET id = row_number() OVER (ORDER BY id) WHERE id IN (SELECT 1)",
        "UPDATE trips SET price = score FROM clients",
        "UPDATE trips SET price = since FROM clients WHERE name = client",
        "UPDATE trips SET price = max(score) FROM clients",
        "UPDATE trips SET score = 1 FROM clients WHERE name = client",
        "UPDATE trips SET price = t.price FROM trips t WHERE t.id <> trips.id",
        "UPDATE trips SET price = 1 FROM trips",
        "UPDATE trips SET price = 1 FROM clients c RIGHT JOIN clients d ON c.name = d.name WHERE c.name = client",
        "UPDATE trips SET price = 1 FROM nowhere",
        "DELETE FROM trips USING clients WHERE nothing = name",
        "DELETE FROM trips USING clients, range(10000000) WHERE client = name",
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(still_lake: lakehouse.Lake, text: str) -> None:
    head = still_lake.head
    with pytest.raises((InvalidInput, TableNotFound)):
        still_lake.sql(text)
    assert (still_lake.head, still_lake.operations()) == (head, [])


def _between(lake: lakehouse.Lake, texts: list[str]) -> AbstractContextManager[None]:
    """Run statements one by one, each between another's look at rows and its commit."""
    running: list[str] = []

    def other() -> None:
        if texts and not running:
            running.append(texts.pop())
            lake.sql(running[0])
            running.clear()

    return armed({"commit.before": other})


@pytest.mark.parametrize(
    ("text", "between", "left"),
    [
        # a row that is to go is changed meanwhile: it is found again, and is none that goes
        ("DELETE FROM trips WHERE price > (SELECT 1.6)", "UPDATE trips SET price = 0 WHERE id = 2", [1, 2, 3, 4]),
        ("DELETE FROM trips WHERE price > (SELECT 1.6)", "DELETE FROM trips WHERE id = 2", [1, 3, 4]),
        ("DELETE FROM trips WHERE price > (SELECT 1.6)", "UPDATE trips SET price = (SELECT 5) WHERE id = 2", [1, 3, 4]),
        # rows that are none of those that go, and other tables, are as they were at its base
        ("DELETE FROM trips WHERE price > (SELECT 1.6)", "UPDATE trips SET price = 7 WHERE id = 1", [1, 3, 4]),
        ("DELETE FROM trips WHERE client IN (SELECT name FROM clients)", "DELETE FROM clients", [2, 3]),
    ],
)
def test_rows_that_others_change_are_found_again(
    lake: lakehouse.Lake, text: str, between: str, left: list[int]
) -> None:
    with _between(lake, [between]):
        lake.sql(text)
    assert [row[0] for row in trips(lake)] == left


def test_who_conflicts_for_too_long_is_told(lake: lakehouse.Lake) -> None:
    lake.session.wait_seconds = 0.0
    with _between(lake, ["UPDATE trips SET price = price + 1 WHERE id = 1"] * 10), pytest.raises(WriteConflict):
        lake.sql("UPDATE trips SET price = (SELECT 0) WHERE id = 1")
    assert lake.operations() == []
