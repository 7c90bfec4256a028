"""A pipe, link, folder or socket in the place of a file is named: nothing waits for it or is read through it."""

from __future__ import annotations

import os
import signal
import socket

import pytest

import lakehouse
from lakehouse.admin.recover import recover
from lakehouse.errors import SegmentUnreadable, StorageUnavailable
from lakehouse.operations.summarize import build_indexes
from lakehouse.testing.rows import arrow, values

DAY = "2013-01-05"
KINDS = ("pipe", "link", "folder", "socket", "device")


@pytest.fixture(autouse=True)
def _never_waits():
    """Ends a test that waits for a pipe, which nothing else would."""
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waits"))
    signal.alarm(120)
    yield
    signal.alarm(0)


def put(path, kind, tmp_path):
    """Put something in a file's place that is no plain file."""
    content = path.read_bytes()
    path.unlink()
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "link":
            (tmp_path / "elsewhere").write_bytes(content)
            path.symlink_to(tmp_path / "elsewhere")
        case "folder":
            path.mkdir()
        case "socket":
            with socket.socket(socket.AF_UNIX) as one:
                short = f"/proc/self/fd/{os.open(path.parent, os.O_PATH)}/{path.name}"
                one.bind(short)
        case "device":
            path.symlink_to("/dev/zero")


@pytest.fixture
def sqlite_lake(tmp_path):
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse") as lake:
        yield lake


@pytest.fixture
def flights(sqlite_lake):
    schema = "time TIMESTAMP NOT NULL, client STRING, value BIGINT"
    made = sqlite_lake.create_table("flights", schema, time="time", properties={"index": "value"})
    for n in range(3):
        made.append(arrow([(DAY, "a", n), (DAY, "b", n + 10)]))
    return made


@pytest.mark.parametrize(
    ("kind", "verify"), [*((one, "size") for one in KINDS), ("pipe", "pages"), ("pipe", "content")]
)
def test_in_the_place_of_a_segment(sqlite_lake, flights, tmp_path, kind, verify):
    flights.set_properties({"verify": verify})
    path = flights.segments()[0].path
    put(sqlite_lake.warehouse / path, kind, tmp_path)
    for work in (
        lambda: values(flights),
        lambda: flights.scan().count(),
        lambda: flights.scan(where="value = 0").to_arrow(),
        flights.compact,
        lambda: flights.update({"value": "1"}, "client = 'a'"),
        lambda: flights.delete("client = 'a' AND value < 5"),
        lambda: flights.erase("value = 0"),
        lambda: build_indexes(sqlite_lake.session, flights.spec, [one.id for one in flights.segments()]),
    ):
        with pytest.raises(SegmentUnreadable, match="not a plain file"):
            work()
    with pytest.warns(match="were left out"):
        assert values(flights, best_effort=True) == [1, 2, 11, 12]
    for deep in (False, True):
        assert ("unreadable", path) in {(one.kind, one.subject) for one in sqlite_lake.check(deep=deep).findings}


@pytest.mark.parametrize("kind", KINDS)
def test_in_the_place_of_garbage(sqlite_lake, flights, tmp_path, kind):
    path = sqlite_lake.warehouse / flights.segments()[0].path
    flights.drop(DAY)
    sqlite_lake.expire(keep_last=1)
    put(path, kind, tmp_path)
    if kind == "folder":
        with pytest.raises(StorageUnavailable, match=path.name):
            sqlite_lake.collect(grace_seconds=0)
        return
    sqlite_lake.collect(grace_seconds=0)
    assert not os.path.lexists(path)
    assert kind != "link" or (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("kind", "name"), [*((one, "key_frame.arrow") for one in KINDS), ("pipe", "manifest.json"), ("link", "lake.arrow")]
)
def test_in_the_place_of_a_file_of_an_export(sqlite_lake, flights, tmp_path, kind, name):
    sound = sqlite_lake.export()
    flights.append(arrow([(DAY, "c", 9)]))
    broken = sqlite_lake.export()
    put(tmp_path / "warehouse" / "_catalog" / broken.path.rsplit("/", 1)[1] / name, kind, tmp_path)
    found = recover(sqlite_lake.warehouse, f"sqlite:///{tmp_path}/new.db")
    assert found.version == sound.version
    assert len(found.damaged) == 1
    assert name in found.damaged[0]


@pytest.mark.parametrize("kind", KINDS)
def test_recovery_names_a_segment_that_is_no_file(sqlite_lake, flights, tmp_path, kind):
    sqlite_lake.export()
    path = flights.segments()[0].path
    put(sqlite_lake.warehouse / path, kind, tmp_path)
    (missing,) = recover(sqlite_lake.warehouse, f"sqlite:///{tmp_path}/new.db").missing
    assert path in missing


@pytest.mark.parametrize("kind", KINDS)
def test_in_the_place_of_a_set_or_an_index(sqlite_lake, tmp_path, kind):
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    schema = pa.schema([pa.field("time", pa.timestamp("us", "UTC"), nullable=False), pa.field("id", pa.int64(), False)])
    table = sqlite_lake.create_table("keyed", schema, time="time", primary_key="id", properties={"index": "id"})
    ids = np.random.default_rng(3).integers(0, 1 << 60, 20_000)
    rows = pa.table([pa.array(np.arange(20_000), pa.int64()).cast(pa.timestamp("us", "UTC")), ids], schema=schema)
    table.append(rows)
    build_indexes(sqlite_lake.session, table.spec, [one.id for one in table.segments()])
    table.upsert(rows.slice(0, 10_000))
    found = {path.rsplit(".", 1)[1]: path for path in (one.path for one in sqlite_lake.catalog.checks().files())}
    for suffix in ("index", "keys"):
        put(sqlite_lake.warehouse / found[suffix], kind, tmp_path)
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse") as again:
        with pytest.raises(SegmentUnreadable, match="not a plain file"):
            again.table("keyed").scan(where=f"id = {ids[0]}").to_arrow()
        with pytest.raises(SegmentUnreadable, match="not a plain file"):
            again.table("keyed").compact()
        findings = {(one.kind, one.subject) for one in again.check(deep=True).findings}
        assert {("unreadable", found["index"]), ("unreadable", found["keys"])} <= findings
