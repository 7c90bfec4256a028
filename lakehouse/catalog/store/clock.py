"""The catalog's clock (ADR 0026): PostgreSQL's own; for SQLite, one that changes of the host's clock do not move.

A SQLite catalog stores what its clock showed at a tick of the host, which counts from the boot and never jumps. The
time now is the stored time plus the ticks since. It also moves towards the host's wall clock, by a twentieth of the
ticks and 5 seconds at most, so a wrong start is corrected over time without effect on leases, graces or ages. In
another boot, or where the host has no boot id, it continues from the wall clock, never backwards.
"""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Connection, Text, and_, bindparam, case, func, literal_column, select

from lakehouse.catalog.store.models import lake
from lakehouse.catalog.store.prepared import Prepared

_SHARE = 20
_MOST_US = 5_000_000
_TICKS = getattr(time, "CLOCK_BOOTTIME", None)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/time")


def steady_seconds() -> float:
    """Seconds since some moment: never jumps, and counts while the machine sleeps where the host supports it."""
    return time.monotonic() if _TICKS is None else time.clock_gettime(_TICKS)


@cache
def boot() -> str | None:
    """The id of the boot that counts the ticks, as containers see it; None where the host has no boot id."""
    try:
        number = _BOOT_ID.read_text().strip()
    except OSError:
        return None
    return f"{number} {_NAMESPACE.readlink() if _NAMESPACE.is_symlink() else ''}"


def host_clocks() -> dict[str, Any]:
    """The parameters of statements over `now_us`: boot, ticks since it and wall clock, in microseconds."""
    ticks_us = 0 if _TICKS is None else time.clock_gettime_ns(_TICKS) // 1000
    return {"boot": None if _TICKS is None else boot(), "ticks_us": ticks_us, "wall_us": time.time_ns() // 1000}


_TICKS_US, _WALL_US = bindparam("ticks_us", type_=BigInteger), bindparam("wall_us", type_=BigInteger)
_BOOT = bindparam("boot", type_=Text)
_PASSED = _TICKS_US - lake.c.clock_ticks_us
IS_KNOWN = func.coalesce(and_(lake.c.clock_boot == _BOOT, _PASSED >= 0), False)
"""Whether the stored tick is of this boot."""


def now_us(dialect: str) -> ColumnElement[int]:
    """The catalog's clock in microseconds, as an expression over `models.lake` with the parameters `host_clocks`."""
    if dialect != "sqlite":
        return literal_column("CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)", BigInteger)
    steady = lake.c.clock_us + _PASSED
    room = func.min(_PASSED // _SHARE, _MOST_US)
    drawn = func.max(steady - room, func.min(steady + room, _WALL_US))
    return case((IS_KNOWN, drawn), else_=func.max(lake.c.clock_us, _WALL_US))


def remembered(dialect: str) -> dict[str, Any]:
    """Columns of `models.lake` to set together with ``clock_us``."""
    if dialect != "sqlite":
        return {}
    return {"clock_boot": func.coalesce(_BOOT, ""), "clock_ticks_us": _TICKS_US}


_READ = Prepared(lambda dialect: select(now_us(dialect), IS_KNOWN if dialect == "sqlite" else literal_column("true")))
_REMEMBER = Prepared(lambda dialect: lake.update().values(clock_us=now_us(dialect), **remembered(dialect)))


def read_clock(connection: Connection, *, writes: bool) -> int:
    """The catalog's clock in microseconds; in a transaction that ``writes``, it is stored after a boot."""
    clocks = host_clocks()
    now, is_known = _READ.run(connection, clocks).fetchone()
    if writes and not is_known:
        _REMEMBER.run(connection, clocks)
    return int(now)
