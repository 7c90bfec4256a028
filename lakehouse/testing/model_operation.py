"""A table of the reference model, and operations on it: what they find at begin, and the state they leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from lakehouse.core.chunk import Grain
from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope, scopes_overlap
from lakehouse.errors import RowsOutside, VersionNotFound
from lakehouse.testing.model_rows import (
    Change,
    IntervalTombstone,
    KeyTombstone,
    ModelRows,
    Named,
    Row,
    RowTombstone,
    State,
    Stored,
    Tombstone,
    Where,
)

Kind = Literal[
    "append", "replace", "compact", "resolve", "delete", "update", "merge", "upsert", "delete_keys", "take", "erase",
]  # fmt: skip
HOLDING = ("replace", "compact", "resolve")
"""Kinds that lock chunks; all after the first give way to users."""
CONDITIONAL = ("delete", "update", "merge")
"""Kinds whose commit depends on rows that were read."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A row that was read, with its new values, or none if it is removed."""

    before: Stored
    after: Row | None


@dataclass(frozen=True, slots=True)
class Clauses:
    """What a merge does: of a matched row and its source row, by column, ``update`` says the new values."""

    update: Callable[[Named, Named], Named] | None = None
    deletes: bool = False
    inserts: bool = True

    def rewritten(self, table: ModelTable, stored: Stored, source: Named) -> list[Rewritten]:
        """The result for a row that a source row matches."""
        if self.deletes:
            return [Rewritten(stored, None)]
        if self.update is None:
            return []
        named = table.named(stored.row)
        return [Rewritten(stored, table.row_of({**named, **self.update(named, source)}))]


@dataclass(slots=True)
class ModelTable(ModelRows):
    """A table: its definition, the state at every version, and the operations that have begun and not ended.

    ``done`` are the replaces, takes and merges that were committed, with their versions, ``restores`` and ``erasures``
    the versions of those. Row ids are given out in the order of commits.
    """

    versions: dict[int, State] = field(default_factory=dict)
    write_order: Literal["commit", "start"] = "commit"
    running: list[ModelOperation] = field(default_factory=list)
    done: list[tuple[int, ModelOperation]] = field(default_factory=list)
    restores: list[int] = field(default_factory=list)
    erasures: list[int] = field(default_factory=list)
    row_ids: int = 0

    @property
    def holders(self) -> list[ModelOperation]:
        """The running operations that hold chunks."""
        return [one for one in self.running if one.holds and not one.fenced]

    def store(self, rows: Iterable[Row], ordinal: int, version: int, *, derived: bool = False) -> tuple[Stored, ...]:
        """New rows of a commit, each with a row id that no row had."""
        listed = list(rows)
        first, self.row_ids = self.row_ids, self.row_ids + len(listed)
        return tuple(Stored(row, ordinal, first + place, version, derived) for place, row in enumerate(listed))

    def at(self, version: int) -> State:
        """The state at the newest version that is not after ``version``."""
        known = [number for number in self.versions if number <= version]
        if not known:
            raise VersionNotFound("the table is younger than this version", version=version)
        return self.versions[max(known)]

    @property
    def newest(self) -> int:
        """The newest version."""
        return max(self.versions)

    @property
    def head(self) -> State:
        """The newest state."""
        return self.versions[self.newest]


@dataclass(slots=True, eq=False)
class ModelOperation:
    """An operation between begin and commit.

    ``base`` is the lake's number at begin, ``number`` the one drawn then, or ``base``. ``overtaken`` are replaces and
    appends that were running then although something visible comes after them.
    """

    table: str
    of: ModelTable
    commits: Callable[[list[ModelOperation]], int]
    kind: Kind
    base: int
    number: int
    interval: Interval | None = None
    keys: KeyScope | None = None
    rows: list[Row] = field(default_factory=list)
    rewritten: list[Rewritten] = field(default_factory=list)
    inputs: list[Stored] = field(default_factory=list)
    outputs: list[Stored] = field(default_factory=list)
    on: tuple[str, ...] = ()
    means: Where = lambda named: False
    matched: list[Stored] = field(default_factory=list)
    """What a merge's source matches, where the rest of it is inserted."""
    resolved: dict[KeyTombstone, frozenset[int]] = field(default_factory=dict)
    reads: Callable[[State], None] = lambda state: None
    is_outdated: bool = False
    """Whether an erasure was committed since it read."""
    overtaken: list[ModelOperation] = field(default_factory=list)
    aborted: bool = False
    grain: Grain = field(init=False)
    """The table's time chunks when it began: those of its cells."""
    forced: bool = False
    """Whether it is to be committed although it conflicts, where another run was."""
    passed: list[str] = field(default_factory=list)
    """Why it conflicted then."""
    fenced: bool = False
    ended: bool = False

    def __post_init__(self) -> None:
        self.grain = self.of.grain

    @property
    def holds(self) -> bool:
        """Whether it is of a kind that holds chunks."""
        return self.kind in HOLDING

    def write(self, rows: Iterable[Row]) -> None:
        """Stage rows (keys as rows of the primary key). A replace refuses those outside its scope."""
        table = self.of
        listed = [tuple(row) for row in rows]
        if self.kind == "replace" and not all(table.covered(row, self.interval, self.keys) for row in listed):
            raise RowsOutside("rows lie outside the interval or keys", table=self.table)
        self.rows.extend(listed)

    def commit(self) -> int:
        """Make it visible, alone, under the lake's next number."""
        return self.commits([self])

    def abort(self) -> None:
        """Abort; nothing of it is visible."""
        self.end()
        self.aborted = True

    def end(self) -> None:
        """Release its locks."""
        self.ended = True
        if self in self.of.running:
            self.of.running.remove(self)

    def clashes(self, interval: Interval | None, keys: KeyScope | None, grain: Grain) -> bool:
        """Whether this operation's cells meet those of an interval and key scope."""
        mine = whole_chunks(self.interval, self.grain)
        return mine.overlaps(whole_chunks(interval, grain)) and scopes_overlap(self.keys, keys)

    # What it finds at begin

    def overtake(self, table: ModelTable) -> None:
        """Record running operations, not visible yet, that something visible comes after."""
        self.overtaken = [one for one in table.running if one.kind in ("append", "replace") and one.precedes(table)]

    def precedes(self, table: ModelTable) -> bool:
        """Whether what can be seen now comes after what this operation will have written.

        A tombstone does that would hide it, and of a replace what was written beside it into what it covers.
        """
        if not self.draws:
            return False
        state = table.head
        return any(one.ordinal > self.number and self._may_match(one) for one in state.tombstones) or (
            self.kind == "replace"
            and any(
                stored.ordinal > self.number
                and not stored.derived
                and table.covered(stored.row, self.interval, self.keys)
                for stored in table.visible(state)
            )
        )

    def _may_match(self, tombstone: Tombstone) -> bool:
        match tombstone:
            case KeyTombstone():
                return True
            case IntervalTombstone() if self.interval is not None:
                return tombstone.interval.overlaps(self.interval) and scopes_overlap(tombstone.keys, self.keys)
            case _:
                return isinstance(tombstone, IntervalTombstone)

    def read(self, table: ModelTable, reads: Callable[[State], None]) -> None:
        """Read the table, as ``reads`` does of a state."""
        self.reads = reads
        reads(table.head)

    def read_again(self, table: ModelTable) -> None:
        """Read again, after an erasure changed what it read."""
        self.rewritten, self.matched = [], []
        if self.kind == "merge":
            self.rows = []
        self.reads(table.at(self.base))

    def find(self, table: ModelTable, state: State, where: Where, change: Change | None) -> None:
        """Find the rows to delete, or to change."""
        self.means = where
        for stored in table.visible(state):
            named = table.named(stored.row)
            if where(named):
                after = None if change is None else table.row_of({**named, **change(named)})
                self.rewritten.append(Rewritten(stored, after))

    def join(
        self, table: ModelTable, state: State, source: Iterable[Row], on: tuple[str, ...], clauses: Clauses
    ) -> None:
        """Find the rows that a merge changes, deletes and inserts."""
        self.on = on
        for named in (table.named(row) for row in source):
            partners = table.partners(state, named, on)
            for stored in partners:
                self.rewritten.extend(clauses.rewritten(table, stored, named))
            if clauses.inserts:
                self.matched.extend(partners)
            if clauses.inserts and not partners:
                self.rows.append(table.row_of(named))

    def gather(self, table: ModelTable) -> None:
        """Find the rows that a compaction rewrites."""
        state = table.head
        self.inputs = [stored for stored in state.stored if table.covered(stored.row, self.interval, None)]
        self.outputs = [stored for stored in self.inputs if table.sees(state, stored)]

    def trace(self, table: ModelTable) -> None:
        """Find, by row id, the rows that key tombstones alone hide.

        One that an operation in flight has a smaller number than must stay: it may have to hide rows that come yet.
        """
        state = table.head
        others = [one for one in state.tombstones if not isinstance(one, KeyTombstone)]
        for tombstone in state.tombstones:
            if isinstance(tombstone, KeyTombstone) and not any(
                one.number < tombstone.ordinal for one in table.running if one.draws
            ):
                self.resolved[tombstone] = frozenset(
                    stored.id
                    for stored in state.stored
                    if table.hides(tombstone, stored) and not any(table.hides(other, stored) for other in others)
                )

    @property
    def draws(self) -> bool:
        """Whether what it adds has the number that it drew at its beginning, and not its commit's."""
        late = self.kind == "append" and self.of.write_order == "start"
        return late or self.kind == "replace"

    # What it leaves

    def applied(self, table: ModelTable, version: int) -> State:
        """The state after this operation, committed as ``version``, on the table's head."""
        head = table.head
        ordinal = self.number if self.draws else version
        match self.kind:
            case "append":
                return head.adding(table.store(self.rows, ordinal, version))
            case "replace":
                return self._replaced(table, version)
            case "compact":
                kept = [stored for stored in head.stored if stored not in self.inputs]
                outputs = (compacted(table, stored, output_ordinal(self, version)) for stored in self.outputs)
                return State((*kept, *outputs), head.tombstones)
            case "resolve":
                kept_tombstones = tuple(one for one in head.tombstones if one not in self.resolved)
                found = tuple(RowTombstone(one.ordinal, ids) for one, ids in self.resolved.items())
                return State(head.stored, kept_tombstones + found)
            case "take":
                assert self.interval is not None
                return head.adding((), [IntervalTombstone(version, self.interval, self.keys)])
            case "delete_keys":
                return head.adding((), [KeyTombstone(version, frozenset(self.rows))])
            case "erase":
                return head
            case "upsert":
                keys = KeyTombstone(version, frozenset(table.key_of(row) for row in self.rows))
                return head.adding(table.store(self.rows, version, version), [keys])
            case "delete" | "update" | "merge":
                gone = RowTombstone(version, frozenset(one.before.id for one in self.rewritten))
                moved = [
                    Stored(one.after, version, one.before.id, version, derived=True)
                    for one in self.rewritten
                    if one.after is not None
                ]
                return head.adding((*moved, *table.store(self.rows, version, version, derived=True)), [gone])

    def _replaced(self, table: ModelTable, version: int) -> State:
        assert self.interval is not None
        ordinal = self.number
        cover = IntervalTombstone(ordinal, self.interval, self.keys)
        derived = RowTombstone(version, frozenset(stored.id for stored in derived_since(table, self)))
        return table.head.adding(table.store(self.rows, ordinal, version), [cover, derived])


def output_ordinal(compaction: ModelOperation, version: int) -> int:
    """The ordinal of a compaction's outputs: the number at which it read, and not its commit's."""
    return compaction.number


def compacted(table: ModelTable, stored: Stored, ordinal: int) -> Stored:
    """A row as a compaction stores it: with its row id."""
    return replace(stored, ordinal=ordinal)


def derived_since(table: ModelTable, replacing: ModelOperation) -> list[Stored]:
    """Rows that updates and merges wrote into the scope of a running replace: they did not see it, so it hides them."""
    return [
        stored
        for stored in table.visible(table.head)
        if stored.derived
        and stored.ordinal > replacing.number
        and table.covered(stored.row, replacing.interval, replacing.keys)
    ]


def whole_chunks(interval: Interval | None, grain: Grain) -> Interval:
    """The chunks that an interval touches; all of time for none."""
    return Interval(None, None) if interval is None else grain.align(interval)
