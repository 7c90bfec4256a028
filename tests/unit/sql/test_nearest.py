"""A name that means nothing is refused with the nearest that there is, as Python's calls do."""

from __future__ import annotations

import pytest

import lakehouse
from lakehouse.errors import InvalidInput, TableNotFound

TABLES = {
    "SELECT * FROM trps": "table=trps nearest=trips known=Clients, trips",
    "SELECT * FROM client": "table=client nearest=Clients",
    "SELECT * FROM cheep": "table=cheep nearest=cheap",  # a view
    "WITH dear AS (SELECT 1 AS x) SELECT * FROM deer": "table=deer nearest=dear",
    "SELECT * FROM trips.segmnts": "table=trips.segmnts nearest=segments",
    "SELECT * FROM information_schema.table": "table=information_schema.table nearest=tables",
    "SELECT * FROM trps.segments": "table=trps nearest=trips",
    "INSERT INTO trps VALUES (1)": "table=trps nearest=trips",
    "DELETE FROM trps WHERE id = 1": "table=trps nearest=trips",
    "UPDATE trps SET id = 1": "table=trps nearest=trips",
    "MERGE INTO trps USING trips ON trps.id = trips.id WHEN MATCHED THEN DELETE": "table=trps nearest=trips",
    "ALTER TABLE trps ADD COLUMN x INT": "table=trps nearest=trips",
    "DROP TABLE trps": "table=trps nearest=trips",
    "DESCRIBE trps": "table=trps nearest=trips",
    "SHOW COLUMNS IN trps": "table=trps nearest=trips",
    "SELECT * FROM zzz": r"\(table=zzz known=Clients, trips\)",
}
COLUMNS = {
    "SELECT price": r"name the table that has it, with FROM \(column=price clause=SELECT\)",
    "SELECT prize FROM trips": "column=prize nearest=price clause=SELECT columns=at,id,client,price,",
    "SELECT t.prize FROM trips t": "column=t.prize nearest=t.price clause=SELECT columns=t.at,t.id,",
    "SELECT x.price FROM trips t": "column=x.price nearest=t.price",
    "SELECT 1 FROM trips WHERE cliant = 'UA'": "column=cliant nearest=client clause=WHERE",
    "SELECT count(*) FROM trips GROUP BY cliant": "column=cliant nearest=client clause=GROUP BY",
    "SELECT id FROM trips ORDER BY prize": "column=prize nearest=price clause=ORDER BY",
    "SELECT * EXCEPT (prize) FROM trips": "column=prize nearest=price",
    "SELECT 1 FROM trips JOIN clients USING (nme)": r"\(column=nme columns=at,id",
    "SELECT uper(client) FROM trips": r"found=uper\(\) nearest=upper",
    "INSERT INTO trips (at, idd) VALUES (now(), 1)": "column=idd nearest=id",
    "UPDATE trips SET prize = 1": "column=prize nearest=price",
    "UPDATE trips SET price = prize": "column=prize nearest=price",
    "DELETE FROM trips WHERE cliant = 'UA'": "column=cliant nearest=client",
    "MERGE INTO trips t USING clients c ON t.cliant = c.name WHEN MATCHED THEN DELETE": "nearest=t?.?client",
    "MERGE INTO trips t USING clients c ON t.client = c.name WHEN MATCHED THEN UPDATE SET prize = 1": "nearest=price",
    "ALTER TABLE trips DROP COLUMN prize": "column=prize nearest=price",
    "ALTER TABLE trips ADD COLUMN x INT AFTER prize": "column=prize nearest=price",
    "CREATE TABLE x (at TIMESTAMP, id INT) CLUSTERED BY (idd) INTO 4 BUCKETS": "nearest=id",
}


@pytest.fixture
def views(lake: lakehouse.Lake) -> lakehouse.Lake:
    """The lake, with a view."""
    lake.sql("CREATE VIEW cheap AS SELECT id FROM trips WHERE price < 2")
    return lake


@pytest.mark.parametrize(("text", "said"), TABLES.items(), ids=TABLES)
def test_an_unknown_table(views: lakehouse.Lake, text: str, said: str) -> None:
    with pytest.raises(TableNotFound, match=said):
        views.sql(text, engine="duckdb")


@pytest.mark.parametrize(("text", "said"), COLUMNS.items(), ids=COLUMNS)
def test_an_unknown_column(lake: lakehouse.Lake, text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        lake.sql(text, engine="duckdb")


@pytest.mark.parametrize("text", ["DROP VIEW cheep", "ALTER VIEW cheep AS SELECT 1 AS x"])
def test_an_unknown_view(views: lakehouse.Lake, text: str) -> None:
    with pytest.raises(TableNotFound, match=r"(view|table)=cheep nearest=cheap"):
        views.sql(text)


def test_a_table_of_the_lakes_own_is_not_offered(lake: lakehouse.Lake) -> None:
    folder = lake.table("trips").spec.folder
    lake.create_table(f"changes_of_{folder}", "at TIMESTAMP", time="at")
    with pytest.raises(TableNotFound) as found:
        lake.sql(f"SELECT * FROM change_of_{folder}")
    assert "nearest" not in found.value.facts
