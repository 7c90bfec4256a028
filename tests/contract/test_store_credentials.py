"""Credentials of a store: a function renews them, a token that expires is replaced, and none is ever shown."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.errors import InvalidAddress, StorageUnavailable
from lakehouse.storage.opening import open_warehouse, variables_of
from lakehouse.testing import store_programs
from lakehouse.testing.object_stores import Store, Unavailable, versitygw_server
from lakehouse.testing.store_faults import Fault, Rule
from lakehouse.testing.store_proxy import StoreProxy
from lakehouse.testing.store_requests import Kind

ROWS = pa.table({"at": pa.array([0, 1], pa.timestamp("us")), "client": [1, 77]})


class Provider:
    """Returns tokens one after another, each valid for some time."""

    def __init__(self, seconds: float = 3600.0) -> None:
        self.calls = 0
        self.seconds = seconds

    def __call__(self) -> dict[str, Any]:
        self.calls += 1
        return {
            "access_key_id": "key",
            "secret_access_key": "Xs3cret",
            "token": f"token-{self.calls}-Xt0ken",
            "expires_at": datetime.now(UTC) + timedelta(seconds=self.seconds),
        }


@pytest.fixture
def proxy(object_store: Store) -> Iterator[StoreProxy]:
    with StoreProxy(object_store.port) as proxy:
        yield proxy


@pytest.fixture
def place(store: Store, proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Options without credentials, through the proxy; the environment has none either."""
    for name in store.options:
        monkeypatch.delenv(f"LAKEHOUSE_STORAGE_{name.upper()}")
    options = store.through(proxy.port).options
    return {name: value for name, value in options.items() if "key" not in name}


def tokens(proxy: StoreProxy) -> list[str]:
    return [one.request.headers.get("x-amz-security-token", "") for one in proxy.exchanges]


def test_a_function_gives_new_credentials_when_the_old_have_expired(
    place: dict[str, str], proxy: StoreProxy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    provider = Provider()
    with lakehouse.connect(storage_options={**place, "credential_provider": provider}) as lake:
        table = lake.create_table("stays", "at TIMESTAMP, client BIGINT", time="at")
        table.append(ROWS)
        table.append(ROWS)
        assert provider.calls == 1
        # The store ends the token before its time.
        proxy.add(Rule(Fault.EXPIRED, header="x-amz-security-token: token-1-", times=None))
        lake.cache.clear()
        assert table.scan().count() == 4
        assert table.scan(columns=["client"]).to_arrow().num_rows == 4
        assert provider.calls == 2
        assert set(tokens(proxy)) == {"token-1-Xt0ken", "token-2-Xt0ken"}
        proxy.add(Rule(Fault.EXPIRED, times=None))
        with pytest.raises(StorageUnavailable, match="credentials have expired") as refused:
            table.append(ROWS)
        shown = f"{refused.value} {refused.value.facts} {lake.session.warehouse!r} {lake!r} {caplog.text}"
    assert "Xs3cret" not in shown
    assert "Xt0ken" not in shown


def test_credentials_that_expire_while_a_request_is_repeated_are_renewed(
    place: dict[str, str], proxy: StoreProxy
) -> None:
    provider = Provider()
    with lakehouse.connect(storage_options={**place, "credential_provider": provider}) as lake:
        table = lake.create_table("stays", "at TIMESTAMP, client BIGINT", time="at")
        proxy.add(Rule(Fault.SLOW_DOWN, kinds=[Kind.PUT]))
        proxy.add(Rule(Fault.EXPIRED, header="x-amz-security-token: token-1-", times=None))
        table.append(ROWS)
        assert table.count() == 2
    assert proxy.faults() == {Fault.SLOW_DOWN: 1, Fault.EXPIRED: 1}


def test_credentials_that_are_about_to_expire_are_renewed_before(place: dict[str, str], proxy: StoreProxy) -> None:
    provider = Provider(seconds=1.0)
    with lakehouse.connect(storage_options={**place, "credential_provider": provider}) as lake:
        table = lake.create_table("stays", "at TIMESTAMP, client BIGINT", time="at")
        for _ in range(100):  # the client asks for new ones at most every tenth of a second
            if provider.calls < 2:
                table.append(ROWS)
    assert provider.calls >= 2
    assert proxy.faults() == {}


def test_expired_variables_are_read_again(
    place: dict[str, str], proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("ACCESS_KEY_ID", "key"), ("SECRET_ACCESS_KEY", "Xs3cret"), ("SESSION_TOKEN", "old")):
        monkeypatch.setenv(f"AWS_{name}", value)
    with lakehouse.connect(storage_options=place) as lake:
        table = lake.create_table("stays", "at TIMESTAMP, client BIGINT", time="at")
        table.append(ROWS)
        proxy.add(Rule(Fault.EXPIRED, header="x-amz-security-token: old", times=None))
        monkeypatch.setenv("AWS_SESSION_TOKEN", "new")
        table.append(ROWS)
    assert set(tokens(proxy)) == {"old", "new"}


def test_a_function_by_its_name_reaches_processes_that_import_it(
    place: dict[str, str], proxy: StoreProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_credentials.py").write_text(
        "def current():\n"
        "    return {'access_key_id': 'key', 'secret_access_key': 'Xs3cret', 'token': 'named', 'expires_at': None}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    function = __import__("own_credentials").current
    for given in (function, "own_credentials:current"):
        with lakehouse.connect(storage_options={**place, "credential_provider": given}) as lake:
            lake.create_table(f"t{len(lake.tables())}", "at TIMESTAMP, client BIGINT", time="at").append(ROWS)
            lake.cache.clear()
            assert lake.query(f"SELECT sum(client) AS n FROM t{len(lake.tables()) - 1}").rows["n"].to_pylist() == [78]
            settings = lake.session.warehouse.settings
        assert settings["storage_options"]["credential_provider"] == "own_credentials:current"
        assert "Xs3cret" not in str(variables_of(settings))
    assert set(tokens(proxy)) == {"named"}


@pytest.mark.parametrize("given", ["no_such_module:current", "os:no_such_function", "nothing", "os:sep", 7])
def test_what_is_no_function_is_told(place: dict[str, str], tmp_path: Path, given: Any) -> None:
    with pytest.raises(InvalidAddress, match="credential_provider"):
        open_warehouse("s3://lake/x", {**place, "credential_provider": given}, tmp_path).objects.size("a")


def test_a_function_that_fails_is_told_without_what_it_says_of_secrets(place: dict[str, str], tmp_path: Path) -> None:
    def failing() -> dict[str, Any]:
        raise RuntimeError("no login for Xs3cret")

    opened: Any = open_warehouse("s3://lake/x", {**place, "credential_provider": failing}, tmp_path)
    with pytest.raises(StorageUnavailable, match="credential_provider") as found:
        opened.objects.size("a")
    assert "RuntimeError" in str(found.value)
    assert "Xs3cret" not in str(found.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("key", "returned str"),
        ({"access_key_id": "key", "secret": "Xs3cret"}, "no secret_access_key, but access_key_id, secret"),
        ({"access_key_id": "k", "secret_access_key": "Xs3cret", "expires_at": datetime(2030, 1, 1)}, "time zone"),  # noqa: DTZ001
        ({"access_key_id": "k", "secret_access_key": "Xs3cret", "expires_at": 7}, "time zone"),
    ],
)
def test_a_function_that_returns_no_credentials_is_told_what_is_wrong(
    place: dict[str, str], tmp_path: Path, given: Any, said: str
) -> None:
    opened: Any = open_warehouse("s3://lake/x", {**place, "credential_provider": lambda: given}, tmp_path)
    with pytest.raises(StorageUnavailable, match="credential_provider failed") as found:
        opened.objects.size("a")
    assert said in str(found.value)
    assert "Xs3cret" not in str(found.value)


def test_a_function_need_not_return_what_has_no_value(place: dict[str, str], proxy: StoreProxy, tmp_path: Path) -> None:
    given = {"access_key_id": "key", "secret_access_key": "Xs3cret"}
    opened: Any = open_warehouse("s3://lake/x", {**place, "credential_provider": lambda: given}, tmp_path)
    with pytest.raises(FileNotFoundError):
        opened.objects.size("a")


def test_a_key_that_a_store_does_not_know_is_told(tmp_path: Path) -> None:
    """It is said by a 404 by versitygw, as of an object that is gone."""
    try:
        store_programs.versitygw(install=False)
    except Unavailable:
        return  # `python -m lakehouse.testing.store_programs` says why
    with versitygw_server(tmp_path / "server", install=False) as store:
        opened: Any = open_warehouse(store.url, {**store.options, "aws_access_key_id": "other"}, tmp_path / "cache")
        (tmp_path / "file").write_bytes(b"x")
        with pytest.raises(StorageUnavailable, match="does not know these credentials"):
            opened.objects.put("t/a", tmp_path / "file")
