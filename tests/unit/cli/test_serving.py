"""Query nodes from the command line: one is started, asked, listed and stopped; what is wrong is refused at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import lakehouse
from lakehouse.testing.rows import SCHEMA, arrow
from lakehouse.testing.serving_nodes import NodeProcess

Run = Callable[..., Any]


def test_a_node_is_started_asked_listed_and_stopped(run: Run, tmp_path: Any) -> None:
    with lakehouse.connect() as lake:
        assert run("serving").out == "no query nodes; start one: lakehouse serve --group NAME\n"
        assert json.loads(run("serving", "--json").out) == []
        table = lake.create_table("flights", SCHEMA, time="time")
        table.append(arrow([("2013-01-05", "a", 7)]))
        catalog, warehouse = lake.catalog.address, str(lake.warehouse)
    with NodeProcess(catalog, warehouse, "--token", "a secret", "--name", "one", log=tmp_path / "log") as node:
        asked = ("sql", "SELECT value FROM flights WHERE client = :who", "--arg", "who=a", "--serving", node.url)
        wrong = run(*asked, "--json")
        assert (wrong.code, json.loads(wrong.err)["code"]) == (1, "forbidden")
        told = json.loads(run(*asked, "--token", "a secret", "--json").out)
        assert (told["rows"], told["versions"], told["node"]) == ([[7]], {"flights": 2}, "one")
        assert run(*asked, "--token", "a secret").out.split()[-1] == "7"
        assert run(*asked, "--as-of", "2").code == 1
        listed = run("serving").out
        assert "group test: live version 2" in listed
        assert node.url in listed
        ((found,),) = [group["nodes"] for group in json.loads(run("serving", "--json").out)]
        assert (found["node"], found["live"]) == ("one", 2)
        again = run("serve", "--group", "other", "--port", "0", "--name", "one")
        assert again.code == 1
        assert "a query node of this name serves already; choose another --name" in again.err
        assert node.url in again.err
        assert node.stop() == 0
    assert json.loads(run("serving", "--json").out)[0]["nodes"] == []


def test_what_cannot_be_served_is_refused(run: Run) -> None:
    assert "needs a token" in run("serve", "--group", "g", "--host", "0.0.0.0").err
    assert "give a --cache-dir" in run("serve", "--group", "g", "--port", "0", "--cache-bytes", "1GiB").err
    assert run("serve").code == 2
    assert run("sql", "SELECT 1", "--serving", "nowhere").code == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--seconds", "nan"), "seconds is a number from 0.001 to 86400.0; give another (found=nan)"),
        (("--seconds", "0"), "seconds is a number from 0.001"),
        (("--seconds=-1",), "seconds is a number from 0.001"),
        (("--seconds", "inf"), "seconds is a number from 0.001"),
        (("--lease-seconds", "1e9"), "--lease-seconds is a number from 0.5 to 3600.0; give another"),
        (("--memory", "1"), "memory is a whole number from 1000000 to"),
        (("--bytes=-5",), "--bytes is a size of at least a byte, as in 64MiB, 1GB or 4096 (found=-5)"),
        (("--memory", "0"), "--memory is a size"),
        (("--cache-bytes", "much"), "--cache-bytes is a size"),
        (("--result-bytes=-1",), "--result-bytes is a size"),
        (("--rows", str(2**70)), "rows is a whole number from 1 to"),
        (("--group", " "), "a group has a name of 1 to 200 printable characters"),
        (("--name", ""), "a node has a name of 1 to 200 printable characters"),
    ],
)
def test_a_setting_outside_its_bounds_is_refused_before_anything_starts(
    run: Run, tmp_path: Any, given: tuple[str, ...], said: str
) -> None:
    refused = run("serve", "--group", "g", "--port", "0", *given)
    assert refused.code == 1
    assert refused.err.startswith(f"lakehouse: {said}")
    assert not (tmp_path / ".lakehouse").exists()
