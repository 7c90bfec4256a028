"""The lake in stores that speak other protocols than S3: Azure's by Azurite, Google's by a proxy before moto."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lakehouse
from lakehouse.errors import InvalidAddress, SegmentUnreadable, StorageUnavailable
from lakehouse.testing import store_programs
from lakehouse.testing.object_stores import SERVERS, Store, Unavailable
from lakehouse.testing.store_faults import Fault, Rule
from lakehouse.testing.store_proxy import StoreProxy
from lakehouse.testing.store_requests import Kind
from lakehouse.testing.store_trial import COLUMNS, StoreTrial, events

pytestmark = pytest.mark.xdist_group("other_stores")
_FAULTS = 25


def is_here(program: str) -> bool:
    """Whether it is installed: `python -m lakehouse.testing.store_programs` does so, or says why it cannot."""
    try:
        store_programs.PROGRAMS[program](install=False)
    except Unavailable:
        return False
    return True


@pytest.fixture(scope="module", params=["google", *(["azurite"] if is_here("azurite") else [])])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with SERVERS[request.param](tmp_path_factory.mktemp(request.param)) as store:
        yield store


@pytest.fixture
def proxy(server: Store) -> Iterator[StoreProxy]:
    with StoreProxy(server.port) as proxy:
        yield proxy


@pytest.fixture
def place(server: Store, proxy: StoreProxy, tmp_path: Path) -> Store:
    return server.under(tmp_path.name).through(proxy.port)


def opened(place: Store, tmp_path: Path, machine: str = "one", **options: str) -> lakehouse.Lake:
    return lakehouse.connect(
        f"sqlite:///{tmp_path}/catalog.db",
        place.url,
        storage_options={**place.options, **options},
        cache_dir=tmp_path / machine,
    )


def seen(table: lakehouse.Table, **scan: object) -> dict[int, str]:
    found = table.scan(**scan).to_arrow()
    return dict(zip(found["id"].to_pylist(), found["label"].to_pylist(), strict=True))


def test_every_operation_by_few_requests_and_no_listing(place: Store, proxy: StoreProxy, tmp_path: Path) -> None:
    with opened(place, tmp_path) as lake:
        table = lake.create_table("events", COLUMNS, time="at", primary_key="id")
        proxy.forget()
        table.append(events([0, 3, 6], "old"))
        assert proxy.counts() == {Kind.PUT: 1}
        first = table.version
        table.append(events(range(10, 70), "x"))
        table.upsert(events(range(3, 12), "new"))
        table.delete("id BETWEEN 20 AND 29")
        table.update({"label": "'even'"}, "id % 20 = 0")
        expected = dict.fromkeys(range(10, 70), "x") | {0: "old"} | dict.fromkeys(range(3, 12), "new")
        expected = {one: label for one, label in expected.items() if not 20 <= one < 30}
        expected |= {one: "even" for one in expected if one % 20 == 0}
        proxy.forget()
        with opened(place, tmp_path, "two") as other:
            there = other.table("events")
            assert seen(there) == expected
            assert seen(there, as_of=first) == {0: "old", 3: "old", 6: "old"}
            assert proxy.counts().keys() == {Kind.GET}
            there.compact()
            assert seen(there) == expected
            assert proxy.counts()[Kind.LIST] == 0
            table.erase("id = 45")
            del expected[45]
            assert seen(there) == expected
        lake.export()
        lake.expire(keep_last=1)
        assert lake.collect(grace_seconds=0).files > 0
        assert lake.check(deep=True).findings == []
        assert seen(table) == expected
    recovered = f"sqlite:///{tmp_path}/recovered.db"
    found = lakehouse.recover(place.url, recovered, storage_options=place.options)
    assert (found.tables, found.missing, found.damaged) == (("events",), (), ())
    with lakehouse.connect(recovered, place.url, storage_options=place.options, cache_dir=tmp_path / "three") as again:
        assert seen(again.table("events")) == expected


def test_a_large_file_is_put_by_one_request(place: Store, proxy: StoreProxy, tmp_path: Path) -> None:
    """Only of S3 the parts can be noted before there are any, and the end be refused where there is an object."""
    with opened(place, tmp_path, multipart_bytes="1") as lake:
        (tmp_path / "large").write_bytes(b"more than a byte")
        lake.session.warehouse.objects.put("t/large", tmp_path / "large")
    assert proxy.counts() == {Kind.PUT: 1}


def test_of_a_large_object_parts_are_read(place: Store, proxy: StoreProxy, tmp_path: Path) -> None:
    with opened(place, tmp_path) as lake:
        objects = lake.session.warehouse.objects
        content = bytes(range(256)) * 40_000
        (tmp_path / "large").write_bytes(content)
        objects.put("t/large", tmp_path / "large")
        proxy.forget()
        ranges = [(0, 8), (5_000_000, 5_000_100), (len(content) - 9, len(content))]
        assert [bytes(one) for one in objects.get_ranges("t/large", ranges)] == [content[a:b] for a, b in ranges]
        assert proxy.counts() == {Kind.GET: 3}
        with pytest.raises(SegmentUnreadable, match="cut short"):
            objects.get_ranges("t/large", [(len(content) - 9, len(content) + 1)])


def test_a_lost_answer_is_no_second_write_and_another_object_is_refused(
    place: Store, proxy: StoreProxy, tmp_path: Path
) -> None:
    with opened(place, tmp_path) as lake:
        objects = lake.session.warehouse.objects
        one, other = tmp_path / "a", tmp_path / "b"
        one.write_bytes(b"one")
        other.write_bytes(b"other")
        with proxy.following(Rule(Fault.LOST, kinds=[Kind.PUT])):
            objects.put("t/a", one)
        assert proxy.counts() == {Kind.PUT: 2, Kind.GET: 1}
        with pytest.raises(SegmentUnreadable, match="another object has the name"):
            objects.put("t/a", other)
        assert bytes(objects.get_ranges("t/a", [(0, 3)])[0]) == b"one"
        objects.delete(["t/a", "t/gone"])
        with pytest.raises(FileNotFoundError):
            objects.size("t/a")
        objects.delete(["t/a", "t/gone"])


def test_rows_are_right_while_requests_fail(server: Store, tmp_path: Path) -> None:
    with StoreProxy(server.port) as proxy:
        trial = StoreTrial(server.under(tmp_path.name), proxy, tmp_path, seed=3)
        trial.run(_FAULTS)
    assert sum(trial.done.values()) > trial.refused


def test_what_is_wrong_is_said_at_once(place: Store, proxy: StoreProxy, tmp_path: Path) -> None:
    with opened(place, tmp_path) as lake:
        table = lake.create_table("events", COLUMNS, time="at")
        for fault, says in (
            (Fault.EXPIRED, "credentials have expired"),
            (Fault.FORBIDDEN, "do not allow it"),
            (Fault.SKEWED, "clock is wrong"),
        ):
            with proxy.following(Rule(fault, times=None)), pytest.raises(StorageUnavailable, match=says):
                table.append(events([1], "x"))
        assert lake.operations() == []
    absent = place.url.replace("/lake/", "/absent/")
    for url, options, says in (
        (absent, {}, "no such bucket"),
        (place.url, {name: value.replace(str(place.port), "9") for name, value in place.options.items()}, "not answer"),
    ):
        with lakehouse.connect(
            f"sqlite:///{tmp_path}/wrong.db",
            url,
            storage_options={**place.options, **options},
            cache_dir=tmp_path / "x",
        ) as lake:
            table = lake.create_table("events", COLUMNS, time="at", if_not_exists=True)
            with pytest.raises(StorageUnavailable, match=says) as found:
                table.append(events([1], "x"))
        for secret in (value for name, value in place.options.items() if "key" in name):
            assert secret not in str(found.value)


def test_an_account_that_does_not_fit_is_told(server: Store, tmp_path: Path) -> None:
    if server.server == "google":
        with pytest.raises(InvalidAddress), opened(server, tmp_path, google_service_account_key="{}") as lake:
            lake.create_table("other", COLUMNS, time="at").append(events([1], "x"))
        return
    wrong = {"azure_storage_account_key": "d3Jvbmc="}
    with opened(server, tmp_path, **wrong) as lake:
        table = lake.create_table("events", COLUMNS, time="at")
        with pytest.raises(StorageUnavailable, match="does not know these credentials") as found:
            table.append(events([1], "x"))
        assert "d3Jvbmc" not in str(found.value)
    with pytest.raises(InvalidAddress), opened(server, tmp_path, azure_storage_account_key="no base64!") as lake:
        lake.create_table("other", COLUMNS, time="at").append(events([1], "x"))
