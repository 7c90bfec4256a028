"""The contents of an export, as values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from lakehouse.catalog.recovery.export import PAGES
from lakehouse.catalog.state.bins import BinState
from lakehouse.catalog.store import models
from lakehouse.catalog.store.rows import SegmentsForm, decode_page, spec_from_row
from lakehouse.core.spec import TableId, TableSpec

ReadPart = Callable[[str], Iterator[pa.RecordBatch]]
"""The batches of an export's part."""


@dataclass(frozen=True, slots=True)
class HeldTable:
    """A table of an export, and the version that dropped it."""

    spec: TableSpec
    dropped: int | None


class Contents:
    """The contents of an export, read lazily; empty without an export."""

    def __init__(self, read_part: ReadPart | None) -> None:
        self._read_part = read_part

    def rows(self, name: str) -> Iterator[dict[str, Any]]:
        """Rows of a part."""
        if self._read_part is not None:
            for batch in self._read_part(name):
                yield from batch.to_pylist()

    @cached_property
    def lake(self) -> dict[str, int]:
        """The lake's counters."""
        nothing = {"head": 0, "counter": 0, "next_token": 1, "clock_us": 0}
        return next(self.rows(models.lake.name), nothing)

    @cached_property
    def tables(self) -> list[HeldTable]:
        """Every table that was ever in the lake."""
        found = [SimpleNamespace(**row) for row in self.rows(models.lake_table.name)]
        return [HeldTable(spec_from_row(row), row.dropped_version) for row in found]

    @cached_property
    def views(self) -> frozenset[str]:
        """Folded names of the views that there were."""
        rows = self.rows(models.lake_view.name)
        return frozenset(row["name"].casefold() for row in rows if row["dropped_version"] is None)

    @cached_property
    def tags(self) -> dict[str, int]:
        """Versions by tag."""
        return {row["name"]: row["version"] for row in self.rows(models.tag.name)}

    @cached_property
    def operations(self) -> dict[str, int | None]:
        """The version that each ended operation committed, by id."""
        return {row["id"]: row["version"] for row in self.rows(models.operation.name)}

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of every operation, by id."""
        return {row["id"]: row["number"] for row in self.rows(models.operation.name)}

    @cached_property
    def garbage(self) -> set[str]:
        """Files that no version could reach, to be deleted."""
        return {row["path"] for row in self.rows(models.garbage.name)}

    def pages(self) -> Iterator[tuple[TableSpec, BinState, dict[str, Any]]]:
        """States of bins, each bin's in order of versions, with their rows of `models.key_frame`."""
        specs = {one.spec.id: (one.spec, SegmentsForm.of(one.spec)) for one in self.tables}
        for row in self.rows(PAGES):
            spec, form = specs[TableId(row["table_id"])]
            body, tombstones = decode_page(form, row["page"])
            held = {one.id: one for one in tombstones}
            yield spec, BinState(row["bin"], row["version"], body, held), row
