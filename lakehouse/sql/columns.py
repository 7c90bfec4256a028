"""What every column of a query means, by Spark's rules: a name that could be two columns is refused, never guessed.

A name means a column of the FROM around it, else (in SELECT, GROUP BY, HAVING and QUALIFY) a column that the SELECT
gives, else a column of a query further out; in ORDER BY, what the SELECT gives comes first. DuckDB looks in another
order at places, so its text is written with the meaning that was found.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlglot import exp

from lakehouse.arguments import unknown_column
from lakehouse.errors import InvalidStatement, OnlySpark, UnknownColumn
from lakehouse.predicate.written import shown
from lakehouse.sql.byname import spell_natural, spell_order, spell_union
from lakehouse.sql.generators import is_hidden
from lakehouse.sql.pivots import pivoted
from lakehouse.sql.ranges import is_range
from lakehouse.sql.recursion import CORRELATED, counted, is_recursive, parts_of
from lakehouse.sql.samples import sampled
from lakehouse.sql.sources import kind

_NAMED = (exp.Alias, exp.Column, exp.Dot, exp.Subquery)
"""Items of a SELECT list that are called as they say; others are called by their text, which no statement can say."""
_CLAUSES = ("where", "group", "having", "qualify", "windows")
_CALLED = {"expressions": "SELECT", "group": "GROUP BY", "order": "ORDER BY", "windows": "WINDOW"}
"""Clauses as statements write them, where that is another word."""
_ALIASED = frozenset({"expressions", "group", "having", "qualify"})
"""Clauses in which a name that the FROM does not have is one that the SELECT gives."""


class Output(NamedTuple):
    """A column that a query gives: its name, and what it is; two that are the same column have one ``key``."""

    name: str
    key: Hashable


class _Item(NamedTuple):
    """An item of a FROM."""

    alias: str
    columns: tuple[Output, ...]


@dataclass
class _Scope:
    """The items of a FROM, and the columns that a name without a prefix, or a star, can mean."""

    items: list[_Item] = field(default_factory=list)
    seen: list[tuple[str, Output]] = field(default_factory=list)
    """Columns with the alias of their item, which is empty for one that USING made of two."""
    has_using: bool = False
    has_hidden: bool = False
    is_query: bool = True
    """Whether it is that of a query, and not none that stands before others."""

    def add(self, item: _Item) -> None:
        """Take one more item of the FROM in, whose columns can be named from now on."""
        self.items.append(item)
        self.seen = self.seen + [(item.alias, one) for one in item.columns]
        self.has_hidden = self.has_hidden or is_hidden(item.alias)

    def found(self, parts: Sequence[str]) -> dict[Hashable, str]:
        """What a name can mean: keys of columns, with their items' aliases."""
        folded = [part.casefold() for part in parts]
        if len(folded) > 1:
            of_item = {
                one.key: item.alias
                for item in self.items
                for one in item.columns
                if item.alias.casefold() == folded[0] and one.name.casefold() == folded[1]
            }
            if of_item:
                return of_item
        return {one.key: alias for alias, one in self.seen if one.name.casefold() == folded[0]}

    def names(self, *, is_prefixed: bool = False) -> list[str]:
        """What a column can be called here, for an error."""
        seen = [(alias if is_prefixed else "", one.name) for alias, one in self.seen if not is_hidden(alias)]
        return [f"{alias}.{name}" if alias else name for alias, name in seen]


_NONE = _Scope(is_query=False)
_Scopes = tuple[_Scope, ...]


class Columns:
    """Looks every column of one query up. ``tables`` are the columns of its tables, by relation."""

    def __init__(self, tables: Mapping[str, Sequence[str]], engine: str) -> None:
        self._tables = tables
        self._is_duckdb = engine == "duckdb"
        self._queries: dict[str, tuple[Output, ...]] = {}
        self._known: dict[int, _Item] = {}
        """Items of a FROM that are looked up already, by node: what a PIVOT stands over is not gone through again."""
        self._steps: set[int] = set()
        """SELECTs whose stars are written out, because an item has a column that they do not give."""
        self._within: list[tuple[exp.CTE, int]] = []
        """Queries of WITH that are being looked up, with the number of scopes around each."""

    def of(self, query: exp.Expr, outer: _Scopes = ()) -> tuple[Output, ...]:
        """The columns that a query gives. Raises `InvalidInput` for a name that means no column, or more than one.

        The query is changed in place: PIVOT, samples and recursions become plain queries, and for DuckDB what would
        mean something else there.
        """
        with_ = query.args.get("with_")
        if with_ is not None:
            with_.set("expressions", [made for one in with_.expressions for made in self._with(one, with_, outer)])
        match query:
            case exp.Select():
                return self._of_select(query, outer)
            case exp.SetOperation():
                return self._of_set(query, outer)
            case exp.Values():
                self._check_all([query], "expressions", (_NONE, *outer), ())
                return _renamed(query.args["alias"], ()) if query.args.get("alias") else ()
        found = self.of(query.this, outer)
        self._check_order(query, found, (_NONE, *outer))
        return found

    def _with(self, query: exp.CTE, with_: exp.With, outer: _Scopes) -> list[exp.CTE]:
        """A query of WITH, as one or two, marked if a column in it is one of the scopes around it."""
        self._within.append((query, len(outer)))
        made = self._made(query, with_, outer)
        self._within.pop()
        for one in made:
            one.meta[CORRELATED] = query.meta_get(CORRELATED)
        return made

    def _made(self, query: exp.CTE, with_: exp.With, outer: _Scopes) -> list[exp.CTE]:
        if not with_.args.get("recursive") or not is_recursive(query):
            self._queries[query.alias] = _renamed(query.args["alias"], self.of(query.this, outer))
            return [query]
        anchor, step, _ = parts_of(query)
        if query.this.args.get("by_name"):
            raise InvalidStatement("the parts of a recursion are joined by place, not BY NAME", query=query.alias)
        given = _renamed(query.args["alias"], self.of(anchor, outer))
        self._queries[query.alias] = given
        self._steps.add(id(step))
        names = [one.name for one in given]
        if len(self.of(step, outer)) != len(names):
            raise InvalidStatement("the step of a recursion has as many columns as its first part", columns=len(names))
        return counted(query, names)

    def _of_set(self, query: exp.SetOperation, outer: _Scopes) -> tuple[Output, ...]:
        first: exp.Expr = query
        others = []
        while isinstance(first, exp.SetOperation):  # a long chain is no nesting
            others.append(first)
            first = first.this
        given = self.of(first, outer)
        found = tuple(Output(one.name, (id(query), place)) for place, one in enumerate(given))
        for one in reversed(others):
            right = self.of(one.expression, outer)
            if one.args.get("by_name"):
                names = spell_union(one, [held.name for held in found], [held.name for held in right])
                found = tuple(Output(name, (id(query), place)) for place, name in enumerate(names))
            self._check_order(one, found, (_NONE, *outer))
        return found

    def _of_select(self, select: exp.Select, outer: _Scopes) -> tuple[Output, ...]:
        scope = self._from(select, outer)
        scopes = (scope, *outer)
        given: list[Output] = []
        for place, item in enumerate(select.expressions):
            if item.is_star:
                given += [one for _, one in self._star(item, scope)]
                continue
            self._check_all([item], "expressions", scopes, given)
            given.append(_output(item, (id(select), place), scope))
        for clause in _CLAUSES:
            held = select.args.get(clause)
            parts = held if isinstance(held, list) else [held] if held is not None else []
            self._check_all(parts, clause, scopes, given)
        distinct = select.args.get("distinct")
        self._check_all([distinct] if distinct is not None else [], "distinct", scopes, ())
        self._check_order(select, given, scopes)
        is_written = (self._is_duckdb and scope.has_using) or scope.has_hidden or id(select) in self._steps
        if is_written and any(item.is_star for item in select.expressions):
            select.set("expressions", list(self._expanded(select.expressions, scope)))
        return tuple(given)

    # FROM

    def _from(self, select: exp.Select, outer: _Scopes) -> _Scope:
        scope = _Scope()
        if select.args.get("from_") is None:
            return scope
        scope.add(self._item(select.args["from_"].this, (scope, *outer)))
        for join in select.args.get("joins") or ():
            self._join(scope, join, outer)
        for view in select.args.get("laterals") or ():
            scope.add(self._item(view, (scope, *outer)))
        return scope

    def _item(self, node: exp.Expr, scopes: _Scopes) -> _Item:
        """An item of a FROM. ``scopes`` begin with that of the items before it, which only LATERAL sees."""
        if id(node) in self._known:
            return self._known[id(node)]
        pivots, sample = node.args.get("pivots") or (), node.args.get("sample")
        node.set("pivots", None)
        node.set("sample", None)
        alias = node.args.get("alias")
        if sample is not None and alias is not None:
            node.set("alias", exp.TableAlias(this=alias.this.copy()))
        item = self._plain_item(node, scopes)
        if sample is not None:
            node, item = self._put_over(node, item, sampled(sample), alias, scopes)
        for pivot in pivots:
            query = pivoted(pivot, item.alias, [one.name for one in item.columns])
            node, item = self._put_over(node, item, query, pivot.args.get("alias"), scopes)
        return item

    def _put_over(
        self, node: exp.Expr, item: _Item, query: exp.Select, alias: exp.Expr | None, scopes: _Scopes
    ) -> tuple[exp.Expr, _Item]:
        """Put a query over an item of a FROM in its place."""
        self._known[id(node)] = item
        over = exp.Subquery()
        node.replace(over)
        query.set("from_", exp.From(this=node))
        over.set("this", query)
        over.set(
            "alias", alias or (exp.TableAlias(this=exp.to_identifier(item.alias, quoted=True)) if item.alias else None)
        )
        return over, self._plain_item(over, scopes)

    def _plain_item(self, node: exp.Expr, scopes: _Scopes) -> _Item:
        alias = node.args.get("alias")
        if isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
            given = self.of(node.this, scopes)
        elif isinstance(node.this, exp.Explode | exp.Inline):
            self._check_all(
                [node.this], "from", (_NONE, *(scopes if isinstance(node, exp.Lateral) else scopes[1:])), ()
            )
            given = ()
        elif isinstance(node, exp.Table) and is_range(node):
            given = ()
        elif isinstance(node, exp.Table):
            names = self._tables.get(node.name)
            given = self._queries[node.name] if names is None else tuple(Output(name, name) for name in names)
        else:
            given = self.of(node.this if isinstance(node, exp.Subquery) else node, scopes[1:])
        if alias is not None:
            given = _renamed(alias, given)
        return _Item(node.alias_or_name, tuple(Output(one.name, (id(node), one.key)) for one in given))

    def _join(self, scope: _Scope, join: exp.Join, outer: _Scopes) -> None:
        item = self._item(join.this, (scope, *outer))
        right = [(item.alias, one) for one in item.columns]
        both = _Scope([*scope.items, item], [*scope.seen, *right])
        named = [one.name for alias, one in scope.seen if not is_hidden(alias)]
        spell_natural(join, named, [one.name for one in item.columns])
        on = join.args.get("on")
        self._check_all([on] if on is not None else [], "on", (both, *outer), ())
        using = [one.name for one in join.args.get("using") or ()]
        for name in using:
            for one in (scope, _Scope([item], right)):
                _check_one(one.found([name]), name, one.names())
        if kind(join) in ("SEMI", "ANTI"):
            return
        scope.items.append(item)
        if using:
            scope.has_using = True
            folded = [name.casefold() for name in using]
            merged = [("", Output(name, (id(join), name.casefold()))) for name in using]
            kept = [one for one in (*scope.seen, *right) if one[1].name.casefold() not in folded]
            scope.seen = [*merged, *kept]
        else:
            scope.seen += right

    # Stars

    def _star(self, item: exp.Expr, scope: _Scope) -> list[tuple[str, Output]]:
        """The columns of a star, with their items' aliases."""
        prefix = item.args.get("table") if isinstance(item, exp.Column) else None
        star = item.this if isinstance(item, exp.Column) else item
        found = [one for one in scope.seen if not is_hidden(one[0])]
        if prefix is not None:
            items = [one for one in scope.items if one.alias.casefold() == prefix.name.casefold()]
            if len(items) != 1:
                raise InvalidStatement("a * needs one item of the FROM", found=f"{prefix.name}.*")
            found = [(items[0].alias, one) for one in items[0].columns]
        for left_out in star.args.get("except_") or ():
            name = left_out.name.casefold()
            meant = {one.key: alias for alias, one in found if one.name.casefold() == name}
            _check_one(meant, left_out.name, [one.name for _, one in found])
            found = [one for one in found if one[1].name.casefold() != name]
        if self._is_duckdb:
            self._check_star(scope)
        return found

    def _check_star(self, scope: _Scope) -> None:
        """DuckDB gives names of its own to columns of a sub-query that has a name twice."""
        for item in scope.items:
            names = [one.name.casefold() for one in item.columns]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise OnlySpark(
                    "a * over a query that gives a name twice; give its columns names of their own, or use "
                    'engine="spark"',
                    query=item.alias,
                    columns=twice,
                )

    def _expanded(self, items: Sequence[exp.Expr], scope: _Scope) -> Iterator[exp.Expr]:
        """The items with stars as Spark orders their columns: those of USING first."""
        for item in items:
            if not item.is_star:
                yield item
                continue
            for alias, one in self._star(item, scope):
                yield exp.column(one.name, table=alias or None, quoted=True)

    # Names

    def _check_all(
        self,
        nodes: Sequence[exp.Expr],
        clause: str,
        scopes: _Scopes,
        given: Sequence[Output],
    ) -> None:
        for node in nodes:
            for one in list(_names_in(node)):
                if isinstance(one, exp.Column):
                    self._check(one, clause, scopes, given)
                else:
                    self.of(one, scopes)

    def _check(self, column: exp.Column, clause: str, scopes: _Scopes, given: Sequence[Output]) -> None:
        parts = [part.name for part in column.parts]
        of_alias = {one.key for one in given if one.name.casefold() == parts[0].casefold()}
        for depth, scope in enumerate(scopes):
            found = scope.found(parts)
            if found:
                _check_one(found, shown(column))
                self._mark_correlated(len(scopes) - depth)
                if not self._is_duckdb and sum(one.is_query for one in scopes[:depth]) > 1:
                    raise InvalidStatement(
                        "Spark takes a column of the query around a sub-query, and none of a query further out; "
                        'write a join, or use engine="duckdb"',
                        column=shown(column),
                    )
                clashes = len(parts) == 1 and depth == 0 and bool(of_alias - found.keys())
                if clashes and clause in ("having", "qualify"):
                    raise InvalidStatement(
                        "a name that is a column and something else after AS; give that another name",
                        column=shown(column),
                    )
                if self._is_duckdb and len(parts) == 1 and (depth or (clause == "where" and clashes)):
                    self._write_prefix(column, next(iter(found.values())))
                return
            if depth == 0 and clause in _ALIASED and of_alias:
                _check_one(of_alias, shown(column))
                return
        known = dict.fromkeys(name for scope in scopes for name in scope.names(is_prefixed=len(parts) > 1))
        raise unknown_column(
            f"no such column; {'choose among those there are' if known else 'name the table that has it, with FROM'}",
            shown(column),
            known,
            clause=_CALLED.get(clause, clause.upper()),
        )

    def _mark_correlated(self, place: int) -> None:
        """Mark the queries of WITH around which a scope stands, the outermost being 1."""
        for query, count in self._within:
            if place <= count:
                query.meta[CORRELATED] = True

    def _write_prefix(self, column: exp.Column, alias: str) -> None:
        if alias:
            column.set("table", exp.to_identifier(alias, quoted=True))

    def _check_order(self, query: exp.Expr, given: Sequence[Output], scopes: _Scopes) -> None:
        """ORDER BY, where what the query gives comes first; DuckDB looks there for names that stand alone only."""
        order = query.args.get("order")
        if order is not None:
            spell_order(order, [one.name for one in given])
        for item in order.expressions if order is not None else ():
            for one in list(_names_in(item)):
                if not isinstance(one, exp.Column):
                    self.of(one, scopes)
                    continue
                name = one.name.casefold()
                of_alias = {out.key for out in given if out.name.casefold() == name}
                if len(one.parts) > 1 or not of_alias:
                    self._check(one, "order", scopes, ())
                    continue
                _check_one(of_alias, shown(one))
                if one.parent is not item and isinstance(query, exp.Select):
                    self._write_alias(one, query, scopes[0], of_alias)

    def _write_alias(self, column: exp.Column, select: exp.Select, scope: _Scope, keys: set[Hashable]) -> None:
        """What a name after AS stands for, written out in an expression of ORDER BY."""
        if keys & scope.found([column.name]).keys():
            return
        if column.find_ancestor(exp.AggFunc, exp.Window, exp.Order) is not column.find_ancestor(exp.Order):
            raise InvalidStatement(
                "a name after AS cannot stand inside a function of several rows here; write what it stands for",
                column=shown(column),
            )
        meant = [one for one in select.expressions if one.alias_or_name.casefold() == column.name.casefold()]
        if self._is_duckdb and meant:
            column.replace(exp.Paren(this=meant[0].unalias().copy()))


def _names_in(node: exp.Expr) -> Iterator[exp.Expr]:
    """Columns of an expression, and queries in it, but nothing inside of those."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, exp.Column):
            if not one.is_star:
                yield one
        elif isinstance(one, exp.Query):
            yield one
        else:
            waiting += list(one.iter_expressions(reverse=True))


def _check_one(found: Mapping[Hashable, str] | set[Hashable], name: str, known: Sequence[str] = ()) -> None:
    if not found:
        raise unknown_column("no such column", name, known)
    if len(found) > 1:
        raise UnknownColumn(
            "ambiguous: more than one column has this name; say which one is meant",
            column=name,
        )


def _output(item: exp.Expr, key: Hashable, scope: _Scope) -> Output:
    """What an item of a SELECT list gives; a column as it is stays the column that it was."""
    bare = item.unalias()
    if isinstance(item, exp.Column) and isinstance(bare, exp.Column):
        found = scope.found([part.name for part in bare.parts])
        if len(found) == 1:
            key = next(iter(found))
    return Output(item.alias_or_name if isinstance(item, _NAMED) else "", key)


def _renamed(alias: exp.Expr, given: Sequence[Output]) -> tuple[Output, ...]:
    """A query's columns under the names that an alias lists."""
    names = [one.name for one in alias.args.get("columns") or ()]
    if not names:
        return tuple(given)
    if given and len(given) != len(names):
        raise InvalidStatement("as many names as columns are needed", names=len(names), columns=len(given))
    keys = [one.key for one in given] or list(range(len(names)))
    return tuple(Output(name, (place, key)) for place, (name, key) in enumerate(zip(names, keys, strict=True)))
