"""What a table is: its columns, time, grain, keys and properties."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NewType, cast, get_args

import pyarrow as pa

from lakehouse.core.chunk import Grain
from lakehouse.core.codec import Codecs
from lakehouse.core.column import ColumnHistory, Layout
from lakehouse.core.interval import ALL_TIME, Interval
from lakehouse.errors import InvalidInterval

TableId = NewType("TableId", int)
WriteOrder = Literal["commit", "start"]
Verify = Literal["size", "pages", "content"]
"""What a read compares of a file: its size, the pages that it reads, or (once a process) all of it."""

ROW_ID = "_row_id"
"""Name of the stored row id; columns of a user may not begin with an underscore."""
ORDINAL = "_ordinal"
"""Name of the column of segments' ordinals, which no file stores."""
SIDES = {"target": "_lake_target", "source": "_lake_source"}
"""What engines call the two sides of a merge, whose columns may be called target and source."""
DROPPED = "_dropped_"
"""Before the name of a dropped column, where another one has that name now."""
FIELD_ID = b"PARQUET:field_id"
"""Metadata key under which Arrow keeps a column's Parquet field id."""
TARGET_ROWS = 5_000_000
COMPRESSION = "zstd"
"""The default: the smallest, and what is written once (ADR 0032)."""
VERIFY: tuple[Verify, ...] = get_args(Verify)
"""From the least to the most, the first is the default."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")
_COLUMN = re.compile(r"[^\W_][^`\"\x00-\x1f]{0,127}")


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The columns that a table has had from a version on; ``changes`` made them of those before, in words."""

    version: int
    schema: pa.Schema
    changes: tuple[str, ...] = ()


def field_id_of(column: pa.Field) -> int:
    """A column's Parquet field id."""
    return int(column.metadata[FIELD_ID])


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table's definition. ``folder`` is its name in storage, which no rename changes.

    ``time`` is empty in a timeless table: its rows lie in one chunk, all of time (grain `Grain.ALL`).
    ``cluster_by`` maps a cluster column to its number of hash buckets (0: not hashed).

    ``schema_number`` counts the changes of its columns; files say under which of them they were written. ``columns``
    has the history of each column, by Parquet field id, that files do not all hold as it is now; ``next_field_id`` is
    that of the next column, and ``retired`` are names in files that columns had which were dropped. ``declustered``
    are columns by which it was clustered before. ``catalog_grain``: the grain by which the catalog keeps it, which it
    was created with, if it has another one now.
    """

    id: TableId
    name: str
    folder: str
    schema: pa.Schema
    time: str
    grain: Grain
    primary_key: tuple[str, ...] = ()
    cluster_by: Mapping[str, int] = field(default_factory=dict)
    write_order: WriteOrder = "commit"
    properties: Mapping[str, str] = field(default_factory=dict)
    schema_number: int = 0
    columns: Mapping[int, ColumnHistory] = field(default_factory=dict)
    next_field_id: int = 0
    retired: tuple[str, ...] = ()
    declustered: tuple[str, ...] = ()
    catalog_grain: Grain | None = None

    @property
    def bin_grain(self) -> Grain:
        """The grain whose chunks are the bins of the catalog."""
        return self.catalog_grain or self.grain

    def with_grain(self, grain: Grain) -> TableSpec:
        """The definition with other time chunks, in the bins that the catalog keeps it in."""
        return replace(self, grain=grain, catalog_grain=None if grain == self.bin_grain else self.bin_grain)

    @property
    def scope_columns(self) -> tuple[str, ...]:
        """Columns whose values replaces may name, and tombstones: those by which it is clustered, or was."""
        return (*self.cluster_by, *self.declustered)

    @property
    def times(self) -> tuple[str, ...]:
        """The time column; none in a timeless table."""
        return (self.time,) if self.time else ()

    @property
    def lean_column(self) -> str:
        """A column to read where rows are only counted: the time, else one that is not nested, if there is any."""
        plain = (column.name for column in self.schema if not pa.types.is_nested(column.type))
        return self.time or next(plain, self.schema.names[0])

    @property
    def order_columns(self) -> tuple[str, ...]:
        """Columns by which a compaction sorts: the time, else cluster columns and primary key."""
        return self.times or tuple(dict.fromkeys([*self.cluster_by, *self.primary_key]))

    def interval_of(self, given: Any) -> Interval:
        """Read an interval of the table. In one without a time None and all of time are the only ones.

        Raises `InvalidInterval` for anything else.

        >>> from lakehouse.core.interval import MAX_TIME
        >>> spec = TableSpec(TableId(1), "t", "f", pa.schema([("code", pa.string())]), "", Grain.ALL)
        >>> spec.interval_of(None).end == MAX_TIME
        True
        """
        if self.time:
            return Interval.of(given)
        if given is None:
            return ALL_TIME
        found = Interval.of(given)
        if found != ALL_TIME:
            raise InvalidInterval(
                "the table has no time, so that it has no intervals; leave the interval out, and choose rows by keys= "
                "or a filter",
                table=self.name,
                interval=found,
            )
        return found

    def history(self, column: pa.Field) -> ColumnHistory:
        """What became of a column of the schema."""
        found = self.columns.get(field_id_of(column)) if self.columns else None
        return found or ColumnHistory(column.name)

    @property
    def defaults_for_new(self) -> dict[str, Any]:
        """Values of columns that rows may lack when they are written."""
        if not self.columns:
            return {}
        known = ((column.name, self.history(column).default_for_new) for column in self.schema)
        return {name: value for name, value in known if value is not None}

    @property
    def stored_names(self) -> dict[str, str]:
        """The names in files, and in the catalog's statistics, of columns that have another one there.

        >>> TableSpec(TableId(1), "t", "f", pa.schema([]), "at", Grain.DAY).stored_names
        {}
        """
        if not self.columns:
            return {}
        named = {column.name: self.history(column).stored for column in self.schema}
        found = {name: stored for name, stored in named.items() if stored != name}
        # What a dropped column has in files and tombstones is not that of a later one of its name.
        held = set(named.values())
        return {**found, **{DROPPED + name: name for name in found if name not in held}}

    @property
    def current_names(self) -> dict[str, str]:
        """The inverse of `stored_names`: the names of columns by those that they have in files and in the catalog."""
        return {stored: name for name, stored in self.stored_names.items()}

    @property
    def names_in_files(self) -> set[str]:
        """Names that columns have or had in files."""
        return {*self.retired, *(self.history(column).stored for column in self.schema)}

    def layout(self, number: int, names: Collection[str] | None = None) -> Layout:
        """How files of a schema number hold the columns of the schema, or those of some names."""
        found = []
        for column in self.schema:
            if names is not None and column.name not in names:
                continue
            found.append(self.history(column).held_in(number, column))
        return tuple(found)

    @property
    def target_rows(self) -> int:
        """Rows at which a segment is full (property ``target_rows``)."""
        return int(self.properties.get("target_rows", TARGET_ROWS))

    @property
    def codecs(self) -> Codecs:
        """How the pages of new files are compressed, by the age of their rows (property ``compression``)."""
        return Codecs.of(self.properties.get("compression", COMPRESSION))

    def codec_of(self, last_us: int, now_us: int | None) -> str:
        """The codec of a file that is written at ``now_us``, None for a moment before all rows.

        Its newest row lies, as far as is known, at ``last_us``.
        """
        codecs = self.codecs
        if now_us is None or len(codecs.steps) == 1:
            return codecs.steps[0][1]
        return codecs.steps[int((codecs.bounds(self.grain, now_us) > last_us).sum())][1]

    @property
    def verify(self) -> Verify:
        """What reads compare with what was written (property ``verify``)."""
        return cast(Verify, self.properties.get("verify", VERIFY[0]))

    @property
    def load_rules(self) -> str | None:
        """Which segments query nodes hold, as `lakehouse.core.serving.rules` reads it (property ``load_rules``)."""
        return self.properties.get("load_rules")

    @property
    def ragged(self) -> bool:
        """Whether segments may span time chunks (property ``ragged``)."""
        return self.properties.get("ragged", "false") == "true"
