"""Resolve: replaces key tombstones by row tombstones, so that reads need not compare keys."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse import progress
from lakehouse.core.contribution import ResolveContribution
from lakehouse.core.hits import Hits
from lakehouse.core.operation import Begun, Kind
from lakehouse.core.plan import plan_read
from lakehouse.core.segments import Segments
from lakehouse.core.sets import named_keys, row_id_bounds, row_ids_of
from lakehouse.core.spec import ROW_ID, SIDES
from lakehouse.core.tombstone import Tombstone
from lakehouse.engine import Query
from lakehouse.operations.row_change import RowChange
from lakehouse.session.session import Session


class Resolve(RowChange):
    """Maintenance that changes no row. It takes no lock; at its commit it leaves what it cannot replace safely.

    It resolves all key tombstones, or those ``chosen`` by id.
    """

    kind = Kind.RESOLVE

    def __init__(self, session: Session, begun: Begun, *, chosen: Collection[int] | None = None, **marks: Any) -> None:
        super().__init__(session, begun, **marks)
        self._chosen = chosen
        self._resolved: list[Tombstone] = []
        self._looked_at: frozenset[int] = frozenset()

    @property
    def has_work(self) -> bool:
        """Whether there was a key tombstone."""
        return bool(self._resolved)

    def _run(self) -> None:
        """Find, for each key tombstone, the rows that it hides and that nothing else hides."""
        spec = self._begun.table
        self._warehouse = self._session.planning_warehouse()
        segments, tombstones = self._session.catalog.live(spec, self.base_version)
        keyed = sorted((one for one in tombstones if one.kind == "key"), key=lambda one: one.ordinal)
        if self._chosen is not None:
            keyed = [one for one in keyed if one.id in self._chosen]
        self._looked_at = frozenset(segments.ids.tolist())
        others = [one for one in tombstones if one.kind != "key"]
        sets = self._session.catalog.sets([one for one in tombstones if one.kind != "interval"])
        with progress.step(f"resolve {spec.name}", "tombstones", len(keyed)) as step:
            for one in progress.counted(keyed, step):
                self._resolved.append(one)
                rows = self._rows(segments, others, one, sets)
                if len(rows):
                    row_ids = row_ids_of(rows.column(ROW_ID))
                    span = Hits(spec.time, rows).interval
                    made = self.tombstone("row", span, row_ids, row_id_bounds(row_ids))
                    self._tombstones.append(replace(made, replaces=one))

    def _rows(self, segments: Segments, others: list[Tombstone], keyed: Tombstone, sets: dict[int, Any]) -> pa.Table:
        """Rows of older segments with the tombstone's keys; only the key columns are read."""
        spec = self._begun.table
        older = segments.where(segments.ordinals < keyed.ordinal)
        plan = plan_read(older, [keyed], version=self.base_version)
        reached = Segments.joined([Segments.of(one.segments) for one in plan.groups if one.tombstones])
        columns = tuple(dict.fromkeys([*spec.times, *spec.primary_key]))
        schema = pa.schema([*(spec.schema.field(name) for name in columns), (ROW_ID, pa.int64())])
        if not len(reached):
            return schema.empty_table()
        bare = plan_read(reached, others, version=self.base_version)
        query = Query(bare, spec, self._warehouse, columns=columns, row_ids=True, sets=sets, verify="pages")
        keys = named_keys(sets[keyed.id], spec)
        names = keys.column_names
        if self._engine is not self._session.local_engine:
            target, source = SIDES["target"], SIDES["source"]
            on = " AND ".join(f"{target}.`{name}` = {source}.`{name}`" for name in names)
            with self._engine.join(on, replace(query, ordinals=True), keys) as matches:
                return matches.hits(columns, "TRUE").select(schema.names)
        parts = []
        for batch in self._engine.read(query).reader():
            rows = pa.Table.from_batches([batch])
            if len(names) == 1:
                parts.append(rows.filter(pc.is_in(rows.column(names[0]), keys.column(names[0]).combine_chunks())))
            else:
                parts.append(rows.join(keys, names, join_type="left semi"))
        return pa.concat_tables(parts) if parts else schema.empty_table()

    def _contribution(self) -> ResolveContribution:
        return ResolveContribution(
            **self._written, tombstones=tuple(self._tombstones), resolved=tuple(self._resolved), inputs=self._looked_at
        )
