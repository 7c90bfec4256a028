"""Every page, opened on a table of every kind that there can be: none may fail on what another one draws."""

import sqlite3
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.core.contribution import AppendContribution
from lakehouse.core.operation import Kind
from lakehouse.core.segment import NewSegment
from tests.browser.conftest import SCHEMA, START, Place, hours_of
from tests.browser.test_pages import PAGES

KEYED = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("id", pa.int64()), ("word", pa.string())])
MANY_VERSIONS = 10_000
pytestmark = pytest.mark.xdist_group("every table")  # the lake is made once


def keyed(*rows: tuple[datetime, int, str]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(KEYED.names, row, strict=True)) for row in rows], schema=KEYED)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def make_upserts(lake: lakehouse.Lake) -> None:
    table = lake.create_table("upserts", KEYED, time="at", primary_key=["id"], cluster_by=["id"])
    for turn in range(20):
        table.upsert(keyed(*((START + timedelta(hours=turn), number, f"{turn}") for number in range(5))))
    table.delete_keys(pa.table({"id": [3]}))


def make_deletes(lake: lakehouse.Lake) -> None:
    table = lake.create_table("deletes", SCHEMA, time="at")
    table.append(hours_of(0, 3))
    table.delete("carrier = 'UA'")
    table.update({"delay": "delay + 1"}, "delay > 60")


def make_keyed_replaces(lake: lakehouse.Lake) -> None:
    table = lake.create_table("keyed_replaces", SCHEMA, time="at", cluster_by=["carrier"])
    table.append(hours_of(0, 3))
    table.replace(hours_of(1, 1).slice(0, 1), "2013-01-02", keys={"carrier": "UA"})
    table.replace(None, ("2013-01-01T12:00", "2013-01-02T06:00"), keys={"carrier": ["AA", "UA"]})
    table.drop("2013-01-03")


def make_sentinels(lake: lakehouse.Lake) -> None:
    """Rows that mean *ever* and *never*, as far at the ends of the calendar as a table takes them."""
    table = lake.create_table("sentinels", KEYED, time="at", grain="year", primary_key=["id"])
    table.append(keyed((at("0001-01-01"), 1, "ever"), (at("9999-12-30T23:59:59"), 2, "never"), (START, 3, "now")))
    table.append(keyed((at("9998-01-01"), 4, "soon")))
    table.upsert(keyed((at("9999-06-01"), 2, "later"), (at("1500-01-01"), 5, "old")))
    table.delete("id = 3")


def make_sentinel_days(lake: lakehouse.Lake) -> None:
    table = lake.create_table("sentinel_days", KEYED, time="at")
    table.append(keyed((at("9999-12-30T23:59:59"), 1, "never")))
    table.append(keyed((at("0001-01-02"), 2, "ever")))
    table.append(keyed((at("1677-09-21"), 3, "before pandas"), (at("2262-04-12"), 4, "after pandas")))


def make_timeless(lake: lakehouse.Lake) -> None:
    schema = pa.schema([("code", pa.string()), ("region", pa.string())])
    table = lake.create_table("timeless", schema, primary_key=["code"], cluster_by=["region"])
    rows = pa.table({"code": ["UA", "B6", "AA"], "region": ["west", None, "west"]}, schema=schema)
    table.append(rows)
    table.replace(rows.slice(0, 1), keys={"region": "west"})
    table.upsert(rows.slice(1, 1))
    table.delete("code = 'UA'")


def make_one_row(lake: lakehouse.Lake) -> None:
    lake.create_table("one_row", KEYED, time="at").append(keyed((START, 1, "one")))


def make_no_row(lake: lakehouse.Lake) -> None:
    table = lake.create_table("no_row", KEYED, time="at")
    table.append(keyed((START, 1, "one")))
    table.delete("TRUE")
    table.compact()


def make_dropped_rows(lake: lakehouse.Lake) -> None:
    """Only a tombstone is left."""
    table = lake.create_table("dropped_rows", KEYED, time="at", primary_key=["id"])
    table.delete_keys(pa.table({"id": [1]}))


def make_no_version(lake: lakehouse.Lake) -> None:
    lake.create_table("no_version", KEYED, time="at")


def make_odd_names(lake: lakehouse.Lake) -> None:
    schema = pa.schema(
        [
            ("größe in µm [0].x:y", pa.float64()),
            ("время", pa.timestamp("us", tz="UTC")),
            ("key <b>bold</b> $x^2$", pa.string()),
        ]
    )
    table = lake.create_table("odd_names", schema, time="время", cluster_by=["key <b>bold</b> $x^2$"])
    rows = [[0.5, float("nan")], [START, START], ["# 🌊 \u202eabc 'x' `y`", None]]
    table.append(pa.table(rows, schema=schema), message="ünïcode `quoted` $x^2$")
    table.replace(None, "2013-01-01", keys={"key <b>bold</b> $x^2$": "it's"})


def make_wide(lake: lakehouse.Lake) -> None:
    numbers = [pa.field(f"column_{number:03d}", pa.int64()) for number in range(99)]
    schema = pa.schema([pa.field("at", pa.timestamp("us", tz="UTC")), *numbers])
    rows = [[START + timedelta(hours=hour) for hour in range(5)], *([list(range(5))] * 99)]
    lake.create_table("wide", schema, time="at").append(pa.table(rows, schema=schema))


def make_nested(lake: lakehouse.Lake) -> None:
    schema = pa.schema(
        [
            ("at", pa.timestamp("us", tz="UTC")),
            ("list", pa.list_(pa.int32())),
            ("held", pa.struct([("a", pa.string()), ("b", pa.binary())])),
            ("amount", pa.decimal128(38, 18)),
            ("day", pa.date32()),
            ("vector", pa.list_(pa.float32(), 2)),
            ("map", pa.map_(pa.string(), pa.list_(pa.float64(), 1))),
            ("uuid", pa.uuid()),
        ]
    )
    row = {"at": START, "list": [1, None], "held": {"a": None, "b": b"\x00"}, "day": date(9999, 12, 31)}
    own = {"vector": [0.5, None], "map": [("k", [1.0])], "uuid": UUID(int=7)}
    table = lake.create_table("nested", schema, time="at", cluster_by=["uuid"])
    table.append(pa.Table.from_pylist([{**row, **own}], schema=schema))


def make_old_times(lake: lakehouse.Lake) -> None:
    """Columns beside the time hold days that neither pandas nor a browser can draw."""
    schema = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("until", pa.timestamp("us", tz="UTC"))])
    table = lake.create_table("old_times", schema, time="at")
    untils = [at("9999-12-31T23:59:59.999999"), at("0001-01-01")]
    table.append(pa.table([[START, START], untils], schema=schema))


def make_erased(lake: lakehouse.Lake) -> None:
    table = lake.create_table("erased", SCHEMA, time="at")
    table.append(hours_of(0, 3))
    table.erase("delay < 30")
    table.erase("delay < 60")


def make_restored(lake: lakehouse.Lake) -> None:
    table = lake.create_table("restored", SCHEMA, time="at")
    version = table.append(hours_of(0, 3)).version
    table.delete("delay < 30")
    lake.tag("good", version)
    table.restore(version)


def make_many_versions(lake: lakehouse.Lake) -> None:
    """Some hundred commits of a segment each, and then as many as there are to be of nothing, written into the log."""
    table = lake.create_table("many_versions", KEYED, time="at")
    spec = table.spec
    for number in range(300):
        begun = lake.catalog.begin(spec, Kind.APPEND)
        start = START + timedelta(hours=number % 30)
        path = f"{spec.folder}/{begun.id}/0.parquet"
        segment = NewSegment(path, start, start + timedelta(hours=1), rows=10, bytes=1_000)
        lake.catalog.commit([AppendContribution(begun, segments=(segment,))])
    with sqlite3.connect(lake.catalog.url.removeprefix("sqlite:///")) as connection:
        last = MANY_VERSIONS + lake.head
        numbers = "WITH RECURSIVE n(v) AS (SELECT head + 1 FROM lake UNION ALL SELECT v + 1 FROM n WHERE v < ?) "
        log = "INSERT INTO commit_log SELECT v, 'append', (SELECT clock_us FROM lake) + v, NULL, NULL FROM n"
        connection.execute(numbers + log, (last,))
        listed = "(version, table_id, operation, segments_added, segments_dropped, tombstones_added, "
        listed += "tombstones_dropped, rows_added, rows_deleted)"
        of_table = f"INSERT INTO commit_table {listed} SELECT v, {int(spec.id)}, 'append', 0, 0, 0, 0, 0, 0 FROM n"
        connection.execute(numbers + of_table, (last,))
        connection.execute("UPDATE lake SET head = ?, counter = ?", (last, last))
    connection.close()


MAKERS: Mapping[str, Callable[[lakehouse.Lake], None]] = {
    name.removeprefix("make_"): made for name, made in list(globals().items()) if name.startswith("make_")
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A lake with a table of every kind, looked at and never written to."""
    folder = tmp_path_factory.mktemp("every")
    found = Place(f"sqlite:///{folder}/catalog.db", str(folder / "warehouse"))
    with lakehouse.connect(*found) as lake:
        for make in MAKERS.values():
            make(lake)
    return found


@pytest.fixture
def place(made: Place) -> Place:
    return made


@pytest.mark.parametrize("table", MAKERS)
@pytest.mark.parametrize("name", PAGES)
def test_every_page_draws_every_kind_of_table(open_page: Any, name: str, table: str) -> None:
    app = open_page(name, table=table)
    assert not app.exception
    is_missing = (name, table) == ("schema", "many_versions")  # its files were never written
    assert [one.value for one in app.error] == ["That cannot be shown."] * is_missing
    assert app.selectbox(key="table").value == table


STATES = [
    ("timeline", {"laser": "2013-01-01T00:00:00", "keys": "id=1"}),
    ("timeline", {"laser": "9999-12-30T23:59:59", "interval": "9999-12-31"}),
    ("timeline", {"laser": "0001-01-01", "interval": "0001-01-01/9999-12-31T23:59:59.999999"}),
    ("key_frames", {"interval": "9999-12-31"}),
    ("segments", {"interval": "0001-01-01/9999-12-31T23:59:59.999999", "order": "time"}),
    ("query", {"sql": "SELECT * FROM {table}"}),
]


@pytest.mark.parametrize("table", MAKERS)
@pytest.mark.parametrize(("name", "parameters"), STATES, ids=[f"{name}-{held}" for name, held in STATES])
def test_no_place_to_look_at_fails_on_any_kind_of_table(
    open_page: Any, name: str, parameters: dict[str, str], table: str
) -> None:
    app = open_page(name, table=table, **{key: value.format(table=table) for key, value in parameters.items()})
    assert not app.exception
    words = [one.value for one in (*app.error, *app.code)]
    assert not any("has a bug" in word for word in words)
    if table == "many_versions" and name == "query":  # its files were never written
        assert any("missing" in word for word in words)
    elif "keys" not in parameters:
        assert not app.error


@pytest.mark.parametrize("table", MAKERS)
def test_every_segment_and_version_is_shown_in_full(open_page: Any, made: Place, table: str) -> None:
    with lakehouse.connect(*made) as lake:
        held = lake.table(table)
        segments, versions = held.segments(), held.log(3)
    for segment in segments[:2]:
        app = open_page("segments", table=table, segment=str(segment.id))
        assert not app.exception
        assert all("fault" not in one.value for one in app.error)
        assert any(str(segment.id) in one.value for one in app.text)
    for commit in versions:
        app = open_page("versions", table=table, version=str(commit.version))
        assert not app.exception
        assert not app.error
        app.toggle(key="rows").set_value(True).run() if app.toggle else None
        assert not app.exception
        assert all("fault" not in one.value for one in app.error)
