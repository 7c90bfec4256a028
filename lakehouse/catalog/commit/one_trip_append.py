"""An append in one trip, to a database that is elsewhere.

A commit learns its number, time and row ids from the head and then writes: two trips, and the head is held while this
process works them out in between. An append asks nothing else, so that all of it can be sent at once, with COMMIT: its
statements say ``the head's number`` where the others have it. What would be in its way (its operation was ended, its
table dropped or altered) makes a column null that cannot be, and nothing is committed; the other way then finds out
what it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from sqlalchemy import Connection, bindparam, select

from lakehouse.catalog.commit.commit import Recorded, as_logged, end_operation
from lakehouse.catalog.commit.delta import new_segments
from lakehouse.catalog.commit.execute import TableDelta, touched_bins
from lakehouse.catalog.commit.plan import OperationPlan
from lakehouse.catalog.store import statements
from lakehouse.catalog.store.clock import host_clocks
from lakehouse.catalog.store.database import stand_in_line
from lakehouse.catalog.store.encoding import encode_map
from lakehouse.catalog.store.models import commit_log, commit_table, delta, lake, lake_table, operation, segment
from lakehouse.catalog.store.prepared import Prepared
from lakehouse.catalog.store.rows import segment_values
from lakehouse.core.contribution import Contribution
from lakehouse.core.operation import Kind
from lakehouse.core.version import ADD
from lakehouse.faults import reach

_NUMBER = select(lake.c.counter).scalar_subquery()
_TIME = select(lake.c.clock_us).scalar_subquery()
_NEXT_ROW_ID = select(lake_table.c.next_row_id).where(lake_table.c.id == bindparam("of")).scalar_subquery()
_IS_MINE = operation.c.number == bindparam("ended"), operation.c.version == _NUMBER
_IS_THERE = (
    lake_table.c.id == bindparam("of"),
    lake_table.c.dropped_version.is_(None),
    lake_table.c.schema_number == bindparam("seen_schema"),
)


def _insert(into: Any, **known: Any) -> Prepared:
    given = {one.name: bindparam(one.name, type_=one.type) for one in into.c if one.name not in known}
    return Prepared(lambda _: into.insert().values({**given, **known}))


_VERSION = _insert(commit_log, version=_NUMBER, committed_us=_TIME)
_SEGMENT = _insert(
    segment, added_version=_NUMBER, ordinal=_NUMBER, first_row_id=_NEXT_ROW_ID - bindparam("rows_from_here")
)
_DELTA = _insert(delta, version=_NUMBER)
_COUNTS = _insert(
    commit_table,
    version=select(operation.c.version).where(*_IS_MINE).scalar_subquery(),
    table_id=select(lake_table.c.id).where(*_IS_THERE).scalar_subquery(),
)
_TOUCH = Prepared(statements.touching(_NUMBER))


def fits_one_trip(contributions: Sequence[Contribution]) -> bool:
    """Whether a commit asks for nothing but its number, its time and row ids."""
    if len(contributions) != 1:
        return False
    one = contributions[0]
    return one.begun.kind is Kind.APPEND and one.begun.ordinal is None and one.txn is None


class OneTripAppend:
    """A commit of one append: `write` it, together with COMMIT; `recorded` then returns the commit.

    Raises `InvalidInput` if it touches too many chunks.
    """

    def __init__(self, contribution: Contribution, *, message: str | None, properties: dict[str, str] | None) -> None:
        spec = contribution.begun.table
        plan = OperationPlan(contribution.begun)
        self._segments = new_segments(contribution, ordinal=0, first_row_id=0)
        plan.change(ADD, self._segments)
        self._delta = TableDelta(spec, contribution.begun.kind.value, changes=plan.changes)
        self._bins = touched_bins(self._delta)
        self._contribution = contribution
        self._message = message
        self._properties = properties
        self._head: Any = None
        self._touched: list[Any] = []

    def write(self, connection: Connection) -> None:
        """Send everything. Nothing is waited for: the answers come with that to COMMIT."""
        begun, change = self._contribution.begun, self._delta
        table = {"table_id": begun.table.id}
        stand_in_line(connection)
        self._head = statements.TAKE_VERSION.run(connection, host_clocks())
        end_operation(connection, self._contribution)
        reach("commit.head")
        values = {"operation": begun.kind.value, "message": self._message, "properties": encode_map(self._properties)}
        _VERSION.run(connection, values)
        _SEGMENT.run_many(connection, list(self._rows()))
        added = [{**table, "bin": one, "entry": entry} for one, entry in change.changes]
        _DELTA.run_many(connection, [{**row, "action": ADD, "is_tombstone": False} for row in added])
        of = {"ended": begun.number, "of": begun.table.id, "seen_schema": begun.table.schema_number}
        _COUNTS.run(connection, {**of, "operation": change.operation, **change.counts()})
        first = {**table, "frame_version": None, "frame_entries": 0, "chain": 1}
        self._touched = [_TOUCH.run(connection, {**first, "bin": one}) for one in self._bins]
        reach("commit.table")
        reach("commit.recorded")

    def recorded(self) -> Recorded:
        """What was committed."""
        version, committed_us = self._head.fetchone()
        begun = self._contribution.begun
        deltas = {begun.table.id: self._delta}
        commit = as_logged(
            [self._contribution], deltas, version, begun.kind, committed_us, self._message, self._properties
        )
        return Recorded(commit, deltas=deltas, touched={begun.table.id: self._touched})

    def _rows(self) -> Iterator[dict[str, Any]]:
        """The columns of the segments, and how many row ids lie from the first of each to the table's next one."""
        begun = self._contribution.begun
        behind = list(accumulate(one.rows for one in reversed(self._segments)))
        for one, rows in zip(self._segments, reversed(behind), strict=True):
            values = segment_values(one, begun.table.id, begun.number, 0)
            yield {**values, "of": begun.table.id, "rows_from_here": rows}
