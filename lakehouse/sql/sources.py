"""The items of a query's FROM: what each is called, and which columns it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from lakehouse.sql.tree import found_in, nodes_of


@dataclass(frozen=True, slots=True)
class Source:
    """One item of a FROM: its alias and columns, folded; ``columns`` is None where they are not known.

    ``kept`` says that no join of this FROM fills it with nulls, ``seen`` that its columns can be named after its join.
    """

    node: exp.Expr
    alias: str
    columns: frozenset[str] | None
    join: exp.Join | None
    kept: bool = True
    seen: bool = True


class Scope:
    """What the whole statement says of names: columns of tables by node, queries of WITH by name, and who uses them.

    It remembers what it found of each SELECT.
    """

    def __init__(
        self,
        columns: Mapping[int, frozenset[str]],
        queries: Mapping[str, exp.CTE],
        uses: Mapping[str, list[exp.Table]],
    ) -> None:
        self.columns = columns
        self.queries = queries
        self.uses = uses
        self._sources: dict[int, list[Source]] = {}
        self._outputs: dict[int, dict[str, exp.Column | None] | None] = {}
        self._words: dict[int, frozenset[str]] = {}
        self._conditions: dict[int, tuple[exp.Expr, list[exp.Column] | None]] = {}

    @classmethod
    def of(cls, tree: exp.Expr, columns: Mapping[int, frozenset[str]]) -> Scope:
        """The scope of a resolved statement, in which every query of WITH has a name that is its own."""
        uses: dict[str, list[exp.Table]] = {}
        queries: list[exp.CTE] = []
        for node in nodes_of(tree):
            if isinstance(node, exp.Table):
                uses.setdefault(node.name, []).append(node)
            elif isinstance(node, exp.CTE):
                queries.append(node)
        scope = cls(columns, {one.alias: one for one in queries}, uses)
        for one in queries:  # in order, so that none has to look through a long chain of others
            if isinstance(one.this, exp.Select):
                scope.outputs(one.this)
        return scope

    def sources(self, select: exp.Select) -> list[Source]:
        """The items of a SELECT's FROM, in order."""
        found = self._sources.get(id(select))
        if found is None:
            found = self._sources[id(select)] = self._listed(select)
        return found

    def words(self, select: exp.Select) -> frozenset[str]:
        """Every name that stands anywhere in a SELECT, folded."""
        found = self._words.get(id(select))
        if found is None:
            found = self._words[id(select)] = frozenset(one.name.casefold() for one in found_in(select, exp.Identifier))
        return found

    def columns_in(self, condition: exp.Expr) -> list[exp.Column] | None:
        """The columns of a condition; None if it holds a query."""
        known = self._conditions.get(id(condition))
        if known is None:
            nodes = nodes_of(condition)
            columns = [one for one in nodes if isinstance(one, exp.Column)]
            found = None if any(isinstance(one, exp.Query) for one in nodes) else columns
            known = self._conditions[id(condition)] = condition, found  # with the node, or another gets its id
        return known[1]

    def _listed(self, select: exp.Select) -> list[Source]:
        joins = list(select.args.get("joins") or ())
        views = ((view, None) for view in select.args.get("laterals") or ())
        items = [(select.args["from_"].this, None), *((join.this, join) for join in joins), *views]
        last = max((place for place, join in enumerate(joins) if side(join) in ("RIGHT", "FULL")), default=-1)
        return [
            Source(
                node,
                node.alias_or_name.casefold(),
                self._columns_of(node),
                join,
                (join is None or side(join) not in ("LEFT", "FULL")) and place > last,
                join is None or kind(join) not in ("SEMI", "ANTI"),
            )
            for place, (node, join) in enumerate(items)
        ]

    def around(self, select: exp.Select) -> Iterator[tuple[exp.Select, exp.Expr]]:
        """The SELECT whose FROM alone uses the rows of this one, and its item there; nothing if there is no such."""
        place: exp.Expr | None = select.parent
        if isinstance(place, exp.CTE):
            users = self.uses.get(place.alias, [])
            if place.args["alias"].args.get("columns") or len(users) != 1:
                return
            place = users[0]
        elif not isinstance(place, exp.Subquery) or any(place.args.get(key) for key in ("limit", "offset", "with_")):
            return
        alias = place.args.get("alias")
        if place.args.get("pivots") or place.args.get("sample"):
            return
        held = place.parent.parent if isinstance(place.parent, exp.From | exp.Join) else None
        if isinstance(held, exp.Select) and not (alias is not None and alias.args.get("columns")):
            yield held, place

    def outputs(self, select: exp.Select) -> dict[str, exp.Column | None] | None:
        """The columns that a SELECT gives, folded, with the column of its FROM that each is, if it is one as it is."""
        if id(select) not in self._outputs:
            self._outputs[id(select)] = self._given(select)
        return self._outputs[id(select)]

    def _given(self, select: exp.Select) -> dict[str, exp.Column | None] | None:
        found: dict[str, exp.Column | None] = {}
        for item in select.expressions:
            if item.is_star:
                names = self._star(select, item)
                if names is None:
                    return None
                found.update({name: exp.column(name, quoted=True) for name in names})
            else:
                bare = item.unalias()
                found[item.alias_or_name.casefold()] = bare if isinstance(bare, exp.Column) else None
        return found

    def _star(self, select: exp.Select, item: exp.Expr) -> frozenset[str] | None:
        """What a bare ``*`` gives, where one item of the FROM is all there is."""
        sources = self.sources(select) if select.args.get("from_") else []
        if not isinstance(item, exp.Star) or item.args.get("except_") or len(sources) != 1:
            return None
        return sources[0].columns

    def _columns_of(self, node: exp.Expr) -> frozenset[str] | None:
        if node.args.get("pivots"):
            return None
        alias = node.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            return frozenset(column.name.casefold() for column in alias.args["columns"])
        if id(node) in self.columns:
            return self.columns[id(node)]
        held_query = node.this if isinstance(node, exp.Lateral) else node
        query: exp.Expr | None = held_query.this if isinstance(held_query, exp.Subquery) else None
        if isinstance(node, exp.Table) and node.name in self.queries:
            held = self.queries[node.name]
            query = None if held.args["alias"].args.get("columns") else held.this
        outputs = self.outputs(query) if isinstance(query, exp.Select) else None
        return None if outputs is None else frozenset(outputs)


def side(join: exp.Join) -> str:
    """LEFT, RIGHT, FULL or nothing."""
    return str(join.args.get("side") or "").upper()


def kind(join: exp.Join) -> str:
    """INNER, CROSS, SEMI, ANTI, OUTER or nothing."""
    return str(join.args.get("kind") or "").upper()
