"""Each server that is here starts, checks what it promises to check, and ends with its block; the others say why."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from lakehouse.testing import store_programs
from lakehouse.testing.object_stores import (
    Unavailable,
    azurite_server,
    moto_server,
    versitygw_server,
)
from lakehouse.testing.store_faults import Fault, Rule
from lakehouse.testing.store_proxy import StoreProxy
from lakehouse.testing.store_requests import Kind

BUILT = {"versitygw": versitygw_server, "azurite": azurite_server}
ROWS = os.urandom(300_000)


def client(store, *, secret=None):
    """Amazon's own client, which signs what it sends and tries nothing again."""
    return boto3.client(
        "s3",
        endpoint_url=store.options["aws_endpoint"],
        region_name=store.options["aws_region"],
        aws_access_key_id=store.options["aws_access_key_id"],
        aws_secret_access_key=secret or store.options["aws_secret_access_key"],
        config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
    )


def is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def use(store):
    """Write, refuse to write again, and read, by Amazon's client through a proxy."""
    with StoreProxy(store.port) as proxy:
        one = client(store.through(proxy.port))
        one.put_object(Bucket=store.bucket, Key="a b/ü.parquet", Body=ROWS, IfNoneMatch="*")
        with pytest.raises(ClientError) as refused:
            one.put_object(Bucket=store.bucket, Key="a b/ü.parquet", Body=b"other", IfNoneMatch="*")
        assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 412
        with one.get_object(Bucket=store.bucket, Key="a b/ü.parquet")["Body"] as body:
            assert body.read() == ROWS
        proxy.add(Rule(Fault.EXPIRED, kinds=[Kind.HEAD, Kind.GET], path="ü"))
        with pytest.raises(ClientError) as expired:
            one.get_object(Bucket=store.bucket, Key="a b/ü.parquet")
        assert expired.value.response["Error"]["Code"] == "ExpiredToken"
        assert proxy.counts() == {Kind.PUT: 2, Kind.GET: 2}
        one.close()


def test_moto_holds_what_a_client_writes_through_a_proxy():
    with moto_server() as store:
        use(store)
    assert not is_open(store.port)


@pytest.mark.parametrize("name", BUILT)
def test_a_server_that_is_built_starts_and_any_other_says_how_to_get_it(tmp_path, name):
    if reason := why_not(store_programs.PROGRAMS[name]):
        assert name in reason
        assert "\n" not in reason
        return
    with BUILT[name](tmp_path, install=False) as store:
        assert store.server == name
        if name == "versitygw":
            use(store)
            with pytest.raises(ClientError) as refused:
                client(store, secret="another").list_objects_v2(Bucket=store.bucket)
            assert refused.value.response["Error"]["Code"] == "SignatureDoesNotMatch"
    assert not is_open(store.port)


def why_not(program):
    try:
        program(install=False)
    except Unavailable as why:
        return str(why)
    return None


def test_a_program_that_cannot_be_installed_says_so_in_a_line(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(store_programs, "__file__", str(tmp_path / "lakehouse/testing/store_programs.py"))
    for program in store_programs.PROGRAMS.values():
        with pytest.raises(Unavailable, match="on PATH"):
            program()
    failing = Path(tmp_path / "go")
    failing.write_text("#!/bin/sh\necho; echo no network; exit 1\n")
    failing.chmod(0o755)
    with pytest.raises(Unavailable, match=r"versitygw@v\S+ cannot be had: no network"):
        store_programs.versitygw()
    assert list((tmp_path / ".cache/lakehouse/object-stores").glob("versity*")) == []
