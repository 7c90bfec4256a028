"""After an erasure no byte that the lake keeps has an erased value, but where the erasure itself says so."""

from __future__ import annotations

import sqlite3
import struct
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import make_url

import lakehouse
from lakehouse.catalog.store.models import operation, tombstone
from lakehouse.core.erased import Erased, receipt_text
from lakehouse.core.sets import decode_set
from lakehouse.errors import InternalError
from lakehouse.operations.summarize import build_indexes, missing_indexes
from lakehouse.testing import behind
from lakehouse.testing.faults import armed, on_count
from lakehouse.testing.rows import TIME_TYPE, tabled

NUMBER, TEXT = 0x5A17_C0DE_0BAD_F00D, "Zacharias-4711-Quitzow"
TRACES = (TEXT.encode(), str(NUMBER).encode(), struct.pack("<q", NUMBER), struct.pack(">q", NUMBER))
SCHEMA = pa.schema(
    [("time", TIME_TYPE), pa.field("client", pa.int64(), nullable=False), ("name", pa.string()), ("value", pa.int64())]
)
DAY, NEXT, LATER = "2013-01-05", "2013-01-06", "2013-01-07"


def rows(*listed: tuple[str, int, int]) -> pa.Table:
    """Rows of days, clients and values; each client has one name."""
    named = [(day, client, TEXT if client == NUMBER else f"client {client}", value) for day, client, value in listed]
    return tabled([(lakehouse.Interval.of(day).start, *rest) for day, *rest in named], SCHEMA)


@pytest.fixture
def clients(lake: Any) -> Any:
    """A table in which one client lies under all that copies, hides, indexes and exports rows."""
    table = lake.create_table(
        "clients", SCHEMA, time="time", cluster_by={"client": 16, "name": 0}, properties={"index": "name"}
    )
    table.append(rows((DAY, NUMBER, 1), (DAY, 5, 2), (NEXT, NUMBER, 3), (NEXT, 6, 4)))
    table.append(rows((LATER, NUMBER, 5), (LATER, 7, 6)))
    segments, _ = lake.catalog.live(table.spec, lake.head)
    build_indexes(lake.session, table.spec, missing_indexes(lake.session, table.spec, segments))
    half = f"{DAY}T00:00:00/{DAY}T12:00:00"
    table.replace(rows((DAY, NUMBER, 7)), half, keys={"client": NUMBER})
    table.replace(rows((DAY, NUMBER, 8), (DAY, 5, 9)), half, keys={"client": [NUMBER, 5]})
    table.replace(None, NEXT, keys={"name": TEXT})
    table.update({"value": "value + 100"}, f"client = {NUMBER}")
    table.delete(f"client = {NUMBER} AND value > 105")
    table.merge(rows((LATER, NUMBER, 10)), ["client"], when_matched_update={"value": "source.value"})
    lake.export()
    table.compact()
    op = table.begin_replace(LATER, keys={"client": NUMBER})
    op.write(rows((LATER, NUMBER, 11)))
    op.abort()
    for value in range(40):
        table.append(rows((DAY, 5, 1000 + value)))
    lake.export()
    return table


def traces(lake: Any, warehouse: Path, tmp_path: Path) -> dict[str, int]:
    """By place, how many of the erased values are found in what the lake keeps, after a VACUUM."""
    found: dict[str, int] = {}

    def look(place: str, content: bytes) -> None:
        count = sum(trace in content for trace in TRACES)
        if count:
            found[place] = found.get(place, 0) + count

    url = make_url(lake.catalog.address)
    if url.get_backend_name() == "sqlite":
        lake.close()
        with sqlite3.connect(url.database) as database:
            database.execute("VACUUM")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()
        for path in tmp_path.glob("catalog.db*"):
            look(path.name, path.read_bytes())
    for table, column, value in _cells(url):
        look(f"{table}.{column}", value)
    for path in warehouse.rglob("*"):
        if path.is_file():
            name = path.name
            look(f"bytes of {name}", path.read_bytes())
            if path.suffix == ".parquet":
                look(f"values of {name}", repr(pq.read_table(path, partitioning=None).to_pylist()).encode())
                look(f"footer of {name}", repr(pq.read_metadata(path).to_dict()).encode())
            elif path.suffix == ".arrow":
                part = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
                for column in part.column_names:
                    for value in part[column].to_pylist():
                        look(f"{name} {column}", _bytes(value))
                        look(f"{name} {column}", _unpacked(value))
    return found


def _cells(url: Any) -> Any:
    """Every text and every content of every table of a catalog, what is packed unpacked too."""
    if url.get_backend_name() == "sqlite":
        connection: Any = sqlite3.connect(url.database)
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    else:
        connection = psycopg.connect(url.set(drivername="postgresql").render_as_string(hide_password=False))
        connection.autocommit = True
        connection.execute("VACUUM FULL")
        public = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        names = [row[0] for row in connection.execute(public)]
    for name in names:
        cursor = connection.execute(f'SELECT * FROM "{name}"')
        columns = [one[0] for one in cursor.description]
        for row in cursor.fetchall():
            for column, value in zip(columns, row, strict=True):
                yield name, column, _bytes(value)
                yield name, column, _unpacked(value)
    connection.close()


def _bytes(value: Any) -> bytes:
    return bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()


def _unpacked(value: Any) -> bytes:
    """What is in a set of keys, or the streams of a page."""
    if not isinstance(value, bytes | memoryview):
        return b""
    content = bytes(value)
    try:
        return repr(decode_set("key", content).to_pylist()).encode()
    except (pa.ArrowInvalid, InternalError, OSError):
        pass
    shown = b""
    for start in _streams(content):
        try:
            shown += repr(pa.ipc.open_stream(pa.BufferReader(content[start:])).read_all().to_pylist()).encode()
        except (pa.ArrowInvalid, OSError):
            continue
    return shown


def _streams(content: bytes) -> list[int]:
    """Where Arrow streams may begin."""
    return [place for place in range(len(content) - 4) if content[place : place + 4] == b"\xff\xff\xff\xff"]


def left(erased: Erased) -> list[str]:
    """Where something is left, but for appends that were registered ahead and have not begun."""
    return sorted({one.where for one in erased.residue if not one.where.startswith("operations")})


def test_no_byte_of_an_erased_client_is_left(lake: Any, clients: Any, warehouse: Path, tmp_path: Path) -> None:
    versions = {one.version: clients.scan(as_of=one.version) for one in clients.log() if one.operation != "create"}
    kept = {version: sorted(scan.to_arrow()["value"].to_pylist()) for version, scan in versions.items()}
    mine = f"client = {NUMBER}"
    others = {
        version: sorted(clients.scan(as_of=version, where=f"NOT ({mine})").to_arrow()["value"].to_pylist())
        for version in versions
    }
    assert kept != others
    erased = clients.erase(mine, reason="request 17")
    assert isinstance(erased, Erased)
    assert erased.rows == erased.rows_deleted
    assert {name: erased.properties[name] for name in ("reason", "erased.segments_rewritten", "erased.segments_removed",
                                                       "erased.versions_readable")} == {
        "reason": "request 17",
        "erased.segments_rewritten": str(erased.segments_rewritten),
        "erased.segments_removed": str(erased.segments_removed),
        "erased.versions_readable": str(erased.versions_readable),
    }  # fmt: skip
    assert [one.properties for one in clients.log(1)] == [erased.properties]
    assert receipt_text(erased).endswith("reason: request 17")
    assert erased.rows > 0
    assert erased.segments_rewritten > 0
    assert erased.segments_removed > 0
    assert erased.files_to_go > 0
    assert erased.versions_readable == len(clients.log()) + 1, "all, and that of the empty table"
    assert left(erased) == ["the catalog's database", "the warehouse", "tombstones"], erased.residue
    clients.erase(f"name = '{TEXT}'")
    lake.collect(grace_seconds=0)
    assert {
        version: sorted(clients.scan(as_of=version).to_arrow()["value"].to_pylist()) for version in versions
    } == others
    assert lake.check(deep=True).findings == []
    last = clients.erase(mine)
    assert left(last) == ["the catalog's database"]
    assert traces(lake, warehouse, tmp_path) == {}


def test_the_search_finds_what_was_not_erased(lake: Any, clients: Any, warehouse: Path, tmp_path: Path) -> None:
    found = " ".join(traces(lake, warehouse, tmp_path))
    for place in (
        "operation.keys",
        "tombstone.keys",
        "segment.statistics",
        "key_frame.page",
        "values of",
        "key_frame.arrow",
    ):
        assert place in found, found


def test_primary_keys_and_words_that_stay_are_named(lake: Any) -> None:
    table = lake.create_table("keyed", SCHEMA, time="time", primary_key=["client"], cluster_by=["client"])
    table.upsert(rows((DAY, NUMBER, 1), (DAY, 5, 2)), message=f"load {NUMBER}")
    table.delete_keys(pa.table({"client": [NUMBER]}))
    op = table.begin_append()
    erased = table.erase(f"client = {NUMBER}")
    shown = "\n".join(str(one) for one in erased.residue)
    assert "primary keys of 2 upserts" in shown
    assert "words of users in commits 2" in shown
    assert op.id in shown
    op.abort()


@pytest.mark.parametrize("where", ["name LIKE 'Zq7%'", "length(name) = 13", "name = 'Zq7secretname' OR name IS NULL"])
def test_words_marks_and_tags_are_named_whatever_chooses_the_rows(lake: Any, where: str) -> None:
    schema = pa.schema([("at", TIME_TYPE), ("name", pa.string())])
    table = lake.create_table("people", schema, time="at")
    one = pa.table({"at": [datetime(2013, 1, 1, tzinfo=UTC)], "name": ["Zq7secretname"]}, schema=schema)
    version = table.append(one, message="of Zq7secretname, by mail", txn=("app-Zq7secretname", 1)).version
    lake.tag("for-Zq7secretname", version)
    erased = table.erase(where)
    shown = {one.what.split(" that may")[0]: one.where for one in erased.residue}
    assert shown.keys() >= {"words of users", "marks (txn)", "names of tags"}
    assert str(version) in shown["words of users"]


def test_keys_of_others_stay_and_keep_hiding(lake: Any, clients: Any) -> None:
    before = clients.scan(where=f"client <> {NUMBER}").to_arrow()["value"].to_pylist()
    clients.erase(f"client = {NUMBER}")

    def scopes(connection: Any) -> list[str]:
        return [row["keys"] for row in connection.execute(tombstone.select()).mappings() if row["keys"]]

    left = behind.ask(lake.catalog, scopes)
    assert any("5" in one and str(NUMBER) not in one for one in left), left
    assert not any(str(NUMBER) in one for one in left)
    assert sorted(clients.scan().to_arrow()["value"].to_pylist()) == sorted(before)


def test_a_scope_that_something_running_may_need_stays_and_is_named(lake: Any) -> None:
    table = lake.create_table("late", SCHEMA, time="time", cluster_by=["client"], write_order="start")
    table.append(rows((DAY, NUMBER, 1), (DAY, 5, 2)))
    late = table.begin_append()
    late.write(rows((DAY, NUMBER, 3)))
    table.replace(rows((DAY, NUMBER, 4)), DAY, keys={"client": NUMBER})
    erased = table.erase(f"client = {NUMBER}")
    assert any("keys of 1 replaces" in one.what for one in erased.residue)
    late.commit()
    assert table.scan().to_arrow()["value"].to_pylist() == [2], "what the replace hid stays hidden"
    again = table.erase(f"client = {NUMBER}")
    assert not any("keys of" in one.what for one in again.residue)
    assert table.scan().to_arrow()["value"].to_pylist() == [2]


def test_an_export_that_began_before_an_erasure_is_made_again(lake: Any, clients: Any, warehouse: Path) -> None:
    with armed({"export.written": on_count(1, lambda: clients.erase(f"client = {NUMBER}"))}):
        lake.export(keep=10)
    for path in (warehouse / "_catalog").rglob("*.arrow"):
        part = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        cells = [value for column in part.column_names for value in part[column].to_pylist()]
        assert not any(str(NUMBER).encode() in _bytes(one) + _unpacked(one) for one in cells), path


def test_operations_that_ended_forget_their_keys(lake: Any, clients: Any) -> None:
    clients.erase("value = -1")

    def kept(connection: Any) -> list[Any]:
        rows = connection.execute(operation.select()).mappings()
        return [row["keys"] for row in rows if row["state"] != "running"]

    assert set(behind.ask(lake.catalog, kept)) == {None}
