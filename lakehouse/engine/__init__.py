"""Engines write rows into segments' files and run read plans. Each implements `Engine`; no other code knows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyroaring import BitMap64

from lakehouse.core.checksum import Checksum
from lakehouse.core.plan import ReadPlan
from lakehouse.core.segment import NewSegment, Segment
from lakehouse.core.spec import FIELD_ID, ORDINAL, ROW_ID, TableSpec, Verify
from lakehouse.core.widening import is_held
from lakehouse.errors import SchemaMismatch, SegmentUnreadable
from lakehouse.storage.files import Folder
from lakehouse.storage.warehouse import Warehouse
from lakehouse.storage.work import Made, SegmentWork

__all__ = ["ORDINAL", "ROW_ID_FIELD", "Engine", "Query", "WriteTarget", "Written"]

ROW_ID_FIELD = pa.field(ROW_ID, pa.int64(), metadata={FIELD_ID: b"2147483540"})
"""How files store row ids; a null means by position."""


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """Where an operation's rows go: ``folder`` belongs to it alone; ``batch`` counts its writes from 0."""

    spec: TableSpec
    folder: Path
    operation_id: str
    batch: int = 0
    row_ids: bool = False
    """Whether the rows carry a ``_row_id`` column that must be stored (compaction)."""
    partition: int | None = None
    """Of a Spark frame, where rows are one's; errors name it with the row."""
    is_lenient: bool = False
    """Whether columns that rows lack are null, and columns that the table lacks are left out."""
    now_us: int | None = None
    """When the rows are written, by which files get the codec for their age; None before all of them."""
    warehouse: Warehouse | None = None
    """That in which the folder lies; None for a folder that stands alone."""

    @property
    def home(self) -> Warehouse:
        """The warehouse, or the folder as one."""
        return Folder(self.folder) if self.warehouse is None else self.warehouse

    def publish(self, files: Iterable[Path]) -> None:
        """Make files below the folder durable, for others too. Raises `OSError`, `StorageUnavailable`."""
        self.home.publish(files)

    @property
    def stored(self) -> str:
        """The stored path of the folder."""
        return self.folder.relative_to(self.home.root).as_posix()

    @property
    def inside(self) -> str:
        """The folder below the operation's own, as in ``00000/``; nothing where it is that one."""
        _, found, inside = self.folder.as_posix().rpartition(f"/{self.operation_id}/")
        return f"{inside}/" if found else ""


@dataclass(frozen=True, slots=True)
class Written:
    """A durable file, named relative to the target's folder, and the checksum of what was written to it.

    Of a file in an object store, ``segment`` is what its footer says, read where it was written: others need not fetch
    it to know. None of a file in a folder, which who commits it looks at, to be sure that it is there.
    """

    name: str
    checksum: Checksum
    segment: NewSegment | None = None

    def below(self, folder: str) -> Written:
        """The same, named relative to what holds a folder."""
        return replace(self, name=f"{folder}/{self.name}")


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Query:
    """What a reader wants of a plan's rows.

    ``where`` is a filter in the engine's own SQL dialect, already checked; ``columns`` are names in order, None for
    all; ``row_ids`` adds the ``_row_id`` column at the end, ``ordinals`` after it ``_ordinal``, that of the row's
    segment. ``sets`` holds, by id, what the plan's row and key tombstones match: row ids, or a table of primary keys.
    Copies of a store's files stay for as long as it lives.
    """

    plan: ReadPlan
    spec: TableSpec
    warehouse: Warehouse
    columns: tuple[str, ...] | None = None
    where: str | None = None
    row_ids: bool = False
    ordinals: bool = False
    sets: Mapping[int, BitMap64 | pa.Table] = field(default_factory=dict)
    verify: Verify = "size"
    """What is compared of the files before they are read."""
    is_open: bool = False
    """Whether an engine may give other columns besides, since its caller names those that it wants."""

    def __post_init__(self) -> None:
        if self.plan.erasure is not None:
            object.__setattr__(self, "warehouse", self.warehouse.as_of_erasure(self.plan.erasure))

    @property
    def compares_columns(self) -> bool:
        """Whether it matters which columns are read before they are: to compare their pages, or to fetch them."""
        return self.verify == "pages" or self.warehouse.cache is not None


def require_held(column: str, held: pa.DataType, wanted: pa.DataType) -> None:
    """Raise `SchemaMismatch` if a column's type does not hold what files have, as after a restore of a narrower one."""
    if not is_held(held, wanted):
        raise SchemaMismatch(
            "files of that time hold the column with a wider type than it has now; read it as it was then: "
            'schema="then", or changes up to a version before the restore',
            column=column,
            held=held,
            type=wanted,
        )


class Matches(Protocol):
    """Pairs of a source's row and the row that it matches, if there is one."""

    @property
    def left(self) -> Matches | None:
        """Rows of another plan that no row of the source matches, if they were asked for; it inserts nothing."""

    def hits(self, columns: Sequence[str], where: str) -> pa.Table:
        """Columns of the matched rows for which a condition holds, with `_row_id` and `_ordinal`; one row a pair."""

    def updated(self, assigned: Mapping[str, str], where: str) -> Any:
        """Matched rows for which a condition holds with new values, as rows for `write`; with ``_row_id``."""

    def inserted(self, values: Mapping[str, str], where: str) -> Any:
        """Rows made of the source's rows that match none and for which a condition holds."""


class Engine(Protocol):
    """One small port: write rows, run a read plan."""

    dialect: str
    """The sqlglot dialect in which `Query.where` is to be written."""

    def write(self, rows: Any, target: WriteTarget) -> Sequence[Written]:
        """Write rows as durable Parquet files below the target's folder; return what was written.

        Rows have been checked against nothing: the engine raises `InvalidInput` for missing, unknown or uncastable
        columns and null times, before or after writing (files of a failed operation are collected later).
        """

    def read(self, query: Query) -> Any:
        """The rows of the plan that pass, as the engine's own lazy value."""

    def collect(self, query: Query) -> pa.Table:
        """The rows of the plan that pass, in memory."""

    def rewrite(self, query: Query, assigned: Mapping[str, str]) -> Any:
        """The same with some columns' values given by expressions in the engine's dialect, as rows for `write`.

        With ``_row_id``, so that a row keeps it. An expression ``NULL`` has the column's type.
        """

    def ordered(self, query: Query, by: Sequence[str]) -> Any:
        """All rows of the plan with ``_row_id``, sorted, as rows for `write`; memory is bounded whatever their number.

        By one column, or by the Z-order of several (`lakehouse.engine.order`), of which the first is the time.
        """

    def newest(self, rows: Any, spec: TableSpec, column: str) -> Any:
        """Of rows with one primary key that which has the greatest value in a column; as rows for `write`."""

    def join(
        self,
        condition: str,
        target: Query,
        source: Any,
        equal: Sequence[tuple[str, str]] = (),
        left: tuple[Query, str] | None = None,
    ) -> AbstractContextManager[Matches]:
        """Rows of a source, each with the row of the plan that it matches, kept until the context is left.

        The condition is over ``target`` and ``source``, in the engine's dialect; it may hold only where columns of the
        table and of the source that ``equal`` names, of one type each, are equal. Of the plan in ``left``, the
        rows that no row of the source matches are kept too, if they pass the condition beside it.
        """

    def each(self, work: SegmentWork[Made], segments: Sequence[Segment]) -> Iterator[Made | SegmentUnreadable]:
        """What comes of a work on each segment, durable, in any order; an error for one that cannot be read.

        Raises `OSError` where a file cannot be written.
        """
