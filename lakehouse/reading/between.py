"""Rows that differ between two versions of a table, as one commit would change them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from lakehouse.core.feed import CommitDelta, grouped, touched
from lakehouse.core.spec import TableSpec
from lakehouse.core.tombstone import Tombstone
from lakehouse.reading.feed import GROUP_BYTES, GROUP_ROWS, CommitReader
from lakehouse.reading.feed_window import Feed
from lakehouse.session.session import Session


def rows_between(session: Session, spec: TableSpec, a: int, b: int) -> pa.RecordBatchReader:
    """What leads from the rows of version ``a`` to those of ``b``, whichever is older, in the columns of ``spec``.

    Rows have a `_change_type` as those of `Table.changes`, of which they are the sum: a row that was inserted and
    deleted is not there, and one that was changed twice is there once. A restore of ``b`` does this when ``a`` is the
    head.
    Cost: the files that only one of them has, and of others those with changed rows. Raises `VersionNotFound`.
    """
    delta = _delta(session, spec, a, b)
    reader = CommitReader(session, spec, delta, changes=True)

    def batches() -> Iterator[pa.RecordBatch]:
        for pieces in grouped(delta.pieces(changes=True), GROUP_ROWS, GROUP_BYTES):
            yield from reader.read(pieces)

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def _delta(session: Session, spec: TableSpec, a: int, b: int) -> CommitDelta:
    """The same as the delta of a commit."""
    erasure = Feed(session, spec).erasure()  # before files are looked up, which one that comes later replaces
    before, old_tombstones = session.catalog.live(spec, a)
    after, new_tombstones = session.catalog.live(spec, b)
    is_kept = np.isin(after.ids, before.ids)
    added, kept = after.where(~is_kept), after.where(is_kept)
    dropped = before.where(~np.isin(before.ids, after.ids))
    return CommitDelta(
        b,
        None,
        added,
        dropped,
        masked=kept.where(touched(kept, _others(new_tombstones, old_tombstones))),
        unmasked=kept.where(touched(kept, _others(old_tombstones, new_tombstones))),
        before=tuple(old_tombstones),
        after=tuple(new_tombstones),
        erasure=erasure,
    )


def _others(tombstones: list[Tombstone], known: list[Tombstone]) -> list[Tombstone]:
    ids = {one.id for one in known}
    return [one for one in tombstones if one.id not in ids]
