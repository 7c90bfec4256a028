"""A lake in an object store: every operation is as in a folder, few requests are made, and a store may fail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import obstore
import pyarrow as pa
import pytest
from obstore.store import from_url

import lakehouse
from lakehouse.errors import InvalidAddress, InvalidArgument, SegmentUnreadable, StorageUnavailable
from lakehouse.storage.opening import open_warehouse
from lakehouse.storage.warehouse import Listed
from lakehouse.testing.object_stores import Store, moto_server
from lakehouse.testing.store_faults import Fault, Rule, Schedule
from lakehouse.testing.store_proxy import StoreProxy
from lakehouse.testing.store_requests import Kind
from lakehouse.testing.store_trial import StoreTrial

DAY = datetime(2024, 1, 1, tzinfo=UTC)
_FAULTS = 80
pytestmark = pytest.mark.xdist_group("object_store")


@pytest.fixture(scope="module")
def server() -> Iterator[Store]:
    with moto_server() as store:
        yield store


@pytest.fixture
def proxy(server: Store) -> Iterator[StoreProxy]:
    with StoreProxy(server.port) as proxy:
        yield proxy


@pytest.fixture
def place(server: Store, proxy: StoreProxy, tmp_path: Path) -> Store:
    """A prefix of its own, through the proxy."""
    return server.under(tmp_path.name).through(proxy.port)


def opened(place: Store, tmp_path: Path, *, machine: str = "one", **settings: Any) -> lakehouse.Lake:
    """The lake as a process of a machine opens it, which shares nothing but the catalog with another machine."""
    options = {**place.options, **settings.pop("options", {})}
    return lakehouse.connect(
        f"sqlite:///{tmp_path}/catalog.db",
        settings.pop("url", place.url),
        storage_options=options,
        cache_dir=tmp_path / machine,
        **settings,
    )


@pytest.fixture
def lake(place: Store, tmp_path: Path) -> Iterator[lakehouse.Lake]:
    with opened(place, tmp_path) as lake:
        yield lake


def events(ids: Any, *, days: int = 3, label: str = "x") -> pa.Table:
    ids = list(ids)
    columns = {"at": [DAY + timedelta(days=one % days) for one in ids], "id": ids, "label": [label] * len(ids)}
    return pa.table(columns, pa.schema([("at", pa.timestamp("us", "UTC")), ("id", pa.int64()), ("label", pa.string())]))


def wide(rows: int) -> pa.Table:
    """Rows of one day, whose file is so large that its columns are fetched one by one."""
    random = np.random.default_rng(7)
    columns = {
        "at": pa.array(np.arange(rows) + int(DAY.timestamp()) * 1_000_000, pa.timestamp("us", "UTC")),
        "id": pa.array(random.permutation(rows)),
        "label": pa.array([f"{one:x}" for one in random.integers(0, 1 << 62, rows)]),
    }
    return pa.table(columns)


def created(lake: lakehouse.Lake, **more: Any) -> lakehouse.Table:
    return lake.create_table("events", "at TIMESTAMP, id BIGINT, label STRING", time="at", primary_key="id", **more)


def seen(table: lakehouse.Table, **scan: Any) -> dict[int, str]:
    found = table.scan(**scan).to_arrow()
    assert found.num_rows == len(set(found["id"].to_pylist()))
    return dict(zip(found["id"].to_pylist(), found["label"].to_pylist(), strict=True))


def test_every_operation_on_two_machines_that_share_nothing_but_catalog_and_store(place, lake, tmp_path):
    table = created(lake)
    expected: dict[int, str] = {}
    table.append(events(range(60)))
    expected |= dict.fromkeys(range(60), "x")
    table.delete("id < 5")
    expected = {one: label for one, label in expected.items() if one >= 5}
    table.upsert(events(range(50, 70), label="new"))
    expected |= dict.fromkeys(range(50, 70), "new")
    table.update({"label": "'even'"}, "id % 20 = 0")
    expected = {one: "even" if one % 20 == 0 else label for one, label in expected.items()}
    before = table.version, dict(expected)
    table.replace(events(range(300, 306), days=1), interval="2024-01-01")
    expected = {one: label for one, label in expected.items() if one % 3} | dict.fromkeys(range(300, 306), "x")
    assert seen(table) == expected
    with opened(place, tmp_path, machine="two") as other:
        there = other.table("events")
        assert seen(there) == expected
        there.compact()
        there.upsert(events([10, 1000], label="merged"))
        expected |= dict.fromkeys([10, 1000], "merged")
        assert seen(there) == expected
        assert seen(there, as_of=before[0]) == before[1]
        assert other.sql("SELECT count(*), sum(id) FROM events").fetchall() == [(len(expected), sum(expected))]
    assert seen(table) == expected
    assert lake.query("SELECT count(*) AS n FROM events").rows["n"].to_pylist() == [len(expected)]
    lake.export()
    lake.expire(keep_last=1)
    assert lake.collect(grace_seconds=0).files > 0
    assert not lake.check(deep=True).findings
    assert seen(table) == expected
    recovered = f"sqlite:///{tmp_path}/recovered.db"
    found = lakehouse.recover(place.url, recovered, storage_options=place.options)
    assert (found.tables, found.missing, found.damaged) == (("events",), (), ())
    with lakehouse.connect(recovered, place.url, storage_options=place.options, cache_dir=tmp_path / "three") as again:
        assert seen(again.table("events")) == expected


def test_few_requests_and_no_listing(lake, proxy):
    table = created(lake)
    proxy.forget()
    table.append(events(range(30), days=1))
    assert proxy.counts() == {Kind.PUT: 1}
    proxy.forget()
    assert len(table.scan(where="id > 3").plan().segments) == 1
    assert seen(table) == dict.fromkeys(range(30), "x")  # a writer keeps a copy of what it has put
    assert proxy.counts() == {}
    table.append(events(range(30, 60), days=3))
    lake.cache.clear()
    proxy.forget()
    assert len(seen(table)) == 60
    assert proxy.counts() == {Kind.GET: 4}
    table.delete("id < 5")
    table.upsert(events(range(10)))
    table.compact()
    lake.expire(keep_last=1)
    assert proxy.counts()[Kind.LIST] == 0
    assert (lake.cache.hits > 0, lake.cache.misses) == (True, 4)


def test_a_file_larger_than_the_store_takes_is_refused_before_anything_is_sent(lake, place, proxy, tmp_path):
    most = 5 << 40
    lake.session.warehouse.objects.require_fits("t/a", most)
    with pytest.raises(StorageUnavailable, match="larger than the store takes"):
        lake.session.warehouse.objects.require_fits("t/a", most + 1)
    # An option that uploads in parts do not know leaves it at one request.
    warehouse = open_warehouse(place.url, {**place.options, "unsigned_payload": "true"}, tmp_path / "two")
    file = warehouse.root / "events" / "large.parquet"
    file.parent.mkdir(parents=True)
    with file.open("wb") as made:
        made.truncate((5 << 30) + 1)  # a hole, which takes no place
    with pytest.raises(StorageUnavailable, match="larger than the store takes") as found:
        warehouse.publish([file])
    assert found.value.facts["bytes"] > found.value.facts["most_bytes"] == 5 << 30
    assert proxy.counts() == {}


def test_of_a_large_file_the_columns_that_are_read_are_fetched(lake, proxy):
    rows = wide(500_000)
    table = created(lake)
    table.append(rows)
    (segment,) = table.segments()
    lake.cache.clear()
    proxy.forget()
    assert table.scan().count() == rows.num_rows
    assert proxy.counts() == {Kind.GET: 1}  # the catalog knows how many, and the footer that they are there
    found = table.scan(columns=["id"]).to_arrow()
    assert sorted(found["id"].to_pylist()) == list(range(rows.num_rows))
    assert proxy.counts()[Kind.GET] <= 1 + 6  # no more than one for each row group, side by side
    proxy.forget()
    assert lake.cache.bytes < segment.bytes / 2
    assert lake.sql("SELECT sum(id) FROM events WHERE id < 10").fetchall() == [(45,)]
    assert proxy.counts() == {}
    table.delete("id >= 100")
    labels = dict(zip(rows["id"].to_pylist(), rows["label"].to_pylist(), strict=True))
    assert seen(table) == {one: labels[one] for one in range(100)}
    assert lake.cache.bytes >= segment.bytes


def test_a_hole_in_a_copy_is_never_read_as_rows(lake, tmp_path):
    table = created(lake)
    table.append(wide(300_000))
    lake.cache.clear()
    expected = sum(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())
    records = list((tmp_path / "one").rglob(".parts/**/*.parquet"))
    assert len(records) == 1
    records[0].unlink()  # as if the process had been killed before it was written
    assert sum(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == expected
    copies = [one for one in (tmp_path / "one").rglob("*.parquet") if ".parts" not in one.parts]
    copies[0].unlink()  # as a user does who needs room
    assert sum(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == expected


def test_rows_are_right_while_requests_fail_at_random(server, tmp_path):
    """Faults drawn from a seed, most of which pass: what is acknowledged is whole, what failed has changed nothing."""
    with StoreProxy(server.port) as proxy:
        trial = StoreTrial(server.under(tmp_path.name), proxy, tmp_path, seed=11)
        trial.run(_FAULTS)
    assert 0 < trial.refused < sum(trial.done.values())


def test_files_are_whole_after_hundreds_of_faults(place, proxy, tmp_path):
    """Many files at a time: each put and fetch fails now and then, in every way; none is ever half there."""
    one, two = (open_warehouse(place.url, dict(place.options), tmp_path / machine) for machine in ("one", "two"))
    contents = {f"table/operation/{number}.parquet": os.urandom(2000 + number) for number in range(240)}
    files = [Listed(path, len(content), 0.0) for path, content in contents.items()]
    (one.root / "table/operation").mkdir(parents=True)
    for path, content in contents.items():
        (one.root / path).write_bytes(content)
    proxy.schedule = Schedule(5, 0.5)
    one.publish(one.root / path for path in contents)
    for _ in range(2):
        assert two.fetch(files) == {}
        assert {path: two.file(path).read_bytes() for path in contents} == contents
        two.cache.clear()
    assert sum(proxy.faults().values()) > 450
    assert {one.path: one.bytes for one in one.listed()} == {path: len(held) for path, held in contents.items()}
    one.delete(contents)
    proxy.clear()
    assert list(one.listed()) == []


def test_an_answer_that_is_lost_after_the_write_is_no_second_write(lake, proxy):
    table = created(lake)
    with proxy.following(Rule(Fault.LOST, kinds=[Kind.PUT])):
        table.append(events(range(3), days=1))
    assert proxy.counts() == {Kind.PUT: 2, Kind.GET: 1}  # refused, since it is there; and it is this one
    assert seen(table) == dict.fromkeys(range(3), "x")


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Fault.EXPIRED, "credentials have expired"),
        (Fault.FORBIDDEN, "do not allow it"),
        (Fault.SKEWED, "clock is wrong"),
    ],
)
def test_a_refusal_is_named_at_once_and_nothing_is_half_done(lake, proxy, fault, says):
    table = created(lake)
    table.append(events(range(3)))
    lake.cache.clear()
    with proxy.following(Rule(fault, times=None)):
        for call in (lambda: table.append(events(range(3, 6))), lambda: seen(table), lambda: table.delete("id = 1")):
            with pytest.raises(StorageUnavailable, match=says) as found:
                call()
            assert found.value.facts["path"].startswith("s3://lake/")
    assert seen(table) == dict.fromkeys(range(3), "x")
    assert lake.operations() == []
    assert not lake.check(deep=True).findings


def test_addresses_and_options_that_are_wrong(server, place, tmp_path):
    secret = place.options["aws_secret_access_key"]
    for url, options, says in (
        ("s3://absent/x", {}, "no such bucket"),
        (place.url, {"aws_endpoint": "http://127.0.0.1:9"}, "does not answer"),
        (place.url, {"aws_endpoint": f"https://127.0.0.1:{server.port}"}, "does not answer by TLS"),
    ):
        with opened(place, tmp_path, url=url, options=options, machine="none") as lake:
            name = f"t{len(lake.tables())}"
            table = lake.create_table(name, "at TIMESTAMP", time="at")
            with pytest.raises(StorageUnavailable, match=says) as found:
                table.append(events(range(1)).select(["at"]))
            assert secret not in str(found.value)
            assert secret not in repr(lake.session.warehouse)
    for endpoint in ("127.0.0.1:9", "key:secret@host", "http://"):
        with pytest.raises(InvalidAddress, match="an endpoint is a URL") as refused:
            open_warehouse(place.url, {**place.options, "aws_endpoint": endpoint}, tmp_path).size("a")
        assert secret not in str(refused.value)
    odd = ("s3://", "s3://key:secret@bucket/x", "s3://bucket/../x", "s3://bucket/x?a=b", "ftp://host/x", "s3a://lake/x")
    for url in odd:
        with pytest.raises(InvalidAddress) as refused:
            lakehouse.connect(f"sqlite:///{tmp_path}/c.db", url)
        assert "secret" not in str(refused.value)
    with pytest.raises(InvalidArgument, match="storage_options"):
        lakehouse.connect(f"sqlite:///{tmp_path}/c.db", tmp_path, storage_options={"region": "x"})
    with pytest.raises(InvalidArgument, match="cache_bytes"):
        lakehouse.connect(f"sqlite:///{tmp_path}/c.db", place.url, cache_bytes=-1)


def test_an_object_that_is_gone_short_or_other_is_named(server, lake, place):
    table = created(lake)
    table.append(events(range(9), days=1))
    (segment,) = table.segments()
    store = lake.session.warehouse.objects
    held = bytes(store.get_ranges(segment.path, [(0, segment.bytes)])[0])
    changed = bytearray(held)
    changed[100] ^= 1
    direct = from_url(place.url, config=place.config, client_options=place.client_options)
    for content, says in (
        (held[:-9], "cut short"),
        (held + b"x", "longer"),
        (bytes(changed), "not what was written"),
        (None, "missing"),
    ):
        lake.cache.clear()
        if content is None:
            obstore.delete(direct, segment.path)
        else:
            obstore.put(direct, segment.path, content)
        with pytest.raises(SegmentUnreadable, match=says) as found:
            seen(table)
        assert found.value.facts["path"] == f"{place.url}/{segment.path}"
        assert [one.subject for one in lake.check(deep=True).findings] == [segment.path]
    obstore.put(direct, segment.path, held)
    assert len(seen(table)) == 9


def test_copies_of_erased_rows_leave_every_cache_before_the_next_answer(place, lake, tmp_path):
    table = created(lake)
    table.append(events(range(20), label="secret-value"))
    with opened(place, tmp_path, machine="two") as other:
        assert len(seen(other.table("events"))) == 20
        table.erase("id = 7")
        for machine, reader in (("one", lake), ("two", other)):
            assert 7 not in seen(reader.table("events"))
            named = {one.path for one in reader.catalog.checks().files()}
            root = reader.session.warehouse.root
            copies = {one.relative_to(root).as_posix() for one in root.rglob("*.parquet")}
            assert copies
            assert copies <= named, machine


def test_copies_stay_below_the_limit_but_for_those_in_use(place, lake, tmp_path):
    table = created(lake)
    for day in range(6):
        table.append(events(range(1000 * day, 1000 * day + 1000), days=1))
    size = sum(one.bytes for one in table.segments())
    with opened(place, tmp_path, machine="two", cache_bytes=size // 2) as small:
        found = seen(small.table("events"))
        assert len(found) == 6000
        assert small.cache.bytes <= size // 2
        stream = small.table("events").scan().to_reader()
        assert small.cache.bytes == pytest.approx(size, rel=0.1)
        assert sum(batch.num_rows for batch in stream) == 6000
        del stream
        assert small.cache.bytes <= size // 2


def test_a_forked_child_is_told_that_it_cannot_ask_the_store(lake):
    table = created(lake)
    table.append(events(range(5)))
    lake.cache.clear()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            seen(table)
        except StorageUnavailable as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        assert "forked" in said.read()
    os.waitpid(child, 0)
    assert len(seen(table)) == 5


@pytest.mark.parametrize("limit", [0, 20_000])
def test_everything_works_with_a_cache_that_holds_almost_nothing(place, tmp_path, monkeypatch, limit):
    monkeypatch.setattr("lakehouse.storage.holds.GLANCE_SECONDS", 0.0)
    monkeypatch.setattr("lakehouse.storage.cache.LIMIT_BYTES", limit)
    monkeypatch.setenv("LAKEHOUSE_CACHE_DIR", str(tmp_path / "recovering"))
    with opened(place, tmp_path, machine="small", cache_bytes=limit) as small:
        table = created(small)
        for day in range(4):
            table.append(events(range(2000 * day, 2000 * day + 2000)))
        table.upsert(events(range(5), label="new"))
        table.delete("id BETWEEN 10 AND 19")
        table.compact()
        table.erase("id = 7")
        small.export()
        assert not small.check(deep=True).findings
        scan = table.scan(best_effort=True)
        scan.check_readable()
        assert scan.to_arrow().num_rows == 8000 - 10 - 1
        assert scan.missing == []
        recovered = f"sqlite:///{tmp_path}/again.db"
        found = lakehouse.recover(place.url, recovered, storage_options=place.options, adopt=True)
        assert (found.tables, found.missing, found.damaged) == (("events",), (), ())
        assert found.segments >= len(table.segments())


def test_two_lakes_of_one_process_keep_what_the_other_one_reads(place, lake, tmp_path):
    table = created(lake)
    for day in range(3):
        table.append(events(range(1000 * day, 1000 * day + 1000)))
    with opened(place, tmp_path) as other:
        relation = table.scan().to_duckdb()
        other.cache.clear()
        assert len(relation.fetchall()) == 3000
        stream = other.table("events").scan().to_reader()
        lake.cache.clear()
        assert sum(batch.num_rows for batch in stream) == 3000


@pytest.mark.parametrize("verify", ["pages", "content"])
def test_a_copy_that_a_disk_has_spoiled_is_fetched_again(lake, verify):
    table = created(lake, properties={"verify": verify})
    table.append(events(range(3000), days=1))
    (segment,) = table.segments()
    copy = lake.session.warehouse.root / segment.path
    held = bytearray(copy.read_bytes())
    held[: len(held) // 2] = bytes(len(held) // 2)
    copy.unlink()
    copy.write_bytes(held)
    copy.chmod(0o444)
    with lakehouse.connect(
        lake.catalog.url,
        lake.warehouse,
        storage_options=lake.session.warehouse.settings["storage_options"],
        cache_dir=lake.session.warehouse.root.parent,
    ) as again:
        assert len(seen(again.table("events"))) == 3000


def test_a_record_of_parts_that_was_cut_short_counts_for_nothing(lake, tmp_path):
    table = created(lake)
    table.append(wide(300_000))
    for content in (b"", b"\x01", b"\x00" * 12):
        lake.cache.clear()
        assert table.scan(columns=["id"]).to_arrow().num_rows == 300_000
        (record,) = (tmp_path / "one").rglob(".parts/**/*.parquet")
        record.write_bytes(content)
        assert sum(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == sum(range(300_000))
