"""A search for erased values finds one that was planted in any kind of place, and nothing once it is gone."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import tempfile
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse.core.wanted import Value
from lakehouse.errors import InvalidArgument
from lakehouse.testing.rows import TIME_TYPE

NUMBER, TEXT = 0x5A17_C0DE_0BAD_F00D, "Zacharias-Quitzöw"
DAY = datetime(2013, 1, 5, tzinfo=UTC)
SCHEMA = pa.schema([("time", TIME_TYPE), pa.field("client", pa.int64(), nullable=False), ("name", pa.string())])


def rows(*clients):
    names = [TEXT if one == NUMBER else f"client {one}" for one in clients]
    return pa.table({"time": [DAY] * len(clients), "client": list(clients), "name": names}, schema=SCHEMA)


@pytest.fixture
def clients(lake):
    table = lake.create_table("clients", SCHEMA, time="time", primary_key=["client"], cluster_by=["client"])
    table.append(rows(NUMBER, 5, 6))
    return table


def places(lake, *values, **options):
    """Where a search finds values, without the names of files."""
    found = lake.verify_erased(values=values or [NUMBER, TEXT], **options)
    return {one.where.partition(", ")[2] or one.where for one in found.findings}


def remedies(lake):
    return {one.where.partition(", ")[2] or one.where: one.remedy for one in lake.verify_erased(values=[TEXT]).findings}


def test_values_are_found_in_every_kind_of_place_until_they_are_gone(lake, clients, warehouse):
    is_sqlite = lake.catalog.url.startswith("sqlite")
    clients.upsert(rows(NUMBER), message=f"by mail of {TEXT}", properties={"who": TEXT})
    clients.append(rows(8), txn=(f"load-{TEXT}", 1))
    lake.tag(f"for-{NUMBER}")
    lake.export()
    (of,) = (warehouse / "_catalog").iterdir()
    lost = shutil.copytree(of, warehouse / "_catalog" / f".partial-{'0' * 32}")
    clients.replace(rows(NUMBER), "2013-01-05", keys={"client": NUMBER})
    for number in range(40):
        clients.append(rows(100 + number))  # makes key frames
    op = clients.begin_append()
    op.write(rows(NUMBER))
    (warehouse / "note.txt").write_text(f"call {TEXT} back")
    planted = {
        "a file of clients that versions read", "a file of a running operation on clients", "an export",
        "an unfinished export", "a file that the catalog does not know", "segment.statistics", "key_frame.page",
        "tombstone.keys", "tombstone_set.content", "commit_log.message", "commit_log.properties", "txn.app", "tag.name",
    }  # fmt: skip
    assert planted <= places(lake)
    clients.erase(f"client = {NUMBER}", reason="request 17")
    waiting = [one for one in places(lake) if one.startswith("garbage of clients since")]
    assert len(waiting) == 1
    assert any(remedy.startswith("run collect") for remedy in remedies(lake).values())
    op.abort()
    shutil.rmtree(lost)
    lake.untag(f"for-{NUMBER}")
    (warehouse / "note.txt").unlink()
    clients.resolve()
    lake.expire(keep_last=1)
    lake.collect(grace_seconds=0)
    lake.export(keep=1)
    left = places(lake, vacuum=is_sqlite)
    marked = {"txn.app", "an export"} | ({"the catalog's file catalog.db"} if is_sqlite else set())
    assert left == marked, "a mark stays, so that it commits once, and is named"
    assert places(lake, NUMBER, vacuum=is_sqlite) == set()
    found = lake.verify_erased("clients", f"client IN ({NUMBER}) OR name = 'nobody of them'")
    assert found.is_clean
    assert found.files > 0
    assert found.bytes > 0


def test_free_pages_of_a_file_hold_values_until_it_is_written_anew(lake, clients):
    if not lake.catalog.files:
        with pytest.raises(InvalidArgument, match="server"):
            lake.verify_erased(values=[TEXT], vacuum=True)
        return
    for number in range(60):
        lake.tag(f"Quitz-{number}", 1)
        lake.untag(f"Quitz-{number}")
    clients.erase(f"client = {NUMBER}")
    lake.collect(grace_seconds=0)
    found = places(lake, TEXT, "Quitz")
    assert found
    assert found <= {f"the catalog's file {one.name}" for one in lake.catalog.files}
    assert places(lake, TEXT, "Quitz", vacuum=True) == set()
    clients.append(rows(7))  # the catalog is as usable as before
    assert lake.check().is_sound


def test_compressed_and_nested_values_bounds_and_dictionaries_are_decoded(lake, clients, warehouse):
    """Files that show a value in one place only, and in no byte."""
    clients.erase(f"client = {NUMBER}")
    lake.collect(grace_seconds=0)
    text = pa.array([TEXT, "b"] * 1000)
    unused = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["a", "b", TEXT]))
    held = {
        "text": pa.table({"x": text}),
        "dictionary": pa.table({"x": unused}),
        "dictionary in lists": pa.table({"x": pa.ListArray.from_arrays([0, 2], unused)}),
        "footer": pa.table({"x": [1]}).replace_schema_metadata({"note": json.dumps({"of": TEXT})}),
        "number": pa.table({"x": pa.array([NUMBER, 1])}),
        "decimal": pa.table({"x": pa.array([Decimal(NUMBER)], pa.decimal128(25, 0))}),
        "struct": pa.table({"x": pa.array([{"y": [{"z": TEXT}]}])}),
        "map": pa.table({"x": pa.array([[("k", TEXT)]], pa.map_(pa.string(), pa.string()))}),
        "binary": pa.table({"x": pa.array([TEXT.encode()])}),
    }
    for name, table in held.items():
        pq.write_table(table, warehouse / f"{name}.parquet", compression="zstd", write_statistics=False)
    (warehouse / "raw.bin").write_bytes(b"x" * (1 << 20) + struct.pack("<q", NUMBER))
    (warehouse / "split.txt").write_bytes(b"x" * ((1 << 20) - 5) + TEXT.encode())
    (warehouse / f"of {TEXT}").touch()
    found = lake.verify_erased(values=[NUMBER, TEXT])
    unknown = [one.where for one in found.findings if "does not know" in one.where]
    assert {one.partition(".")[0].partition(",")[0] for one in unknown} == {*held, "raw", "split", f"of {TEXT}"}


def test_bounds_that_were_cut_and_sets_in_files_are_found(lake, clients):
    """A bound holds the beginning of a long text; a bound of a small float is not the number that was given."""
    long = "Ö" + "long" * 100
    table = lake.create_table("others", "time TIMESTAMP, id BIGINT, name STRING, size FLOAT", time="time",
                              primary_key=["id"])  # fmt: skip
    count = 20_000
    ids = [NUMBER, *random.Random(1).sample(range(1 << 60), count - 1)]
    frame = pa.table({"time": [DAY] * count, "id": ids, "name": ["x"] * count, "size": [0.5] * count})
    table.upsert(frame.cast(table.schema))
    table.append(pa.table({"time": [DAY], "id": [1], "name": [long], "size": pa.array([0.1], pa.float32())}))
    found = lake.verify_erased(values=[long, 0.1, NUMBER]).findings
    held = {one.what[:7]: {each.where for each in found if each.what[:7] == one.what[:7]} for one in found}
    assert "the catalog, segment.statistics" in held["value 1"] & held["value 2"]
    assert any(".keys, a file of others" in one for one in held["value 3"])


def test_what_users_wrote_in_definitions_views_and_messages_is_found_however_short(lake, clients):
    assert places(lake, 7) == set()
    clients.add_column("seats", "INT", default=7)
    clients.add_column("note", "STRING", comment="asked by 7")
    lake.create_view("v", "SELECT * FROM clients WHERE client = 7")
    clients.append(rows(8).append_column("seats", pa.array([8], pa.int32())), message="for 7", schema="ignore")
    with clients.begin_replace("2014-01-01", keys={"client": 7}) as op:
        assert {"operation.keys", "chunk_lock.keys"} <= places(lake, 7)
        op.abort()
    found = places(lake, 7) - {"operation.keys"}  # it forgets them when it is collected
    assert found == {
        "lake_table.definition", "table_schema.definition", "lake_view.query", "commit_log.message",
        "a file of clients that versions read",  # whose footer has the definition
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "value"),
    [("STRING", "Zöe Müller-Löwe"), ("STRING", 'Joe "the" Doe'), ("BINARY", b"secret-name"),
     ("DECIMAL(12, 2)", Decimal("7654321.50")), ("TIMESTAMP", datetime(1987, 6, 5, 7, 8, 9, tzinfo=UTC))],
)  # fmt: skip
def test_defaults_of_fields_of_structs_are_found(lake, kind, value):
    lake.create_table("t", "id BIGINT, p STRUCT<a: INT>").add_column(("p", "f"), kind, default=value)
    wanted = value.decode() if isinstance(value, bytes) else value
    assert any("definition" in place for place in places(lake, wanted))


def test_values_that_a_view_writes_with_escapes_are_found(lake):
    lake.create_table("t", "s STRING")
    for number, name in enumerate(["O'Brien-Smith", "back\\slash-es"]):
        written = name.replace("\\", "\\\\").replace("'", "\\'")
        lake.create_view(f"v{number}", f"SELECT s FROM t WHERE s = '{written}'")
        assert "lake_view.query" in places(lake, name)


def test_what_queries_put_on_the_disk_is_read(lake, clients):
    with tempfile.TemporaryDirectory(prefix="lakehouse-spill-") as folder:
        Path(folder, "block").write_bytes(TEXT.encode())
        found = lake.verify_erased(values=[TEXT]).findings
    assert any("put on the disk" in one.where and "end the query" in one.remedy for one in found)


@pytest.mark.parametrize(
    ("value", "held", "is_found"),
    [
        ("77", [77], True), ("77", [177], False), (77, [77.0], True), ("77", ["77"], True), ("77", ["1977"], False),
        ("smith", ["blacksmith"], True), ("Smith", ["smith"], False), ("2013-01-05", [DAY], True),
        (DAY, [DAY.date()], True), ("2013-01-05T01:00", [DAY], False), (Decimal("1.5"), [1.5], True),
        (0.1, [0.1], True), (77.0, ["77"], True), ("Ö" * 200, ["Ö" * 128], True), ("77", [None], False),
        (True, [1], None), ("", ["x"], None), (None, [None], None),
    ],
)  # fmt: skip
def test_what_is_a_value_of_a_column(value, held, is_found):
    """Values of Python and the same ones in a column are found alike; what is everywhere is refused."""
    if is_found is None:
        with pytest.raises(InvalidArgument):
            Value.of(value)
        return
    wanted = Value.of(value)
    assert wanted.is_in_column(pa.array(held)) is is_found
    assert any(wanted.is_value(one) for one in held) is is_found


def test_numbers_of_a_condition_are_looked_for_in_its_columns_only(lake, clients):
    other = lake.create_table("other", "time TIMESTAMP, seats BIGINT, note STRING", time="time")
    other.append(pa.table({"time": [DAY], "seats": [7], "note": ["x"]}))
    assert lake.verify_erased("clients", "client = 7").is_clean
    found = lake.verify_erased(values=["7"])
    assert {one.what for one in found.findings} >= {"value 1"}
    assert any("value 1: it is so short" in one for one in found.unread)
    for where in ("client > 7", "client = 7 AND name = 'x'", "NOT client = 7"):
        with pytest.raises(InvalidArgument, match="no list"):
            lake.verify_erased("clients", where)
    with pytest.raises(InvalidArgument, match="name the values"):
        lake.verify_erased()


def test_the_search_says_what_it_could_not_read(lake, clients, warehouse):
    (warehouse / "cut.parquet").write_bytes(b"PAR1 cut")
    (warehouse / "set.keys").write_bytes(b"no set")
    (warehouse / "link").symlink_to(warehouse.parent)
    os.mkfifo(warehouse / "pipe")
    found = lake.verify_erased(values=[TEXT]).unread
    assert {one.partition(":")[0] for one in found if not one.startswith(("the files", "what was"))} == {
        "cut.parquet", "set.keys", "link", "pipe",
    }  # fmt: skip
    of_catalog = "--vacuum" if lake.catalog.files else "WAL"
    assert any(of_catalog in one for one in found)
