"""The WHEN clauses of a MERGE, and the names in them, as `Table.merge` takes them: ``target.x`` and ``source.y``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from lakehouse.errors import InvalidInput
from lakehouse.predicate.written import shown
from lakehouse.sql.allowed import check_parts
from lakehouse.sql.condition import renamed, written_again

_TARGET, _SOURCE = "target", "source"


@dataclass(frozen=True, slots=True)
class Sides:
    """The columns that a statement can name: those of the table that it changes, and of the rows that it merges.

    Names are folded; ``target`` and ``source`` give the real ones.
    """

    target: Mapping[str, str]
    target_aliases: frozenset[str]
    source: Mapping[str, str]
    source_aliases: frozenset[str]

    @classmethod
    def of(
        cls,
        target: Sequence[str],
        target_aliases: Sequence[str],
        source: Sequence[str] = (),
        source_aliases: Sequence[str] = (),
    ) -> Sides:
        """Sides by the columns' names and by what the statement calls each side."""
        if {one.casefold() for one in target_aliases} & {one.casefold() for one in source_aliases}:
            raise InvalidInput("give the source an alias that is not the target's: USING rows AS source")
        return cls(
            {name.casefold(): name for name in target},
            frozenset(one.casefold() for one in target_aliases),
            {name.casefold(): name for name in source},
            frozenset(one.casefold() for one in source_aliases),
        )

    def prefixed(self, column: exp.Column) -> tuple[str, str]:
        """A column's side and real name. Raises `InvalidInput` for one that no side, or each, has."""
        name = column.name.casefold()
        prefix = column.text("table").casefold()
        sides = [
            (side, columns[name])
            for side, columns, aliases in (
                (_TARGET, self.target, self.target_aliases),
                (_SOURCE, self.source, self.source_aliases),
            )
            if name in columns and (not prefix or prefix in aliases)
        ]
        if len(sides) != 1:
            raise InvalidInput(
                "unknown column" if not sides else "both sides have this column; write target.x or source.x",
                column=shown(column),
                target=",".join(self.target.values()),
                source=",".join(self.source.values()),
            )
        return sides[0]

    def bare(self, column: exp.Column) -> tuple[None, str]:
        """A target column's name without its prefix."""
        return None, self.prefixed(column)[1]

    def assignments(self, items: Sequence[exp.Expr]) -> dict[str, str]:
        """``SET a = x, b = y`` of an UPDATE, by column."""
        return {name: written_again(renamed(value, self.bare)) for name, value in self.pairs(items)}

    def pairs(self, items: Sequence[exp.Expr]) -> list[tuple[str, exp.Expr]]:
        """The columns that a SET names, each once, with their expressions."""
        pairs = []
        for item in items:
            if not isinstance(item, exp.EQ) or not isinstance(item.this, exp.Column):
                raise InvalidInput("SET takes column = expression", found=shown(item))
            if item.expression.find(exp.Query) is not None:
                raise InvalidInput("a sub-query cannot stand here; use MERGE INTO ... USING (sub-query)")
            pairs.append((self.target_column(item.this), item.expression))
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            raise InvalidInput("SET names a column twice", columns=",".join(names))
        return pairs

    def target_column(self, column: exp.Expr) -> str:
        """The target's column that is to be set."""
        prefix = column.text("table").casefold()
        found = self.target.get(column.name.casefold())
        if found is None or (prefix and prefix not in self.target_aliases):
            raise InvalidInput("no such column to set", column=shown(column), columns=",".join(self.target.values()))
        return found

    def text(self, node: exp.Expr) -> str:
        """An expression over both sides."""
        return written_again(renamed(node, self.prefixed))


def clauses(whens: Sequence[exp.Expr], sides: Sides) -> dict[str, Any]:
    """The WHEN clauses as arguments of `Table.merge`. The first one that a row meets counts, as in Spark.

    Raises `InvalidInput` for combinations that cannot be said so.
    """
    arguments: dict[str, Any] = {
        "when_matched_update": None,
        "when_matched_delete": None,
        "when_not_matched_insert": False,
    }
    updated: exp.Expr | None = None
    for when in whens:
        check_parts(when, ("matched", "source", "condition", "then"))
        condition = when.args.get("condition")
        if when.args.get("source"):
            raise InvalidInput("WHEN NOT MATCHED BY SOURCE is not taken; delete or update such rows by a statement")
        action = when.args["then"]
        kind = _kind_of(action)
        if arguments[kind] not in (None, False):
            raise InvalidInput("one WHEN clause of a kind; put the cases into CASE WHEN", clause=kind)
        if kind == "when_not_matched_insert":
            if condition is not None:
                raise InvalidInput("WHEN NOT MATCHED takes no condition; filter the rows of USING")
            arguments[kind] = _inserted(action, sides)
        elif kind == "when_matched_delete":
            if arguments["when_matched_update"] is not None and updated is None:
                raise InvalidInput("a clause after WHEN MATCHED without a condition is never reached")
            arguments[kind] = _deleted(condition, updated, sides)
        else:
            if arguments["when_matched_delete"] is True:
                raise InvalidInput("a clause after WHEN MATCHED without a condition is never reached")
            updated = condition
            arguments[kind] = _updated(action, condition, sides)
    return arguments


def _kind_of(action: exp.Expr) -> str:
    match action:
        case exp.Insert():
            check_parts(action, ("this", "expression"))
            return "when_not_matched_insert"
        case exp.Update():
            check_parts(action, ("expressions",))
            return "when_matched_update"
        case exp.Var() if action.name.upper() == "DELETE":
            return "when_matched_delete"
    raise InvalidInput("after THEN stands UPDATE SET, DELETE or INSERT", found=shown(action))


def _deleted(condition: exp.Expr | None, updated: exp.Expr | None, sides: Sides) -> str | bool:
    """Which matched rows are deleted: not those that a clause before this one updates."""
    if updated is None:
        return True if condition is None else sides.text(condition)
    others = f"NOT coalesce(({sides.text(updated)}), FALSE)"
    return others if condition is None else f"({sides.text(condition)}) AND {others}"


def _updated(action: exp.Expr, condition: exp.Expr | None, sides: Sides) -> dict[str, str] | bool:
    if _is_star(action.expressions):
        if condition is None:
            return True
        shared = [name for folded, name in sides.target.items() if folded in sides.source]
        changes = {name: f"`{_SOURCE}`.`{sides.source[name.casefold()]}`" for name in shared}
    else:
        changes = {name: sides.text(value) for name, value in sides.pairs(action.expressions)}
    if condition is None:
        return changes
    test = sides.text(condition)
    return {name: f"CASE WHEN {test} THEN {value} ELSE `{_TARGET}`.`{name}` END" for name, value in changes.items()}


def _is_star(items: Sequence[exp.Expr]) -> bool:
    """Whether a clause takes all of the source's columns."""
    if not any(isinstance(item, exp.Star) for item in items):
        return False
    for item in items:
        check_parts(item, ())
    return True


def _inserted(action: exp.Expr, sides: Sides) -> dict[str, str] | bool:
    if _is_star([action.this]):
        return True
    columns = action.this.expressions if isinstance(action.this, exp.Tuple) else []
    values = action.expression.expressions if isinstance(action.expression, exp.Tuple) else []
    if not columns or len(columns) != len(values):
        raise InvalidInput("write INSERT (a, b) VALUES (x, y), as many values as columns")
    found: dict[str, str] = {}
    for column, value in zip(columns, values, strict=True):
        found[sides.target_column(column)] = sides.text(value)
    return found
