"""Statements that are cancelled end at once and by name, change nothing, and the lake goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import duckdb
import pytest

import lakehouse
from lakehouse.engine.duckdb.connection import KeptDatabase, open_memory
from lakehouse.errors import StatementCancelled
from lakehouse.sql.parse import parse_statement
from lakehouse.sql.translation import translate
from lakehouse.testing.faults import Gate, armed
from lakehouse.testing.rows import many

FROM = "numbers AS a CROSS JOIN numbers AS b CROSS JOIN numbers AS c"
ENDLESS = f"SELECT max(a.at) AS at, max(a.label) AS label, sum(a.n * b.n + c.n) AS n FROM {FROM}"
CHANGES = {
    "insert": f"INSERT INTO numbers {ENDLESS}",
    "overwrite": f"INSERT OVERWRITE numbers {ENDLESS}",
    "create": f"CREATE TABLE made PARTITIONED BY (days(at)) AS {ENDLESS}",
    "delete": f"DELETE FROM numbers WHERE n IN (SELECT sum(a.n * b.n + c.n) FROM {FROM})",
    "update": f"UPDATE numbers SET n = (SELECT max(a.n * b.n + c.n) FROM {FROM})",
    "merge of a source": f"MERGE INTO numbers t USING ({ENDLESS}) AS s ON t.n = s.n WHEN MATCHED THEN DELETE",
    "merge of a join": "MERGE INTO numbers t USING numbers s ON t.n * s.n < -1 WHEN MATCHED THEN DELETE",
    "a transaction": f"BEGIN; INSERT INTO clients VALUES ('2014-01-01', 'x', 1); INSERT INTO numbers {ENDLESS}; COMMIT",
}


@pytest.fixture
def numbers(lake: lakehouse.Lake) -> lakehouse.Lake:
    """The lake with a table of thirty thousand rows."""
    lake.sql("CREATE TABLE numbers (at TIMESTAMP, label STRING, n BIGINT) PARTITIONED BY (days(at))")
    lake.table("numbers").append(many(30_000, step_us=1000).rename_columns(["at", "label", "n"]))
    return lake


class Running(threading.Thread):
    """A call in a thread of its own; `outcome` is what it returned or raised."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__()
        self.outcome: Any = None
        self._call = call
        self.start()

    def run(self) -> None:
        try:
            self.outcome = self._call()
        except BaseException as error:  # noqa: BLE001 - compared by the test
            self.outcome = error


def seen(lake: lakehouse.Lake) -> tuple[Any, ...]:
    files = sum(one.is_file() for one in lake.warehouse.rglob("*"))
    return lake.head, lake.tables(), [one.id for one in lake.operations()], files


def test_a_statement_can_be_cancelled_while_it_is_made(lake: lakehouse.Lake) -> None:
    works, here = lake.session.works, threading.current_thread()
    tree = parse_statement("SELECT id FROM trips").tree
    assert tree is not None
    for step in (lambda: parse_statement("SELECT id FROM trips"), lambda: translate(lake.session, tree, "duckdb")):
        with works.runs():
            step()
            works.cancel(here)
            with pytest.raises(StatementCancelled):
                step()


@pytest.mark.parametrize("kind", CHANGES)
def test_a_cancelled_change_has_changed_nothing(numbers: lakehouse.Lake, kind: str) -> None:
    before = seen(numbers)
    gate = Gate()
    gate.open()
    with armed({"read.planned": gate.hold}):
        running = Running(lambda: numbers.sql(CHANGES[kind]))
        gate.wait_reached()
        numbers.cancel(running)
        running.join()
    assert isinstance(running.outcome, StatementCancelled), running.outcome
    assert (running.outcome.code, running.outcome.kind) == ("statement_cancelled", "cancelled")
    assert seen(numbers) == before
    assert numbers.sql("DELETE FROM numbers WHERE n IN (SELECT 1)").rows_deleted == 1


def until_ended(lake: lakehouse.Lake, running: Running) -> Any:
    """The outcome of a thread that is cancelled as soon as it runs."""
    while running.is_alive():
        lake.cancel(running)
        running.join(0.02)
    return running.outcome


def test_a_cancelled_relation_ends_by_duckdbs_error_and_can_be_read_again(numbers: lakehouse.Lake) -> None:
    reads: list[Callable[[Any], Any]] = [
        lambda rows: rows.fetchall(), lambda rows: rows.to_arrow_table(), lambda rows: rows.limit(1).df(),
        lambda rows: rows.to_arrow_reader().read_all(),
    ]  # fmt: skip
    endless = numbers.sql(ENDLESS)
    for read in reads:
        running = Running(lambda read=read: read(endless))  # type: ignore[misc]
        while running.is_alive():
            numbers.cancel(threading.current_thread())  # for which it was made
            running.join(0.02)
        assert "INTERRUPT Error" in str(running.outcome), running.outcome
        assert isinstance(running.outcome, duckdb.InterruptException | OSError)
    rows = numbers.sql("SELECT count(*) FROM numbers")
    numbers.cancel()
    assert rows.fetchall() == numbers.sql("SELECT count(*) FROM numbers").fetchall() == [(30_000,)]


def test_a_cancelled_query_process_is_killed(numbers: lakehouse.Lake) -> None:
    for call in (lambda: numbers.sql(ENDLESS, seconds=600), lambda: numbers.query(ENDLESS, most_seconds=600)):
        found = until_ended(numbers, Running(call))
        assert isinstance(found, StatementCancelled), found
        assert numbers.session.query_processes.idle() == []
    assert numbers.sql("SELECT count(*) FROM numbers").fetchall() == [(30_000,)]


def test_the_statements_of_other_threads_go_on(numbers: lakehouse.Lake) -> None:
    gate = Gate()
    with armed({"commit.before": gate.hold}):
        kept = Running(lambda: numbers.sql("INSERT INTO clients VALUES ('2014-01-01', 'kept', 1)"))
        gate.wait_reached()
        for text in (ENDLESS, CHANGES["delete"], f"EXPLAIN {ENDLESS}"):
            until_ended(numbers, Running(lambda text=text: numbers.sql(text)))  # type: ignore[misc]
        gate.open()
        kept.join()
    assert kept.outcome.rows_added == 1
    assert numbers.sql("SELECT score FROM clients WHERE name = 'kept'").fetchall() == [(1,)]


def test_a_work_is_cancelled_that_has_closed_a_connection(numbers: lakehouse.Lake) -> None:
    kept, works = KeptDatabase(open_memory), numbers.session.works

    def work() -> None:
        with works.runs():
            kept.cursor().close()
            works.cancel(threading.current_thread())
            kept.cursor()

    with pytest.raises(StatementCancelled):
        work()


def test_what_is_cancelled_before_its_commit_is_not_committed_and_after_it_is(numbers: lakehouse.Lake) -> None:
    before = seen(numbers)
    text = "INSERT INTO clients VALUES ('2014-01-01', 'x', 1)"
    for point in ("write.before", "write.after", "commit.before"):
        with armed({point: numbers.cancel}), pytest.raises(StatementCancelled):
            numbers.sql(text)
        assert seen(numbers) == before
    with armed({"commit.after": numbers.cancel}):
        assert numbers.sql(text).rows_added == 1
    made = "CREATE TABLE made PARTITIONED BY (days(since)) AS SELECT * FROM clients"
    for point in ("write.before", "commit.before"):  # where the table is there, and empty
        with armed({point: numbers.cancel}), pytest.raises(StatementCancelled):
            numbers.sql(made)
        assert numbers.tables() == before[1]
    assert numbers.sql(made).count() == 3


def test_whoever_waits_for_a_lock_can_be_cancelled(numbers: lakehouse.Lake) -> None:
    with numbers.table("Clients").begin_replace(("2012-01-01", "2013-01-01")) as held:
        waiting = Running(lambda: numbers.sql("INSERT OVERWRITE clients SELECT * FROM clients"))
        assert isinstance(until_ended(numbers, waiting), StatementCancelled)
        held.abort()
    assert numbers.sql("INSERT OVERWRITE clients SELECT * FROM clients").rows_added == 2


def test_two_statements_are_cancelled_at_once(numbers: lakehouse.Lake) -> None:
    before = seen(numbers)
    running = [Running(lambda text=text: numbers.sql(text)) for text in (CHANGES["insert"], CHANGES["delete"])]  # type: ignore[misc]
    while any(one.is_alive() for one in running):
        numbers.cancel()
        running[0].join(0.02)
    assert [type(one.outcome) for one in running] == [StatementCancelled, StatementCancelled]
    assert seen(numbers) == before


def test_a_child_forked_after_a_cancel_has_statements_of_its_own(numbers: lakehouse.Lake) -> None:
    until_ended(numbers, Running(lambda: numbers.sql(ENDLESS).fetchall()))
    kept = numbers.sql("SELECT count(*) FROM numbers")
    child = os.fork()
    if not child:
        code = 1
        try:
            numbers.cancel()
            code = 0 if numbers.sql("SELECT count(*) FROM numbers").fetchall() == [(30_000,)] else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert kept.fetchall() == [(30_000,)]


CHILD = """
import sys, lakehouse
from lakehouse.testing.faults import armed
with lakehouse.connect(sys.argv[1], sys.argv[2]) as lake:
    for text in sys.argv[3:]:
        with armed({"read.planned": lambda: print("runs", flush=True)}):
            try:
                found = lake.sql(text, seconds=600) if text.startswith("SELECT") else lake.sql(text)
            except KeyboardInterrupt:
                print("interrupted", lake.head, lake.sql("SELECT count(*) FROM clients").fetchall(), flush=True)
            else:
                print("not interrupted", found, flush=True)
"""


def told_after_ctrl_c(child: subprocess.Popen[str]) -> str:
    """What a child says of a Ctrl-C. It is pressed again after a while: Python drops one that meets a finalizer."""
    answered = threading.Event()

    def press() -> None:
        child.send_signal(signal.SIGINT)
        while not answered.wait(30):
            child.send_signal(signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    try:
        assert child.stdout is not None
        return next(line for line in child.stdout if line != "runs\n")
    finally:
        answered.set()
        pressing.join()


def test_ctrl_c_ends_a_change_and_the_lake_goes_on(numbers: lakehouse.Lake) -> None:
    texts = [CHANGES["insert"], CHANGES["create"]]
    arguments = [numbers.catalog.address, str(numbers.warehouse), *texts]
    head, tables = numbers.head, numbers.tables()
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        for _ in texts:
            assert child.stdout.readline() == "runs\n"
            line = told_after_ctrl_c(child)
            assert line == f"interrupted {head} [(2,)]\n", child.communicate(timeout=30)
        child.communicate(timeout=30)
    assert (numbers.head, numbers.tables(), numbers.operations()) == (head, tables, [])
