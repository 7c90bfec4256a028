"""Queries run apart: whatever a statement does, it ends within its limits, and nothing is left behind."""

from __future__ import annotations

import gc
import os
import re
import select
import signal
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from sqlalchemy import text

import lakehouse
from lakehouse.apart import QueryProcesses
from lakehouse.apart.process import QueryProcess
from lakehouse.apart.wire import Ended, read_error, write_error
from lakehouse.errors import (
    CatalogUnavailable,
    InvalidInput,
    InvalidStatement,
    LakehouseError,
    QueryLimitExceeded,
    SegmentUnreadable,
    TableNotFound,
    UnknownColumn,
    VersionNotFound,
)
from lakehouse.testing import behind
from lakehouse.testing.rows import many

ENDLESS = "SELECT count(*) FROM " + ", ".join(f"numbers AS n{place}" for place in range(4))
LONG = "a" * 1000
WIDE = f"replace(replace(concat(label, label), 'x', '{LONG}'), 'a', '{LONG}')"
HUNGRY = {
    "replace": f"SELECT max(length({WIDE})) FROM numbers",
    "rows of long text": f"SELECT {WIDE} AS wide, n FROM numbers ORDER BY n DESC LIMIT 2000",
    "left": f"SELECT left({WIDE}, 1000000), right({WIDE}, 1000000) FROM numbers",
    "nested concat": "SELECT max(length(z)) FROM (SELECT concat(y, y, y, y, y, y, y, y) AS z FROM "
    f"(SELECT concat(x, x, x, x, x, x, x, x) AS y FROM (SELECT repeated AS x FROM (SELECT {WIDE} AS repeated "
    "FROM numbers) AS a) AS b) AS c)",
    "lists": "SELECT collect_list(a.label), collect_list(b.label) FROM numbers AS a CROSS JOIN numbers AS b",
    "sorted pairs": "SELECT a.label, b.n FROM numbers AS a CROSS JOIN numbers AS b ORDER BY a.n + b.n DESC, b.n",
    "a format": f"SELECT date_format(at, '{'yyyy ' * 4000}') AS long FROM numbers ORDER BY long",
}


@pytest.fixture
def numbers(lake: lakehouse.Lake) -> lakehouse.Lake:
    """The lake with a table of a hundred thousand rows."""
    lake.sql("CREATE TABLE numbers (at TIMESTAMP, n BIGINT, label STRING) PARTITIONED BY (days(at))")
    rows = many(100_000, step_us=1000).rename_columns(["at", "label", "n"])
    lake.table("numbers").append(rows.set_column(1, "label", [["x"] * len(rows)]))
    return lake


def pins(lake: lakehouse.Lake) -> list[str]:
    return [one for (one,) in behind.rows_of(lake.catalog, text("SELECT id FROM pin"))]


def settings(lake: lakehouse.Lake) -> dict[str, object]:
    return {"catalog": lake.catalog.address, "warehouse": str(lake.warehouse), "lease_seconds": 60.0}


def test_parsing_is_under_the_clock(still_lake: lakehouse.Lake) -> None:
    with pytest.raises(QueryLimitExceeded, match="took too long") as caught:
        still_lake.query("SELECT " + ",".join(["1"] * 499_000), most_seconds=0.3)
    assert (caught.value.limit, caught.value.most_seconds) == ("seconds", 0.3)


def test_binding_is_under_the_clock(still_lake: lakehouse.Lake) -> None:
    joined = " ".join(f"JOIN trips AS t{place} ON t{place}.id = t{place - 1}.id" for place in range(1, 60))
    with pytest.raises(QueryLimitExceeded, match="took too long"):
        still_lake.query(f"SELECT count(*) FROM trips AS t0 {joined}", most_seconds=0.1)


def test_a_prepared_process_is_started_once_and_answers_the_query_that_waits_for_it(still_lake: lakehouse.Lake) -> None:
    processes = QueryProcesses(settings(still_lake), let_go=lambda _: None)
    question = {"text": "SELECT 1 AS one", "as_of": None, "most_rows": 5, "most_bytes": 1_000}
    limits = {"most_bytes": 1_000, "most_memory": 600_000_000, "most_seconds": 20.0}
    try:
        processes.prepare()
        processes.prepare()
        answer, _ = processes.ask({**question, **limits}, **limits)
        assert "error" not in answer
        [prepared] = processes.idle()
        processes.prepare()
        processes.ask({**question, **limits}, **limits)
        assert processes.idle() == [prepared]
    finally:
        processes.close()
    assert not prepared.is_alive


def test_a_process_that_is_being_prepared_ends_with_its_lake(still_lake: lakehouse.Lake) -> None:
    let_go: list[str] = []
    processes = QueryProcesses(settings(still_lake), let_go.append)
    processes.prepare()
    processes.close()
    assert processes.idle() == []
    assert len(let_go) == 1


def test_a_query_says_why_no_process_could_be_prepared(still_lake: lakehouse.Lake, tmp_path: Path) -> None:
    damaged = tmp_path / "catalog.db"
    damaged.write_text("no catalog")
    processes = QueryProcesses({**settings(still_lake), "catalog": f"sqlite:///{damaged}"}, let_go=lambda _: None)
    processes.prepare()
    with pytest.raises(CatalogUnavailable):
        processes.ask({}, most_bytes=1_000, most_memory=600_000_000, most_seconds=20.0)


def test_what_was_ended_holds_no_version_and_the_next_query_runs(numbers: lakehouse.Lake) -> None:
    with pytest.raises(QueryLimitExceeded):
        numbers.query(ENDLESS, most_seconds=0.5)
    assert pins(numbers) == []
    assert numbers.query("SELECT count(*) AS n FROM numbers").rows["n"].to_pylist() == [100_000]
    assert len(pins(numbers)) == 1
    numbers.close()
    assert pins(numbers) == []


@pytest.mark.parametrize("statement", HUNGRY.values(), ids=HUNGRY)
def test_memory_stays_within_its_limit_seen_from_outside(numbers: lakehouse.Lake, statement: str) -> None:
    most = 600_000_000
    process = QueryProcess(settings(numbers), seconds=30.0)
    question = {"text": statement, "as_of": None, "most_rows": 5000, "most_bytes": 16_000_000}
    try:
        answer, body = process.ask(
            {**question, "most_memory": most, "most_seconds": 5.0}, most_bytes=16_000_000, seconds=5.0
        )
    except (TimeoutError, Ended):
        answer, body = {"error": "QueryLimitExceeded"}, b""
    assert len(body) < 16_100_000
    if process.is_alive:
        status = Path(f"/proc/{process.pid}/status").read_text()
        [peak] = re.findall(r"VmHWM:\s+(\d+) kB", status)
        assert int(peak) * 1024 <= most
    process.end()
    assert answer.get("error") in (None, "QueryLimitExceeded")


def test_a_hungry_query_says_what_it_lacked(numbers: lakehouse.Lake) -> None:
    with pytest.raises(QueryLimitExceeded, match="memory") as caught:
        numbers.query(HUNGRY["nested concat"], most_memory=500_000_000)
    assert (caught.value.limit, caught.value.most_memory) == ("memory", 500_000_000)


def test_the_bytes_of_a_result_are_never_more_than_was_asked_for(numbers: lakehouse.Lake) -> None:
    skewed = f"SELECT CASE WHEN n > 90 THEN '{LONG}' ELSE '' END AS t FROM numbers WHERE n < 100 ORDER BY n"
    found = numbers.query(skewed, most_bytes=5_000)
    assert found.is_cut
    assert 0 < found.rows.nbytes <= 5_000


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("SELECT * FROM gone", TableNotFound),
        ("SELECT * FROM trips VERSION AS OF 999", VersionNotFound),
        ("SELECT nothing FROM trips", UnknownColumn),
        ("SELECT reflect('a', 'b')", InvalidStatement),
    ],
)
def test_errors_come_back_as_what_they_are(still_lake: lakehouse.Lake, statement: str, kind: type) -> None:
    with pytest.raises(kind) as caught:
        still_lake.query(statement)
    assert type(caught.value) is kind
    assert caught.value.facts


def test_a_missing_file_is_named(lake: lakehouse.Lake) -> None:
    [first, *_] = lake.table("trips").scan().plan().files
    (lake.warehouse / first).unlink()
    with pytest.raises(SegmentUnreadable, match=re.escape(Path(first).name)):
        lake.query("SELECT * FROM trips")


def test_every_class_of_error_survives_the_way() -> None:
    for kind in [LakehouseError, *LakehouseError.__subclasses__(), QueryLimitExceeded]:
        found = read_error(write_error(kind("what; what to do", rows=3, path=Path("a"), nothing=None)))
        assert type(found) is kind
        assert (found.rows, found.path, found.nothing) == (3, "a", None)
        assert str(found) == str(kind("what; what to do", rows=3, path=Path("a"), nothing=None))


@pytest.mark.parametrize("kind", [int, str, lambda _: datetime.now(UTC), lambda _: date(9999, 1, 1)])
def test_a_version_may_be_said_in_every_way(still_lake: lakehouse.Lake, kind: type) -> None:
    rows = still_lake.query("SELECT id FROM trips", as_of=kind(still_lake.head)).rows
    assert rows.num_rows == 4


def test_a_version_that_is_none_is_refused(still_lake: lakehouse.Lake) -> None:
    for bad in (True, 1.5, object(), [1]):
        with pytest.raises(InvalidInput, match="not a version"):
            still_lake.query("SELECT id FROM trips", as_of=bad)
    for gone in (-1, 10**30, -(10**30), 10**5000):
        with pytest.raises(VersionNotFound):
            still_lake.query("SELECT id FROM trips", as_of=gone)


def test_a_filter_too_long_to_be_planned_again_is_refused_by_name(still_lake: lakehouse.Lake) -> None:
    wanted = ", ".join(str(one) for one in range(5000))
    [read] = still_lake.query(f"SELECT id FROM trips WHERE id IN ({wanted})").reads
    with pytest.raises(QueryLimitExceeded, match="too long to tell"):
        read.pruned()


CHILD = """
import sys, lakehouse
with lakehouse.connect(sys.argv[1], sys.argv[2]) as lake:
    lake.query("SELECT 1")
    [process] = lake.session.query_processes.idle()
    print(process.pid, flush=True)
    lake.query(sys.argv[3], most_seconds=600)
"""


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_query_process_ends_with_whoever_asked(numbers: lakehouse.Lake, ending: int) -> None:
    arguments = [numbers.catalog.address, str(numbers.warehouse), ENDLESS]
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as asker:
        assert asker.stdout is not None
        query = os.pidfd_open(int(asker.stdout.readline()))
        asker.send_signal(ending)
        ended, _, _ = select.select([query], [], [], 30)
        os.close(query)
        asker.communicate(timeout=30)
    assert ended


def test_processes_end_with_the_lake(lake: lakehouse.Lake) -> None:
    lake.query("SELECT 1")
    [process] = lake.session.query_processes.idle()
    query = os.pidfd_open(process.pid)
    lake.close()
    assert select.select([query], [], [], 30)[0]
    os.close(query)


def test_a_lake_that_nobody_closed_leaves_no_process(tmp_path: Path) -> None:
    lake = lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse")
    lake.query("SELECT 1")
    query = os.pidfd_open(lake.session.query_processes.idle()[0].pid)
    lake.catalog.close()
    del lake
    gc.collect()
    assert select.select([query], [], [], 30)[0]
    os.close(query)


@pytest.mark.parametrize(
    "bad",
    [
        {"most_rows": 2**70},
        {"most_rows": 2**63},
        {"most_bytes": 2**70},
        {"most_memory": 2**70},
        {"most_memory": 1000},
        {"most_seconds": 1e10},
        {"most_seconds": 2**2000},
        {"most_seconds": float("inf")},
        {"most_rows": True},
        {"most_memory": None},
    ],
    ids=str,
)
def test_a_limit_that_cannot_be_is_refused(still_lake: lakehouse.Lake, bad: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        still_lake.query("SELECT 1", **bad)
