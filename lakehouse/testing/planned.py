"""Operations to run in many orders: their effect on a table, for the library, for the model, and serially.

Times are small whole numbers, two in each of the table's two time chunks, so that operations collide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from lakehouse.core.interval import ALL_TIME, Interval

Kind = Literal[
    "append", "replace", "delete", "update", "upsert", "delete_keys", "merge",
    "compact", "resolve", "clean", "restore", "expire", "erase", "alter",
]  # fmt: skip
Grain = Literal["hour", "day", "all"]
WriteOrder = Literal["commit", "start"]
Unit = int
"""A time: half a chunk each, from the first chunk's start."""
Short = tuple[Unit, str, int, int]
"""A row: time, client, key, value."""

COLUMNS = ("time", "client", "key", "value")
AT_ONCE = ("restore", "clean", "expire", "alter")
"""Kinds of operations that are one step."""
UNSEEN = ("compact", "resolve", "clean", "expire", "alter")
"""Kinds of operations that change no row; an alter changes columns, see `lakehouse.testing.targets`."""
CHANGED = 10_000
"""What an update adds to a value; values that were not updated are below."""
_FIRST = datetime(2013, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Stage:
    """The kind of table to run on. ``masked``: it has row and key tombstones at first.

    In a timeless table (grain ``all``) times are values of a column like others, and every interval is all of time.
    """

    grain: Grain = "day"
    ragged: bool = False
    write_order: WriteOrder = "commit"
    masked: bool = False

    def at(self, unit: Unit) -> datetime:
        """The instant of a time."""
        return _FIRST + unit * (timedelta(hours=12) if self.grain == "day" else timedelta(minutes=30))

    def rows(self, rows: Sequence[Short]) -> list[tuple[Any, ...]]:
        """Rows with instants for times."""
        return [(self.at(unit), *rest) for unit, *rest in rows]

    def interval(self, span: tuple[Unit, Unit] | None) -> Interval | None:
        """The interval between two times."""
        if span is None:
            return None
        return ALL_TIME if self.grain == "all" else Interval(self.at(span[0]), self.at(span[1]))

    @property
    def division(self) -> dict[str, str]:
        """Arguments of `create_table` that say how time divides the table."""
        return {} if self.grain == "all" else {"time": "time", "grain": self.grain}

    def __str__(self) -> str:
        masked = "masked" if self.masked else "plain"
        return f"{self.grain},{'ragged' if self.ragged else 'split'},{self.write_order},{masked}"


@dataclass(frozen=True, slots=True)
class Where:
    """Which rows match: those of a client or key, those never updated, those from a time on."""

    column: Literal["client", "key", "value", "time"]
    value: str | int

    def sql(self, stage: Stage) -> str:
        """The predicate as the library takes it."""
        match self.column:
            case "client":
                return f"client = '{self.value}'"
            case "key":
                return f"key = {self.value}"
            case "value":
                return f"value < {self.value}"
            case "time":
                return f"time >= '{stage.at(int(self.value)):%Y-%m-%d %H:%M:%S}'"

    def holds(self, stage: Stage, named: Mapping[str, Any]) -> bool:
        """Whether a row, by column, matches."""
        match self.column:
            case "client" | "key":
                return bool(named[self.column] == self.value)
            case "value":
                return bool(named["value"] < self.value)
            case "time":
                return bool(named["time"] >= stage.at(int(self.value)))


@dataclass(frozen=True, slots=True)
class Set:
    """What an update does: always adds `CHANGED` to the value, and moves a row in time or to another client."""

    time: Unit | None = None
    client: str | None = None

    def sql(self, stage: Stage) -> dict[str, str]:
        """New values by column, as the library takes them."""
        found = {"value": f"value + {CHANGED}"}
        if self.time is not None:
            found["time"] = f"TIMESTAMP '{stage.at(self.time):%Y-%m-%d %H:%M:%S}'"
        if self.client is not None:
            found["client"] = f"'{self.client}'"
        return found

    def change(self, stage: Stage, named: Mapping[str, Any]) -> dict[str, Any]:
        """New values by column of a row, by column."""
        found: dict[str, Any] = {"value": named["value"] + CHANGED}
        if self.time is not None:
            found["time"] = stage.at(self.time)
        if self.client is not None:
            found["client"] = self.client
        return found


@dataclass(frozen=True, slots=True)
class Planned:
    """An operation to run. A merge without ``set`` deletes its matches; its rows are the source."""

    kind: Kind
    rows: tuple[Short, ...] = ()
    span: tuple[Unit, Unit] | None = None
    clients: tuple[str, ...] | None = None
    where: Where | None = None
    set: Set | None = None
    inserts: bool = True

    @property
    def scope(self) -> dict[str, Any] | None:
        """The keys that a replace covers."""
        return None if self.clients is None else {"client": list(self.clients)}

    def numbered(self, place: int) -> Planned:
        """The same with values that distinguish its rows from those of concurrent operations."""
        return replace(self, rows=tuple((*row[:3], row[3] + 100 * (place + 1)) for row in self.rows))

    def __str__(self) -> str:
        parts = (self.kind, self.span, self.clients, self.set, self.where, self.rows)
        return " ".join(str(part) for part in parts if part)


MENU = (
    Planned("append", ((0, "x", 7, 0), (3, "b", 8, 1))),
    Planned("append", ((1, "a", 1, 0), (1, "b", 9, 1))),
    Planned("replace", ((1, "b", 2, 0),), (0, 2)),
    Planned("replace", (), (1, 3)),
    Planned("replace", ((2, "c", 5, 0), (1, "a", 7, 1)), (1, 4)),
    Planned("replace", ((0, "a", 1, 0),), (0, 4), ("a",)),
    Planned("replace", ((1, "b", 9, 0),), (0, 2), ("b", "x")),
    Planned("delete", where=Where("client", "a")),
    Planned("delete", where=Where("time", 1)),
    Planned("delete", where=Where("value", CHANGED)),
    Planned("delete", where=Where("key", 1)),
    Planned("update", set=Set(), where=Where("value", CHANGED)),
    Planned("update", set=Set(), where=Where("key", 1)),
    Planned("update", set=Set(time=3), where=Where("client", "b")),
    Planned("update", set=Set(time=1), where=Where("time", 2)),
    Planned("update", set=Set(client="a"), where=Where("client", "b")),
    Planned("update", set=Set(client="b"), where=Where("client", "a")),
    Planned("upsert", ((0, "a", 1, 0),)),
    Planned("upsert", ((2, "b", 2, 0), (1, "c", 9, 1))),
    Planned("delete_keys", ((0, "", 1, 0), (0, "", 9, 0))),
    Planned("delete_keys", ((0, "", 3, 0),)),
    Planned("merge", ((0, "a", 1, 0), (2, "b", 9, 1)), set=Set()),
    Planned("merge", ((1, "b", 2, 0), (1, "x", 7, 1)), set=Set(time=2), inserts=False),
    Planned("merge", ((0, "a", 1, 0), (3, "c", 8, 1))),
    Planned("compact"),
    Planned("compact", span=(0, 2)),
    Planned("resolve"),
    Planned("restore"),
    Planned("expire"),
    Planned("clean"),
    Planned("erase", where=Where("client", "b")),
    Planned("alter"),
)
"""Every kind: replaces that are whole, partial, empty and keyed, updates that move rows in time and between clients."""

PLAIN = (
    Planned("append", ((0, "a", 1, 1), (1, "b", 2, 2), (2, "c", 3, 3))),
    Planned("append", ((0, "b", 4, 4), (3, "a", 5, 5))),
)
MASKED = (
    *PLAIN,
    Planned("upsert", ((1, "b", 2, 7), (2, "b", 6, 8))),
    Planned("delete", where=Where("key", 4)),
)


def before(stage: Stage) -> tuple[Planned, ...]:
    """What is done to a table before: two segments a chunk, or two that span both chunks where it is ragged."""
    return MASKED if stage.masked else PLAIN


def source_values(set_: Set, stage: Stage, named: Mapping[str, Any], source: Mapping[str, Any]) -> dict[str, Any]:
    """New values of a row that a merge's source matches: those of an update, and the source's value added."""
    found = set_.change(stage, named)
    return {**found, "value": found["value"] + source["value"]}


def after(rows: Sequence[tuple[Any, ...]], planned: Planned, stage: Stage) -> list[tuple[Any, ...]]:
    """The rows after an operation that runs alone, unordered. A restore leads to no rows at all.

    This defines what the operation means, without ordinals, versions or tombstones.
    """
    named = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    written = [dict(zip(COLUMNS, row, strict=True)) for row in stage.rows(planned.rows)]
    keys = {one["key"] for one in written}
    match planned.kind:
        case "append":
            found = named + written
        case "replace":
            interval = stage.interval(planned.span)
            assert interval is not None
            clients = planned.clients
            kept = [
                one
                for one in named
                if not interval.contains(one["time"]) or (clients is not None and one["client"] not in clients)
            ]
            found = kept + written
        case "delete" | "erase":
            assert planned.where is not None
            found = [one for one in named if not planned.where.holds(stage, one)]
        case "update":
            assert planned.where is not None
            assert planned.set is not None
            found = [
                {**one, **planned.set.change(stage, one)} if planned.where.holds(stage, one) else one for one in named
            ]
        case "upsert":
            found = [one for one in named if one["key"] not in keys] + written
        case "delete_keys":
            found = [one for one in named if one["key"] not in keys]
        case "merge":
            found = _merged(named, written, planned, stage)
        case "restore":
            found = []
        case _:
            found = named
    return [tuple(one[column] for column in COLUMNS) for one in found]


def _merged(
    named: list[dict[str, Any]], source: list[dict[str, Any]], planned: Planned, stage: Stage
) -> list[dict[str, Any]]:
    by_key = {one["key"]: one for one in source}
    found = []
    for one in named:
        if one["key"] not in by_key:
            found.append(one)
        elif planned.set is not None:
            found.append({**one, **source_values(planned.set, stage, one, by_key[one["key"]])})
    known = {one["key"] for one in named}
    return found + [one for one in source if planned.inserts and one["key"] not in known]
