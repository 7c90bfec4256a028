"""Which engine a statement gets, what its limits do, and how much memory and disk it may take."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest

import lakehouse
from lakehouse.engine.duckdb.room import memory_of_process
from lakehouse.errors import InvalidArgument, InvalidInput, InvalidStatement, OnlySpark, QueryLimitExceeded
from lakehouse.testing.rows import many
from tests.unit.sql.conftest import rows_of

SPARKS = (
    "SELECT initcap(client) FROM trips",
    "SELECT date_format(at, 'SSS') FROM trips",
    "SELECT * FROM (SELECT id AS a, price AS A FROM trips) AS two",
    f"SELECT {'ln(' * 7}id{')' * 7} FROM trips",
    "WITH x AS (SELECT id FROM trips WHERE skewness(id) > 0) SELECT * FROM x",
)
ANY = (
    "SELECT id FROM trips",
    "SELECT 1",
    "VALUES (1)",
    "SELECT * FROM trips.segments",
    "SELECT upper(client) FROM trips",
)


@pytest.fixture
def numbers(lake: lakehouse.Lake) -> lakehouse.Lake:
    """The lake with a table of a hundred thousand rows."""
    lake.sql("CREATE TABLE numbers (at TIMESTAMP, label STRING, n BIGINT) PARTITIONED BY (days(at))")
    lake.table("numbers").append(many(100_000, step_us=1000).rename_columns(["at", "label", "n"]))
    return lake


def engine_of(lake: lakehouse.Lake, text: str, **options: Any) -> str:
    """The engine that EXPLAIN says the statement is for."""
    said = lake.sql(f"EXPLAIN {text}", **options).splitlines()
    [engine] = [line.partition(":")[0] for line in said if line.startswith(("spark: ", "duckdb: "))]
    return str(engine)


@pytest.mark.parametrize("text", SPARKS)
def test_what_is_sparks_alone_is_for_spark_unless_somebody_chose(still_lake: lakehouse.Lake, text: str) -> None:
    assert engine_of(still_lake, text) == "spark"
    for options in ({"engine": "duckdb"}, {"rows": 10}, {"seconds": 10}):
        with pytest.raises(OnlySpark, match='engine="spark"'):
            still_lake.sql(text, **options)


@pytest.mark.parametrize("text", ANY)
def test_all_else_is_run_in_process(still_lake: lakehouse.Lake, text: str) -> None:
    assert (engine_of(still_lake, text), engine_of(still_lake, text, engine="spark")) == ("duckdb", "spark")
    for _ in range(2):  # the second time it is remembered
        assert isinstance(still_lake.sql(text), duckdb.DuckDBPyRelation)


def test_a_statement_of_which_neither_engine_takes_all_is_refused(still_lake: lakehouse.Lake) -> None:
    with pytest.raises(InvalidStatement, match="cannot take this name"):
        still_lake.sql("SELECT initcap(client) AS `${HOME}` FROM trips")
    assert still_lake.sql("SELECT 1 AS `${HOME}`").columns == ["${HOME}"]


def test_more_files_than_memory_allows_for_are_for_spark(lake: lakehouse.Lake) -> None:
    trips = lake.table("trips").segments()
    sizes = {one.start.day: (lake.warehouse / one.path).stat().st_size for one in trips if one.start.month == 1}
    texts = {days: f"SELECT id FROM trips WHERE at < '2013-01-0{days + 1}'" for days in (5, 6, 7)}
    assert sorted(sizes) == [5, 7]
    for most in (0, sizes[5] - 1, sizes[5], sizes[5] + sizes[7] - 1, sizes[5] + sizes[7]):
        lake.session.most_in_process = most
        for days, text in texts.items():
            opened = sum(size for day, size in sizes.items() if day <= days)
            expected = "spark" if opened > most else "duckdb"
            assert engine_of(lake, text) == expected, (most, days)
            assert engine_of(lake, text, engine="duckdb") == "duckdb"
    lake.session.most_in_process = 0
    assert len(rows_of(lake, texts[5])) == 2
    assert lake.sql(texts[7], rows=3).fetchall() != []  # a limit is kept in process, whatever is read
    assert engine_of(lake, "SELECT * FROM trips.segments") == "duckdb"
    both = "SELECT t.id FROM trips AS t JOIN clients AS c ON t.client = c.name WHERE at < '2013-01-06'"
    lake.session.most_in_process = sizes[5]
    assert engine_of(lake, both) == "spark"


@pytest.mark.parametrize(
    "limits",
    [
        {"rows": 0}, {"rows": -1}, {"rows": 2**70}, {"rows": True}, {"rows": 1.5},
        {"seconds": 0}, {"seconds": -1.0}, {"seconds": math.nan}, {"seconds": math.inf}, {"seconds": "1"},
        {"memory_bytes": 0}, {"memory_bytes": -1}, {"memory_bytes": 1000}, {"memory_bytes": 1e9},
    ],
    ids=str,
)  # fmt: skip
def test_a_limit_that_cannot_be_is_refused(still_lake: lakehouse.Lake, limits: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        still_lake.sql("SELECT 1", **limits)


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO clients VALUES ('2014-01-01', 'x', 1)",
        "INSERT INTO clients SELECT at, client, 1 FROM trips",
        "WITH a AS (SELECT 1) DELETE FROM trips",
        "DELETE FROM trips WHERE id IN (SELECT 1)",
        "CREATE TABLE x PARTITIONED BY (days(at)) AS SELECT * FROM trips",
        "BEGIN; DELETE FROM trips; COMMIT",
        "SHOW TABLES",
        "DROP TABLE trips",
    ],
)
def test_a_limit_on_anything_but_a_query_is_refused_and_nothing_done(still_lake: lakehouse.Lake, text: str) -> None:
    head, tables = still_lake.head, still_lake.tables()
    for limits in ({"rows": 10}, {"seconds": 10}, {"memory_bytes": 10**9}):
        with pytest.raises(InvalidInput, match="limits are for queries"):
            still_lake.sql(text, **limits)
    assert (still_lake.head, still_lake.tables(), still_lake.operations()) == (head, tables, [])


def test_limits_are_not_kept_by_spark(still_lake: lakehouse.Lake) -> None:
    with pytest.raises(InvalidArgument, match="in process only"):
        still_lake.sql("SELECT 1", engine="spark", seconds=1)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM trips ORDER BY id",
        "SELECT id AS v, price AS v, NULL AS n, at FROM trips ORDER BY 1",
        "SELECT id, id % 2, array(id, 7), map('a', id), CAST(price AS DECIMAL(9, 2)) FROM trips ORDER BY id",
        "SELECT sum(id), max(day) FROM trips WHERE 1 = 0",
        "SELECT id FROM trips WHERE 1 = 0",
    ],
)
def test_within_its_limits_a_query_is_what_it_is_without(still_lake: lakehouse.Lake, text: str) -> None:
    free, limited = still_lake.sql(text), still_lake.sql(text, rows=4, seconds=60, memory_bytes=600_000_000)
    assert (limited.columns, limited.types) == (free.columns, free.types)
    assert limited.fetchall() == free.fetchall() == limited.limit(9).fetchall()


def test_values_versions_and_plans_come_with_limits(still_lake: lakehouse.Lake) -> None:
    assert still_lake.sql("SELECT id FROM trips WHERE id > ? ORDER BY id", args=[2], rows=2).fetchall() == [(3,), (4,)]
    assert still_lake.sql("SELECT count(*) FROM trips", as_of=2, rows=1).fetchall() == [(0,)]
    assert "duckdb: " in still_lake.sql("EXPLAIN SELECT id FROM trips", seconds=60)


def test_rows_beyond_the_limit_are_an_error_and_never_left_out(still_lake: lakehouse.Lake) -> None:
    for most in range(1, 7):
        if most >= 4:
            assert len(still_lake.sql("SELECT id FROM trips", rows=most).fetchall()) == 4
            continue
        with pytest.raises(QueryLimitExceeded, match="ask for fewer, or allow more") as caught:
            still_lake.sql("SELECT id FROM trips", rows=most)
        assert (caught.value.limit, caught.value.most_rows) == ("rows", most)


def test_time_and_memory_beyond_the_limit_are_errors(numbers: lakehouse.Lake) -> None:
    pairs = "FROM numbers AS a CROSS JOIN numbers AS b"
    with pytest.raises(QueryLimitExceeded, match="allow more seconds") as caught:
        numbers.sql(f"SELECT sum(a.n * b.n) {pairs} CROSS JOIN numbers AS c", seconds=0.5)
    assert caught.value.limit == "seconds"
    with pytest.raises(QueryLimitExceeded, match="memory") as caught:
        numbers.sql("SELECT repeat(label, 1000), repeat(label, 999) FROM numbers", memory_bytes=450_000_000)
    assert caught.value.limit == "memory"
    assert numbers.sql("SELECT count(*) FROM numbers").fetchall() == [(100_000,)]


def hold_at_most(lake: lakehouse.Lake, memory: int) -> None:
    """Give the lake's statements so many bytes of memory."""
    lake.session.statements.most_memory = memory
    lake.session.statements.close()


SPILLED = {
    "sort": "SELECT {} FROM pairs ORDER BY h",
    "join": "SELECT {} FROM pairs AS x JOIN (SELECT h AS g, n AS m FROM pairs) AS y ON h = g",
    "aggregation": "SELECT h, max(n) AS n FROM pairs GROUP BY h",
    "window": "SELECT h, n, row_number() OVER (PARTITION BY n % 100 ORDER BY h) AS r FROM pairs",
}


@pytest.mark.parametrize("kind", SPILLED)
def test_what_memory_does_not_hold_waits_on_the_disk(numbers: lakehouse.Lake, kind: str) -> None:
    """Two million rows of 60 bytes with 128 MB of memory, or four of them with 192."""
    hold_at_most(numbers, 192_000_000 if kind == "join" else 128_000_000)
    twenty = f"VALUES {', '.join(f'({k})' for k in range(20))} AS v(k)"
    pairs = f"WITH pairs AS (SELECT md5(concat(n, ' ', k)) AS h, n FROM numbers CROSS JOIN {twenty})"
    text = f"{pairs} SELECT count(*), count(DISTINCT h) FROM ({SPILLED[kind].format('h, n')}) AS found"
    limits = {"memory_bytes": 700_000_000} if kind == "window" else {}
    assert numbers.sql(text, **limits).fetchall() == [(2_000_000, 2_000_000)]


def test_what_cannot_wait_on_the_disk_fails_by_name_and_the_lake_goes_on(numbers: lakehouse.Lake) -> None:
    hold_at_most(numbers, 64_000_000)
    pairs = "numbers AS a CROSS JOIN (SELECT n FROM numbers LIMIT 150) AS b"
    lists = f"SELECT max(at) AS at, array_max(collect_list(a.n + b.n)) AS n, 'x' AS label FROM {pairs}"
    with pytest.raises(duckdb.OutOfMemoryException):
        numbers.sql(lists).fetchall()
    head = numbers.head
    with pytest.raises(QueryLimitExceeded, match="more memory") as caught:
        numbers.sql(f"INSERT INTO numbers BY NAME {lists}")
    assert (caught.value.limit, numbers.head, numbers.operations()) == ("memory", head, [])
    assert numbers.sql("SELECT count(*) FROM numbers").fetchall() == [(100_000,)]


GROUPS = {
    "none": ("", {}, None),
    "version 2": ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": "7000000"}, 7_000_000),
    "version 2, inner": ("0::/a/b\n", {"a/b/memory.max": "5000000", "a/memory.max": "7000000"}, 5_000_000),
    "a container's own root": ("0::/../gone\n", {"memory.max": "9000000"}, 9_000_000),
    "version 1": ("3:cpu:/x\n4:memory:/c\n", {"memory/c/memory.limit_in_bytes": "8000000"}, 8_000_000),
    "version 1, no limit": ("4:memory:/c\n", {"memory/c/memory.limit_in_bytes": str(2**63 - 4096)}, None),
    "both": ("4:hugetlb,memory:/c\n0::/d\n", {"memory/c/memory.limit_in_bytes": "8", "d/memory.max": "9"}, 8),
    "malformed": ("nonsense\n0::/d\n", {"d/memory.max": "many"}, None),
}


@pytest.mark.parametrize("kind", GROUPS)
def test_memory_is_that_of_the_container(tmp_path: Path, kind: str) -> None:
    groups, files, expected = GROUPS[kind]
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(groups)
    for name, text in files.items():
        (tmp_path / "sys/fs/cgroup" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys/fs/cgroup" / name).write_text(f"{text}\n")
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert memory_of_process(tmp_path) == (machine if expected is None else expected)


PLACE = """
import os, signal, sys
from lakehouse.engine.duckdb.room import spill_place
with spill_place() as place:
    place.mkdir()
    (place / "spilled").write_text("x")
    print(place.parent, *sorted(os.listdir(os.environ["TMPDIR"])), flush=True)
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
assert not place.exists()
"""


def test_the_folder_of_a_killed_process_goes_with_the_next(tmp_path: Path) -> None:
    def folders(how: str) -> list[str]:
        environment = {**os.environ, "TMPDIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", PLACE, how], env=environment, capture_output=True, check=False)
        return done.stdout.decode().split()

    killed, alone = folders("killed")
    assert Path(killed, "owner").exists()
    assert alone == Path(killed).name
    again, only = folders("ends")
    assert only == Path(again).name != alone
    assert list(tmp_path.iterdir()) == []


def test_a_killed_query_process_is_reported_and_leaves_no_file(numbers: lakehouse.Lake) -> None:
    numbers.query("SELECT 1")
    [process] = numbers.session.query_processes.idle()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            numbers.sql("SELECT sum(a.n * b.n * c.n) FROM numbers a, numbers b, numbers c", seconds=600)
        except QueryLimitExceeded as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while numbers.session.query_processes.idle():
        thread.join(0.01)
    process.kill()
    thread.join()
    assert [error.facts["ended"] for error in failed] == ["SIGKILL"]  # type: ignore[attr-defined]
    assert numbers.sql("SELECT max(n) FROM numbers").fetchall() == [(99_999,)]
