"""Deliberately broken libraries: each is made in a victim before it begins, and breaks one promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lakehouse import faults
from lakehouse.catalog import writer
from lakehouse.catalog.catalog import Catalog
from lakehouse.catalog.commit import commit
from lakehouse.catalog.state import key_frames
from lakehouse.catalog.store import statements
from lakehouse.catalog.store.database import Database
from lakehouse.operations.operation import Operation
from lakehouse.storage import summaries
from lakehouse.testing.victim import Victim


def _commit_now(connection: Any) -> None:
    """End the driver's transaction and begin another."""
    driver = connection.connection.dbapi_connection
    driver.execute("COMMIT").close()
    driver.execute("BEGIN").close()


def two_transactions(victim: Victim) -> None:
    """Each table's delta is committed on its own."""
    original = commit.write_table

    def halved(connection: Any, *rest: Any) -> Any:
        result = original(connection, *rest)
        _commit_now(connection)
        return result

    commit.write_table = halved


def version_before_its_delta(victim: Victim) -> None:
    """The version is committed first, what it changes after."""
    original = statements.INSERT_VERSION.run

    def early(connection: Any, values: Any) -> Any:
        result = original(connection, values)
        _commit_now(connection)
        return result

    statements.INSERT_VERSION.run = early  # type: ignore[method-assign]


def acknowledged_before_commit(victim: Victim) -> None:
    """The caller gets its answer before COMMIT is sent."""
    original = commit.record
    commit.reach = lambda point: None if point == "commit.recorded" else faults.reach(point)

    def hasty(*arguments: Any, **named: Any) -> Any:
        recorded = original(*arguments, **named)
        victim.acknowledge(recorded.commit.version)
        faults.reach("commit.recorded")
        return recorded

    commit.record = hasty


def frames_without_their_last_entry(victim: Victim) -> None:
    """A key frame forgets a segment."""
    original = key_frames.encode_page

    def forgetful(body: Any, *others: Any) -> bytes:
        return original(body.slice(0, max(0, len(body) - 1)), *others)

    key_frames.encode_page = forgetful


def locks_for_ever(victim: Victim) -> None:
    """A lock outlives its process."""
    original = Catalog.begin

    def holding(self: Catalog, *arguments: Any, **named: Any) -> Any:
        self.lease_seconds = 3600
        return original(self, *arguments, **named)

    Catalog.begin = holding  # type: ignore[method-assign]


def marks_after_commit(victim: Victim) -> None:
    """A caller's mark is not recorded together with what it marks."""
    statements.INSERT_MARK.run_many = lambda *_: None  # type: ignore[method-assign]


def files_after_commit(victim: Victim) -> None:
    """Files get their names when the commit stands."""
    original = Operation.contribution

    def late(self: Operation) -> Any:
        found = original(self)
        for one in found.segments:
            path = Path(self._session.warehouse.root, one.path)
            path.rename(path.with_suffix(".late"))
            pending.append(path)
        return found

    pending: list[Path] = []
    reach = faults.reach

    def named(point: str) -> None:
        reach(point)
        while point == "commit.after" and pending:
            path = pending.pop()
            path.with_suffix(".late").rename(path)

    Operation.contribution = late  # type: ignore[method-assign]
    writer.reach = named


def lost_transactions(victim: Victim) -> None:
    """Every commit is rolled back and answered as if it stood."""
    original = Database.run

    def rolling(self: Database, work: Any, **named: Any) -> Any:
        def undone(connection: Any) -> Any:
            connection.exec_driver_sql("SAVEPOINT mutant")
            result = work(connection)
            if isinstance(result, commit.Recorded):
                connection.exec_driver_sql("ROLLBACK TO SAVEPOINT mutant")
            return result

        return original(self, undone, **named)

    Database.run = rolling  # type: ignore[method-assign]


def row_ids_twice(victim: Victim) -> None:
    """Each commit gives back the row ids of the one before it, so that they are given out again."""
    original = statements.RESERVE.run
    reserved: dict[int, int] = {}

    def given_back(connection: Any, values: Any) -> Any:
        before = reserved.get(values["table"], 0)
        reserved[values["table"]] = values["rows"]
        original(connection, {**values, "rows": -before})
        return original(connection, values)

    statements.RESERVE.run = given_back  # type: ignore[method-assign]


def filters_without_their_last_value(victim: Victim) -> None:
    """An index misses a value, so that a look-up leaves its segment out."""
    original = summaries.make_blocks
    summaries.make_blocks = lambda hashes: original(hashes[:-1])
