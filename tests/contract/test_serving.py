"""Query nodes on each catalog: versions that flip together, answers that are whole, and what is refused."""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import os
import resource
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pyarrow as pa
import pytest

import lakehouse
from lakehouse import errors
from lakehouse.core.beside import beside
from lakehouse.core.serving.group import Node, NodeReport, NodeStage
from lakehouse.serving import answering
from lakehouse.serving.answering import QueryBounds
from lakehouse.serving.node import NodeSettings
from lakehouse.sql.translation import translate
from lakehouse.testing.postgres import PostgresServer
from lakehouse.testing.proxy import CommitLosingProxy
from lakehouse.testing.rows import SCHEMA, arrow
from lakehouse.testing.serving_nodes import NodeProcess, served, urls

SUM = "SELECT sum(value) AS total FROM flights"
QUICK = NodeSettings(lease_seconds=1.0)
sqlite_only = pytest.mark.parametrize("catalog_url", ["sqlite"], indirect=True)


def copying(tmp_path: Path, **more: Any) -> NodeSettings:
    return NodeSettings(cache_dir=str(tmp_path / "copies"), lease_seconds=1.0, **more)


def copies(tmp_path: Path) -> set[str]:
    return {path.name + str(path.parent.name) for path in (tmp_path / "copies").rglob("*.parquet")}


def total(client: Any, **how: Any) -> int | None:
    found: int | None = client.sql(SUM, **how).rows["total"][0].as_py()
    return found


def until(what: Callable[[], object], seconds: float = 120.0) -> None:
    """Wait for something that a node does in a thread of its own, and that only its looks show."""
    give_up = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < give_up, "it never came"
        threading.Event().wait(0.02)


@pytest.fixture
def flights(lake: Any) -> Any:
    found = lake.create_table("flights", SCHEMA, time="time", cluster_by=("client",))
    found.append(arrow([("2013-01-05", "a", 1), ("2013-01-06", "b", 2), ("2013-01-07", "a", 4)]))
    return found


@pytest.fixture
def client(lake: Any, flights: Any) -> Iterator[Any]:
    with served(lake, settings=QUICK) as node, lakehouse.connect_serving(node.url) as found:
        yield found


# Groups


def node(name: str, live: int, *loaded: int, stage: NodeStage = NodeStage.SERVING) -> Node:
    return Node(name, "g", f"http://{name}", stage, live, 0.0, NodeReport(loaded=loaded))


def test_a_flip_is_one_row_that_one_node_writes_once_all_have_loaded(lake: Any, flights: Any) -> None:
    groups, head = lake.catalog.serving(), lake.head
    first = groups.join(node("a", 0, stage=NodeStage.JOINING), 0, lease_seconds=60)
    assert (first.live, first.target, [one.id for one in first.nodes]) == (head, None, ["a"])
    groups.report(node("a", head, head), head, lease_seconds=60)
    groups.join(node("b", head, head), head, lease_seconds=60)
    newer = flights.append(arrow([("2013-01-05", "a", 8)])).version
    now = groups.group("g")
    assert now.live == head, "who joins a group that serves takes its version"
    assert groups.aim("g", now.flips, None)
    assert not groups.aim("g", now.flips, None), "another was first"
    groups.report(node("a", head, head, newer), head, lease_seconds=60)
    assert not groups.flip("g", now.flips, newer)
    assert groups.group("g").waits_for == ("b",)
    groups.report(node("b", head, head, newer), head, lease_seconds=60)
    flipped = []
    threads = [threading.Thread(target=lambda: flipped.append(groups.flip("g", now.flips, newer))) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(flipped) == [False, False, False, True]
    assert (groups.glance("g").live, groups.glance("g").target, groups.glance("g").flips) == (newer, None, 2)


def test_a_name_is_one_node_s_until_its_lease_ends(lake: Any, flights: Any) -> None:
    groups, head = lake.catalog.serving(), lake.head
    one, two = (replace(node("a", head), report=NodeReport(run=run)) for run in ("first", "second"))
    groups.join(one, head, lease_seconds=60)
    for call in (groups.join, groups.report):
        with pytest.raises(errors.AlreadyExists, match=r"a query node of this name serves already.*--name.*node=a"):
            call(two, head, lease_seconds=60)
    groups.report(one, head, lease_seconds=-1)
    groups.join(two, head, lease_seconds=60)
    with pytest.raises(errors.AlreadyExists):
        groups.report(one, head, lease_seconds=60)
    groups.leave("a", "first")
    assert [found.report.run for found in groups.group("g").nodes] == ["second"], "what is another's stays"
    groups.leave("a", "second")
    assert groups.group("g").nodes == []


def test_of_two_that_join_by_one_name_at_once_one_does(lake: Any, flights: Any) -> None:
    groups, head = lake.catalog.serving(), lake.head
    start, refused = threading.Barrier(4), []

    def join(run: str) -> None:
        start.wait()
        try:
            groups.join(replace(node("a", head), report=NodeReport(run=run)), head, lease_seconds=60)
        except errors.AlreadyExists:
            refused.append(run)

    threads = [threading.Thread(target=join, args=(run,)) for run in "1234"]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted([*refused, *(found.report.run for found in groups.group("g").nodes)]) == ["1", "2", "3", "4"]


def test_what_nodes_serve_does_not_expire_until_their_leases_end(lake: Any, flights: Any) -> None:
    groups, held = lake.catalog.serving(), lake.head
    groups.join(node("a", held, held), held, lease_seconds=60)
    for value in range(3):
        flights.append(arrow([("2013-01-05", "a", value)]))
    lake.expire(keep_last=1)
    assert flights.scan(as_of=held).count() == 3
    groups.leave("a")
    lake.expire(keep_last=1)
    with pytest.raises(lakehouse.VersionNotFound):
        flights.scan(as_of=held)


# Answers


def test_an_answer_is_of_one_version_of_all_tables_and_says_where_it_came_from(
    lake: Any, flights: Any, client: Any
) -> None:
    names = lake.create_table("names", "client STRING, name STRING")
    names.append(pa.table({"client": ["a", "b"], "name": ["ann", "bob"]}))
    with lake.transaction() as tx:
        tx.table("names").append(pa.table({"client": ["c"], "name": ["cyd"]}))
        tx.table("flights").append(arrow([("2013-01-08", "c", 8)]))
    answer = client.sql(
        "SELECT name, sum(value) AS n FROM flights JOIN names USING (client) GROUP BY name ORDER BY name",
        at_least=lake.head,
    )
    assert answer.rows.to_pylist() == [
        {"name": "ann", "n": 5}, {"name": "bob", "n": 2}, {"name": "cyd", "n": 8},
    ]  # fmt: skip
    assert answer.versions == {"flights": lake.head, "names": lake.head}
    assert answer.version == client.version == lake.head
    until(lambda: not client.sql(f"{SUM} -- {time.monotonic()}").coverage["flights"].warehouse)
    (found,) = client.sql(f"{SUM} WHERE time < '2013-01-07'").coverage.values()
    assert [str(one) for one in found.cache] == ["2013-01-05/2013-01-07"]
    assert found.is_complete


def test_a_client_reads_what_it_wrote_and_what_an_answer_read(lake: Any, flights: Any, client: Any) -> None:
    before = client.sql(SUM)
    for value in (10, 20, 30):
        written = flights.append(arrow([("2013-01-05", "a", value)]))
        after = client.sql(SUM, at_least=written.version)
        assert after.version >= written.version
    assert after.rows["total"].to_pylist() == [67]
    assert total(client, at_least={"flights": written.version}) == 67
    again = client.sql(SUM, versions=after.versions)
    assert (again.from_results, again.rows.equals(after.rows), again.versions) == (True, True, after.versions)
    assert before.rows["total"].to_pylist() == [7]


def test_every_change_is_served_as_the_table_has_it(lake: Any, flights: Any, client: Any) -> None:
    for change in (
        lambda: flights.replace(arrow([("2013-01-06", "z", 100)]), "2013-01-06"),
        lambda: flights.delete("value = 1"),
        lambda: flights.update({"value": "value + 1000"}, "client = 'a'"),
        flights.compact,
        lambda: flights.add_column("gate", "STRING", default="A1"),
        lambda: flights.restore(2),
    ):
        change()
        expected = [tuple(row.values()) for row in flights.scan().to_arrow().to_pylist()]
        found = client.sql("SELECT * FROM flights", at_least=lake.head)
        assert sorted(tuple(row.values()) for row in found.rows.to_pylist()) == sorted(expected)


def test_views_and_values_beside_the_statement(lake: Any, flights: Any, client: Any) -> None:
    lake.create_view("late", "SELECT client, value FROM flights WHERE value > 1")
    found = client.sql("SELECT count(*) AS n FROM late WHERE client = :one", args={"one": "a"}, at_least=lake.head)
    assert found.rows.to_pylist() == [{"n": 1}]
    assert client.sql("SELECT ? AS x", args=["it's"]).rows.to_pylist() == [{"x": "it's"}]


@sqlite_only
@pytest.mark.parametrize(
    ("text", "how", "error"),
    [
        ("DELETE FROM flights", {}, errors.InvalidStatement),
        ("SHOW TABLES", {}, errors.InvalidStatement),
        ("EXPLAIN SELECT 1", {}, errors.InvalidStatement),
        ("SELECT * FROM flights.segments", {}, errors.InvalidStatement),
        ("SELECT reflect('java.lang.System', 'exit')", {}, errors.InvalidStatement),
        ("SELECT * FROM read_csv('/etc/passwd')", {}, errors.InvalidInput),
        ("SELECT", {}, errors.InvalidStatement),
        ("SELECT * FROM nothing", {}, errors.TableNotFound),
        ("SELECT * FROM flights VERSION AS OF 1", {}, errors.VersionNotServed),
        (SUM, {"versions": 1}, errors.VersionNotServed),
        (SUM, {"versions": {"flights": 1}}, errors.VersionNotServed),
        (SUM, {"versions": "new"}, errors.InvalidArgument),
        (SUM, {"at_least": -1}, errors.InvalidArgument),
        ("SELECT ?", {}, errors.InvalidStatement),
    ],
)
def test_what_a_node_refuses_is_an_error_of_its_class(client: Any, text: str, how: Any, error: type) -> None:
    with pytest.raises(error):
        client.sql(text, **how)
    assert total(client) == 7


@sqlite_only
def test_a_version_that_is_not_there_yet_or_has_expired_is_said_so(lake: Any, flights: Any, client: Any) -> None:
    with (
        lakehouse.connect_serving(client.urls, wait_seconds=0.2) as hasty,
        pytest.raises(errors.VersionNotServed, match="not served yet"),
    ):
        hasty.sql(SUM, at_least=1000)
    newest = flights.append(arrow([("2013-01-05", "a", 8)])).version
    assert total(client, at_least=newest) == 15
    until(lambda: lake.expire(keep_last=1).horizon > 2)
    with pytest.raises(lakehouse.VersionNotFound, match="expired"):
        client.sql(SUM, versions=1)


@sqlite_only
def test_a_table_that_the_lake_lacks_is_not_waited_for_and_a_new_one_is(lake: Any, flights: Any) -> None:
    with served(lake) as one, lakehouse.connect_serving(one.url, wait_seconds=600) as client:
        with pytest.raises(errors.TableNotFound, match=r"no such table, whose version could be waited for.*flights"):
            client.sql(SUM, at_least={"flihgts": 1})
        hidden = beside(uuid4().hex)
        lake.create_table(hidden, "client STRING")
        for name in (hidden, hidden[:-1]):  # none of the lake's own is waited for, nor named
            with pytest.raises(errors.TableNotFound) as found:
                client.sql(SUM, at_least={name: 1})
            assert "nearest" not in found.value.facts
        names = lake.create_table("names", "client STRING")
        written = names.append(pa.table({"client": ["a"]})).version
        answer = client.sql("SELECT * FROM names", at_least={"names": written})
        assert answer.rows.to_pylist() == [{"client": "a"}]


@sqlite_only
def test_the_time_of_a_translation_counts(lake: Any, flights: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*given: Any) -> Any:
        threading.Event().wait(1.0)
        return translate(*given)

    settings = NodeSettings(bounds=QueryBounds(seconds=0.5))
    with served(lake, settings=settings) as one, lakehouse.connect_serving(one.url, wait_seconds=0) as client:
        monkeypatch.setattr(answering, "translate", slow)
        with pytest.raises(lakehouse.QueryLimitExceeded) as found:
            client.sql(SUM)
        monkeypatch.undo()
        assert found.value.facts["limit"] == "seconds"
        assert total(client) == 7


@sqlite_only
def test_limits_are_errors_and_leave_the_node_well(lake: Any, flights: Any) -> None:
    bounds = QueryBounds(rows=10, bytes=5_000, seconds=0.5, memory=200_000_000)
    long = "SELECT count(*) FROM range(900000) a, range(900000) b WHERE a.id % 7 = b.id % 11"
    with (
        served(lake, settings=NodeSettings(bounds=bounds)) as one,
        lakehouse.connect_serving(one.url, wait_seconds=0) as client,
    ):
        for text, limit in (
            ("SELECT * FROM range(11)", "rows"), ("SELECT repeat('x', 1000) FROM range(9)", "bytes"), (long, "seconds"),
        ):  # fmt: skip
            with pytest.raises(lakehouse.QueryLimitExceeded) as found:
                client.sql(text)
            assert found.value.facts["limit"] == limit
        status, said = Post(one.url, "SELECT repeat('\t', 600) FROM range(3)").answer()
        assert status == 200
        status, said = Post(one.url, "SELECT repeat('\t', 600) FROM range(8)").answer()
        assert (status, said["facts"]["limit"]) == (422, "bytes"), "it is twice as long in JSON"
        assert total(client) == 7


@sqlite_only
def test_a_query_ends_when_its_client_goes_or_its_id_is_cancelled(lake: Any, flights: Any) -> None:
    long = "SELECT count(*) FROM range(900000) a, range(900000) b WHERE a.id % 7 = b.id % 11"
    with served(lake) as one:
        asking = http.client.HTTPConnection(one.url.removeprefix("http://"))
        asking.request("POST", "/sql", long, {"lakehouse-query": "mine"})
        until(lambda: one.node.running)
        other = http.client.HTTPConnection(one.url.removeprefix("http://"))
        other.request("DELETE", "/queries/mine")
        assert other.getresponse().read() == b'{"cancelled":true}'
        answer = asking.getresponse()
        assert (answer.status, json.loads(answer.read())["code"]) == (499, "statement_cancelled")
        other.close()
        asking.request("POST", "/sql", long)
        until(lambda: one.node.running)
        asking.close()
        until(lambda: not one.node.running)


LONG_QUERY = "SELECT count(*) AS n FROM range(900000) a, range(900000) b WHERE a.id % 7 = b.id % 11"


class Post:
    """A statement that is posted, whose answer is read when it is asked for."""

    def __init__(self, url: str, body: Any, **headers: str) -> None:
        self.connection = http.client.HTTPConnection(url.removeprefix("http://"))
        kind = "application/json" if isinstance(body, dict) else "text/plain"
        given = {"accept": "application/json", "content-type": kind}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request("POST", "/sql", json.dumps(body) if isinstance(body, dict) else body, given)

    def answer(self) -> tuple[int, Any]:
        with contextlib.closing(self.connection):
            found = self.connection.getresponse()
            return found.status, json.loads(found.read())


def cancelled(url: str, query_id: str) -> bool:
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    with contextlib.closing(connection):
        connection.request("DELETE", f"/queries/{query_id}")
        found: bool = json.loads(connection.getresponse().read())["cancelled"]
        return found


@sqlite_only
def test_a_client_that_goes_within_its_question_leaves_no_trace(
    lake: Any, flights: Any, caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger("uvicorn.error")
    with served(lake) as one, lakehouse.connect_serving(one.url) as client:
        logger.addHandler(caplog.handler)
        try:
            address = urlsplit(one.url)
            with socket.create_connection((address.hostname, address.port)) as half:
                half.sendall(b"POST /sql HTTP/1.1\r\nhost: here\r\ncontent-length: 100\r\n\r\nSELECT 1")
                half.shutdown(socket.SHUT_WR)
                assert half.recv(1000) == b""  # the node has seen that it is gone
            assert total(client) == 7
        finally:
            logger.removeHandler(caplog.handler)
        assert not caplog.records


@sqlite_only
def test_a_query_that_waits_is_cancelled_and_so_are_all_of_one_id(lake: Any, flights: Any) -> None:
    with served(lake, settings=NodeSettings(at_once=1)) as one:
        runs = Post(one.url, LONG_QUERY, lakehouse_query="runs")
        until(lambda: one.node.running == ["runs"])
        turn = [Post(one.url, SUM, lakehouse_query="same") for _ in range(2)]
        version = Post(one.url, {"sql": SUM, "at_least": 1000, "wait_seconds": 600}, lakehouse_query="version")
        until(lambda: one.node.running == ["runs", "same", "version"])
        until(lambda: cancelled(one.url, "same") and not threading.Event().wait(0.2))
        assert cancelled(one.url, "version")
        said = [post.answer() for post in (*turn, version)]
        assert [(status, held["code"]) for status, held in said] == [(499, "statement_cancelled")] * 3
        assert cancelled(one.url, "runs")
        assert runs.answer()[0] == 499
        assert Post(one.url, SUM).answer()[1]["rows"] == [[7]]


@sqlite_only
def test_those_who_wait_for_a_version_leave_room_for_others(lake: Any, flights: Any) -> None:
    waits = {"sql": SUM, "at_least": 1000, "wait_seconds": 600}
    with served(lake, settings=NodeSettings(most_waiting=3, most_waiting_each=2)) as one:
        waiting = [Post(one.url, waits, lakehouse_reader=reader) for reader in "aab"]
        until(lambda: len(one.node.running) == 3)
        for reader in "ac":
            status, said = Post(one.url, waits, lakehouse_reader=reader).answer()
            assert (status, said["facts"]["limit"]) == (429, "waiting")
        assert Post(one.url, SUM, lakehouse_reader="a").answer()[0] == 200
        for post in waiting:
            post.connection.close()  # who goes away waits no longer
        until(lambda: not one.node.running)


BIG = "SELECT repeat('x', 1000) AS x, {} AS n FROM range(16000)"


class Untaken:
    """A client that asks for sixteen megabytes and takes what it is told to, which is nothing at first."""

    def __init__(self, url: str, reader: str) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        host, _, port = url.removeprefix("http://").partition(":")
        self.socket.connect((host, int(port)))
        self.socket.settimeout(20.0)
        text = BIG.format(f"'{reader}'")
        head = f"POST /sql HTTP/1.1\r\nhost: x\r\nlakehouse-reader: {reader}\r\ncontent-length: {len(text)}\r\n\r\n"
        self.socket.sendall((head + text).encode())

    def take(self, most: int) -> int:
        """Take so many bytes; how many there were until the connection ended."""
        taken = 0
        with contextlib.suppress(ConnectionResetError):
            while taken < most and (part := self.socket.recv(min(65_536, most - taken))):
                taken += len(part)
        return taken


@sqlite_only
def test_answers_that_nobody_takes_hold_up_their_reader_and_when_there_are_too_many_others(
    lake: Any, flights: Any
) -> None:
    settings = NodeSettings(send_bytes=24_000_000, send_seconds=600.0, most_waiting_each=1)
    with served(lake, settings=settings) as one, contextlib.ExitStack() as stack:

        def untaken(reader: str) -> socket.socket:
            before = one.node.sending.bytes
            found = stack.enter_context(contextlib.closing(Untaken(one.url, reader).socket))
            until(lambda: one.node.sending.bytes >= before + 16_000_000 and not one.node.running)
            return found

        def waiting(reader: str) -> Post:
            found = Post(one.url, f"{SUM} -- {reader}", lakehouse_reader=reader)
            stack.callback(found.connection.close)
            until(lambda: one.node.running)
            return found

        first = untaken("a")
        waits = waiting("a")
        status, said = Post(one.url, "SELECT 'a'", lakehouse_reader="a").answer()
        assert (status, said["code"], said["facts"]["limit"]) == (429, "query_limit_exceeded", "sending")
        assert Post(one.url, SUM, lakehouse_reader="b").answer()[0] == 200, "others have the other half"
        first.close()
        assert waits.answer()[0] == 200
        until(lambda: one.node.sending.bytes == 0)

        second, _ = untaken("a"), untaken("c")
        waits = waiting("b")
        assert Post(one.url, SUM, lakehouse_reader="b").answer()[1]["from_results"], "known and small: it takes no room"
        assert Post(one.url, "SELECT 'b'", lakehouse_reader="b").answer()[0] == 429
        assert "lakehouse_serving_sending_answers 2\n" in one.node.metrics()
        second.close()
        assert waits.answer()[0] == 200


@sqlite_only
def test_who_takes_nothing_of_an_answer_is_cut_off_and_who_takes_it_slowly_is_not(lake: Any, flights: Any) -> None:
    with served(lake, settings=NodeSettings(send_seconds=2.0)) as one, contextlib.ExitStack() as stack:
        untaken, slow = (Untaken(one.url, reader) for reader in "ab")
        for socket_ in (untaken.socket, slow.socket):
            stack.callback(socket_.close)
        began = time.monotonic()
        for _ in range(16):
            assert slow.take(1_000_000) == 1_000_000
            threading.Event().wait(0.15)
        assert time.monotonic() - began > 2.0
        until(lambda: one.node.figures.cut_off == 1)
        assert untaken.take(16_000_000) < 16_000_000
        assert "lakehouse_serving_cut_off_total 1\n" in one.node.metrics()
        slow.socket.close()
        until(lambda: one.node.sending.bytes == one.node.sending.answers == 0)


@sqlite_only
def test_what_depends_on_the_time_is_calculated_each_time(lake: Any, flights: Any, client: Any) -> None:
    lake.create_view("moments", "SELECT now() AS at, value FROM flights")
    lake.create_view("later", "SELECT * FROM moments")
    client.sql(SUM, at_least=lake.head)
    for text in (
        "SELECT current_timestamp() AS at", "SELECT at FROM later", "WITH x AS (SELECT now() AS at) FROM x",
    ):  # fmt: skip
        first, second = client.sql(text), client.sql(text)
        assert not second.from_results
        assert first.rows["at"][0].as_py() < second.rows["at"][0].as_py()
    assert client.sql(SUM).version == client.sql(SUM).version
    assert client.sql(SUM).from_results


def test_a_token_that_no_header_holds_is_refused_at_once() -> None:
    for token in ("secret\n", "s\u20ac", "", 5):
        with pytest.raises(errors.InvalidArgument, match="token"):
            lakehouse.connect_serving("http://127.0.0.1:8100", token)  # type: ignore[arg-type]


@sqlite_only
def test_a_client_may_wait_longer_than_one_question_does(lake: Any, flights: Any) -> None:
    with served(lake) as one, lakehouse.connect_serving(one.url, wait_seconds=3600) as client:
        assert total(client) == 7


@sqlite_only
def test_json_statuses_and_the_token(lake: Any, flights: Any) -> None:
    with served(lake, token="a secret") as one:

        def ask(method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
            connection = http.client.HTTPConnection(one.url.removeprefix("http://"))
            given = {"authorization": "Bearer a secret", "accept": "application/json", **headers}
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            text = answer.read().decode()
            connection.close()
            return answer.status, json.loads(text) if text.startswith("{") else text

        status, found = ask("POST", "/sql", "SELECT client, value FROM flights WHERE value = 2")
        assert (status, found["rows"], found["versions"]) == (200, [["b", 2]], {"flights": lake.head})
        assert [column["name"] for column in found["columns"]] == ["client", "value"]
        as_json = {"content-type": "application/json"}
        for body, headers, expected in (
            ("SELECT", {}, 400), ("SELECT * FROM nothing", {}, 404), ("{", as_json, 400), ('{"sql": 7}', as_json, 400),
            ('{"sql": "SELECT 1", "limit": 7}', as_json, 400), ('{"sql": "SELECT 1", "versions": 9}', as_json, 409),
            ('{"sql": "SELECT 1", "values": [["int", "1; DROP"]]}', as_json, 400),
            ('{"sql": "SELECT 1", "lake": "other"}', as_json, 421), (b"\xff", {}, 400),
            ("SELECT 1", {"authorization": "Bearer wrong"}, 401), ("SELECT 1", {"authorization": ""}, 401),
        ):  # fmt: skip
            status, found = ask("POST", "/sql", body, **headers)
            assert (status, sorted(found)) == (expected, ["code", "error", "facts", "message"]), body
        assert ask("GET", "/status", authorization="")[0] == 401
        assert ask("GET", "/health", authorization="")[0] == 200
        until(lambda: ask("GET", "/ready", authorization="")[0] == 200)
        status, text = ask("GET", "/metrics")
        assert "lakehouse_serving_queries_total 1\n" in text
        assert 'lakehouse_serving_errors_total{code="table_not_found"} 1\n' in text
        last = "DATE '9999-12-31' + 1"
        beyond = f"SELECT {last} AS a, named_struct('x', map('k', array({last}, NULL))) AS b"
        status, found = ask("POST", "/sql", beyond)
        assert (status, found.get("rows")) == (200, [["10000-01-01", {"x": [["k", ["10000-01-01", None]]]}]])
        with lakehouse.connect_serving(one.url, "wrong") as client, pytest.raises(lakehouse.Forbidden, match="token"):
            client.sql(SUM)
        with lakehouse.connect_serving(one.url, "a secret") as client:
            assert total(client) == 7


@sqlite_only
def test_the_next_node_answers_and_one_of_another_catalog_is_named(lake: Any, flights: Any, tmp_path: Path) -> None:
    other = lakehouse.connect(f"sqlite:///{tmp_path}/other.db", tmp_path / "other")
    with other, served(other) as strange, served(lake, settings=QUICK) as one:
        with served(lake) as two:
            with lakehouse.connect_serving(["http://127.0.0.1:1", *urls([one, two])]) as client:
                assert total(client) == 7
            newest = flights.append(arrow([("2013-01-05", "a", 8)])).version
            for node in urls([one, two]):
                with lakehouse.connect_serving(node) as client:
                    assert total(client, at_least=newest) == 15
            mixed = lakehouse.connect_serving([two.url, strange.url])
            assert total(mixed) == 15
        with mixed, pytest.raises(errors.OtherLake, match="another catalog"):
            mixed.sql("SELECT 1")
    with (
        lakehouse.connect_serving(one.url, wait_seconds=0.3) as client,
        pytest.raises(errors.NodeUnavailable, match="lakehouse serve"),
    ):
        client.sql(SUM)
    with pytest.raises(errors.InvalidAddress):
        lakehouse.connect_serving("ftp://somewhere")


# Loading


@sqlite_only
def test_what_load_rules_leave_out_is_cold_and_answered_all_the_same(lake: Any, flights: Any, tmp_path: Path) -> None:
    lake.set_load_rules("flights", [{"interval": "2013-01-06/2013-01-07"}, {"cold": True}])
    with served(lake, settings=copying(tmp_path)) as one, lakehouse.connect_serving(one.url) as client:
        until(lambda: one.node.is_ready)
        assert len(copies(tmp_path)) == 1
        (found,) = client.sql(SUM).coverage.values()
        assert [str(part) for part in found.cache] == ["2013-01-06/2013-01-07"]
        assert [str(part) for part in found.warehouse] == ["2013-01-05/2013-01-06", "2013-01-07/2013-01-08"]
        lake.set_load_rules("flights", [{"keys": {"client": "a"}}])
        assert client.sql(SUM, at_least=lake.head).is_complete
        until(lambda: one.node.status()[0].report.held_files == 2)
        with pytest.raises(lakehouse.InvalidInput):
            lake.set_load_rules("flights", [{"keys": {"value": 7}}])


@sqlite_only
def test_copies_go_with_the_last_version_that_needs_them(lake: Any, flights: Any, tmp_path: Path) -> None:
    with served(lake, settings=copying(tmp_path)) as one, lakehouse.connect_serving(one.url) as client:
        until(lambda: one.node.is_ready)
        before = copies(tmp_path)
        assert len(before) == 3
        flights.replace(arrow([("2013-01-05", "a", 100)]), "2013-01")
        assert total(client, at_least=lake.head) == 100
        until(lambda: len(copies(tmp_path)) == 1)
        assert not copies(tmp_path) & before
        flights.replace(arrow([("2013-01-05", "a", 10)]), "2013-01")
        until(lambda: total(client) == 10)
        left = copies(tmp_path)
    flights.replace(arrow([("2013-01-05", "a", 1)]), "2013-01")
    with served(lake, settings=copying(tmp_path)) as one:
        until(lambda: one.node.is_ready and len(copies(tmp_path)) == 1)
        assert not copies(tmp_path) & left, "what another node left goes too"


def test_erased_rows_leave_answers_and_copies_at_once(lake: Any, flights: Any, tmp_path: Path) -> None:
    with served(lake, settings=copying(tmp_path)) as one, lakehouse.connect_serving(one.url) as client:
        until(lambda: one.node.is_ready)
        assert total(client) == 7
        before = copies(tmp_path)
        flights.erase("client = 'b'")
        assert total(client) == 5, "no known answer, and no version that was there before"
        until(lambda: len(copies(tmp_path) & before) == 2)
        until(lambda: one.node.status()[0].live == lake.head)
        assert total(client) == 5


@sqlite_only
def test_a_file_that_cannot_be_loaded_holds_the_flip_and_is_named(lake: Any, flights: Any, tmp_path: Path) -> None:
    with served(lake, settings=copying(tmp_path)) as one, lakehouse.connect_serving(one.url) as client:
        until(lambda: one.node.is_ready)
        before = client.sql(SUM).version
        hidden = lake.warehouse.rename(tmp_path / "away")
        # A file of the new version is not where it is to be.
        hidden.rename(lake.warehouse)
        written = flights.append(arrow([("2013-01-09", "a", 8)]))
        path = lake.warehouse / flights.segments()[-1].path
        content = path.read_bytes()
        path.unlink()
        until(lambda: lake.serving()[0].nodes[0].report.failed or client.sql(SUM).version > before)
        cause = lake.serving()[0].nodes[0].report.failed[written.version]
        assert "missing" in cause
        assert path.name in cause
        assert client.sql(SUM).version == before
        assert lake.serving()[0].waits_for == (lake.serving()[0].nodes[0].id,)
        path.write_bytes(content)
        assert total(client, at_least=written.version) == 15


@sqlite_only
def test_a_cache_that_is_too_small_holds_the_flip_and_says_what_it_needs(
    lake: Any, flights: Any, tmp_path: Path
) -> None:
    size = sum(one.bytes for one in flights.segments())
    settings = copying(tmp_path, cache_bytes=size + 10)
    with served(lake, settings=settings) as one, lakehouse.connect_serving(one.url) as client:
        until(lambda: one.node.is_ready)
        flights.replace(arrow([("2013-01-05", "a", 1)]), "2013-01-05")
        assert total(client, at_least=lake.head) == 7, "it fits alone, and what only the last version held is cold"
        newer = flights.append(arrow([("2013-01-09", "a", 8)])).version
        until(lambda: lake.serving()[0].nodes[0].report.failed)
        assert "too small" in lake.serving()[0].nodes[0].report.failed[newer]
        assert total(client) == 7
        lake.set_load_rules("flights", [{"interval": "2013-01-09"}])
        assert total(client, at_least=lake.head) == 15


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A folder; a disk of its own, of a few files, where one can be mounted, as root alone may do."""
    place = tmp_path / "disk"
    place.mkdir()
    if not os.geteuid():
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place], check=False)
    yield place
    if place.is_mount():
        subprocess.run(["umount", "--lazy", place], check=True)


@contextlib.contextmanager
def full(disk: Path, node: NodeProcess) -> Iterator[str]:
    """Fill a disk; where there is none, let a node write no file. What its system says to that."""
    if not disk.is_mount():
        before = resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        yield "File too large"
        resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, before)
        return
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    yield "No space left on device"
    ballast.unlink()


def test_a_full_disk_holds_the_flip_until_there_is_room(
    postgres: Any, postgres_database: str, tmp_path: Path, disk: Path
) -> None:
    where = postgres.url(postgres_database), str(tmp_path / "warehouse")
    with lakehouse.connect(*where) as lake:
        flights = lake.create_table("flights", SCHEMA, time="time")
        before = flights.append(arrow([("2013-01-05", "a", 7)])).version
        options = ("--cache-dir", str(disk), "--lease-seconds", "1", "--name", "one")
        with NodeProcess(*where, *options) as node, lakehouse.connect_serving(node.url, wait_seconds=60) as client:
            until(lambda: lake.serving()[0].nodes[0].report.loaded)
            with full(disk, node) as cause:
                newest = flights.append(arrow([("2013-01-09", "a", 8)])).version
                until(lambda: lake.serving()[0].nodes[0].report.failed)
                (group,) = lake.serving()
                assert cause in group.nodes[0].report.failed[newest]
                assert (group.target, group.waits_for) == (newest, ("one",))
                assert (client.sql(SUM).version, total(client)) == (before, 7)
            assert total(client, at_least=newest) == 15
            until(lambda: not lake.serving()[0].nodes[0].report.failed)


@sqlite_only
def test_best_effort_says_what_is_missing_and_nothing_else_leaves_any_out(lake: Any, flights: Any) -> None:
    with served(lake) as one, lakehouse.connect_serving(one.url, wait_seconds=0.5) as client:
        until(lambda: one.node.is_ready)
        (lake.warehouse / flights.segments()[0].path).unlink()
        with pytest.raises(lakehouse.SegmentUnreadable):
            client.sql(SUM)
        with pytest.warns(lakehouse.PartialRead):
            answer = client.sql(SUM, best_effort=True)
        assert answer.rows["total"].to_pylist() == [6]
        assert [str(part) for part in answer.coverage["flights"].missing] == ["2013-01-05/2013-01-06"]
        assert not answer.is_complete


def test_a_node_without_its_catalog_goes_on_and_says_how_old_it_is(
    postgres: Any, postgres_database: str, tmp_path: Path
) -> None:
    with lakehouse.connect(postgres.url(postgres_database), tmp_path / "warehouse") as lake:
        flights = lake.create_table("flights", SCHEMA, time="time")
        flights.append(arrow([("2013-01-05", "a", 7)]))
        with CommitLosingProxy(postgres.port) as proxy:
            url = postgres.url(postgres_database, port=proxy.port)
            far = lakehouse.connect(url, tmp_path / "warehouse")
            with served(far, settings=QUICK) as one, lakehouse.connect_serving(one.url) as client:
                answer = client.sql(SUM)
                assert (answer.rows["total"].to_pylist(), answer.age_seconds) == ([7], 0.0)
                proxy.__exit__(None, None, None)
                flights.append(arrow([("2013-01-05", "a", 8)]))
                late = client.sql(f"{SUM} WHERE value > 0")
                assert (late.rows["total"].to_pylist(), late.version) == ([7], answer.version)
                assert late.age_seconds > 0
            far.close()


def test_nodes_go_on_while_the_server_of_their_catalog_starts_again(tmp_path: Path) -> None:
    with PostgresServer() as server, contextlib.ExitStack() as stack:
        url = server.url(server.create_database())
        lakes = [stack.enter_context(lakehouse.connect(url, tmp_path / "warehouse")) for _ in range(2)]
        flights = lakes[0].create_table("flights", SCHEMA, time="time")
        before = flights.append(arrow([("2013-01-05", "a", 7)])).version
        nodes = [stack.enter_context(served(lake, settings=QUICK)) for lake in lakes]
        clients = [stack.enter_context(lakehouse.connect_serving(one.url)) for one in nodes]
        assert [total(one) for one in clients] == [7, 7]
        server.stop(at_once=True)
        for one in clients:
            late = one.sql(f"{SUM} WHERE value > 0")
            assert (late.rows["total"].to_pylist(), late.version) == ([7], before)
            assert late.age_seconds > 0
        server.start()
        newest = flights.append(arrow([("2013-01-05", "a", 8)])).version
        assert [total(one, at_least=newest) for one in clients] == [15, 15]
        until(lambda: all(one.sql(SUM).age_seconds == 0 for one in clients))
        assert [node.word for node in lakes[0].serving()[0].nodes] == ["serving", "serving"]
