"""INSERT, DELETE, UPDATE and MERGE: what they ask of a table."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.errors import InvalidInput, TableNotFound
from lakehouse.sql import run_statement
from tests.unit.sql.conftest import rows_of


def test_values_take_the_types_of_their_columns(still_lake: lakehouse.Lake) -> None:
    first, second, third, fourth = rows_of(still_lake, "SELECT * FROM trips ORDER BY id")
    assert first == (datetime(2013, 1, 5, 7, tzinfo=UTC), 1, "UA", 1.5, 7, date(2013, 1, 5))
    assert second == (datetime(2013, 1, 5, 23, tzinfo=UTC), 2, "it's", 2.0, None, None)
    assert third[2:4] == (None, None)
    assert fourth[3] == -4.0


def test_columns_that_are_not_named_become_null(lake: lakehouse.Lake) -> None:
    commit = lake.sql("INSERT INTO TRIPS (`Seats Free`, at, id) VALUES (1 + 1, TIMESTAMP '2013-03-01', -5)")
    assert (commit.operation, commit.rows_added) == ("append", 1)
    assert rows_of(lake, "SELECT `seats free`, client FROM trips WHERE id = -5") == [(2, None)]


def test_a_query_is_inserted_by_place_or_by_name(lake: lakehouse.Lake) -> None:
    lake.sql("INSERT INTO clients SELECT at, client, 1 FROM trips WHERE id = 1", engine="duckdb")
    lake.sql("INSERT INTO clients BY NAME SELECT 2 AS score, at AS since FROM trips WHERE id = 2", engine="duckdb")
    lake.sql(
        "INSERT INTO clients (score, since) WITH c AS (SELECT at FROM trips) SELECT 3, at FROM c LIMIT 1",
        engine="duckdb",
    )
    assert rows_of(lake, "SELECT name, score FROM clients WHERE score < 5 ORDER BY score") == [
        ("UA", 1),
        (None, 2),
        (None, 3),
    ]


def test_a_table_is_inserted_into_itself_as_it_was(lake: lakehouse.Lake) -> None:
    assert lake.sql("INSERT INTO trips SELECT * FROM trips", engine="duckdb").rows_added == 4
    assert lake.sql("INSERT INTO trips SELECT * FROM trips", as_of=3, engine="duckdb").rows_added == 4
    assert rows_of(lake, "SELECT count(*) FROM trips") == [(12,)]


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO trips VALUES (1)",
        "INSERT INTO trips (at, id) VALUES ('2013-01-01')",
        "INSERT INTO trips (at, id) VALUES ('2013-01-01', 1), ('2013-01-01')",
        "INSERT INTO trips (at, nothing) VALUES ('2013-01-01', 1)",
        "INSERT INTO trips (at, at) VALUES ('2013-01-01', '2013-01-01')",
        "INSERT INTO trips (at, id) VALUES ('2013-01-01', 1.5)",
        "INSERT INTO trips (at, id) VALUES ('2013-01-01', 'x')",
        "INSERT INTO trips (at, id) VALUES ('noon', 1)",
        "INSERT INTO trips (at, id) VALUES (NULL, 1)",
        "INSERT INTO trips (at, id) VALUES ('2013-01-01', DEFAULT)",
        "INSERT INTO trips (at, id) SELECT at FROM trips",
        "INSERT INTO trips VERSION AS OF 1 VALUES (1)",
    ],
)
def test_rows_that_do_not_fit_are_refused_and_nothing_is_committed(still_lake: lakehouse.Lake, text: str) -> None:
    head = still_lake.head
    with pytest.raises(InvalidInput):
        still_lake.sql(text, engine="duckdb")
    assert still_lake.head == head


@dataclass
class Recorded:
    """A table that keeps what it is asked to change."""

    table: Any
    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.table, name)

    def delete(self, where: str) -> str:
        self.calls.append(("delete", where))
        return "commit"

    def update(self, changes: dict[str, str], where: str) -> str:
        self.calls.append(("update", changes, where))
        return "commit"

    def merge(self, source: pa.Table, on: str, **clauses: Any) -> str:
        self.calls.append(("merge", source.column_names, on, clauses))
        return "commit"


@dataclass
class RecordedLake:
    """A lake whose tables are read as they are, and keep what they are asked to change."""

    lake: lakehouse.Lake
    made: list[Recorded] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lake, name)

    def table(self, name: str) -> Recorded:
        self.made.append(Recorded(self.lake.table(name)))
        return self.made[-1]


def asked(lake: lakehouse.Lake, text: str) -> tuple[Any, ...]:
    recorded = RecordedLake(lake)
    assert run_statement(recorded, text, engine="duckdb") == "commit"  # type: ignore[arg-type]
    (call,) = [call for table in recorded.made for call in table.calls]
    return call


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DELETE FROM trips WHERE id = 1", ("delete", "`id` = 1")),
        ("DELETE FROM Trips AS t WHERE T.ID > 1 AND client IS NULL", ("delete", "`id` > 1 AND `client` IS NULL")),
        ("DELETE FROM trips", ("delete", "TRUE")),
        (
            "UPDATE trips SET price = price * 2, client = 'it''s' WHERE trips.id = 1",
            ("update", {"price": "`price` * 2", "client": "'it\\'s'"}, "`id` = 1"),
        ),
        ("UPDATE trips t SET t.`SEATS free` = NULL", ("update", {"seats free": "NULL"}, "TRUE")),
    ],
)
def test_delete_and_update_ask_the_table(still_lake: lakehouse.Lake, text: str, expected: tuple[Any, ...]) -> None:
    assert asked(still_lake, text) == expected


NONE = {"when_matched_update": None, "when_matched_delete": None, "when_not_matched_insert": False}
ON = "`target`.`client` = `source`.`name`"


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("WHEN MATCHED THEN UPDATE SET *", {"when_matched_update": True}),
        ("WHEN MATCHED THEN DELETE", {"when_matched_delete": True}),
        ("WHEN NOT MATCHED THEN INSERT *", {"when_not_matched_insert": True}),
        (
            "WHEN NOT MATCHED THEN INSERT (at, ID) VALUES (c.since, score + 1)",
            {"when_not_matched_insert": {"at": "`source`.`since`", "id": "`source`.`score` + 1"}},
        ),
        (
            "WHEN MATCHED THEN UPDATE SET t.id = c.score, price = price + score",
            {"when_matched_update": {"id": "`source`.`score`", "price": "`target`.`price` + `source`.`score`"}},
        ),
        (
            "WHEN MATCHED AND score > 5 THEN DELETE WHEN MATCHED THEN UPDATE SET id = score",
            {"when_matched_delete": "`source`.`score` > 5", "when_matched_update": {"id": "`source`.`score`"}},
        ),
        (
            "WHEN MATCHED AND score > 5 THEN UPDATE SET id = score WHEN MATCHED AND score > 3 THEN DELETE",
            {
                "when_matched_update": {
                    "id": "CASE WHEN `source`.`score` > 5 THEN `source`.`score` ELSE `target`.`id` END"
                },
                "when_matched_delete": "(`source`.`score` > 3) AND NOT coalesce((`source`.`score` > 5), FALSE)",
            },
        ),
    ],
)
def test_merge_asks_the_table(still_lake: lakehouse.Lake, clauses: str, expected: dict[str, Any]) -> None:
    call = asked(still_lake, f"MERGE INTO trips t USING clients c ON t.client = c.name {clauses}")
    assert call == ("merge", ["since", "name", "score"], ON, {**NONE, **expected})


def test_merge_takes_a_query_and_a_version_as_its_source(still_lake: lakehouse.Lake) -> None:
    merge = "MERGE INTO trips USING {} ON client = name WHEN NOT MATCHED THEN INSERT *"
    call = asked(still_lake, merge.format("(SELECT name FROM clients WHERE score > 10) AS s"))
    assert call == ("merge", ["name"], ON, {**NONE, "when_not_matched_insert": True})
    call = asked(still_lake, merge.format(f"clients VERSION AS OF {still_lake.head} AS s"))
    assert call[1] == ["since", "name", "score"]
    assert asked(still_lake, "WITH c AS (SELECT name FROM clients) " + merge.format("c"))[1] == ["name"]


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM trips WHERE id IN (SELECT score FROM clients)",
        "DELETE FROM trips WHERE reflect('a', 'b') = 1 AND clients.id = 1",
        "DELETE FROM trips VERSION AS OF 1 WHERE id = 1",
        "DELETE FROM trips USING clients WHERE id = 1",
        "DELETE FROM trips WHERE other.id = 1",
        "UPDATE trips SET nothing = 1",
        "UPDATE trips SET id = 1, ID = 2",
        "UPDATE trips SET id = (SELECT max(score) FROM clients)",
        "UPDATE trips SET id = 1 FROM clients",
        "UPDATE trips SET id = other.id",
        "MERGE INTO trips USING clients ON client = name WHEN NOT MATCHED BY SOURCE THEN DELETE",
        "MERGE INTO trips USING clients ON client = name WHEN NOT MATCHED AND score > 1 THEN INSERT *",
        "MERGE INTO trips USING clients ON client = name WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET *",
        "MERGE INTO trips USING clients ON client = name WHEN MATCHED THEN UPDATE SET * WHEN MATCHED THEN DELETE",
        "MERGE INTO trips USING clients ON client = name WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE",
        "MERGE INTO trips USING clients ON client = name WHEN NOT MATCHED THEN INSERT (id) VALUES (1, 2)",
        "MERGE INTO trips USING trips ON id = id WHEN MATCHED THEN DELETE",
        "MERGE INTO trips USING trips AS s ON id = s.id WHEN MATCHED THEN DELETE",
        "MERGE INTO trips USING range(10) AS s ON true WHEN MATCHED THEN DELETE",
        "MERGE INTO trips USING (SELECT reflect('a', 'b') AS x) AS s ON true WHEN MATCHED THEN DELETE",
    ],
)
def test_changes_that_cannot_be_are_refused(still_lake: lakehouse.Lake, text: str) -> None:
    recorded = RecordedLake(still_lake)
    with pytest.raises(InvalidInput):
        run_statement(recorded, text, engine="duckdb")  # type: ignore[arg-type]
    assert [call for table in recorded.made for call in table.calls] == []


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM nowhere",
        "UPDATE a.b SET c = 1",
        "INSERT INTO nowhere VALUES (1)",
        "MERGE INTO trips USING x ON true WHEN MATCHED THEN DELETE",
    ],
)
def test_only_tables_of_the_lake_are_changed(still_lake: lakehouse.Lake, text: str) -> None:
    with pytest.raises(TableNotFound):
        still_lake.sql(text, engine="duckdb")


def test_what_changes_rows_is_not_run_as_of_a_version(still_lake: lakehouse.Lake) -> None:
    with pytest.raises(InvalidInput, match="as_of"):
        still_lake.sql("DELETE FROM trips", as_of=1)
