"""Number of visible rows, where counting is cheap: for commits that do not read the rows they remove."""

from __future__ import annotations

from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope
from lakehouse.core.plan import ReadPlan
from lakehouse.core.predicate import And, In, IsNull, Or, Predicate
from lakehouse.core.spec import TableSpec
from lakehouse.engine import Query
from lakehouse.engine.hidden import plan_parts
from lakehouse.engine.masks import listed_keys
from lakehouse.errors import SegmentUnreadable, VersionNotFound
from lakehouse.predicate.term import conjunction
from lakehouse.reading.scan import plan_at, sets_of
from lakehouse.session.session import Session

MOST_ROWS = 1_000_000
"""The most rows, and entries of tombstones over them, to read for a count: some 10 ms."""


def count_visible(
    session: Session,
    spec: TableSpec,
    version: int,
    interval: Interval | None = None,
    keys: KeyScope | None = None,
    *,
    most_rows: int = MOST_ROWS,
) -> int | None:
    """Visible rows of an interval and a key scope at a version; None if too many would have to be read.

    Cost: a plan, if the catalog can count. Segments that a tombstone, the interval or the keys cut are read, as long as
    they hold at most ``most_rows`` together. Also None if they cannot be read, because a replace must be able to repair
    damage.
    """
    try:
        plan = plan_at(session, spec, version, _predicate(keys), None if interval == Interval(None, None) else interval)
        if _listed(plan) > most_rows:
            return None
        where = conjunction(listed_keys(keys, spec)).duckdb if keys else None
        query = Query(plan, spec, session.warehouse, (spec.lean_column,), where, sets=sets_of(session, plan))
        cut = [one for one in plan_parts(query) if where or one.condition is not None or one.masks]
        if sum(segment.rows for one in cut for segment in one.segments) > most_rows:
            return None
        return session.local_engine.read(query).count()
    except (SegmentUnreadable, VersionNotFound):
        return None


def _listed(plan: ReadPlan) -> int:
    """Number of rows and keys in the tombstones of a plan."""
    masks = {one.id: one for group in plan.groups for one in group.tombstones if one.kind != "interval"}
    return sum(one.rows for one in masks.values())


def _predicate(keys: KeyScope | None) -> Predicate | None:
    """The predicate of a key scope, for pruning."""
    if keys is None:
        return None
    listed = [
        (name, In(name, tuple(one for one in values if one is not None)), None in values)
        for name, values in keys.items()
    ]
    return And(tuple(Or((known, IsNull(name))) if has_null else known for name, known, has_null in listed))
