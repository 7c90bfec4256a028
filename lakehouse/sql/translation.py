"""A query as an engine is given it, and what it asks of each table: made of its words and the tables' columns alone.

What is made of a text is remembered, since reading a long statement and writing it anew takes tens of milliseconds. It
holds as long as the names in it mean the same tables, with the same columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from lakehouse.cancelling import check
from lakehouse.core.spec import ROW_ID
from lakehouse.errors import InvalidInput
from lakehouse.session.session import Session
from lakehouse.sql.allowed import check_allowed
from lakehouse.sql.byname import same_joins
from lakehouse.sql.columns import Columns
from lakehouse.sql.joins import make_inner
from lakehouse.sql.known import mark_known
from lakehouse.sql.names import Reference, resolve
from lakehouse.sql.normal import normalized
from lakehouse.sql.push import Wanted, pushed
from lakehouse.sql.recursion import put_first
from lakehouse.sql.system import CHANGES, changes_schema, schema_of
from lakehouse.sql.tree import copied, found_in
from lakehouse.sql.view import Expanded, check_views, expand
from lakehouse.sql.written import write
from lakehouse.table.tables import open_table

if TYPE_CHECKING:
    from lakehouse.core.spec import TableSpec
    from lakehouse.table.table import Table

_PREFIX = "lake_relation_"
_LETTERS_OF_FILTER = 10
"""How much more than its text a filter is, with a text for each engine and a tree."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a query asks of a table where it names it: ``relation`` is what the engine's text calls it.

    ``as_of`` is the version, tag or time that stands with it, or None. ``system`` names a system table, whose rows the
    catalog knows: of ``table``, or of the lake, where that is empty.
    """

    table: str
    relation: str
    as_of: Any
    wanted: Wanted
    system: str = ""


@dataclass(frozen=True, slots=True)
class Translation:
    """A query in the words of an ``engine``.

    ``specs`` are the tables that it may name, but for case, as they were then.
    """

    engine: str
    text: str
    asked: tuple[Asked, ...]
    specs: Mapping[str, TableSpec]
    columns: tuple[str, ...] = ()
    """What the query gives."""
    views: Mapping[str, str] = field(default_factory=dict)
    """The form of each view that it names, by folded name."""
    is_lasting: bool = True
    """Whether it can be used again: no view, and no altered table, in it was looked for at a version."""
    depth: int = 0
    """How deeply its views are nested."""
    is_of_now: bool = False
    """Whether it asks what day or time it is, itself or in a view: its rows change while no table does."""

    @property
    def letters(self) -> int:
        """About how much it holds, as characters of text."""
        filters = (one.wanted.where for one in self.asked)
        return len(self.text) + sum(_LETTERS_OF_FILTER * len(one.text) for one in filters if one is not None)

    def tables(self, session: Session, as_of: Any) -> dict[str, Table] | None:
        """The tables that it names as they are now; None where a name may mean another, or a column is another."""
        names, views = session.catalog.names()
        folded = {name.casefold() for name in self.specs}
        if views & folded or (self.views and (as_of is not None or not self._has_same_views(session))):
            return None
        found = _tables(session, names, folded)
        if found.keys() != self.specs.keys():
            return None
        if as_of is not None and any(table.spec.schema_number for table in found.values()):
            return None  # at that version a table may have had other columns
        same = (_is_same(table.spec, self.specs[name]) for name, table in found.items())
        return found if all(same) else None

    def _has_same_views(self, session: Session) -> bool:
        live = {one.name.casefold(): one.id for one in session.catalog.views() if one.is_there(None)}
        return all(live.get(name) == form for name, form in self.views.items())


def _is_same(one: TableSpec, other: TableSpec) -> bool:
    return one.id == other.id and one.schema.equals(other.schema, check_metadata=True)


def translate(
    session: Session, tree: exp.Expr, engine: str, row_ids: Sequence[exp.Table] = (), as_of: Any = None
) -> tuple[Translation, dict[str, Table]]:
    """Check a query and write it for an engine; with the tables that it names, itself or in its views.

    Tables of the tree in ``row_ids`` have a column `_row_id` beside their own. Raises `InvalidInput` for what is not
    allowed, `TableNotFound`; between its steps, which take longer the longer the query is, it can be cancelled.
    """
    check_allowed(tree, engine)
    check()
    for node in row_ids:
        node.meta[ROW_ID] = True  # which a copy keeps

    def look() -> tuple[list[str], frozenset[str], Expanded, dict[str, Table]]:
        names, views = session.catalog.names()
        expanded = Expanded(copied(tree))
        written = _written(expanded.tree)
        if views & written:
            expanded = expand(session, expanded.tree, names, as_of)
            written = _written(expanded.tree)
        return names, views, expanded, _tables(session, names, written)

    names, views, expanded, tables = session.catalog.snapshot(look)
    if expanded.views:
        check_allowed(expanded.tree, engine)  # as a whole: it may be nested more deeply than any part
    check()
    tree = normalized(expanded.tree)
    references = resolve(tree, names, _prefix(tree), views)
    for one in references:
        if one.node.args.get("sample"):
            one.node.meta[ROW_ID] = True
    schemas = {one.relation: _schema(tables.get(one.table), one, as_of) for one in references}
    if engine == "duckdb":
        make_inner(tree, references, schemas)
        mark_known(tree, references, schemas)
    check()
    named = copied(tree)
    joins = found_in(named, exp.Join)
    try:
        columns = Columns({relation: schema.names for relation, schema in schemas.items()}, engine).of(named)
    except InvalidInput:
        check_views(tree, schemas, engine)
        raise
    same_joins(found_in(tree, exp.Join), joins)
    check()
    wanted = pushed(tree, [one for one in references if one.system in ("", CHANGES)], schemas)
    asked = tuple(
        Asked(one.table, one.relation, one.as_of, wanted.get(one.relation, Wanted(())), one.system)
        for one in references
    )
    check()
    used = {one.table.casefold() for one in references}
    specs = {name: table.spec for name, table in tables.items() if name.casefold() in used}
    given = tuple(one.name for one in columns)
    at_points = {one.table for one in references if as_of is not None or one.as_of is not None}
    is_lasting = expanded.is_of_head and not any(tables[name].spec.schema_number for name in at_points & tables.keys())
    is_of_now = tree.find(exp.CurrentDate, exp.CurrentTimestamp) is not None
    if engine == "duckdb":
        put_first(named)
    text = write(named, engine)
    found = Translation(engine, text, asked, specs, given, expanded.views, is_lasting, expanded.depth, is_of_now)
    return found, tables


def _written(tree: exp.Expr) -> set[str]:
    """Every part of a table's name, folded."""
    return {part.name.casefold() for one in found_in(tree, exp.Table) for part in one.parts}


def _schema(table: Table | None, reference: Reference, as_of: Any) -> pa.Schema:
    """The columns that a query can name of a table: those that it had at the version that is read."""
    if table is None or reference.system not in ("", CHANGES):
        return schema_of(reference.system)
    schema = table.spec_at(as_of if reference.as_of is None else reference.as_of).schema
    if reference.system:
        return changes_schema(schema)
    return schema.append(pa.field(ROW_ID, pa.int64())) if reference.node.meta_get(ROW_ID) else schema


def _tables(session: Session, names: list[str], written: set[str]) -> dict[str, Table]:
    return {name: open_table(session, name) for name in names if name.casefold() in written}


def _prefix(tree: exp.Expr) -> str:
    """The beginning of names that the query does not use."""
    prefix, used = _PREFIX, " ".join(one.name.casefold() for one in found_in(tree, exp.Identifier, exp.Literal))
    while prefix in used:
        prefix += "_"
    return prefix
