"""Rows that changed between two versions, version by version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import replace
from itertools import chain, groupby
from typing import TYPE_CHECKING

import pyarrow as pa

from lakehouse.core.commit import Commit
from lakehouse.core.feed import CommitDelta, Position, grouped
from lakehouse.core.listing import Listing
from lakehouse.core.operation import CHANGE_NO_ROW
from lakehouse.core.predicate import And, Predicate
from lakehouse.core.prune import matching
from lakehouse.core.spec import TableSpec, Verify
from lakehouse.errors import SegmentUnreadable
from lakehouse.extras import load
from lakehouse.reading.feed import GROUP_BYTES, GROUP_ROWS, read_appends
from lakehouse.reading.feed_columns import VERSION, changes_schema
from lakehouse.reading.feed_window import Feed
from lakehouse.session.session import Session

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyspark.sql
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

FORMER_VERSION = "_version"
"""The former name of `VERSION`; it will be removed in the next version."""
_MANY = 4
"""From how many commits on, those that only append are read together."""


class Changes:
    """Rows inserted, deleted and updated by the commits after one version, up to another.

    Each row has the table's columns at the later version, ``_change_type`` (``insert``, ``delete``, ``update_before``
    or ``update_after``, the last two of one row next to each other), and of its commit ``_commit_version`` and
    ``_commit_timestamp``; in order of versions. ``_version`` is the version's former name, kept for one release. The
    ``_row_id`` identifies a row; a compaction changes none. A row counts as updated if a value differs: null and NaN
    are two values, 0.0 and -0.0 are one. Lazy: each method reads again.

    Examples
    --------
    >>> before = flights.version
    >>> changed = flights.update({"delay": "delay + 1"}, "id = 2")
    >>> flights.changes(since=before).to_arrow().select(["delay", "_change_type"]).to_pydict()
    {'delay': [30, 31], '_change_type': ['update_before', 'update_after']}
    """

    def __init__(self, session: Session, spec: TableSpec, since: int, until: int, verify: Verify | None = None) -> None:
        self._session = session
        self._spec = spec
        self._verify = spec.verify if verify is None else verify
        self._where: Predicate = And(())
        self._held: Changes | None = None
        self.since = since
        self.until = until
        self.schema = changes_schema(spec.schema).append(pa.field(FORMER_VERSION, pa.int64()))

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream, in bounded memory however many a commit changed."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table, read in process."""
        return self.to_reader().read_all()

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas frame."""
        load("pandas")
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars frame."""
        polars = load("polars")  # costs a second of start-up that nobody else should pay
        frame: pl.DataFrame = polars.from_arrow(self.to_arrow())
        return frame

    def to_duckdb(self, connection: DuckDBPyConnection | None = None) -> DuckDBPyRelation:
        """The rows as a DuckDB relation, on ``connection`` or on one of its own."""
        import duckdb  # noqa: PLC0415 - only who asks for it needs it

        return (connection or duckdb.connect()).from_arrow(self.to_arrow())

    def to_spark(self) -> pyspark.sql.DataFrame:
        """The rows as a Spark DataFrame; they are read in process and handed over."""
        frame: pyspark.sql.DataFrame = self._session.spark.createDataFrame(self.to_arrow())
        return frame

    def count(self) -> int:
        """How many rows there are: an update has two."""
        return sum(len(batch) for batch in self._batches())

    def where(self, tree: Predicate) -> Changes:
        """The same, without files of which no row passes a filter, as far as that leaves every other row as it is.

        Rows that do not pass may be left in. Only what commits added that took nothing away is left out: what became of
        a row elsewhere differs from both of its forms.
        """
        found = copy(self)
        found._where = tree
        return found

    def with_columns(self, spec: TableSpec) -> Changes:
        """The same rows with the columns of another of the table's definitions."""
        found = Changes(self._session, spec, self.since, self.until, self._verify)
        found._held = self  # which keeps the versions from expiry
        return found

    def commits(self) -> Listing[Commit]:
        """The commits that may have changed rows, newest first. Raises `VersionNotFound`."""
        found = self._session.catalog.commits_between(self._spec, self.since, self.until)
        return Listing(one for one in found if one.operation not in CHANGE_NO_ROW)

    def of(self, version: int) -> int:
        """How many rows one commit changed, whatever it was: an update counts two."""
        deltas, _ = self._session.catalog.feed(self._spec, version - 1, version, every=True)
        feed = self._feed()
        return sum(len(batch) for delta in deltas for batch in self._of(feed, delta))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<changes of {self._spec.name} after version {self.since} up to {self.until}>"

    def _batches(self) -> Iterator[pa.RecordBatch]:
        feed, since = self._feed(), self.since
        while since < self.until:
            deltas, since = feed.following(Position(since), self.until)
            narrowed = [self._narrowed(delta) for delta in deltas]
            for are_appends, run in groupby(narrowed, lambda delta: delta.only_appends and not self._spec.columns):
                some = list(run)
                yield from self._appended(feed, some) if are_appends else self._each(feed, some)

    def _each(self, feed: Feed, deltas: Iterable[CommitDelta]) -> Iterator[pa.RecordBatch]:
        for delta in deltas:
            yield from self._of(feed, delta)

    def _appended(self, feed: Feed, deltas: list[CommitDelta]) -> Iterator[pa.RecordBatch]:
        """Many small commits cost as much to read as one; if an erasure replaced files, each is looked up again."""
        some = [delta for delta in deltas if len(delta.added)]
        if len(some) < _MANY or feed.erasure() != some[0].erasure:
            yield from self._each(feed, some)
            return
        rows = read_appends(self._session, self._spec, some, self._verify)
        try:
            first = next(rows, None)
        except SegmentUnreadable:
            yield from self._each(feed, some)
            return
        for batch in rows if first is None else chain([first], rows):
            yield self._with_former(batch)

    def _feed(self) -> Feed:
        return Feed(self._session, self._spec, verify=self._verify)

    def _of(self, feed: Feed, delta: CommitDelta) -> Iterator[pa.RecordBatch]:
        for group in grouped(delta.pieces(changes=True), GROUP_ROWS, GROUP_BYTES):
            for batch in feed.rows(delta, group, changes=True):
                yield self._with_former(batch)

    def _with_former(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        former = batch.column(batch.schema.get_field_index(VERSION))
        return pa.RecordBatch.from_arrays([*batch.columns, former], schema=self.schema)

    def _narrowed(self, delta: CommitDelta) -> CommitDelta:
        """The same without added segments of which no row passes the filter, where none can be a row's other form."""
        if len(delta.losses) or len(delta.unmasked):
            return delta
        return replace(delta, added=delta.added.where(matching(self._where, delta.added)))
