"""Stores and networks that answer what they should not: each is told by name and remedy, and nothing is half done."""

from __future__ import annotations

import logging
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pytest
from obstore.store import from_url

import lakehouse
from lakehouse.admin.doctor_store import try_store
from lakehouse.errors import InvalidAddress, PartialRead, SegmentUnreadable, StorageUnavailable
from lakehouse.storage.opening import open_warehouse
from lakehouse.testing.object_stores import Store, moto_server
from lakehouse.testing.store_faults import Fault, Rule
from lakehouse.testing.store_proxy import StoreProxy
from lakehouse.testing.store_requests import Head, Kind

ROWS = pa.table({"at": pa.array([1_704_067_200_000_000], pa.timestamp("us", "UTC")), "id": [1]})
REMEDIES = [
    (Fault.REDIRECTED, "the bucket is in another region; give it as AWS_REGION"),
    (Fault.OTHER_REGION, "the bucket is in the region eu-west-1; give it as AWS_REGION"),
    (Fault.NOT_IMPLEMENTED, "the condition If-None-Match; use one that does"),
    (Fault.BAD_TOKEN, "the store does not know these credentials"),
    (Fault.ARCHIVED, "bring it back"),
    (Fault.FULL, "the store is full; make room"),
    (Fault.NOT_FOUND, "there is no such bucket, or what answers is no object store"),
    (Fault.PAGE, "what answers is no object store"),
]


class ChangedProxy(StoreProxy):
    """Passes requests on without the condition that no object of the name is there, or answers with other tags."""

    is_unconditional = False
    tag: Callable[[str], str | None] | None = None

    def sent(self, head: Head) -> Head:
        """A head that asks for no condition."""
        return _without(head, "if-none-match") if self.is_unconditional else head

    def answered(self, head: Head) -> Head:
        """A head with another tag, or without one."""
        if self.tag is None or "etag" not in head.headers:
            return head
        bare, tag = _without(head, "etag"), self.tag(head.headers["etag"])
        return bare if tag is None else Head.of(bare.raw.replace(b"\r\n", f"\r\nETag: {tag}\r\n".encode(), 1))


def _without(head: Head, name: str) -> Head:
    return Head.of(re.sub(rf"(?im)^{name}:.*?\r\n".encode(), b"", head.raw))


@pytest.fixture(scope="module")
def server() -> Iterator[Store]:
    with moto_server() as store:
        yield store


@pytest.fixture
def proxy(server: Store) -> Iterator[ChangedProxy]:
    with ChangedProxy(server.port) as proxy:
        yield proxy


@pytest.fixture
def connect(server: Store, proxy: ChangedProxy, tmp_path: Path) -> Callable[..., lakehouse.Lake]:
    place = server.under(tmp_path.name).through(proxy.port)

    def connected(**options: Any) -> lakehouse.Lake:
        given = {**place.options, **options}
        return lakehouse.connect(
            f"sqlite:///{tmp_path}/c.db", place.url, storage_options=given, cache_dir=tmp_path / "copies"
        )

    return connected


def create(lake: lakehouse.Lake) -> lakehouse.Table:
    return lake.create_table("events", "at TIMESTAMP, id BIGINT", time="at")


@pytest.mark.parametrize("options", [{}, {"multipart_bytes": 1}], ids=["one request", "parts"])
@pytest.mark.parametrize(("fault", "remedy"), REMEDIES)
def test_a_write_that_is_refused_names_object_and_remedy_and_leaves_nothing(connect, proxy, fault, remedy, options):
    with connect(**options) as lake:
        table = create(lake)
        with (
            proxy.following(Rule(fault, times=None)),
            pytest.raises(StorageUnavailable, match=re.escape(remedy)) as found,
        ):
            table.append(ROWS)
        assert found.value.facts["path"].startswith("s3://lake/")
        assert len(found.value.facts["cause"]) > 10
        assert lake.operations() == []
        assert table.scan().count() == 0
        table.append(ROWS)
        lake.collect(grace_seconds=0)
        assert lake.check(deep=True).findings == []


@pytest.mark.parametrize(("fault", "remedy"), REMEDIES[:6])
def test_a_read_that_is_refused_names_object_and_remedy(connect, proxy, fault, remedy):
    with connect() as lake:
        table = create(lake)
        table.append(ROWS)
        lake.cache.clear()
        with proxy.following(Rule(fault, times=None)):
            for ask in (lambda: table.scan().to_arrow(), lambda: lake.check(deep=True)):
                with pytest.raises(StorageUnavailable, match=re.escape(remedy)):
                    ask()
        assert table.scan().count() == 1


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        (Fault.EXPIRED, "credentials have expired"),
        (Fault.SKEWED, "clock is wrong"),
        (Fault.OTHER_REGION, "the region eu-west-1"),
    ],
)
def test_a_length_that_is_refused_is_explained_although_such_an_answer_has_no_body(connect, proxy, fault, remedy):
    with connect() as lake, proxy.following(Rule(fault, times=None)):
        with pytest.raises(StorageUnavailable, match=remedy):
            lake.session.warehouse.size("events/0")
        assert {Kind.HEAD, Kind.GET} <= proxy.counts().keys()


def test_credentials_that_expire_before_a_length_is_asked_for_are_renewed(server, proxy, tmp_path):
    place = server.through(proxy.port)
    given: list[str] = []

    def new() -> dict[str, str]:
        given.append(f"token-{len(given)}")
        return {"access_key_id": "key", "secret_access_key": "secret", "token": given[-1]}

    login = ("aws_access_key_id", "aws_secret_access_key")
    options = {name: value for name, value in place.options.items() if name not in login}
    warehouse = open_warehouse(place.url, {**options, "credential_provider": new}, tmp_path)
    with (
        proxy.following(Rule(Fault.EXPIRED, header="x-amz-security-token: token-0", times=None)),
        pytest.raises(FileNotFoundError),
    ):
        warehouse.size("events/0")
    assert given[-1] != "token-0"


@pytest.mark.parametrize("options", [{}, {"multipart_bytes": 1}], ids=["one request", "parts"])
def test_a_store_that_takes_what_is_asked_and_never_answers_is_told(connect, proxy, monkeypatch, options):
    monkeypatch.setattr("lakehouse.storage.objects.ANSWER_SECONDS", {1 << 30: 0.5})
    monkeypatch.setattr("lakehouse.storage.objects.SILENT_SECONDS", 0.6)
    monkeypatch.setattr("lakehouse.storage.s3.ANSWER_SECONDS", 0.5)
    with connect(**options) as lake:
        table = create(lake)
        table.append(ROWS)
        lake.cache.clear()
        with proxy.following(Rule(Fault.HANG, times=None)):
            for ask in (
                lambda: table.append(ROWS),
                lambda: table.scan().to_arrow(),
                lambda: try_store(lake.session.warehouse),
                lambda: lake.check(deep=True),
            ):
                with pytest.raises(StorageUnavailable, match="does not answer; check endpoint and network") as found:
                    ask()
                assert found.value.facts["path"].startswith("s3://lake/")
        lake.collect(grace_seconds=0)
        assert table.scan().count() == 1
        assert lake.check(deep=True).findings == []


@pytest.mark.parametrize("option", ["read_timeout", "timeout"])
def test_an_answer_that_does_not_come_is_asked_for_again(connect, proxy, option):
    with connect(**{option: "500ms"}) as lake:
        table = create(lake)
        for kind in (Kind.PUT, Kind.GET):
            with proxy.following(Rule(Fault.HANG, kinds=[kind])):
                table.append(ROWS)
                lake.cache.clear()
                assert table.scan().count() == len(table.segments())
    assert proxy.faults() == {Fault.HANG: 2}


def test_a_host_that_takes_no_connection_is_told(server, tmp_path):
    """It listens and its queue is full, so that the kernel lets whoever comes wait."""
    with socket.socket() as full, ExitStack() as stack:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        place = server.through(full.getsockname()[1])
        with pytest.raises(StorageUnavailable, match="does not answer; check endpoint and network"):
            open_warehouse(place.url, place.options, tmp_path).size("events/0")


def test_a_name_that_another_request_is_about_is_tried_again(connect, proxy):
    with connect() as lake:
        table = create(lake)
        with proxy.following(Rule(Fault.AT_ONCE, kinds=[Kind.PUT], times=2)):
            table.append(ROWS)
        assert table.scan().count() == 1


@pytest.mark.parametrize(
    ("tag", "is_enough"),
    [
        (lambda tag: tag.strip('"'), True),
        (lambda tag: f"W/{tag}", True),
        (lambda tag: f'"{tag.strip(chr(34))}-3"', False),
        (lambda tag: '""', False),
        (lambda tag: None, False),
    ],
    ids=["unquoted", "weak", "of parts", "empty", "missing"],
)
def test_tags_of_objects_in_other_forms_are_understood_or_refused(connect, proxy, tag, is_enough):
    # Only parts are put together by their tags; of a whole object its size and its bytes are compared.
    proxy.tag = tag
    with connect(multipart_bytes=1) as lake:
        table = create(lake)
        if is_enough:
            table.append(ROWS)
        else:
            with pytest.raises(StorageUnavailable, match="something between changes its answers"):
                table.append(ROWS)
        lake.cache.clear()
        assert table.scan().count() == is_enough
        assert lake.check(deep=True).findings == []


def test_a_store_that_replaces_objects_is_refused_by_the_doctor(connect, proxy):
    with connect() as lake:
        warehouse = lake.session.warehouse
        try_store(warehouse)
        proxy.is_unconditional = True
        with pytest.raises(StorageUnavailable, match="replaces an object although it is told not to") as found:
            try_store(warehouse)
        assert found.value.facts["path"].startswith(warehouse.address)
        assert list(warehouse.listed()) == []


def test_of_writers_that_put_one_name_at_once_those_with_the_same_bytes_succeed(connect, tmp_path):
    contents = [b"one", b"other"] * 4
    refused: list[bytes] = []
    with connect() as lake:
        objects = lake.session.warehouse.objects
        objects.listed()

        def put(number: int) -> None:
            file = tmp_path / str(number)
            file.write_bytes(contents[number])
            try:
                objects.put("events/0", file)
            except SegmentUnreadable as error:
                assert error.facts["path"].endswith("/events/0")  # noqa: PT017 - in a thread of many
                refused.append(contents[number])

        writers = [threading.Thread(target=put, args=(number,)) for number in range(len(contents))]
        for one in writers:
            one.start()
        for one in writers:
            one.join()
        held = bytes(objects.get_ranges("events/0", [(0, objects.size("events/0"))])[0])
        assert refused == [one for one in set(contents) if one != held] * 4


@pytest.mark.parametrize("change", ["empty", "zeros", "page"])
def test_something_else_where_a_segment_should_be_is_named_by_every_reader(server, connect, tmp_path, change):
    direct = from_url(server.under(tmp_path.name).url, config=server.config, client_options=server.client_options)
    with connect() as lake:
        table = create(lake)
        table.append(ROWS)
        (segment,) = table.segments()
        content = {"empty": b"", "zeros": bytes(segment.bytes), "page": b"<html>"}[change]
        obstore.put(direct, segment.path, content)
        lake.cache.clear()
        for ask in (
            lambda: table.scan().to_arrow(),
            lambda: table.delete("id = 1"),
            lambda: table.update({"id": "2"}, "id = 1"),
        ):
            with pytest.raises(SegmentUnreadable, match=r"cut short|not what was written") as found:
                ask()
            assert found.value.facts["path"].endswith(segment.path)
        with pytest.warns(PartialRead):
            assert table.scan(best_effort=True).to_arrow().num_rows == 0
        assert [one.subject for one in lake.check(deep=True).findings] == [segment.path]


@pytest.mark.parametrize("option", ["bucket", "aws_bucket_name", "BUCKET"])
def test_an_option_that_names_another_bucket_than_the_address_is_refused(connect, proxy, option):
    with connect(**{option: "other"}) as lake, pytest.raises(InvalidAddress, match="name it in the address"):
        create(lake).append(ROWS)
    assert proxy.counts() == {}


def test_options_of_the_http_client_have_their_own_names(server, proxy, tmp_path):
    # The endpoint's name is of no host: it is reached by the proxy, which here is the store itself.
    place = server.through(proxy.port)
    options = {
        **place.options,
        "aws_endpoint": "http://store.invalid",
        "proxy_url": f"http://127.0.0.1:{proxy.port}",
        "timeout": "30s",
        "user_agent": "someone",
    }
    warehouse = open_warehouse(place.url, options, tmp_path)
    with pytest.raises(FileNotFoundError):
        warehouse.size("events/0")
    assert {one.request.headers["user-agent"] for one in proxy.exchanges} == {"someone"}


def test_no_log_has_a_token(connect, caplog):
    with connect(multipart_bytes=1, aws_session_token="t0ken-of-mine") as lake, caplog.at_level(logging.DEBUG):
        create(lake).append(ROWS)
    assert "x-amz-security-token" in caplog.text
    assert "t0ken-of-mine" not in caplog.text
    assert lake.session.warehouse.objects.credentials.named["aws_secret_access_key"] not in caplog.text


@pytest.mark.parametrize("prefix", ["a\nb", "a\tb", "a%00b", "\x01", "a%0Ab"])
def test_an_address_with_what_cannot_be_seen_is_refused(prefix):
    with pytest.raises(InvalidAddress, match="named by bucket and prefix"):
        open_warehouse(f"s3://lake/{prefix}")
