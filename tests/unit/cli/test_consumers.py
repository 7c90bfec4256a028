"""The command for named readers."""

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import lakehouse

Run = Callable[..., Any]


def test_consumers_are_listed_with_their_lag_and_dropped(run: Run) -> None:
    run("init", "codes", "--schema", "code string")
    assert run("consumers").out == "no consumers\n"
    with lakehouse.connect() as lake:
        codes = lake.table("codes")
        assert list(codes.follow(since=codes.version, consumer="ledger", wait_seconds=0)) == []
        codes.append(pa.table({"code": ["UA"]}))
    (found,) = json.loads(run("consumers", "--json").out)
    assert (found["name"], found["table"], found["lag"]) == ("ledger", "codes", 1)
    assert "ledger" in run("consumers").out
    assert run("consumers", "drop").code == 2
    assert run("consumers", "keep", "ledger").code == 2
    assert run("consumers", "drop", "ledger").out == "consumer ledger dropped\n"
    ran = run("consumers", "drop", "ledger", "--json")
    assert (ran.code, json.loads(ran.err)["code"]) == (1, "consumer_not_found")
