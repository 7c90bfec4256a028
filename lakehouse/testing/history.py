"""Random histories of one writer: each step on a lake, and the expected rows after it.

With one writer at a time the expected rows need no ordinals and no versions: they are a tuple of rows that each step
turns into another.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope
from lakehouse.core.operation import Kind
from lakehouse.operations.summarize import build_indexes, build_statistics, missing_indexes, missing_statistics
from lakehouse.testing.rows import COLUMNS, SCHEMA, Row, arrow, order

TABLES: Final = ("one", "two")
FAR: Final = Interval.of("2013-03-01")
"""A chunk that no step touches."""
KEPT: Final = (40, 40, 5)
"""How many versions a clean-up may keep."""
_FIRST = datetime(2013, 1, 5, tzinfo=UTC)
_NEW_CLIENT = "ü"
_CLIENTS = ("a", "b", "c d", None)
_HOURS = 96


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the library. ``place`` is its table's index in `TABLES`, ``name`` the table's current name.

    ``version`` is restored, tagged or read, or how many versions a clean-up keeps.
    """

    kind: str
    place: int = 0
    name: str = ""
    other: str = ""
    """The second table, the new name or the tag."""
    rows: tuple[Row, ...] = ()
    interval: tuple[datetime, datetime] | None = None
    keys: KeyScope | None = None
    version: int = 0
    txn: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class World:
    """The expected state: names and rows of the tables, tags, and a table that is created and dropped."""

    names: tuple[str, ...] = TABLES
    rows: tuple[tuple[Row, ...], ...] = ((), ())
    tags: Mapping[str, int] = field(default_factory=dict)
    extra: str = ""

    def tables(self) -> list[str]:
        """Names of all tables, sorted."""
        return sorted([*self.names, self.extra] if self.extra else self.names)

    def with_rows(self, place: int, rows: tuple[Row, ...]) -> World:
        """The same with other rows in one table."""
        listed = list(self.rows)
        listed[place] = tuple(sorted(rows, key=order))
        return replace(self, rows=tuple(listed))

    def replaced(self, place: int, interval: tuple[datetime, datetime], keys: KeyScope | None = None) -> World:
        """The same without the rows of an interval (and of these keys)."""
        kept = tuple(one for one in self.rows[place] if not _covers(interval, keys, one))
        return self.with_rows(place, kept)


def _covers(interval: tuple[datetime, datetime], keys: KeyScope | None, row: Row) -> bool:
    return interval[0] <= row[0] < interval[1] and (keys is None or row[1] in keys["client"])


def after(world: World, step: Step, versions: Mapping[int, World]) -> World:
    """The expected state after a step. ``versions`` has the states at earlier versions."""
    place = step.place
    match step.kind:
        case "append" | "append once":
            return world.with_rows(place, world.rows[place] + step.rows)
        case "replace" | "replace a part" | "replace keys" | "drop":
            assert step.interval is not None
            emptied = world.replaced(place, step.interval, step.keys)
            return emptied.with_rows(place, emptied.rows[place] + step.rows)
        case "transaction":
            assert step.interval is not None
            emptied = world.replaced(1, step.interval)
            written = emptied.with_rows(1, emptied.rows[1] + step.rows)
            return written.with_rows(0, written.rows[0] + step.rows)
        case "delete" | "erase" | "update" | "delete an interval":
            hit = [one for one in world.rows[place] if _is_hit(step, one)]
            changed = [(time, _NEW_CLIENT, value) for time, _, value in hit] if step.kind == "update" else []
            return world.with_rows(place, (*(one for one in world.rows[place] if one not in hit), *changed))
        case "upsert":
            values = {value for *_, value in step.rows}
            kept = tuple(one for one in world.rows[place] if one[2] not in values)
            return world.with_rows(place, kept + step.rows)
        case "restore":
            return world.with_rows(place, versions[step.version].rows[place])
        case "rename":
            return replace(world, names=tuple(step.other if one == step.name else one for one in world.names))
        case "tag":
            return replace(world, tags={**world.tags, step.other: step.version})
        case "create":
            return replace(world, extra=step.other)
        case "drop table":
            return replace(world, extra="")
        case _:
            return world


def erased(step: Step, versions: Mapping[int, World]) -> dict[int, World]:
    """The expected states at earlier versions after a step; only an erasure changes them."""
    if step.kind != "erase":
        return dict(versions)
    return {version: after(world, step, {}) for version, world in versions.items()}


def _is_hit(step: Step, row: Row) -> bool:
    if step.interval is not None:
        return _covers(step.interval, None, row)
    return row[2] % 10 == step.version


def _append(lake: Any, step: Step) -> int:
    return int(lake.table(step.name).append(arrow(step.rows), txn=step.txn).version)


def _replace(lake: Any, step: Step) -> int:
    rows = arrow(step.rows) if step.rows else None
    return int(lake.table(step.name).replace(rows, step.interval, keys=step.keys).version)


def _drop(lake: Any, step: Step) -> int:
    return int(lake.table(step.name).drop(step.interval).version)


def _delete(lake: Any, step: Step) -> int:
    return int(lake.table(step.name).delete(f"value % 10 = {step.version}").version)


def _erase(lake: Any, step: Step) -> int:
    return int(lake.table(step.name).erase(f"value % 10 = {step.version}").version)


def _delete_interval(lake: Any, step: Step) -> int:
    assert step.interval is not None
    start, end = (f"{one:%Y-%m-%dT%H:%M:%S}" for one in step.interval)
    return int(lake.table(step.name).delete(f"time >= '{start}' AND time < '{end}'").version)


def _update(lake: Any, step: Step) -> int:
    return int(lake.table(step.name).update({"client": f"'{_NEW_CLIENT}'"}, f"value % 10 = {step.version}").version)


def _upsert(lake: Any, step: Step) -> int:
    return int(lake.table(step.name).upsert(arrow(step.rows)).version)


def _resolve(lake: Any, step: Step) -> int | None:
    commit = lake.table(step.name).resolve()
    return None if commit is None else commit.version


def _compact(lake: Any, step: Step) -> int | None:
    commit = lake.table(step.name).compact(step.interval)
    return None if commit is None else commit.version


def _clean(lake: Any, step: Step) -> int | None:
    commit = lake.table(step.name).clean()
    return None if commit is None else commit.version


def _tend(lake: Any, step: Step) -> int | None:
    """The best task of the table service."""
    waiting = lake.plan_tasks(table=step.name)
    done = lake.run_task(waiting[0].id) if waiting else None
    return None if done is None else done.version


def _summarize(lake: Any, step: Step) -> None:
    """Indexes and sketches for segments that lack them."""
    spec = lake.table(step.name).spec
    segments, _ = lake.catalog.live(spec, lake.head)
    build_indexes(lake.session, spec, missing_indexes(lake.session, spec, segments))
    build_statistics(lake.session, spec, missing_statistics(lake.session, spec, segments))


def _restore(lake: Any, step: Step) -> int:
    return int(lake.table(step.name).restore(step.version).version)


def _transaction(lake: Any, step: Step) -> int:
    with lake.transaction() as tx:
        tx.table(step.name).append(arrow(step.rows))
        tx.table(step.other).replace(arrow(step.rows), step.interval)
    return int(tx.version)


def _abort(lake: Any, step: Step) -> None:
    operation = lake.table(step.name).begin_replace(step.interval)
    operation.write(arrow(step.rows))
    operation.abort()


def _read(lake: Any, step: Step) -> None:
    assert len(lake.table(step.name).scan(as_of=step.version).to_arrow().column_names) == len(COLUMNS)


def _tag(lake: Any, step: Step) -> None:
    lake.tag(step.other, step.version)


def _clean_up(lake: Any, step: Step) -> None:
    lake.expire(keep_last=step.version)
    lake.collect(grace_seconds=0)


def _export(lake: Any, _: Step) -> None:
    lake.export()


def _rename(lake: Any, step: Step) -> int:
    lake.rename_table(step.name, step.other)
    return int(lake.head)


def _create(lake: Any, step: Step) -> int:
    return int(lake.create_table(step.other, SCHEMA, time="time").version)


def _drop_table(lake: Any, step: Step) -> int:
    lake.drop_table(step.other)
    return int(lake.head)


KINDS: Final[Mapping[str, Callable[[Any, Step], int | None]]] = {
    "append": _append,
    "append once": _append,
    "replace": _replace,
    "replace a part": _replace,
    "replace keys": _replace,
    "drop": _drop,
    "delete": _delete,
    "erase": _erase,
    "delete an interval": _delete_interval,
    "update": _update,
    "upsert": _upsert,
    "resolve": _resolve,
    "compact": _compact,
    "clean": _clean,
    "tend": _tend,
    "summarize": _summarize,
    "restore": _restore,
    "transaction": _transaction,
    "rename": _rename,
    "create": _create,
    "drop table": _drop_table,
    "tag": _tag,
    "abort": _abort,
    "export": _export,
    "read": _read,
    "clean up": _clean_up,
}
"""Functions for each kind of step; they return the version that the step made, if any."""

UNVERSIONED: Final = frozenset({"tag", "abort", "export", "clean up", "read", "summarize"})
"""Kinds that never make a version; maintenance may find nothing to do."""


def do(lake: Any, step: Step) -> int | None:
    """Do a step on a lake and return the version that it made."""
    return KINDS[step.kind](lake, step)


def create_tables(lake: Any) -> None:
    """The two tables of a history: one by day, one ragged, both with a cluster column; a row's value is its key."""
    for name, ragged in zip(TABLES, ("false", "true"), strict=True):
        properties = {"ragged": ragged, "target_rows": "50", "small_files": "3", "tombstone_debt": "0"}
        properties["index"] = "client, value"
        lake.create_table(
            name, SCHEMA, time="time", primary_key=("value",), cluster_by=("client",), properties=properties
        )


@dataclass(slots=True)
class Author:
    """Makes random steps. ``versions`` are those that a restore, tag or read may name."""

    chance: random.Random
    world: World
    versions: Mapping[int, World]
    made: int = 0
    """A counter for values, names and marks, so that no two steps write the same."""

    def step(self, kind: str | None = None) -> Step:
        """The next step, of a given kind if that is possible."""
        kind = kind or self.chance.choices(list(KINDS), weights=[3 if one in _FREQUENT else 1 for one in KINDS])[0]
        if kind == "create" and self.world.extra:
            kind = "drop table"
        elif kind == "drop table" and not self.world.extra:
            kind = "create"
        if not self.versions and kind in ("restore", "tag", "read"):
            kind = "append"
        self.made += 1
        place = 0 if kind == "transaction" else self.chance.randrange(2)
        found = self._filled(Step(kind, place, self.world.names[place]))
        self.world, self.versions = after(self.world, found, self.versions), erased(found, self.versions)
        return found

    def _filled(self, step: Step) -> Step:
        match step.kind:
            case "append" | "append once" as kind:
                mark = ("feed", self.made) if kind == "append once" else None
                return replace(step, rows=self._rows(0, _HOURS), txn=mark)
            case "replace" | "abort":
                day = 24 * self.chance.randrange(3)
                return replace(step, rows=self._rows(day, day + 24), interval=_span(day, day + 24))
            case "transaction":
                return replace(step, rows=self._rows(24, 48), interval=_span(24, 48), other=self.world.names[1])
            case "replace a part":
                start = self.chance.randrange(_HOURS - 30)
                end = start + self.chance.randrange(1, 30)
                return replace(step, rows=self._rows(start, end), interval=_span(start, end))
            case "replace keys":
                keys = {"client": (self.chance.choice(_CLIENTS),)}
                return replace(step, rows=self._rows(0, 48, keys["client"]), interval=_span(0, 48), keys=keys)
            case "drop" | "delete an interval":
                start = self.chance.randrange(_HOURS - 1)
                return replace(step, interval=_span(start, self.chance.randrange(start + 1, _HOURS)))
            case "delete" | "erase" | "update":
                return replace(step, version=self.chance.randrange(3))
            case "upsert":
                return replace(step, rows=self._known_and_new(step.place))
            case "restore" | "tag" | "read":
                return replace(step, version=self.chance.choice(list(self.versions)), other=f"tag-{self.made}")
            case "clean up":
                self.versions = {}  # which of them expire is known when it is done
                return replace(step, version=self.chance.choice(KEPT))
        return self._named(step)

    def _named(self, step: Step) -> Step:
        match step.kind:
            case "rename":
                return replace(step, other=f"{TABLES[step.place]}_{self.made}")
            case "create":
                return replace(step, other=f"extra_{self.made}")
            case "drop table":
                return replace(step, other=self.world.extra)
        return step

    def _known_and_new(self, place: int) -> tuple[Row, ...]:
        """Rows with up to two existing keys, and a new one."""
        known = self.world.rows[place]
        again = self.chance.sample(known, min(2, len(known)))
        moved = {value: (_at(self.chance.randrange(_HOURS)), "a", value) for *_, value in again}
        return (*moved.values(), *self._rows(0, _HOURS)[:1])

    def _rows(self, first: int, last: int, clients: tuple[str | None, ...] = _CLIENTS) -> tuple[Row, ...]:
        count = self.chance.randrange(1, 4)
        return tuple(
            (_at(self.chance.randrange(first, last)), self.chance.choice(clients), 10 * self.made + turn)
            for turn in range(count)
        )


_FREQUENT = {Kind.APPEND.value, Kind.REPLACE.value, "replace a part", "transaction"}


def _at(hour: int) -> datetime:
    return _FIRST + timedelta(hours=hour)


def _span(first: int, last: int) -> tuple[datetime, datetime]:
    return _at(first), _at(last)
