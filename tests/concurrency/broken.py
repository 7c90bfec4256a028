"""Deliberately broken libraries: each breaks one rule of visibility, ordinals, row ids or conflicts, in one spot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pyroaring import BitMap64

from lakehouse.catalog.commit import delta, row_changes
from lakehouse.core.column import ColumnHistory, stored_type
from lakehouse.core.hits import Hits
from lakehouse.core.operation import Begun, Kind
from lakehouse.core.plan import plan_read
from lakehouse.engine import Query
from lakehouse.operations.compaction import Compaction
from lakehouse.reading.scan import sets_of

Patch = Callable[[pytest.MonkeyPatch], None]


def equal_ordinals(patch: pytest.MonkeyPatch) -> None:
    """A tombstone hides what was written with it, as if its ordinal were greater."""
    original = delta._with_set
    patch.setattr(delta, "_with_set", lambda made, entry, ordinal: original(made, entry, ordinal + 1))


def compaction_at_its_commit(patch: pytest.MonkeyPatch) -> None:
    """A compaction's outputs have its commit's number, and not the one that it read at."""
    original = delta.ordinal_of

    def late(begun: Begun, version: int) -> int:
        return version if begun.kind is Kind.COMPACTION else original(begun, version)

    patch.setattr(delta, "ordinal_of", late)


def compaction_loses_row_ids(patch: pytest.MonkeyPatch) -> None:
    """A compaction does not store row ids, so that its rows get others."""

    def compact(self: Any, group: Any) -> None:
        plan = plan_read(group.segments, group.tombstones, version=self.base_version)
        self._inputs.update(one.id for one in group.segments)
        if plan.groups:
            query = Query(plan, self._begun.table, self._session.warehouse, sets=sets_of(self._session, plan))
            self._store(self._session.local_engine, self._session.local_engine.read(query).reader())

    patch.setattr(Compaction, "_compact", compact)


def replace_ignores_what_was_rewritten(patch: pytest.MonkeyPatch) -> None:
    """A replace leaves the rows that an update brought into what it covers while it ran."""
    patch.setattr(delta, "rows_updated_meanwhile", lambda asked: None)


def rows_leave_a_running_replace(patch: pytest.MonkeyPatch) -> None:
    """An update may move rows out of what a running replace covers."""
    patch.setattr(Hits, "moved_out", lambda hits, interval, keys: BitMap64())


def restore_leaves_maintenance_running(patch: pytest.MonkeyPatch) -> None:
    """A restore takes no chunk from a compaction."""
    patch.setattr(delta, "locks", SimpleNamespace(**{**vars(delta.locks), "giving_way": lambda *wanted: []}))


def deletes_are_not_repeated_after_a_restore(patch: pytest.MonkeyPatch) -> None:
    """A delete that read before a restore is committed after it as it was."""
    original = row_changes.removals_since

    def without(*asked: Any) -> Iterator[Any]:
        return ((kind, one) for kind, one in original(*asked) if kind is not Kind.RESTORE)

    patch.setattr(row_changes, "removals_since", without)


def compaction_brings_erased_rows_back(patch: pytest.MonkeyPatch) -> None:
    """A compaction is committed although rows were erased from what it read."""
    patch.setattr(delta, "unchanged_since", lambda connection, segments, version: set(segments))


def updates_bring_erased_rows_back(patch: pytest.MonkeyPatch) -> None:
    """An update or merge is committed although rows that it read were erased."""
    original = row_changes.removals_since

    def without(*asked: Any) -> Iterator[Any]:
        return ((kind, one) for kind, one in original(*asked) if kind is not Kind.ERASE)

    patch.setattr(row_changes, "removals_since", without)


def files_have_the_columns_of_now(patch: pytest.MonkeyPatch) -> None:
    """Files that were written before a column was added are read as if they had it."""
    patch.setattr(ColumnHistory, "type_in", lambda history, number, current: stored_type(current))


BROKEN: dict[Patch, tuple[str, ...]] = {
    equal_ordinals: ("day,split,commit,plain:17,1:1,0,1,0,1,0", "day,split,commit,plain:18,18:1,1,0,0,0,1"),
    compaction_at_its_commit: (
        "day,split,commit,plain:24,19:1,1,0,0,1,0",
        "day,split,commit,plain:24,17:1,0,0,1,1,0",
    ),
    compaction_loses_row_ids: (
        "day,split,commit,plain:25,11:0,1,0,1,0,1",
        "day,split,commit,plain:10,25:0,1,0,1,1,0",
    ),
    replace_ignores_what_was_rewritten: (
        "day,split,commit,plain:11,5:0,1,0,0,1,1",
        "day,split,commit,plain:11,5:1,1,0,0,0,1",
    ),
    rows_leave_a_running_replace: (
        "day,split,commit,plain:13,3:0,1,0,0,1,1",
        "day,split,commit,plain:13,6:0,0,1,0,1,1",
    ),
    restore_leaves_maintenance_running: (
        "day,split,commit,plain:11,24,27:0,0,0,1,1,2,2,2,1",
        "day,split,commit,masked:18,24,27:0,0,0,1,1,2,2,2,1",
    ),
    deletes_are_not_repeated_after_a_restore: (
        "day,split,commit,plain:12,9,27:0,0,0,1,1,2,2,2,1",
        "day,split,commit,plain:8,9,27:0,0,0,1,1,2,2,2,1",
    ),
    compaction_brings_erased_rows_back: (
        "day,split,commit,plain:24,30:0,0,1,1,1,0",
        "day,split,commit,masked:24,30:0,1,0,1,1,0",
    ),
    updates_bring_erased_rows_back: (
        "day,split,commit,plain:30,11:0,1,1,0,0,1",
        "day,split,start,masked:30,13:0,1,1,0,0,1",
    ),
    files_have_the_columns_of_now: (  # as many as the engine reads one of
        "day,split,commit,plain:0,31:0,1,1,1,0,0",
        "day,split,commit,plain:2,31:0,1,1,1,0,0",
        "day,split,commit,plain:11,31:0,0,1,1,1,0",
        "day,split,commit,plain:17,31:0,0,1,1,1,0",
    ),
}
"""By what is broken: schedules that notice it."""
