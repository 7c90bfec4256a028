"""The two targets of a schedule: a table of a real lake, and one of the reference model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

import lakehouse
from lakehouse.core.chunk import Grain
from lakehouse.core.interval import Interval
from lakehouse.core.tombstone import Tombstone
from lakehouse.core.visibility import is_visible
from lakehouse.errors import LockLost, LockTimeout, VersionNotFound, WriteConflict
from lakehouse.schema.changes import AddColumn, DropColumn, RenameColumn, SetClusterBy, SetGrain
from lakehouse.testing.model import Clauses, ModelLake, ModelOperation
from lakehouse.testing.planned import COLUMNS, Planned, Stage, before, source_values
from lakehouse.testing.rows import TIME_TYPE, tabled, tuples, with_row_ids

Result = Literal["ok", "locked", "fenced", "nothing", "conflict"]
Seen = list[tuple[tuple[Any, ...], int]]
"""Rows, each with its row id, in the order of the rows."""

SCHEMA = pa.schema(
    [
        pa.field("time", TIME_TYPE, nullable=False),
        pa.field("client", pa.string(), nullable=False),
        pa.field("key", pa.int64(), nullable=False),
        pa.field("value", pa.int64()),
    ]
)
ALTERED = {"value": "worth"}
"""Names after an alter, by those before: a second alter takes them back."""
MORE, MORE_VALUE = "more", 77
"""A column that is there while the names are others, and what every row has in it."""
READS = 4
"""One schedule in this many is read by the engine, which is the most expensive part; the others by the rule."""
TABLE = "t"
START = "start"


class Target(Protocol):
    """A table of the library or the model, as the driver sees it."""

    def begin(self, planned: Planned) -> Any:
        """Begin an operation; returns its result instead if that is known at once."""

    def write(self, begun: Any, planned: Planned) -> None:
        """Stage its rows, or do its work."""

    def commit(self, begun: Any) -> Result:
        """End it."""

    def abort(self, begun: Any) -> None:
        """Abort it."""

    def version(self) -> int:
        """The table's newest version."""

    def seen(self, version: int) -> Seen:
        """What a reader sees at a version."""


def other_grain(grain: str) -> Grain:
    """The time chunks that a table has after an alter, by those before."""
    return {Grain.DAY: Grain.HOUR, Grain.HOUR: Grain.DAY}.get(Grain(grain), Grain.ALL)


@dataclass(slots=True)
class LibraryTarget:
    """A table of a real lake. Every schedule begins with a restore of its first state."""

    lake: Any
    table: Any
    stage: Stage
    start: int
    newest: int = 0
    horizon: int = 0
    reads: int = 0
    running: list[Any] = field(default_factory=list)
    known: dict[int, dict[str, str]] = field(default_factory=dict)
    """By the `id` of what runs: the names that it found at its begin, by those of `COLUMNS`."""
    files: dict[str, Seen] = field(default_factory=dict)
    """A cache of file contents, which never change."""

    @classmethod
    def new(cls, lake: Any, name: str, stage: Stage) -> LibraryTarget:
        """A new table of a lake, with what `before` puts there."""
        table = lake.create_table(
            name,
            SCHEMA,
            **stage.division,
            primary_key=("key",),
            cluster_by=("client",),
            write_order=stage.write_order,
            properties={"ragged": str(stage.ragged).lower()},
        )
        target = cls(lake, table, stage, 0)
        for planned in before(stage):
            begun = target.begin(planned)
            target.write(begun, planned)
            assert target.commit(begun) == "ok"
        target.start = target.newest
        lake.tag(f"{name}-{START}", target.start)
        return target

    def end(self) -> None:
        """End operations that a schedule left."""
        for begun in self.running:
            begun.abort()
        self.running.clear()
        self.known.clear()

    def _names(self) -> dict[str, str]:
        """The names that columns have now, by those of `COLUMNS`, where they differ."""
        self.table.refresh()
        return ALTERED if MORE in self.table.schema.names else {}

    def _alter(self) -> int:
        """Rename columns and add one, divide time and buckets otherwise, or take that back; the version."""
        if self._names():
            changes: list[Any] = [DropColumn(MORE), *(RenameColumn(new, old) for old, new in ALTERED.items())]
        else:
            changes = [RenameColumn(old, new) for old, new in ALTERED.items()]
            changes.append(AddColumn(MORE, pa.int64(), MORE_VALUE, MORE_VALUE, first=True))
        changes.append(SetClusterBy({"client": 0 if self.table.cluster_by["client"] else 8}))
        if self.stage.grain != "all":
            changes.append(SetGrain(other_grain(self.table.grain)))
        return int(self.table.alter(changes).version)

    def reset(self) -> None:
        """Restore its first state."""
        self.end()
        if self.newest != self.start:
            self.newest = self.table.restore(self.start).version

    def begin(self, planned: Planned) -> Any:
        """Begin it without waiting for locks."""
        names = self._names()
        try:
            begun = self._begun(planned, names)
        except LockTimeout:
            return "locked"
        if not isinstance(begun, str):
            self.running.append(begun)
            self.known[id(begun)] = names
        return begun

    def _begun(self, planned: Planned, names: Mapping[str, str]) -> Any:
        table, stage = self.table, self.stage
        where = None if planned.where is None else _renamed(planned.where.sql(stage), names)
        values = None if planned.set is None else planned.set.sql(stage)
        match planned.kind:
            case "append":
                return table.begin_append()
            case "replace":
                return table.begin_replace(stage.interval(planned.span), keys=planned.scope, wait_seconds=0)
            case "compact":
                return table.begin_compaction(stage.interval(planned.span))
            case "resolve":
                return table.begin_resolve()
            case "delete":
                assert where is not None
                return table.begin_delete(where)
            case "erase":
                assert where is not None
                return table.begin_erase(where)
            case "update":
                assert where is not None
                assert values is not None
                return table.begin_update(_all_renamed(values, names), where)
            case "upsert":
                return table.begin_upsert()
            case "delete_keys":
                return table.begin_delete_keys()
            case "merge":
                source = tabled(stage.rows(planned.rows), _schema(names))
                update = None if values is None else _all_renamed(_from_source(values), names)
                return table.begin_merge(
                    source,
                    on=["key"],
                    when_matched_update=update,
                    when_matched_delete=values is None or None,
                    when_not_matched_insert=planned.inserts,
                )
            case _:
                return self._done(planned)

    def _done(self, planned: Planned) -> str:
        """Run a one-step operation."""
        match planned.kind:
            case "restore":
                self.newest = self.table.restore(self.start, wait_seconds=0).version
            case "clean":
                with suppress(LockTimeout):  # does not wait for the holder of the chunks
                    commit = self.table.clean()
                    self.newest = self.newest if commit is None else commit.version
            case "alter":
                self.newest = self._alter()
            case "expire":
                self.horizon = self.lake.expire(keep_last=1).horizon
                assert all(self.horizon <= begun.base_version for begun in self.running)
        return "ok"

    def write(self, begun: Any, planned: Planned) -> None:
        """Stage its rows, or do its work."""
        match planned.kind:
            case "append" | "replace" | "upsert":
                begun.write(tabled(self.stage.rows(planned.rows), _schema(self.known[id(begun)])))
            case "delete_keys":
                begun.write(pa.table({"key": pa.array([row[2] for row in planned.rows], pa.int64())}))
            case _:
                begun.run()

    def commit(self, begun: Any) -> Result:
        """End it."""
        self.running.remove(begun)
        try:
            done = begun.commit()
        except LockLost:
            begun.abort()
            return "fenced"
        except WriteConflict:
            begun.abort()
            return "conflict"
        if done is None:
            return "nothing"
        self.newest = done.version
        return "ok"

    def abort(self, begun: Any) -> None:
        """Abort it."""
        begun.abort()

    def version(self) -> int:
        """The table's newest version."""
        return self.newest

    def read(self, version: int) -> Seen:
        """What a reader sees at a version, with row ids: every few times as the engine reads it."""
        self.reads += 1
        if self.reads % READS != 1:
            return self.seen(version)
        found = with_row_ids(self.table.scan(as_of=version))
        names = ALTERED if MORE in found.column_names else {}
        assert not names or set(found.column(MORE).to_pylist()) <= {MORE_VALUE}
        listed = tuples(found.select([names.get(name, name) for name in COLUMNS]))
        return sorted(zip(listed, found.column("_row_id").to_pylist(), strict=True))

    def seen(self, version: int) -> Seen:
        """What is visible at a version, with row ids, by the rule: row by row, of what the catalog says is live."""
        segments, tombstones = self.lake.catalog.live(self.table.spec, version, None)
        sets = self.lake.catalog.sets([one for one in tombstones if one.kind != "interval"])
        known = [_with_set(one, sets.get(one.id)) for one in tombstones]
        found = []
        for segment in segments:
            for row, row_id in self._stored(segment):
                named = dict(zip(COLUMNS, row, strict=True))
                if is_visible(row[0], named, row_id, (named["key"],), segment.ordinal, known):
                    found.append((row, row_id))
        return sorted(found)

    def _stored(self, segment: Any) -> Seen:
        """The rows of a file, and their row ids."""
        if segment.path not in self.files:
            table = pq.read_table(self.lake.warehouse / segment.path, partitioning=None)
            ids = range(segment.first_row_id, segment.first_row_id + table.num_rows)
            stored = table.column("_row_id").to_pylist() if segment.has_row_ids else list(ids)
            self.files[segment.path] = list(zip(tuples(table.select(COLUMNS)), stored, strict=True))
        return self.files[segment.path]

    def is_forgotten(self, version: int) -> bool:
        """Whether a version that may have expired has."""
        if version >= self.horizon:
            return False
        try:
            self.table.scan(as_of=version)
        except VersionNotFound:
            return True
        return False


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """SQL with other names for columns."""
    for name, new in names.items():
        text = re.sub(rf"\b{name}\b", new, text)
    return text


def _all_renamed(values: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    return {names.get(name, name): _renamed(text, names) for name, text in values.items()}


def _schema(names: Mapping[str, str]) -> pa.Schema:
    return pa.schema([one.with_name(names.get(one.name, one.name)) for one in SCHEMA])


def _from_source(values: dict[str, str]) -> dict[str, str]:
    """A merge's new values: an update's, and the source's value added."""
    return {**values, "value": values["value"].replace("value", "target.value + source.value")}


def _with_set(tombstone: Tombstone, found: Any) -> Tombstone:
    """A tombstone that holds its set itself."""
    if found is None:
        return tombstone
    if tombstone.kind == "row":
        return replace(tombstone, row_ids=frozenset(found))
    return replace(tombstone, primary_keys=frozenset(tuples(found)))


@dataclass(slots=True)
class ModelTarget:
    """The reference model's table, with what `before` puts there."""

    stage: Stage
    lake: ModelLake = field(default_factory=ModelLake)
    start: int = 0

    def __post_init__(self) -> None:
        stage = self.stage
        self.lake.create_table(
            TABLE, COLUMNS, time="time", grain=stage.grain, primary_key=("key",), write_order=stage.write_order
        )
        for planned in before(stage):
            begun = self.begin(planned)
            self.write(begun, planned)
            assert self.commit(begun) == "ok"
        self.start = self.version()

    def begin(self, planned: Planned) -> Any:
        """Begin it."""
        try:
            return self._begun(planned)
        except LockTimeout:
            return "locked"

    def _begun(self, planned: Planned) -> Any:
        lake, stage, where, values = self.lake, self.stage, planned.where, planned.set
        match planned.kind:
            case "append":
                return lake.begin_append(TABLE)
            case "replace":
                return lake.begin_replace(TABLE, stage.interval(planned.span), planned.scope)
            case "compact":
                return lake.begin_compaction(TABLE, stage.interval(planned.span))
            case "resolve":
                return lake.begin_resolve(TABLE)
            case "delete" | "erase":
                return self._removes(planned)
            case "update":
                assert where is not None
                assert values is not None
                return lake.begin_update(
                    TABLE, lambda named: values.change(stage, named), lambda named: where.holds(stage, named)
                )
            case "upsert":
                return lake.begin_upsert(TABLE)
            case "delete_keys":
                return lake.begin_delete_keys(TABLE)
            case "merge":
                update = None if values is None else lambda named, source: source_values(values, stage, named, source)
                clauses = Clauses(update, deletes=values is None, inserts=planned.inserts)
                return lake.begin_merge(TABLE, stage.rows(planned.rows), ("key",), clauses)
            case "restore" | "alter" | "clean" | "expire":
                return self._at_once(planned)

    def _at_once(self, planned: Planned) -> Result:
        """Do what has no steps."""
        table = self.lake.tables[TABLE]
        if planned.kind == "restore":
            self.lake.restore(TABLE, self.start)
            table.grain = Grain(self.stage.grain)
        elif planned.kind == "alter":
            table.grain = other_grain(table.grain)
        return "ok"

    def _removes(self, planned: Planned) -> ModelOperation:
        """Begin an erasure, or a delete: where an interval or clients say it all, that sees nothing."""
        lake, stage, where = self.lake, self.stage, planned.where
        assert where is not None
        if planned.kind == "erase":
            return lake.begin_erase(TABLE, lambda named: where.holds(stage, named))
        match where.column:
            case "client":
                return lake.begin_take(TABLE, None, {"client": where.value})
            case "time" if stage.grain != "all":
                return lake.begin_take(TABLE, Interval(stage.at(int(where.value)), None))
            case _:
                return lake.begin_delete(TABLE, lambda named: where.holds(stage, named))

    def write(self, begun: ModelOperation, planned: Planned) -> None:
        """Stage its rows."""
        match planned.kind:
            case "append" | "replace" | "upsert":
                begun.write(self.stage.rows(planned.rows))
            case "delete_keys":
                begun.write([(row[2],) for row in planned.rows])

    def commit(self, begun: ModelOperation) -> Result:
        """End it."""
        try:
            begun.commit()
        except LockLost:
            return "fenced"
        except WriteConflict:
            return "conflict"
        return "ok"

    def abort(self, begun: ModelOperation) -> None:
        """Abort it."""
        begun.abort()

    def version(self) -> int:
        """The table's newest version."""
        return self.lake.newest

    def seen(self, version: int) -> Seen:
        """What a reader sees at a version, with row ids."""
        table = self.lake.tables[TABLE]
        return sorted((stored.row, stored.id) for stored in table.visible(table.at(version)))


def connect(folder: str, catalog: str | None = None) -> Any:
    """A lake in a folder, which never waits for locks."""
    url = catalog or f"sqlite:///{folder}/catalog.db"
    return lakehouse.connect(url, f"{folder}/warehouse", wait_seconds=0)


def visible(target: Target, version: int) -> Sequence[tuple[Any, ...]]:
    """The rows at a version."""
    return [row for row, _ in target.seen(version)]
