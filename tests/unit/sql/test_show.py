"""SHOW, DESCRIBE and USE: what tools ask before they ask for rows."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.errors import InvalidInput, TableNotFound, VersionNotFound
from lakehouse.sql.show import is_like
from tests.unit.sql.conftest import rows_of


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SHOW TABLES", ["Clients", "trips"]),
        ("show tables in default", ["Clients", "trips"]),
        ("SHOW TABLES FROM `default` LIKE 'TR*'", ["trips"]),
        ("SHOW TABLES 'c*s|nothing'", ["Clients"]),
        ("SHOW TABLES LIKE ''", []),
        ("SHOW SCHEMAS", ["default"]),
        ("SHOW DATABASES LIKE 'd*t';", ["default"]),
        ("SHOW NAMESPACES 'other'", []),
        ("SHOW VIEWS", []),
        ("SHOW VIEWS IN default LIKE '*'", []),
        ("SHOW COLUMNS IN trips", ["at", "id", "client", "price", "seats free", "day"]),
        ("SHOW COLUMNS FROM clients IN default -- all", ["since", "name", "score"]),
        ("SHOW COLUMNS IN Default.`TRIPS`", ["at", "id", "client", "price", "seats free", "day"]),
        ("SHOW TBLPROPERTIES trips", []),
    ],
)
def test_show_lists_what_there_is(still_lake: lakehouse.Lake, text: str, found: list[str]) -> None:
    assert [row[0] for row in rows_of(still_lake, text)] == found
    assert still_lake.query(text).rows.column(0).to_pylist() == found


@pytest.mark.parametrize(
    "text",
    [
        "SHOW", "SHOW TABLES IN other", "SHOW TABLES IN", "SHOW TABLES LIKE", "SHOW TABLES LIKE trips",
        "SHOW TABLES 'a' 'b'",
        "SHOW TABLES EXTENDED LIKE 'x'", "SHOW TABLE EXTENDED LIKE 'x'", "SHOW TABLES ?", "SHOW SCHEMAS IN default",
        "SHOW COLUMNS trips", "SHOW COLUMNS IN trips IN other", "SHOW COLUMNS IN other.trips", "SHOW COLUMNS IN a.b.c",
        "SHOW COLUMNS IN 'trips'", "SHOW CREATE TABLE", "SHOW CREATE TABLE trips AS SERDE", "SHOW CREATE VIEW trips",
        "SHOW TBLPROPERTIES", "SHOW TBLPROPERTIES trips (key)", "SHOW TBLPROPERTIES trips ('a'",
        "SHOW TBLPROPERTIES trips ('a', 'b')",
        "SHOW PARTITIONS trips", "SHOW CATALOGS IN x", "SHOW ALL FUNCTIONS",
        "SHOW LOCKS trips", "SHOW TABLES; SHOW TABLES",
        "SHOW TABLES /* */ SELECT 1", "USE other", "USE CATALOG default", "USE default.x", "USE ?", "USE",
        "DESCRIBE other.trips", "DESCRIBE default.default.trips", "DESCRIBE SCHEMA other", "EXPLAIN SHOW TABLES",
        "DESCRIBE trips AS JSON", "DESCRIBE trips VERSION AS OF 2",
    ],
)  # fmt: skip
def test_other_forms_are_refused(still_lake: lakehouse.Lake, text: str) -> None:
    with pytest.raises((InvalidInput, TableNotFound)):
        still_lake.sql(text, engine="duckdb")


def test_describe_says_the_schema_and_the_columns_of_a_query(still_lake: lakehouse.Lake) -> None:
    for text in ("DESCRIBE SCHEMA default", "DESC DATABASE EXTENDED default", "DESCRIBE NAMESPACE DEFAULT"):
        assert rows_of(still_lake, text)[:2] == [("Catalog Name", "lakehouse"), ("Namespace Name", "default")]
    expected = [("id", "BIGINT", True, ""), ("twice", "DOUBLE", True, "")]
    query = "SELECT id, price * ? AS twice FROM trips"
    assert rows_of(still_lake, f"DESCRIBE QUERY {query}", args=[2]) == expected
    assert rows_of(still_lake, f"DESC {query}", args=[2]) == expected
    assert rows_of(still_lake, f"DESCRIBE QUERY WITH c AS ({query}) SELECT * FROM c", args=[2]) == expected
    assert rows_of(still_lake, "DESCRIBE VALUES (1)") == [("col1", "INT", True, "")]
    assert still_lake.query("DESCRIBE QUERY SELECT day FROM trips").rows.to_pylist()[0]["type"] == "DATE"


def test_tables_that_are_not_there_are_not_told_of(still_lake: lakehouse.Lake) -> None:
    for text in ("SHOW COLUMNS IN gone", "SHOW CREATE TABLE gone", "SHOW TBLPROPERTIES gone", "DESCRIBE gone"):
        with pytest.raises(TableNotFound):
            still_lake.sql(text)


def test_a_pattern_is_looked_for_in_time_of_its_length() -> None:
    assert is_like("a" * 200 + "b", "*a" * 100 + "*b")
    assert not is_like("a" * 200, "*a" * 100 + "*b")
    assert is_like("abab", "ab*ab")
    assert not is_like("ab", "ab*ab")
    assert is_like("x.y", "x.y")
    assert not is_like("xzy", "x.y")


def test_the_one_schema_is_named_default(lake: lakehouse.Lake) -> None:
    assert lake.sql("USE default") is None
    assert lake.sql("USE SCHEMA `Default`;") is None
    lake.sql("CREATE TABLE default.other (at TIMESTAMP, id INT) PARTITIONED BY (days(at))")
    lake.sql("INSERT INTO default.other VALUES ('2013-01-01', 1), ('2013-01-02', 2)")
    lake.sql("UPDATE default.other SET id = 3 WHERE other.id = 2")
    lake.sql("DELETE FROM DEFAULT.other AS o WHERE o.id = 1")
    lake.sql("MERGE INTO default.other USING default.trips ON other.id = trips.id WHEN MATCHED THEN UPDATE SET id = 7",
             engine="duckdb")  # fmt: skip
    text = "SELECT other.id, x.id FROM default.other JOIN `default`.trips VERSION AS OF 3 x ON x.id = 1"
    assert rows_of(lake, text) == [(7, 1)]
    assert rows_of(lake, "WITH other AS (SELECT 1 AS id) SELECT a.id, b.id FROM other a, default.other b") == [(1, 7)]
    assert len(rows_of(lake, "DESCRIBE EXTENDED default.other")) == 2
    lake.sql("TRUNCATE TABLE default.other")
    lake.sql("DROP TABLE default.other")
    for text in ("SELECT * FROM other.trips", "SELECT * FROM main.trips", "SELECT default.trips.id FROM default.trips",
                 "SELECT * FROM spark_catalog.default.trips", "DROP TABLE other.trips"):  # fmt: skip
        with pytest.raises((InvalidInput, TableNotFound)):
            lake.sql(text, engine="duckdb")
    assert lake.tables() == ["Clients", "trips"]


def test_show_create_table_makes_the_same_table(lake: lakehouse.Lake, tmp_path: Path) -> None:
    schema = pa.schema(
        [
            ("Zeit in %", pa.timestamp("us", "UTC")),
            pa.field("id", pa.int64(), nullable=False),
            pa.field("needed", pa.string(), nullable=False),
            ("tags", pa.map_(pa.string(), pa.list_(pa.struct([("a b", pa.int32()), ("c", pa.decimal128(9, 2))])))),
            ("local", pa.timestamp("us")),
            *((f"c{place}", kind) for place, kind in enumerate((
                pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.float32(), pa.float64(), pa.binary(), pa.date32()))),
        ]
    )  # fmt: skip
    odd = {"owner": "it's \\ \n \\' ? ; -- `x`", "a.b c": "\u202eü", "comment": "of people", "target_rows": "1000"}
    made = lake.create_table("odd", schema, time="Zeit in %", grain="hour", primary_key=["id", "c3"], properties=odd,
                             write_order="start", cluster_by={"c3": 0, "id": 16, "needed": 0})  # fmt: skip
    lake.sql("CREATE TABLE plain (at DATE) PARTITIONED BY (years(at))")
    lake.sql("CREATE TABLE codes (`at` TIMESTAMP, id INT PRIMARY KEY) PARTITIONED BY (bucket(4, id))")
    with lakehouse.connect(f"sqlite:///{tmp_path}/other.db", tmp_path / "other") as other:
        for name in lake.tables():
            [(text,)] = rows_of(lake, f"SHOW CREATE TABLE {name}")
            again = other.sql(text)
            first = lake.table(name)
            for one in ("name", "time", "grain", "primary_key", "properties"):
                assert getattr(again, one) == getattr(first, one)
            assert again.spec.write_order == first.spec.write_order
            assert list(again.cluster_by.items()) == list(first.cluster_by.items())
            assert again.schema.equals(first.schema, check_metadata=True)
    assert dict(rows_of(lake, "SHOW TBLPROPERTIES odd")) == {**odd, "write_order": "start"}
    assert rows_of(lake, "SHOW TBLPROPERTIES odd ('comment')") == [("comment", "of people")]
    assert rows_of(lake, "SHOW TBLPROPERTIES odd ('gone')") == []
    assert made.properties == odd


def test_defaults_and_comments_of_columns_are_shown(lake: lakehouse.Lake) -> None:
    before = lake.head
    lake.sql("ALTER TABLE trips ADD COLUMN note STRING DEFAULT 'it\\'s' COMMENT 'what\\'s said'")
    lake.sql("ALTER TABLE trips ADD COLUMN tax DECIMAL(5, 2) DEFAULT 1.5")
    lake.sql("ALTER TABLE trips ADD COLUMN seen TIMESTAMP DEFAULT '2013-01-01 00:00:00'")
    shown = {"note": ("'it\\'s'", "what's said"), "tax": ("1.50", None), "seen": ("'2013-01-01 00:00:00+00:00'", None)}
    described = {row[0]: row[4:] for row in rows_of(lake, "DESCRIBE EXTENDED trips")}
    listed = rows_of(
        lake,
        "SELECT column_name, column_default, comment FROM information_schema.columns WHERE table_name = 'trips'",
    )
    assert described == {name: shown.get(name, (None, None)) for name in lake.table("trips").schema.names}
    assert described == {row[0]: row[1:] for row in listed}
    created = rows_of(lake, "SHOW CREATE TABLE trips")[0][0]
    assert "`note` STRING DEFAULT 'it\\'s' COMMENT 'what\\'s said',\n" in created
    lake.sql(created.replace("`trips`", "again"))
    assert described == {row[0]: row[4:] for row in rows_of(lake, "DESCRIBE EXTENDED again")}
    for name, (default, _) in shown.items():  # what is shown can be said again
        lake.sql(f"ALTER TABLE trips ALTER COLUMN {name} SET DEFAULT {default}")
    assert described == {row[0]: row[4:] for row in rows_of(lake, "DESCRIBE EXTENDED trips")}
    then = lake.query("DESCRIBE trips", as_of=before).rows["column"].to_pylist()
    assert then == [name for name in described if name not in shown]
    assert lake.query("DESCRIBE trips").rows["column"].to_pylist() == [*described]
    with pytest.raises(VersionNotFound):
        lake.query("DESCRIBE trips", as_of=99)


def test_a_new_table_has_the_defaults_and_comments_that_it_is_created_with(lake: lakehouse.Lake) -> None:
    text = """
        CREATE TABLE told (
          at TIMESTAMP NOT NULL COMMENT 'when',
          id BIGINT DEFAULT -7,
          flag BOOLEAN DEFAULT TRUE,
          price DECIMAL(5, 2) DEFAULT 1.5 COMMENT 'it\\'s "dear" \\\\ é',
          half FLOAT DEFAULT 0.5,
          code BINARY DEFAULT X'00FF',
          day DATE DEFAULT DATE '2013-01-05',
          local TIMESTAMP_NTZ DEFAULT '2013-01-05 07:00:00',
          none STRING DEFAULT NULL,
          place STRUCT<stop: STRING COMMENT 'where', legs: ARRAY<STRUCT<p: INT COMMENT 'of'>>> COMMENT 'nested'
        ) PARTITIONED BY (days(at))
    """
    table = lake.sql(text)
    assert [table.spec.history(one).comment for one in table.schema] == [
        "when", "", "", 'it\'s "dear" \\ é', "", "", "", "", "", "nested"
    ]  # fmt: skip
    table.append(
        pa.table(
            {
                "at": [datetime(2013, 1, 5, tzinfo=UTC)],
                "none": ["x"],
                "place": pa.nulls(1, table.schema.field("place").type),
            }
        )
    )
    (row,) = table.scan().to_arrow().to_pylist()
    values = (-7, True, Decimal("1.50"), 0.5, b"\0\xff", date(2013, 1, 5), datetime(2013, 1, 5, 7))  # noqa: DTZ001
    assert tuple(row.values())[1:8] == values
    created = rows_of(lake, "SHOW CREATE TABLE told")[0][0]
    assert "`stop`: STRING COMMENT 'where', `legs`: ARRAY<STRUCT<`p`: INT COMMENT 'of'>>" in created
    assert created.count("DEFAULT") == 7
    again = lake.sql(created.replace("`told`", "again"))
    assert again.spec.columns == table.spec.columns
    assert again.schema.equals(table.schema, check_metadata=True)
    assert rows_of(lake, "SHOW CREATE TABLE again")[0][0] == created.replace("`told`", "`again`")
    table.rename_column("id", "number")
    table.add_column("id", "INT", default=1)
    assert table.scan().to_arrow().to_pylist()[0]["number"] == -7
    assert table.spec.stored_names["id"] == "_11_id"
    lake.create_table("plain", "id INT, gate STRING DEFAULT 'A1' COMMENT 'departure'").append(pa.table({"id": [1]}))
    assert lake.table("plain").scan().to_arrow()["gate"].to_pylist() == ["A1"]


@pytest.mark.parametrize("default", ["'x'", "1.5", "1 + 1", "current_date()", "(SELECT 1)", "1 << 40", "a"])
def test_a_default_that_is_no_literal_of_the_column_is_refused(lake: lakehouse.Lake, default: str) -> None:
    with pytest.raises(InvalidInput):
        lake.sql(f"CREATE TABLE refused (a INT DEFAULT {default})")
    assert "refused" not in lake.tables()
