"""Tables: create, look up, rename, drop."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse.errors import AlreadyExists, InvalidInput, TableNotFound
from lakehouse.testing.rows import DDL, SCHEMA, arrow, values, visible


def test_a_table_remembers_what_it_is(lake, connect):
    lake.create_table(
        "flights",
        SCHEMA,
        time="time",
        grain="week",
        primary_key=("value",),
        cluster_by={"client": 8},
        properties={"owner": "ops"},
    )
    for table in (lake.table("flights"), connect().table("flights")):
        assert table.schema.names == SCHEMA.names
        assert [str(field.type) for field in table.schema] == [str(field.type) for field in SCHEMA]
        assert (table.time, str(table.grain)) == ("time", "week")
        assert tuple(table.primary_key) == ("value",)
        assert dict(table.cluster_by) == {"client": 8}
        assert table.properties["owner"] == "ops"


def test_a_schema_may_be_ddl_text(lake):
    table = lake.create_table("flights", DDL, time="time", cluster_by=("client",))
    table.append(arrow([("2013-01-05", "a", 1)]))
    assert table.schema.names == ["time", "client", "value"]
    assert table.schema.field("value").type == pa.int64()
    assert values(table) == [1]


def test_tables_are_listed_by_name(lake):
    for name in ("b", "a", "c"):
        lake.create_table(name, SCHEMA, time="time")
    assert lake.tables() == ["a", "b", "c"]


def test_a_table_that_exists_is_not_made_again(lake, table):
    table.append(arrow([("2013-01-05", "a", 1)]))
    with pytest.raises(AlreadyExists, match="flights"):
        lake.create_table("flights", SCHEMA, time="time")
    assert values(lake.table("flights")) == [1]


def test_if_not_exists_returns_the_table_that_is_there(lake, table):
    table.append(arrow([("2013-01-05", "a", 1)]))
    again = lake.create_table("flights", SCHEMA, time="time", cluster_by=("client",), if_not_exists=True)
    assert values(again) == [1]
    assert lake.create_table("fresh", SCHEMA, time="time", if_not_exists=True).version == lake.head


def test_a_table_takes_the_name_of_another_in_one_version(lake, table, connect):
    table.append(arrow([("2013-01-05", "a", 1)]))
    lake.create_table("next", SCHEMA, time="time").append(arrow([("2013-01-05", "b", 2)]))
    before = lake.head
    lake.catalog.replace_table("flights", "next")
    for one in (lake, connect()):
        assert (one.head, one.tables(), values(one.table("flights"))) == (before + 1, ["flights"], [2])
    with pytest.raises(TableNotFound, match="next"):
        lake.catalog.replace_table("flights", "next")
    assert (lake.head, values(lake.table("flights"))) == (before + 1, [2])


def test_a_missing_table_is_named(lake):
    with pytest.raises(TableNotFound, match="nowhere"):
        lake.table("nowhere")
    with pytest.raises(KeyError):
        lake.table("nowhere")
    with pytest.raises(TableNotFound, match="nowhere"):
        lake.drop_table("nowhere")
    with pytest.raises(TableNotFound, match="nowhere"):
        lake.rename_table("nowhere", "somewhere")


def test_a_rename_moves_no_file_and_keeps_every_version(lake, table):
    version = table.append(arrow([("2013-01-05", "a", 1)])).version
    table.append(arrow([("2013-01-05", "a", 2)]))
    paths = [segment.path for segment in table.segments()]
    lake.rename_table("flights", "departures")
    renamed = lake.table("departures")
    assert lake.tables() == ["departures"]
    assert [segment.path for segment in renamed.segments()] == paths
    assert values(renamed) == [1, 2]
    assert values(renamed, as_of=version) == [1]
    assert not any("flights" in path for path in paths)
    with pytest.raises(TableNotFound):
        lake.table("flights")


def test_a_rename_onto_a_table_that_exists_changes_nothing(lake, table):
    lake.create_table("other", SCHEMA, time="time")
    with pytest.raises(AlreadyExists, match="other"):
        lake.rename_table("flights", "other")
    assert lake.tables() == ["flights", "other"]


def test_an_operation_begun_before_a_rename_commits_after_it(lake, table):
    operation = table.begin_append()
    operation.write(arrow([("2013-01-05", "a", 1)]))
    lake.rename_table("flights", "departures")
    operation.commit()
    assert values(lake.table("departures")) == [1]


def test_a_dropped_table_is_gone_and_its_name_is_free(lake, table):
    table.append(arrow([("2013-01-05", "a", 1)]))
    lake.drop_table("flights")
    assert lake.tables() == []
    with pytest.raises(TableNotFound, match="flights"):
        lake.table("flights")
    fresh = lake.create_table("flights", SCHEMA, time="time")
    assert visible(fresh) == []
    fresh.append(arrow([("2013-01-05", "a", 2)]))
    assert values(fresh) == [2]


def test_an_operation_on_a_table_that_was_dropped_meanwhile_fails(lake, table):
    operation = table.begin_append()
    operation.write(arrow([("2013-01-05", "a", 1)]))
    lake.drop_table("flights")
    lake.create_table("flights", SCHEMA, time="time")
    with pytest.raises(TableNotFound, match="flights"):
        operation.commit()
    assert visible(lake.table("flights")) == []


def test_creating_renaming_and_dropping_are_in_the_log_of_the_lake(lake, table):
    created = lake.head
    lake.rename_table("flights", "departures")
    renamed = lake.head
    lake.drop_table("departures")
    assert created < renamed < lake.head
    assert [commit.version for commit in lake.log(3)] == [lake.head, renamed, created]


@pytest.mark.parametrize(
    "name", ["", " ", "1st", "a b", "a.b", "a/b", "../a", 'a"b', "a;drop", "ä", "a" * 129, "_a", None, 7]
)
def test_a_bad_name_is_refused_and_named(lake, name):
    head = lake.head
    with pytest.raises(InvalidInput):
        lake.create_table(name, SCHEMA, time="time")
    assert lake.tables() == []
    assert lake.head == head


def test_a_bad_new_name_is_refused(lake, table):
    with pytest.raises(InvalidInput):
        lake.rename_table("flights", "a b")
    assert lake.tables() == ["flights"]


@pytest.mark.parametrize(
    "options",
    [
        {"time": "nowhere"},
        {"time": "value"},
        {"time": "time", "grain": "minute"},
        {"time": ""},
        {"grain": "day"},
        {"grain": "all"},
        {"time": "time", "grain": "all"},
        {"properties": {"ragged": "true"}},
        {"time": "time", "cluster_by": ("nowhere",)},
        {"time": "time", "cluster_by": {"client": -1}},
        {"time": "time", "primary_key": ("nowhere",)},
        {"time": "time", "write_order": "whenever"},
        {"time": "time", "properties": {"target_rows": "many"}},
        {"time": "time", "properties": {"target_rows": "0"}},
    ],
    ids=str,
)
def test_a_definition_that_cannot_work_is_refused(lake, options):
    head = lake.head
    with pytest.raises(InvalidInput):
        lake.create_table("flights", SCHEMA, **options)
    assert lake.tables() == []
    assert lake.head == head


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([]),
        pa.schema([("time", pa.timestamp("us")), ("time", pa.int64())]),
        pa.schema([("time", pa.timestamp("us")), ("TIME", pa.int64())]),
        pa.schema([("time", pa.timestamp("us")), ("_row_id", pa.int64())]),
        pa.schema([("time", pa.timestamp("us")), ("", pa.int64())]),
        "time TIMESTAMP, value NONSENSE",
        "not a schema at all (",
        42,
    ],
    ids=str,
)
def test_a_bad_schema_is_refused(lake, schema):
    with pytest.raises(InvalidInput):
        lake.create_table("flights", schema, time="time")
    assert lake.tables() == []


def test_names_of_columns_may_hold_spaces_and_any_letter(lake):
    schema = pa.schema([("time", pa.timestamp("us")), ("späte Ankunft %", pa.int64()), ("two words", pa.string())])
    table = lake.create_table("flights", schema, time="time", cluster_by=("two words",))
    rows = pa.table({"time": [0], "späte Ankunft %": [7], "two words": ["x y"]}, schema=schema)
    table.append(rows)
    table.append(rows)
    table.replace(None, "1970", keys={"two words": "no"})
    assert table.scan(where="`späte Ankunft %` = 7", columns=["späte Ankunft %"]).to_arrow().num_rows == 2
    table.replace(None, "1970", keys={"two words": "x y"})
    assert table.scan().count() == 0
