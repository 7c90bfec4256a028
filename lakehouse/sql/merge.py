"""The WHEN clauses of a MERGE, and the names in them, as `Table.merge` takes them: ``target.x`` and ``source.y``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from sqlglot import exp

from lakehouse.arguments import unknown_column
from lakehouse.errors import InvalidStatement, UnknownColumn
from lakehouse.operations.clauses import When, Whens
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
    has_target_row: bool = True

    @classmethod
    def of(
        cls,
        target: Sequence[str],
        target_aliases: Sequence[str],
        source: Sequence[str] = (),
        source_aliases: Sequence[str] = (),
    ) -> Sides:
        """Sides by the columns' names and by what the statement calls each side."""
        folded = [name.casefold() for name in source]
        twice = sorted({name for name in folded if folded.count(name) > 1})
        if twice:
            raise InvalidStatement("the source has a column twice; give its columns names of their own", columns=twice)
        if {one.casefold() for one in target_aliases} & {one.casefold() for one in source_aliases}:
            raise InvalidStatement("give the source an alias that is not the target's: USING rows AS source")
        return cls(
            {name.casefold(): name for name in target},
            frozenset(one.casefold() for one in target_aliases),
            {name.casefold(): name for name in source},
            frozenset(one.casefold() for one in source_aliases),
        )

    def alone(self) -> Sides:
        """The same sides where there is no row of the target: its columns can be set, and not be read."""
        return replace(self, has_target_row=False)

    def of_target(self) -> Sides:
        """The same sides where there is no row of the source."""
        return replace(self, source={}, source_aliases=frozenset())

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
            if name in columns and (not prefix or prefix in aliases) and (side == _SOURCE or self.has_target_row)
        ]
        if not sides:
            sides_named = [*(self.target.values() if self.has_target_row else ()), *self.source.values()]
            raise unknown_column("no such column on either side", shown(column), dict.fromkeys(sides_named))
        if len(sides) > 1:
            raise UnknownColumn(
                "both sides have this column; write target.x or source.x",
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
                raise InvalidStatement("SET takes column = expression", found=shown(item))
            pairs.append((self.target_column(item.this), item.expression))
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            raise InvalidStatement("SET names a column twice", columns=",".join(names))
        return pairs

    def target_column(self, column: exp.Expr) -> str:
        """The target's column that is to be set."""
        prefix = column.text("table").casefold()
        found = self.target.get(column.name.casefold())
        if found is None or (prefix and prefix not in self.target_aliases):
            raise unknown_column("no such column to set", shown(column), self.target.values())
        return found

    def text(self, node: exp.Expr) -> str:
        """An expression over both sides."""
        return written_again(renamed(node, self.prefixed))


@dataclass(frozen=True, slots=True)
class Written:
    """One WHEN clause as it is written: ``values`` by column, True for all of the source's, None where rows go."""

    kind: Literal["matched", "not matched", "left"]
    """``left``: rows of the table that no row of the source matches."""
    sides: Sides
    """What the clause can name."""
    condition: exp.Expr | None
    values: Mapping[str, exp.Expr] | Literal[True] | None


def written_clauses(whens: Sequence[exp.Expr], sides: Sides) -> tuple[Written, ...]:
    """The WHEN clauses in order. Raises `InvalidInput` for combinations that cannot be said so."""
    found: list[Written] = []
    for when in whens:
        check_parts(when, ("matched", "source", "condition", "then"))
        kind, seen = _kind(when, sides)
        before = [one for one in found if one.kind == kind]
        if before and before[-1].condition is None:
            raise InvalidStatement("a clause after one of its kind without a condition is never reached")
        values = _values(when.args["then"], seen, inserts=kind == "not matched")
        if values is True and kind == "left":
            raise InvalidStatement("there is no row of the source here; write UPDATE SET column = expression")
        found.append(Written(kind, seen, when.args.get("condition"), values))
    return tuple(found)


def _kind(when: exp.Expr, sides: Sides) -> tuple[Literal["matched", "not matched", "left"], Sides]:
    """What rows a clause is about, and what it can name of them."""
    if when.args.get("matched"):
        if when.args.get("source"):
            raise InvalidStatement("write WHEN MATCHED, or WHEN NOT MATCHED BY SOURCE")
        return "matched", sides
    return ("left", sides.of_target()) if when.args.get("source") else ("not matched", sides.alone())


def clauses(written: Sequence[Written]) -> Whens:
    """The WHEN clauses as `Table.merge_when` takes them. The first one that a row meets counts, as in Spark.

    Raises `InvalidInput` for what filters cannot say.
    """
    kinds: dict[str, list[When]] = {"matched": [], "not matched": [], "left": []}
    for one in written:
        values = one.values
        if isinstance(values, Mapping):
            said: Any = {name: one.sides.text(value) for name, value in values.items()}
        else:
            said = values
        kinds[one.kind].append(When(None if one.condition is None else one.sides.text(one.condition), said))
    return Whens(*(tuple(kinds[kind]) for kind in ("matched", "not matched", "left")))


def _values(action: exp.Expr, sides: Sides, *, inserts: bool) -> Mapping[str, exp.Expr] | Literal[True] | None:
    """What an action gives columns; nothing where it deletes."""
    match action:
        case exp.Insert() if inserts:
            check_parts(action, ("this", "expression"))
            return True if _is_star([action.this]) else _inserted(action, sides)
        case exp.Update() if not inserts:
            check_parts(action, ("expressions",))
            if _is_star(action.expressions):
                return True
            return dict(sides.pairs(action.expressions))
        case exp.Var() if not inserts and action.name.upper() == "DELETE":
            return None
    raise InvalidStatement(
        "after WHEN MATCHED, and after WHEN NOT MATCHED BY SOURCE, stands UPDATE SET or DELETE, "
        "after WHEN NOT MATCHED stands INSERT",
        found=shown(action),
    )


def _is_star(items: Sequence[exp.Expr]) -> bool:
    """Whether a clause takes all of the source's columns."""
    if not any(isinstance(item, exp.Star) for item in items):
        return False
    for item in items:
        check_parts(item, ())
    return True


def _inserted(action: exp.Expr, sides: Sides) -> dict[str, exp.Expr]:
    columns = action.this.expressions if isinstance(action.this, exp.Tuple) else []
    values = action.expression.expressions if isinstance(action.expression, exp.Tuple) else []
    if not columns or len(columns) != len(values):
        raise InvalidStatement("write INSERT (a, b) VALUES (x, y), as many values as columns")
    found: dict[str, exp.Expr] = {}
    for column, value in zip(columns, values, strict=True):
        if not isinstance(column, exp.Column):
            raise InvalidStatement("write the columns' names only: INSERT (a, b) VALUES (x, y)", found=shown(column))
        name = sides.target_column(column)
        if name in found:
            raise InvalidStatement("INSERT names a column twice", column=name)
        found[name] = value
    return found
