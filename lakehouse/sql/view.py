"""Views in a query: each name that means one becomes its query in parentheses, whose names mean the lake's alone.

A view's text is checked again whenever it is read, as if its reader had written it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from lakehouse.core.spec import ROW_ID
from lakehouse.core.view import View, view_named
from lakehouse.errors import BrokenView, InvalidInput, InvalidStatement, TableNotFound, VersionNotFound
from lakehouse.session.session import Session
from lakehouse.sql.allowed import check_allowed
from lakehouse.sql.columns import Columns
from lakehouse.sql.names import IN_VIEW, find_table, plain_parts, point_of
from lakehouse.sql.parse import parse_statement
from lakehouse.sql.system import INFORMATION, WITH_VERSIONS

MOST_DEEP = 16
_MOST_VIEWS = 200
"""Each is parsed and checked where it stands."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A node to look at: ``known`` are the queries of WITH around it, ``point`` the version its tables are read at.

    ``path`` are the views around it, outermost first.
    """

    node: exp.Expr
    known: frozenset[str] = frozenset()
    point: exp.Version | None = None
    path: tuple[View, ...] = ()


@dataclass
class Expanded:
    """A query without views. ``views`` are those that it named, by folded name, ``depth`` deep at most.

    ``is_of_head``: none was looked for at a version.
    """

    tree: exp.Expr
    views: dict[str, str] = field(default_factory=dict)
    is_of_head: bool = True
    depth: int = 0


def expand(session: Session, tree: exp.Expr, tables: Sequence[str], as_of: Any) -> Expanded:
    """Put the query of each view in the place of its name, in place. A name means what it meant at its version.

    What comes of it is to be checked for an engine. Raises `BrokenView` for a view whose table is gone, that reads
    itself, or whose text is not allowed.
    """
    return _Expansion(session, tables, as_of).of(tree)


def under_views(session: Session, names: Iterable[str]) -> set[str]:
    """Folded names of tables and views, and of all that these views read."""
    found = set(names)
    tables, known = session.catalog.names()
    for name in sorted(found & known):
        select = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.to_table(f"`{name}`", dialect="spark")))
        expanded = expand(session, select, tables, None)
        found |= expanded.views.keys() | {one.name.casefold() for one in expanded.tree.find_all(exp.Table)}
    return found


def live_view(session: Session, node: exp.Expr) -> View | None:
    """The view that a name in a statement means now."""
    parts = plain_parts(node)
    if len(parts) != 1 or not isinstance(parts[0], exp.Identifier):
        return None
    return view_of(session, parts[0].name)


def view_of(session: Session, name: str) -> View | None:
    """The view of a name now. Cost: a look at the names, and at the views where one has it."""
    _, known = session.catalog.names()
    return view_named(session.catalog.views(), name) if name.casefold() in known else None


def read_query(text: str) -> exp.Expr:
    """The tree of a view's query. Raises `InvalidStatement` for anything else."""
    statement = parse_statement(text)
    tree = statement.tree
    if isinstance(tree, exp.Values):
        tree = exp.Select(expressions=[exp.Star()], from_=exp.From(this=tree))
    if statement.kind != "run" or not isinstance(tree, exp.Query) or isinstance(tree, exp.Table):
        raise InvalidStatement("a view is a query: SELECT, WITH or VALUES", found=text[:100])
    return tree


def check_views(tree: exp.Expr, schemas: Mapping[str, pa.Schema], engine: str) -> None:
    """Raise `BrokenView` for the innermost view of a query whose columns are not found."""
    for node in reversed(list(tree.find_all(exp.Subquery))):  # the innermost come last
        name = node.meta_get(IN_VIEW)
        if name is not None:
            try:
                Columns({relation: schema.names for relation, schema in schemas.items()}, engine).of(node.this.copy())
            except InvalidInput as error:
                raise _broken(name, error) from error


class _Expansion:
    def __init__(self, session: Session, tables: Sequence[str], as_of: Any) -> None:
        self._session = session
        self._tables = tables
        self._as_of = as_of
        self._views = session.catalog.views()
        self._names = {one.name.casefold() for one in self._views}
        self._count = 0
        self._found = Expanded(exp.Null())

    def of(self, tree: exp.Expr) -> Expanded:
        waiting = [_Place(tree)]
        while waiting:
            place = waiting.pop()
            if isinstance(place.node, exp.Table):
                inner = self._of_table(place, place.node)
                waiting += [inner] if inner is not None else []
                continue
            with_, known = place.node.args.get("with_"), place.known
            for query in with_.expressions if with_ is not None else ():
                after = known | {query.args["alias"].name.casefold()}
                is_recursive = with_ is not None and with_.args.get("recursive")
                waiting.append(replace(place, node=query.this, known=after if is_recursive else known))
                known = after
            children = [child for child in place.node.iter_expressions() if child is not with_]
            waiting += [replace(place, node=child, known=known) for child in children]
        self._found.tree = tree
        return self._found

    def _of_table(self, place: _Place, node: exp.Table) -> _Place | None:
        """Where to go on after a table's name; None where it is no view's."""
        if len(node.parts) == 1 and node.name.casefold() in place.known:
            return None
        version = node.args.get("version") or place.point
        parts = plain_parts(node)
        if len(parts) == 1 and isinstance(parts[0], exp.Identifier):
            name = parts[0].name
            view = None if node.meta_get(ROW_ID) else self._named(name, version)
            if view is not None:
                return self._into(view, place, node, version)
            if place.path:
                self._require_table(name, place.path[-1])
        elif not _has_versions(parts):
            return None
        if place.point is not None and node.args.get("version") is None:
            node.set("version", place.point.copy())
        return None

    def _named(self, name: str, version: exp.Version | None) -> View | None:
        if name.casefold() not in self._names:
            return None
        point = self._as_of if version is None else point_of(version)
        if point is None:
            return view_named(self._views, name)
        self._found.is_of_head = False
        is_table = name.casefold() in {one.casefold() for one in self._tables}
        try:
            at = self._session.catalog.resolve(point)
        except VersionNotFound:  # which a table of that name may have kept
            if is_table:
                return None
            raise
        found = view_named(self._views, name, at)
        if found is None and not is_table:
            raise VersionNotFound("the view did not exist at that version", view=name, version=at)
        return found

    def _require_table(self, name: str, view: View) -> None:
        try:
            find_table(name, self._tables)
        except TableNotFound as error:
            raise BrokenView(
                "a view reads a table that is not there; make the table, or the view, again", view=view.name, table=name
            ) from error

    def _into(self, view: View, place: _Place, node: exp.Table, version: exp.Version | None) -> _Place:
        if view.id in {one.id for one in place.path}:
            raise BrokenView("a view reads itself; make it again", view=view.name)
        if len(place.path) == MOST_DEEP:
            raise BrokenView("views are nested too deeply", view=place.path[0].name, most=MOST_DEEP)
        self._count += 1
        self._found.depth = max(self._found.depth, len(place.path) + 1)
        if self._count > _MOST_VIEWS:
            raise InvalidStatement("a statement names too many views; split it", most=_MOST_VIEWS)
        self._found.views[view.name.casefold()] = view.id
        try:
            query = read_query(view.text)
            check_allowed(query, "spark")  # for the engine that is asked, what comes of it all is checked once more
        except InvalidInput as error:
            raise _broken(view.name, error) from error
        if node.args.get("sample"):
            raise InvalidStatement(
                "a sample is of a table's rows, which a view has not; sample a table", view=view.name
            )
        new = _picked(view, query)
        for part in ("pivots", "laterals", "joins"):
            if node.args.get(part):
                new.set(part, node.args[part])
        alias = node.args.get("alias") or exp.TableAlias()
        if alias.args.get("this") is None:
            alias.set("this", exp.to_identifier(node.name, quoted=True))
        new.set("alias", alias)
        node.replace(new)
        return _Place(query, point=version, path=(*place.path, view))


def _has_versions(parts: Sequence[exp.Expr]) -> bool:
    """Whether a name is that of a system table which is read at a version."""
    if len(parts) != 2:
        return False
    return parts[0].name.casefold() != INFORMATION and parts[1].name.casefold() in WITH_VERSIONS


def _picked(view: View, query: exp.Expr) -> exp.Subquery:
    """A view's columns of its query, under the view's names for them."""
    while isinstance(query, exp.Subquery) and not any(
        value for key, value in query.args.items() if value and key != "this"
    ):
        query = query.this
    alias = exp.TableAlias(this=exp.to_identifier("view", quoted=True))
    if any(of is None for _, of in view.columns):
        alias.set("columns", [exp.to_identifier(name, quoted=True) for name in view.names])
    picks: list[exp.Expr] = []
    for name, of in view.columns:
        column = exp.column(of or name, quoted=True)
        picks.append(column if of in (None, name) else exp.alias_(column, name, quoted=True))
    select = exp.Select(expressions=picks, from_=exp.From(this=exp.Subquery(this=query, alias=alias)))
    found = exp.Subquery(this=select)
    found.meta[IN_VIEW] = view.name
    return found


def _broken(name: str, cause: InvalidInput) -> BrokenView:
    return BrokenView("a view cannot be read as it was made; make it again", view=name, cause=cause)
