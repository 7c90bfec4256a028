"""What docs/deployment.md shows is tried as it stands: the rights suffice, and each is needed; the samples run."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lakehouse
from lakehouse.errors import StorageUnavailable
from lakehouse.testing.object_stores import Store
from lakehouse.testing.store_faults import Fault, Rule
from lakehouse.testing.store_proxy import StoreProxy
from lakehouse.testing.store_requests import Kind
from tools.docs_site.markdown import examples

PAGE = (Path(__file__).resolve().parents[2] / "docs/deployment.md").read_text()
RIGHTS = {
    Kind.GET: "s3:GetObject",
    Kind.HEAD: "s3:GetObject",
    Kind.LIST: "s3:ListBucket",
    Kind.PUT: "s3:PutObject",
    Kind.CREATE_UPLOAD: "s3:PutObject",
    Kind.PUT_PART: "s3:PutObject",
    Kind.COMPLETE_UPLOAD: "s3:PutObject",
    Kind.ABORT_UPLOAD: "s3:AbortMultipartUpload",
    Kind.DELETE: "s3:DeleteObject",
    Kind.DELETE_MANY: "s3:DeleteObject",
}
"""What Amazon asks for, by kind of request."""
ROWS = pa.table({"at": pa.array([0, 1], pa.timestamp("us")), "client": [1, 77]})
PART_BYTES = 5 << 20
NUMBERS = np.random.default_rng(1).integers(1 << 62, size=PART_BYTES // 6)
LARGE = pa.table({"at": pa.array(np.zeros(len(NUMBERS), np.int64), pa.timestamp("us")), "client": NUMBERS})
"""Rows of a file that is put in parts."""


def blocks(language: str) -> list[str]:
    return [one.code for one in examples(PAGE, language)]


def allowed() -> set[str]:
    (policy,) = map(json.loads, blocks("json"))
    found: set[str] = set()
    for statement in policy["Statement"]:
        actions = statement["Action"]
        found |= {actions} if isinstance(actions, str) else set(actions)
    return found


def test_the_rights_of_the_page_suffice_and_each_is_used(
    object_store: Store, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with StoreProxy(object_store.port) as proxy:
        monkeypatch.setenv("LAKEHOUSE_STORAGE_AWS_ENDPOINT", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("LAKEHOUSE_STORAGE_MULTIPART_BYTES", str(PART_BYTES))
        with lakehouse.connect() as lake:
            table = lake.create_table("stays", "at TIMESTAMP, client BIGINT", time="at", primary_key=["client"])
            table.append(ROWS)
            table.upsert(ROWS)
            refused = proxy.following(Rule(Fault.FORBIDDEN, kinds=[Kind.COMPLETE_UPLOAD]))
            with refused, pytest.raises(StorageUnavailable):
                table.append(LARGE)
            table.erase("client = 77")
            lake.cache.clear()
            assert table.scan().count() == 1
            lake.export()
            lake.check(deep=True)
            lake.expire(keep_last=1)
            lake.collect(grace_seconds=0)
        lakehouse.recover(store.url, f"sqlite:///{tmp_path}/new.db")
        asked = {RIGHTS[kind] for kind in proxy.counts()}
    assert asked == allowed()


def test_the_variables_are_those_that_are_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    (variables,) = blocks("sh")
    names = re.findall(r"^export (\w+)=", variables, re.MULTILINE)
    for name, value in re.findall(r"^export (\w+)=(\S+)$", variables, re.MULTILINE):
        if name == "LAKEHOUSE_CACHE_BYTES":
            monkeypatch.setenv(name, value)
    assert {"LAKEHOUSE_CATALOG", "LAKEHOUSE_WAREHOUSE", "LAKEHOUSE_CACHE_DIR"} <= set(names)
    with lakehouse.connect() as lake:
        assert lake.cache.limit_bytes == 200_000_000_000


def test_credentials_of_the_usual_variables_suffice(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in store.options.items():
        monkeypatch.delenv(f"LAKEHOUSE_STORAGE_{name.upper()}")
        if name.startswith("aws_"):
            monkeypatch.setenv("AWS_ENDPOINT_URL" if name == "aws_endpoint" else name.upper(), value)
    run_sample(blocks("python")[0])


def test_the_samples_run_as_printed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    here, of_dagster = blocks("python")
    run_sample(here)
    monkeypatch.setenv("LAKE_CATALOG", "sqlite:///catalog.db")
    monkeypatch.setenv("LAKE_SECRET", "Xs3cret")
    names = run_sample(of_dagster)
    assert "Xs3cret" not in repr(names["defs"].resources)


def run_sample(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "docs/deployment.md", "exec"), names)
    return names
