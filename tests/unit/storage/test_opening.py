"""A warehouse's address and options, and the environment in which a child process finds them again."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse.errors import InvalidAddress, StorageUnavailable
from lakehouse.storage.credentials import Credentials
from lakehouse.storage.objects import Objects
from lakehouse.storage.opening import open_warehouse, variables_of

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


def test_numbers_in_a_name_are_no_status(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    options = {"endpoint": "http://127.0.0.1:1", "access_key_id": "a", "secret_access_key": "b"}
    nobody = Objects("s3://lake/503-500-429", Credentials(options), retry_seconds=0.1)
    with pytest.raises(StorageUnavailable, match="does not answer"):
        nobody.put("500", tmp_path / "file")
