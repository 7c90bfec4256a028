"""One micro-batch into a table: one commit, once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from lakehouse.arguments import Fit
from lakehouse.core.commit import Commit
from lakehouse.core.stream import BOUND, CHECKPOINT, LOGS, OFFSETS
from lakehouse.engine.spark.write import few_rows
from lakehouse.errors import CheckpointMismatch
from lakehouse.lake import Lake, connect
from lakehouse.streaming.changes import apply_changes
from lakehouse.streaming.checkpoint import Checkpoint
from lakehouse.streaming.replacing import replace_touched
from lakehouse.table.table import Table
from lakehouse.table.transaction import Transaction, committed_once

SMALL_ROWS = 50_000
"""Of a batch that is written in this process."""
Work = Callable[[Transaction, Any], object]
"""What a batch of a stream into several tables does: it is given the open transaction and the batch's rows."""
_opened: dict[str, Lake] = {}
"""Lakes that this process has opened for batches, by what opens them."""


@dataclass(frozen=True, slots=True)
class How:
    """What becomes of a batch's rows."""

    mode: str
    keys: tuple[str, ...] = ()
    sequence_by: str | None = None
    deletes: str | None = None
    scd: int = 1
    schema: Fit = "strict"
    work: Work | None = None


@dataclass
class BatchWriter:
    """Writes batches of one stream. In a Connect session it is pickled and called in a process of the server."""

    name: str
    lake: Mapping[str, Any]
    """What `connect` takes to open it elsewhere."""
    stream: str
    checkpoint: Checkpoint
    how: How
    table: Table | None = None
    _told: dict[str, str] = field(default_factory=dict)
    """Properties that are the same for every batch of a run."""
    _is_small: bool = False
    """Whether the last batch was small, as the next one then is: the first one may be all that there was to read."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "table": None, "_told": {}}

    def __call__(self, frame: Any, batch: int) -> None:
        """Commit the rows of a batch, unless that was done before.

        Raises `CheckpointMismatch` if the table has other rows under its number.
        """
        table = self.table or self._opened(frame.sparkSession)
        offsets = self.checkpoint.offsets(batch)
        if offsets is None:
            raise CheckpointMismatch(
                "the batch's offsets are not in the checkpoint, as with asynchronous progress tracking; turn that off, "
                "and give each stream a checkpoint of its own",
                checkpoint=self.checkpoint.place.address,
                batch=batch,
            )
        with few_rows() if self._is_small else nullcontext():
            commit = self._committed(table, frame, batch, offsets)
        self._is_small = commit.rows_added <= SMALL_ROWS
        found = commit.properties.get(OFFSETS)
        if found is not None and found != offsets:
            raise CheckpointMismatch(
                "the table has other rows under the batch's number, of another run of this stream; end that, and start "
                "this one again",
                table=table.name,
                stream=self.stream,
                batch=batch,
                version=commit.version,
            )

    def _committed(self, table: Table, frame: Any, batch: int, offsets: str) -> Commit:
        how = self.how
        marks: dict[str, Any] = {"txn": (self.stream, batch), "properties": self._properties(offsets)}
        if how.work is not None:
            return self._together(table, how.work, frame, marks)
        if how.mode == "append":
            return table.append(frame, schema=how.schema, **marks)
        if how.mode == "upsert":
            return table.upsert(frame, newest=how.sequence_by, schema=how.schema, **marks)
        if how.mode == "apply_changes":
            commit = apply_changes(
                table,
                frame,
                sequence_by=str(how.sequence_by),
                keys=how.keys or None,
                deletes=how.deletes,
                scd=how.scd,
                schema=how.schema,
                **marks,
            )
            assert commit is not None
            return commit
        return replace_touched(table, frame, how.keys, schema=how.schema, **marks)

    def _together(self, table: Table, work: Work, frame: Any, marks: Mapping[str, Any]) -> Commit:
        commit = committed_once(
            table, marks["txn"], lambda transaction: work(transaction, frame), properties=marks["properties"]
        )
        assert commit is not None
        return commit

    def _properties(self, offsets: str) -> dict[str, str]:
        if not self._told:
            logs, bound = self.checkpoint.logs(), self.checkpoint.bound(offsets)
            self._told = {CHECKPOINT: self.checkpoint.place.address}
            if bound is not None:
                self._told[BOUND] = bound
            elif logs:
                self._told[LOGS] = json.dumps(logs)
        return {**self._told, OFFSETS: offsets}

    def _opened(self, spark: Any) -> Table:
        """The table, in a process that is not the caller's; its lake stays open for the batches to come."""
        self.table = opened(self.lake, spark).table(self.name)
        return self.table


def opened(lake: Mapping[str, Any], spark: Any) -> Lake:
    """A lake by what `connect` takes; it stays open for the batches to come."""
    key = json.dumps([id(spark), lake], sort_keys=True, default=str)
    if key not in _opened:
        _opened[key] = connect(**lake, spark=spark)
    return _opened[key]


def keys_of(keys: str | Sequence[str] | None) -> tuple[str, ...]:
    """Names of columns, one or several.

    >>> keys_of("id"), keys_of(None)
    (('id',), ())
    """
    return () if keys is None else (keys,) if isinstance(keys, str) else tuple(keys)
