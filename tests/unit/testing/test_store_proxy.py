"""A client sees each fault of the proxy as a store's or a network's, and nothing else of the proxy at all."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from contextlib import closing
from http.client import HTTPConnection, HTTPException, IncompleteRead

import pytest

from lakehouse.testing.object_stores import moto_server
from lakehouse.testing.store_faults import ANSWERS, PASSING, Fault, Rule, Schedule
from lakehouse.testing.store_proxy import StoreProxy
from lakehouse.testing.store_requests import Kind
from tests.unit.testing.asking import ask


@pytest.fixture(scope="module")
def store():
    with moto_server() as found:
        yield found


@pytest.fixture
def proxy(store):
    with StoreProxy(store.port) as found:
        yield found


@pytest.fixture
def name(request):
    """An object that no other test of this module names."""
    return f"/lake/{request.node.name.replace('[', '-').replace(']', '')}"


def made_bytes(size, seed=0):
    return random.Random(seed).randbytes(size)


@pytest.mark.parametrize("fault", ANSWERS)
def test_a_refused_write_is_not_done_and_says_the_code(store, proxy, name, fault):
    status, _, code, _ = ANSWERS[fault]
    with proxy.following(Rule(fault, times=None)):
        found, text = ask(proxy.port, "PUT", name, b"rows")
        assert (found, code in text.decode()) == (status, True)
        assert ask(proxy.port, "HEAD", name) == (status, b"")
    assert ask(store.port, "HEAD", name)[0] == 404
    assert ask(proxy.port, "PUT", name, b"rows")[0] == 200


def test_a_refusal_leaves_the_connection_open(proxy, name):
    proxy.add(Rule(Fault.SLOW_DOWN))
    with closing(HTTPConnection("127.0.0.1", proxy.port, timeout=30)) as connection:
        statuses = []
        for _ in range(2):
            connection.request("PUT", name, made_bytes(300_000))
            with connection.getresponse() as answer:
                statuses.append(answer.status)
                answer.read()
    assert statuses == [503, 200]


@pytest.mark.parametrize(("fault", "after"), [(Fault.RESET, 404), (Fault.LOST, 200)])
def test_a_reset_write_is_not_done_and_a_lost_one_is(store, proxy, name, fault, after):
    proxy.add(Rule(fault))
    with pytest.raises((OSError, HTTPException)):
        ask(proxy.port, "PUT", name, b"rows", If_None_Match="*")
    assert ask(store.port, "HEAD", name)[0] == after
    again = ask(proxy.port, "PUT", name, b"rows", If_None_Match="*")[0]
    assert again == (200 if after == 404 else 412)
    assert ask(store.port, "GET", name) == (200, b"rows")


def test_a_cut_answer_ends_early_and_the_next_is_whole(store, proxy, name):
    rows = made_bytes(400_000)
    ask(store.port, "PUT", name, rows)
    proxy.add(Rule(Fault.CUT, kinds=[Kind.GET]))
    with pytest.raises(IncompleteRead) as cut:
        ask(proxy.port, "GET", name)
    assert cut.value.partial == rows[:200_000]
    assert ask(proxy.port, "GET", name) == (200, rows)


def test_a_request_that_hangs_is_given_up_by_the_client_or_ends_with_the_proxy(store, name):
    with StoreProxy(store.port) as proxy:
        proxy.add(Rule(Fault.HANG, times=None))
        with pytest.raises(TimeoutError):
            ask(proxy.port, "PUT", name, b"rows", timeout=0.2)
        waiting = HTTPConnection("127.0.0.1", proxy.port, timeout=30)
        waiting.request("GET", name)
    with closing(waiting), pytest.raises((OSError, HTTPException)):
        waiting.getresponse()
    assert ask(store.port, "HEAD", name)[0] == 404


def test_latency_comes_before_the_store_is_asked(store, name):
    with StoreProxy(store.port, latency_seconds=3600) as proxy:
        with pytest.raises(TimeoutError):
            ask(proxy.port, "PUT", name, b"rows", timeout=0.2)
        assert ask(store.port, "HEAD", name)[0] == 404
        assert proxy.counts() == {Kind.PUT: 1}


def test_a_rule_hits_the_requests_that_it_names(proxy, name):
    proxy.add(Rule(Fault.INTERNAL, kinds=[Kind.PUT], path=r"/part-\d+\.parquet$", first=2, times=2))
    wanted = [f"{name}/part-{number}.parquet" for number in range(4)]
    statuses = [ask(proxy.port, "PUT", target, b"rows")[0] for target in wanted]
    assert statuses == [200, 500, 500, 200]
    assert ask(proxy.port, "PUT", f"{name}/other", b"rows")[0] == 200
    assert ask(proxy.port, "GET", wanted[0])[0] == 200
    assert proxy.faults() == {Fault.INTERNAL: 2}


def test_the_first_rule_that_hits_decides_until_all_are_cleared(proxy, name):
    proxy.add(Rule(Fault.EXPIRED, times=None), Rule(Fault.FORBIDDEN, times=None))
    with proxy.following(Rule(Fault.FORBIDDEN, times=None)):
        assert ask(proxy.port, "GET", name)[0] == 400
    proxy.clear()
    assert ask(proxy.port, "GET", name)[0] == 404


def test_bytes_are_the_same_on_both_sides(store, proxy, name):
    rows = made_bytes(5_000_000)
    assert ask(proxy.port, "PUT", name, rows)[0] == 200
    for port in (store.port, proxy.port):
        assert hashlib.sha256(ask(port, "GET", name)[1]).digest() == hashlib.sha256(rows).digest()
    assert ask(proxy.port, "GET", name, Range="bytes=1000-1999") == (206, rows[1000:2000])


def test_a_second_write_under_a_condition_is_refused_by_the_store(proxy, name):
    assert [ask(proxy.port, "PUT", name, text, If_None_Match="*")[0] for text in (b"first", b"second")] == [200, 412]
    assert ask(proxy.port, "GET", name) == (200, b"first")


def test_every_request_is_counted_once_by_what_it_asks_for(proxy, name):
    bucket, rows = name.split("/")[1], made_bytes(1000)
    for method, target in [("PUT", name), ("GET", name), ("HEAD", name), ("GET", f"/{bucket}?list-type=2&prefix=none")]:
        ask(proxy.port, method, target, rows if method == "PUT" else b"")
    for end in ("complete", "abort"):
        _, started = ask(proxy.port, "POST", f"{name}-{end}?uploads")
        upload = started.decode().split("<UploadId>")[1].split("<")[0]
        ask(proxy.port, "PUT", f"{name}-{end}?partNumber=1&uploadId={upload}", rows)
        part = f'<PartNumber>1</PartNumber><ETag>"{hashlib.md5(rows).hexdigest()}"</ETag>'
        if end == "complete":
            parts = f"<CompleteMultipartUpload><Part>{part}</Part></CompleteMultipartUpload>".encode()
            ask(proxy.port, "POST", f"{name}-{end}?uploadId={upload}", parts)
        else:
            ask(proxy.port, "DELETE", f"{name}-{end}?uploadId={upload}")
    ask(proxy.port, "DELETE", name)
    ask(proxy.port, "POST", f"/{bucket}?delete", b"<Delete><Object><Key>none</Key></Object></Delete>")
    expected = Counter(dict.fromkeys(Kind, 1) | {Kind.CREATE_UPLOAD: 2, Kind.PUT_PART: 2})
    expected -= Counter([Kind.COPY, Kind.OTHER])
    assert proxy.counts() == expected
    assert {one.status for one in proxy.exchanges} <= {200, 204}
    assert [one.answered for one in proxy.exchanges if one.request.kind is Kind.GET] == [1000]
    proxy.forget()
    assert proxy.counts() == {}


def test_a_client_that_tries_again_gets_everything_through(store, proxy, name):
    kept: dict[str, bytes] = {}
    proxy.schedule = Schedule(seed=7, rate=0.4)
    for number in range(60):
        target, rows = f"{name}/{number % 20}", made_bytes(2000, number)
        kept[target] = rows
        assert until_it_answers(proxy.port, "PUT", target, rows)[0] == 200
        assert until_it_answers(proxy.port, "GET", target) == (200, rows)
    met = proxy.faults()
    assert set(met) == set(PASSING)
    assert sum(met.values()) + 120 == len(proxy.exchanges)
    assert {target: ask(store.port, "GET", target)[1] for target in kept} == kept


def until_it_answers(port, method, target, body=b""):
    for _ in range(3):
        try:
            status, text = ask(port, method, target, body)
        except (OSError, HTTPException):
            continue
        if status < 429:
            return status, text
    raise AssertionError("three faults in a row, where the schedule has two at most")


def test_a_seed_gives_the_same_faults_to_the_same_requests(store):
    met = []
    for seed in (1, 1, 2):
        with StoreProxy(store.port, schedule=Schedule(seed, 0.5, [Fault.SLOW_DOWN, Fault.TOO_MANY])) as proxy:
            for number in range(20):
                ask(proxy.port, "GET", f"/lake/none-{number}")
            met.append([one.fault for one in proxy.exchanges])
    assert met[0] == met[1] != met[2]
