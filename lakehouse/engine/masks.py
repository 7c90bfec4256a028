"""What a plan's interval tombstones and interval leave of a group of segments, as one condition for both engines."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakehouse.core.interval import Interval
from lakehouse.core.keys import KeyScope
from lakehouse.core.plan import ReadGroup
from lakehouse.core.segment import Segment
from lakehouse.core.sets import scope_field
from lakehouse.core.spec import TableSpec
from lakehouse.core.tombstone import Tombstone
from lakehouse.engine import Query
from lakehouse.predicate.literals import literal_term
from lakehouse.predicate.steps import holds
from lakehouse.predicate.term import Term, conjunction, disjunction, is_null, negation


def visible(query: Query, group: ReadGroup) -> Term | None:
    """What a row of the group must pass to be seen within the plan's interval; None if every row does.

    The condition is true or false, never null: keys compare null-safe. A time that holds for all of the group's
    segments is left out.
    """
    parts = []
    inside = query.plan.interval
    if inside is not None and not _covers(inside, group.segments):
        parts.append(_within(query.spec, inside))
    intervals = ReadGroup(group.segments, tuple(one for one in group.tombstones if one.kind == "interval"))
    parts += [negation(_matches(tombstone, query.spec, group.segments)) for tombstone in intervals.masks()]
    return conjunction(parts) if parts else None


def _covers(interval: Interval, segments: Sequence[Segment]) -> bool:
    return all(interval.contains(segment.interval) for segment in segments)


def _column(spec: TableSpec, name: str) -> Term:
    quoted = name.replace('"', '""')
    return Term(scope_field(name, spec).type, f"`{name.replace('`', '``')}`", f'"{quoted}"')


def _operation(left: Term, operator: str, right: Term) -> Term:
    spark, duckdb = f"({left.spark} {operator} {right.spark})", f"({left.duckdb} {operator} {right.duckdb})"
    return Term(pa.bool_(), spark, duckdb)


def _within(spec: TableSpec, interval: Interval) -> Term:
    time = _column(spec, spec.time)
    start, end = literal_term(interval.start, time.type), literal_term(interval.end, time.type)
    return conjunction([_operation(time, ">=", start), _operation(time, "<", end)])


def _matches(tombstone: Tombstone, spec: TableSpec, segments: Sequence[Segment]) -> Term:
    """Whether an interval tombstone hides a row."""
    parts = [] if _covers(tombstone.interval, segments) else [_within(spec, tombstone.interval)]
    parts += listed_keys(tombstone.keys or {}, spec)
    return conjunction(parts) if parts else Term(pa.bool_(), "TRUE", "TRUE")


def listed_keys(keys: KeyScope, spec: TableSpec) -> list[Term]:
    """Whether a row's keys are listed. A listed value that the column cannot hold matches nothing."""
    conditions = []
    for name, values in keys.items():
        column = _column(spec, name)
        held = [value for value in values if value is not None and holds(value, column.type)]
        literals = [literal_term(value, column.type) for value in held]
        parts = []
        if literals:
            spark, duckdb = ", ".join(one.spark for one in literals), ", ".join(one.duckdb for one in literals)
            listed = Term(pa.bool_(), f"({column.spark} IN ({spark}))", f"({column.duckdb} IN ({duckdb}))")
            parts.append(conjunction([is_null(column, negated=True), listed]))
        if None in values:
            parts.append(is_null(column))
        conditions.append(disjunction(parts) if parts else Term(pa.bool_(), "FALSE", "FALSE"))
    return conditions
