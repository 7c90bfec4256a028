"""A warehouse's address and options, and the environment in which a child process finds them again."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakehouse.errors import InvalidAddress, StorageUnavailable
from lakehouse.storage.client import open_client
from lakehouse.storage.credentials import Credentials
from lakehouse.storage.objects import Objects
from lakehouse.storage.opening import open_warehouse, variables_of
from lakehouse.storage.options import OF_STORE

OPTIONS = {"region": "eu-west-1", "aws_secret_access_key": "Xs3cret", "allow_http": "true"}


def test_a_child_process_finds_the_settings_in_its_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    parent = open_warehouse("s3://bucket/lake", OPTIONS, tmp_path / "cache", 1_000_000)
    variables = variables_of(parent.settings)
    assert "Xs3cret" not in parent.address
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    child = open_warehouse(parent.address)
    assert (child.root, child.settings) == (parent.root, parent.settings)
    assert variables_of(open_warehouse(tmp_path).settings) == {}


def test_no_text_of_a_store_has_its_secret(tmp_path: Path) -> None:
    opened = open_warehouse("s3://bucket/lake", OPTIONS, tmp_path)
    assert "Xs3cret" not in f"{opened!r} {opened}"


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("s3://bucket/a b/", "s3://bucket/a%20b"),
        ("s3://bucket/a%20b", "s3://bucket/a%20b"),
        ("S3://bucket//a///b", "s3://bucket/a/b"),
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/k=1/ü", "s3://bucket/k=1/%C3%BC"),
    ],
)
def test_spellings_of_a_prefix_are_one_address(tmp_path: Path, given: str, address: str) -> None:
    assert open_warehouse(given, None, tmp_path).address == address


@pytest.mark.parametrize("given", ["s3://bucket/.", "s3://bucket/a%2Fb", "s3://bucket/%2e%2e/x", "s3:///x"])
def test_prefixes_that_name_another_place_are_refused(tmp_path: Path, given: str) -> None:
    with pytest.raises(InvalidAddress):
        open_warehouse(given, None, tmp_path)


def test_options_that_are_wrong_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    for options in ({"regoin": "x"}, {"proxy_url": "http://x"}, {"endpoint": "127.0.0.1:9"}, {"timeout": "5 parsecs"}):
        with pytest.raises((InvalidAddress, StorageUnavailable)) as found:
            Objects("s3://lake/x", Credentials({**options, "secret_access_key": "Xs3cret"})).put("a", tmp_path / "file")
        assert "Xs3cret" not in str(found.value)


@pytest.mark.parametrize(
    ("address", "options", "named"),
    [
        ("s3://lake/x", {"regoin": "x"}, "option=regoin nearest=region"),
        ("s3://lake/x", {"aws_acces_key_id": "Xs3cret"}, "option=aws_acces_key_id nearest=access_key_id"),
        ("s3://lake/x", {"read_timout": "5s"}, "option=read_timout nearest=read_timeout"),
        ("s3://lake/x", {"credentials_provider": "Xs3cret"}, "nearest=credential_provider"),
        ("gs://lake/x", {"servise_account": "Xs3cret"}, "nearest=service_account"),
        ("gs://lake/x", {"account_name": "a"}, "option=account_name"),
        ("az://lake/x", {"acount_key": "Xs3cret"}, "nearest=account_key"),
        ("az://lake/x", {"AZURE_STORAGE_ACCOUNT_NAM": "a"}, "nearest=account_name"),
    ],
)
def test_an_option_that_no_store_has_is_refused_at_once_with_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, options: dict[str, str], named: str
) -> None:
    with pytest.raises(InvalidAddress, match=r"no such option.*" + named) as found:
        open_warehouse(address, options, tmp_path)
    assert "Xs3cret" not in str(found.value)
    for name, value in options.items():
        monkeypatch.setenv(f"LAKEHOUSE_STORAGE_{name.upper()}", value)
    with pytest.raises(InvalidAddress, match="no such option"):
        open_warehouse(address)


def test_every_name_that_is_listed_here_is_known_to_the_client() -> None:
    values = {"account_name": "a", "account_key": "a2V5"}
    refused = []
    for scheme, (_, names) in OF_STORE.items():
        for name in sorted(names - {"bucket", "bucket_name", "container_name", "endpoint", "endpoint_url", "base_url"}):
            needed = {"account_name": "a"} if scheme == "az" else {}
            try:
                open_client(f"{scheme}://lake/x", Credentials({**needed, name: values.get(name, "true")}), 1.0)
            except InvalidAddress as error:  # for its value, if for anything
                refused.append(str(error))
    assert [one for one in refused if "no such option" in one] == []


def test_an_endpoint_of_google_has_the_name_that_all_endpoints_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        closed = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    places = set()
    for name in ("endpoint", "base_url", "google_base_url"):
        opened: Any = open_warehouse("gs://lake/x", {name: closed, "skip_signature": "true"}, tmp_path)
        places.add(opened.root)
        with pytest.raises(StorageUnavailable, match="does not answer"):
            replace(opened.objects, retry_seconds=0.1).size("a")
        with pytest.raises(InvalidAddress, match="an endpoint is a URL"):
            open_warehouse("gs://lake/x", {name: "127.0.0.1:9"}, tmp_path).size("a")
    monkeypatch.setenv("GOOGLE_BASE_URL", closed)
    places.add(open_warehouse("gs://lake/x", {}, tmp_path).root)
    assert len(places) == 1
    monkeypatch.delenv("GOOGLE_BASE_URL")
    assert open_warehouse("gs://lake/x", {}, tmp_path).root not in places


def test_an_account_that_nobody_has_named_is_asked_for(tmp_path: Path) -> None:
    opened: Any = open_warehouse("az://lake/x", {"account_key": "a2V5"}, tmp_path)
    with pytest.raises(InvalidAddress, match="AZURE_STORAGE_ACCOUNT_NAME"):
        opened.size("a")


def test_numbers_in_a_name_are_no_status(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    options = {"endpoint": "http://127.0.0.1:1", "access_key_id": "a", "secret_access_key": "b"}
    nobody = Objects("s3://lake/503-500-429", Credentials(options), retry_seconds=0.1)
    with pytest.raises(StorageUnavailable, match="does not answer"):
        nobody.put("500", tmp_path / "file")
