"""Arguments that cannot be meant: intervals, keys, predicates, messages; nothing is committed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import lakehouse
from lakehouse.errors import InvalidInput, TableNotFound, VersionNotFound
from lakehouse.testing.rows import SCHEMA, arrow, values

INTERVALS = [
    "",
    "2013-13",
    "2013-02-29",
    "2013-W54",
    "2013-1-5",
    "yesterday",
    "2013-01-05T25",
    "2013-01-06/2013-01-05",
    "2013-01-05/2013-01-05",
    ("2013-01-06", "2013-01-05"),
    ("2013-01-05", "2013-01-05"),
    ("2013-01-05",),
    ("2013-01-05", "2013-01-06", "2013-01-07"),
    ("x", "y"),
    (datetime(2013, 1, 6, tzinfo=UTC), datetime(2013, 1, 5, tzinfo=UTC)),
    datetime(2013, 1, 5, tzinfo=UTC),
    2013,
    True,
    ...,
]

ONE_CATALOG = pytest.mark.parametrize("catalog_url", ["sqlite"], indirect=True)
"""For what is refused before any catalog is asked; beside it, each kind is refused once on both."""


@pytest.fixture
def unchanged(lake, table):
    """Afterwards nothing was committed and nothing is locked."""
    table.append(arrow([("2013-01-05", "a", 1)]))
    head = lake.head
    yield table
    assert lake.head == head
    assert values(table) == [1]
    assert table.locks() == []


@ONE_CATALOG
@pytest.mark.parametrize("interval", INTERVALS, ids=str)
def test_a_bad_interval_is_refused_wherever_one_is_taken(unchanged, interval):
    for attempt in (
        lambda: unchanged.replace(None, interval),
        lambda: unchanged.begin_replace(interval),
        lambda: unchanged.scan(interval=interval).to_arrow(),
        lambda: unchanged.compact(interval),
        lambda: unchanged.timeline(interval),
        lambda: unchanged.segments(interval=interval),
        lambda: lakehouse.Interval.of(interval),
    ):
        with pytest.raises(InvalidInput):
            attempt()


def test_a_replace_needs_an_interval(unchanged):
    with pytest.raises(InvalidInput):
        unchanged.replace(None, None)


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"nowhere": 1},
        {"value": 1},
        {"time": "2013-01-05"},
        {"client": []},
        {"client": ...},
        {"client": {"a": 1}},
        "a",
        ["a"],
        {1: "a"},
    ],
    ids=str,
)
def test_bad_keys_are_refused(unchanged, keys):
    with pytest.raises(InvalidInput):
        unchanged.replace(None, "2013-01-05", keys=keys)


@pytest.mark.parametrize(
    "keys", [{"client": 1234}, {"client": "1234"}, {"client": [1234.0]}, {"client": True}], ids=str
)
def test_keys_of_another_type_mean_the_same_value_or_are_refused(lake, keys):
    table = lake.create_table("typed", "time TIMESTAMP, client INT, value BIGINT", time="time", cluster_by=("client",))
    rows = arrow([("2013-01-05", "x", 1), ("2013-01-05", "y", 2)])
    table.append(rows.set_column(1, "client", [[1234, 1]]))
    try:
        table.replace(None, "2013-01-05", keys=keys)
    except InvalidInput:
        assert values(table) == [1, 2]
    else:
        assert values(table) == ([1] if keys["client"] is True else [2])


@ONE_CATALOG
@pytest.mark.parametrize(
    "where",
    [
        "",
        " ",
        "value >",
        "value = ",
        "nowhere = 1",
        "client = 'a' AND nowhere > 2",
        "value = 1; DROP TABLE flights",
        "value IN (SELECT 1)",
        "EXISTS (SELECT 1)",
        "(SELECT max(value) FROM flights) = value",
        "reflect('java.lang.Runtime', 'getRuntime') IS NULL",
        "java_method('java.lang.System', 'exit', 0) = 1",
        "assert_true(value > 1) IS NULL",
        "read_csv('/etc/passwd') IS NULL",
        "getenv('HOME') = 'x'",
        "rand() > 0.5",
        "current_user() = 'x'",
        "sum(value) > 1",
        "row_number() OVER (ORDER BY value) = 1",
        "value",
        "client",
        "1",
        "SELECT 1",
        "value = 1 UNION SELECT 1",
        "value = :x",
        "value = ?",
        "*",
        "flights.*",
        "other.value = 1",
        "time > 'not a time'",
        "value = 'not a number'",
        "client.x = 1",
        "explode(array(1)) = 1",
        "(" * 2000 + "value = 1" + ")" * 2000,
        42,
        True,
        b"value = 1",
    ],
    ids=lambda where: str(where)[:40],
)
def test_a_bad_predicate_is_refused(unchanged, where):
    with pytest.raises(InvalidInput):
        unchanged.scan(where=where).to_arrow()


def test_a_bad_predicate_is_named_with_its_remedy(unchanged):
    with pytest.raises(InvalidInput, match="nowhere"):
        unchanged.scan(where="nowhere = 1").to_arrow()
    with pytest.raises(InvalidInput, match=r"(?i)reflect"):
        unchanged.scan(where="reflect('java.lang.System', 'exit') = 1").to_arrow()


@pytest.mark.parametrize("message", [1, b"x", ["x"]], ids=str)
def test_a_message_is_text(unchanged, message):
    with pytest.raises(InvalidInput):
        unchanged.append(arrow([("2013-01-05", "a", 2)]), message=message)


@pytest.mark.parametrize("properties", [{"a": 1}, {1: "a"}, "a", ["a"], {"a": None}], ids=str)
def test_properties_are_a_dict_of_text(unchanged, properties):
    with pytest.raises(InvalidInput):
        unchanged.append(arrow([("2013-01-05", "a", 2)]), properties=properties)


@pytest.mark.parametrize("text", ["ü ñ 漢字 🛫", "'; DROP TABLE lake; --", "a\nb", "%s %d {}", "x" * 10_000])
def test_any_text_is_kept_as_a_message(lake, text):
    table = lake.create_table("t", SCHEMA, time="time")
    table.append(arrow([("2013-01-05", text, 2)]), message=text, properties={text: text})
    assert table.log(1)[0].message == text
    assert dict(table.log(1)[0].properties) == {text: text}
    assert table.scan(columns=["client"]).to_arrow().column("client").to_pylist() == [text]


def test_text_that_a_database_cannot_keep_is_refused(unchanged):
    with pytest.raises(InvalidInput):
        unchanged.append(arrow([("2013-01-05", "a", 2)]), message="a\0b")


@pytest.mark.parametrize("limit", [-1, "x", 1.5])
def test_a_bad_limit_is_refused(unchanged, limit):
    with pytest.raises(InvalidInput):
        unchanged.log(limit)


@pytest.mark.parametrize("wait_seconds", [-1, "x", float("nan")])
def test_a_bad_wait_is_refused(unchanged, wait_seconds):
    with pytest.raises(InvalidInput):
        unchanged.begin_replace("2013-01-05", wait_seconds=wait_seconds)


HALF = "\ud800"


def made(lake, schema, **more):
    return lake.create_table("x", schema, time="time", **more)


TEXTS = {
    "a table's name": lambda lake, table: lake.table(HALF),
    "a name with a null": lambda lake, table: lake.table("a\0b"),
    "a name to drop": lambda lake, table: lake.drop_table(HALF),
    "a new name": lambda lake, table: lake.rename_table("flights", HALF),
    "a column in DDL": lambda lake, table: made(lake, f"time TIMESTAMP, `{HALF}` INT"),
    "a field in DDL": lambda lake, table: made(lake, f"time TIMESTAMP, s STRUCT<`{HALF}`: INT>"),
    "a field with a null": lambda lake, table: made(lake, "time TIMESTAMP, s STRUCT<`a\0b`: INT>"),
    "a property": lambda lake, table: made(lake, SCHEMA, properties={"mine": HALF}),
    "a property with a null": lambda lake, table: made(lake, SCHEMA, properties={"mine": "\0"}),
    "a property's name": lambda lake, table: made(lake, SCHEMA, properties={HALF: "mine"}),
    "a tag": lambda lake, table: lake.tag(HALF),
    "a key": lambda lake, table: table.replace(None, "2013", keys={"client": HALF}),
    "a filter": lambda lake, table: table.scan(where=f"client = '{HALF}'"),
    "a delete": lambda lake, table: table.delete(f"client = '{HALF}'"),
    "an update": lambda lake, table: table.update({"client": f"'{HALF}'"}, "TRUE"),
    "an erasure": lambda lake, table: table.erase(f"client = '{HALF}'"),
    "a statement": lambda lake, table: lake.sql(f"INSERT INTO flights VALUES (now(), '{HALF}', 1)"),
    "a message": lambda lake, table: table.append(arrow([]), message=HALF),
    "a commit's property": lambda lake, table: table.append(arrow([]), properties={"a": HALF}),
    "a mark": lambda lake, table: table.append(arrow([]), txn=(HALF, 1)),
    "a long mark": lambda lake, table: table.append(arrow([]), txn=("".join(map(chr, range(256, 1256))), 1)),
    "a column": lambda lake, table: table.scan(columns=[HALF]),
    "a version": lambda lake, table: table.scan(as_of=HALF),
    "an interval": lambda lake, table: table.scan(interval=HALF),
}  # fmt: skip


@pytest.mark.parametrize("attempt", TEXTS.values(), ids=TEXTS)
def test_text_that_no_database_or_file_can_keep_is_refused_wherever_text_is_taken(unchanged, lake, attempt):
    with pytest.raises((InvalidInput, TableNotFound, VersionNotFound)):
        attempt(lake, unchanged)
    assert lake.tables() == ["flights"]
