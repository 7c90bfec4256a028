"""Calls that keep a lake in shape, and a lake that gives each something to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lakehouse.errors import (
    AlreadyExists,
    LakehouseError,
    LockLost,
    LockTimeout,
    TableNotFound,
    VersionNotFound,
    WriteConflict,
)
from lakehouse.testing.rows import KEYED, arrow

DAY = "2013-01-05"

CALLS: dict[str, tuple[Callable[[Any], object], tuple[type[LakehouseError], ...]]] = {
    "expire": (lambda lake: lake.expire(keep_last=1), ()),
    "collect": (lambda lake: lake.collect(grace_seconds=0), ()),
    "expire and collect": (lambda lake: (lake.expire(keep_last=2), lake.collect(grace_seconds=0)), ()),
    "check": (lambda lake: lake.check(rebuild_key_frames=True, delete_unknown=True), ()),
    "export": (lambda lake: lake.export(), ()),
    "maintain": (lambda lake: lake.maintain(), ()),
    "plan": (lambda lake: lake.plan_tasks(), ()),
    "compact": (lambda lake: lake.table("flights").compact(), (LockTimeout, LockLost)),
    "clean": (lambda lake: lake.table("flights").clean(), (LockTimeout, LockLost)),
    "resolve": (lambda lake: lake.table("flights").resolve(), (LockTimeout, LockLost, WriteConflict)),
    "erase": (lambda lake: lake.table("flights").erase("value % 7 = 3"), (WriteConflict, LockTimeout)),
    "restore": (lambda lake: lake.table("flights").restore("kept"), (LockTimeout, WriteConflict)),
    "drop table": (lambda lake: lake.drop_table("spare"), (TableNotFound,)),
    "rename": (lambda lake: lake.rename_table("spare", "other"), (TableNotFound, AlreadyExists)),
    "create": (lambda lake: lake.create_table("new", KEYED, time="time"), (AlreadyExists,)),
    "tag": (lambda lake: lake.tag("late"), (AlreadyExists,)),
    "untag": (lambda lake: lake.untag("kept"), (VersionNotFound,)),
    "everything": (lambda lake: (lake.expire(keep_last=1), lake.maintain(), lake.collect(grace_seconds=0)), ()),
}
"""What is called, and what it may say."""


def fill(lake):
    """Versions, tombstones of each kind, garbage, an aborted operation, and a table to be dropped."""
    for name in ("flights", "spare"):
        if name not in lake.tables():
            lake.create_table(name, KEYED, time="time", primary_key=("value",), properties={"small_files": "2"})
    table = lake.table("flights")
    for first in (0, 10):
        table.append(arrow([(f"{DAY}T{hour:02d}:00", "a", first + hour) for hour in range(10)]))
    if "kept" not in lake.tags():
        lake.tag("kept")
    table.replace(arrow([(f"{DAY}T01:00", "b", 101)]), (f"{DAY}T01:00", f"{DAY}T02:00"))
    table.upsert(arrow([(f"{DAY}T03:00", "c", 3)]))
    table.delete("value = 15")
    table.begin_append().abort()
    lake.table("spare").append(arrow([(DAY, "a", 1)]))
