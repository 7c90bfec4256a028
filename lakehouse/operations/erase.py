"""Erasing rows from every version, as a law may demand: their segments are rewritten without them."""

from __future__ import annotations

import getpass
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64

from lakehouse import progress
from lakehouse.core.commit import Commit
from lakehouse.core.contribution import EraseContribution
from lakehouse.core.erased import Erased, Residue, receipt
from lakehouse.core.expire import GRACE_SECONDS
from lakehouse.core.interval import Interval
from lakehouse.core.operation import Begun, Kind, LookAgain, Rewrite
from lakehouse.core.plan import plan_read
from lakehouse.core.segments import Segments
from lakehouse.core.sets import decode_set
from lakehouse.engine import Written
from lakehouse.engine.erasing import Erasing, Left
from lakehouse.errors import LakehouseError, SegmentUnreadable, WriteConflict, coded, writing_to
from lakehouse.faults import reach
from lakehouse.operations.residue import residue
from lakehouse.operations.retry import retried
from lakehouse.operations.run_operation import RunOperation
from lakehouse.predicate import ParsedPredicate, whole_scope
from lakehouse.session.session import Session

logger = logging.getLogger(__name__)
Forgets = tuple[tuple[str, ...], Callable[[pa.Table], None]]
"""Columns of keys that are remembered elsewhere, and what makes them be forgotten there before rows are erased."""
_SEGMENTS = 256
"""How many segments are searched together."""


class Erase(RunOperation):
    """Removes the rows that match a filter from every version, visible there or not. It takes no lock.

    It covers all rows committed when it scans, and scans again until no row-copying operation has committed since.
    Operations that still run then and have read such rows must retry, or they would bring them back.

    Cost: the bounds of every segment of any version; the filter's columns of those that may hold such rows; a
    copy of those that do. Its commit raises `WriteConflict` if updates and compactions keep outrunning it, or
    another erasure was faster.
    """

    kind = Kind.ERASE

    def __init__(
        self, session: Session, begun: Begun, *, where: ParsedPredicate, forgets: Forgets | None = None, **marks: Any
    ) -> None:
        super().__init__(session, begun, **marks)
        self._where = where
        self._keys: tuple[str, ...] = () if forgets is None else forgets[0]
        self._forget = None if forgets is None else forgets[1]
        self._warehouse = session.warehouse
        self._seen = begun.base_version
        self._left: list[Left] = []
        self._forgotten: int | None = None
        """Of these, so many had their keys forgotten; None: none was asked for yet."""
        self._spans: dict[int, Interval] = {}
        """The intervals of segments with erased rows, by id."""

    def _run(self) -> None:
        self._look(self._session.catalog.stored(self._begun.table, self._seen))

    def _look(self, found: Iterable[Segments]) -> None:
        """Find rows in segments, and write the remaining ones."""
        self._warehouse = self._session.planning_warehouse()
        spec, tree = self._begun.table, self._where.tree
        with progress.step(f"erase from {spec.name}", "files") as step:
            for segments in found:
                plan = plan_read(segments, (), version=self._seen, predicate=tree)
                maybe = self._session.index_cache.narrowed(plan, spec, tree).segments
                step.expect(len(maybe))
                for first in range(0, len(maybe), _SEGMENTS):
                    self._rewrite(maybe[first : first + _SEGMENTS])

    def _overtaken(self) -> WriteConflict:
        return WriteConflict(
            "another erasure rewrote the segments first, and their old files are collected; erase again",
            table=self._begun.table.name,
            operation=self.id,
        )

    def _rewrite(self, segments: Segments) -> None:
        spec = self._begun.table
        batch, self._batches = self._batches, self._batches + 1
        folder = f"{spec.folder}/{self.id}"
        where = self._where.sql("duckdb")
        folder_here = f"{folder}/{batch:05d}"
        work = Erasing(spec, self._warehouse, folder_here, self.id, where, self._now_us(), self._keys)
        left = [one for one in self._done(work, segments) if one.rows_erased]
        prefix = f"{folder}/"
        self.take([Written(one.written.removeprefix(prefix), one.checksum, one.found) for one in left if one.written])
        self._left += left
        spans = {one.id: one.interval for one in segments}
        self._spans |= {one.segment: spans[one.segment] for one in left}

    def _done(self, work: Erasing, segments: Segments) -> Iterator[Left]:
        with writing_to(work.folder, then="erase again"):
            for found in self._engine.each(work, list(segments)):
                if isinstance(found, SegmentUnreadable):
                    raise found
                yield found

    def _contribution(self) -> EraseContribution:
        files = {one.path: one for one in self._segments}
        rewrites = tuple(
            Rewrite(one.segment, one.path, rows, files.get(one.written))
            for one, rows in zip(self._left, self._rows_found(), strict=True)
        )
        read = self._where.interval(self._begun.table.time) or Interval(None, None)
        taken = whole_scope(self._where.tree, self._begun.table)
        return EraseContribution(
            begun=self._begun, txn=self._txn, rewrites=rewrites, seen=self._seen, read=read, scope=taken
        )

    def _rows_found(self) -> Iterator[int]:
        """For each segment how many rows were erased that those before it do not hold.

        Updates and compactions leave copies of a row in files of earlier versions, all with its id.
        """
        found = BitMap64()
        for one in self._left:
            before, row_ids = len(found), decode_set("row", one.row_ids)
            assert isinstance(row_ids, BitMap64)
            found |= row_ids
            yield len(found) - before

    def _commit_now(self, *, if_useful: bool) -> Commit:
        catalog, spec = self._session.catalog, self._begun.table
        named = catalog.scopes_named(spec, whole_scope(self._where.tree, spec))
        commit = self._commit_after_a_look(if_useful=if_useful)
        reach("erase.committed")
        try:
            catalog.write_key_frames(spec, [*self._spans.values(), *named])
        except LakehouseError as error:
            logger.warning("key frames were not written after an erasure; a later commit will: %s", coded(error))
        return commit

    def erased(self, commit: Commit, exports: tuple[int, int] | None) -> Erased:
        """The result and the residue, now that the commit stands; ``exports`` are as `residue` takes them."""
        found = self._session.catalog.leftovers(self._begun.table)
        return Erased.of(
            commit,
            segments_rewritten=sum(one.written != "" for one in self._left),
            segments_removed=sum(one.written == "" for one in self._left),
            files_to_go=found.garbage,
            versions_readable=found.readable,
            residue=(*residue(found, self._where.tree, exports), *self._remembered()),
        )

    def _remembered(self) -> Iterator[Residue]:
        if self._keys and not set(self._where.columns) <= set(self._keys):
            what = "keys of rows that no version has any more"
            yield Residue(what, "what remembers applied changes", "erase by a condition on the key alone")

    def _commit_after_a_look(self, *, if_useful: bool) -> Commit:
        """Scan what was committed since the last scan, and commit; repeat if read rows were copied meanwhile."""

        def attempt() -> Commit:
            if not self._is_repeat:
                since, self._seen = self._seen, self._session.catalog.head()
                with self._ended_by_errors():
                    self._look([self._session.catalog.come(self._begun.table, since, self._seen)])
            self._write_receipt()
            self._forget_keys()
            reach("erase.looked")
            return super(Erase, self)._commit_now(if_useful=if_useful)

        try:
            return retried(attempt, on=LookAgain, wait_seconds=self._session.wait_seconds, between=self._note_again)
        except LookAgain as error:
            self._fail()
            raise WriteConflict(
                "rows are updated and compacted faster than they are found; erase when fewer are",
                table=self._begun.table.name,
                operation=self.id,
            ) from error

    def _forget_keys(self) -> None:
        """Have the keys of what was found forgotten; those that were before are not again."""
        if self._forget is None or self._is_repeat:
            return
        found = [one.keys for one in self._left[self._forgotten :] if one.keys is not None]
        if found or self._forgotten is None:
            columns = [self._begun.table.schema.field(one).remove_metadata() for one in self._keys]
            nothing = pa.schema(columns).empty_table()
            self._forget(pa.concat_tables([nothing, *found], promote_options="permissive"))
        self._forgotten = len(self._left)

    def _write_receipt(self) -> None:
        """Say in the commit's properties what it does: its rows are gone, and nothing else will tell."""
        removed = sum(one.written == "" for one in self._left)
        numbers = receipt(
            segments_rewritten=len(self._left) - removed,
            segments_removed=removed,
            files_to_go=len(self._left),
            grace_seconds=int(GRACE_SECONDS),
            versions_readable=self._session.catalog.count_readable(self._begun.table) + 1,
        )
        self._properties = {"by": _user(), **(self._properties or {}), **numbers}

    def _note_again(self, _: LookAgain) -> None:
        logger.debug("others committed copies of what they had read; erasure %s scans again", self.id)


def _user() -> str:
    """The name of who runs this process, if it has one."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"
