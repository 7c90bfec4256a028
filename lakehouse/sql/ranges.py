"""``range(n)`` in a FROM: numbers in a row, as many as the statement says."""

from __future__ import annotations

from sqlglot import exp

from lakehouse.errors import InvalidStatement
from lakehouse.predicate.written import shown
from lakehouse.sql.literals import whole_number

MOST_ROWS = 1_000_000


def is_range(node: exp.Expr) -> bool:
    """Whether an item of a FROM is a call of ``range``."""
    return (
        isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous) and str(node.this.this).lower() == "range"
    )


def bounds_of(node: exp.Table) -> tuple[int, int, int]:
    """Start, end and step of a ``range``. Raises `InvalidInput` unless they are numbers in the text, and few rows.

    >>> bounds_of(exp.Table(this=exp.Anonymous(this="range", expressions=[exp.Literal.number(3)])))
    (0, 3, 1)
    """
    given = [whole_number(one) for one in node.this.expressions]
    if not 1 <= len(given) <= 3 or any(one is None for one in given):
        raise InvalidStatement("write range(end), range(start, end) or range(start, end, step) with whole numbers")
    numbers = [one for one in given if one is not None]
    start, end, step = (0, numbers[0], 1) if len(numbers) == 1 else (*numbers, 1)[:3]
    if step == 0:
        raise InvalidStatement("a range needs a step that is not 0", found=shown(node.this))
    if len(range(start, end, step)) > MOST_ROWS:
        raise InvalidStatement("a range has too many rows", most=MOST_ROWS, found=len(range(start, end, step)))
    if any(node.args.get(part) for part in ("version", "sample", "db", "catalog")):
        raise InvalidStatement("a range has no version and no sample", found=shown(node.this))
    return start, end, step


def name_range(node: exp.Table) -> None:
    """Write a ``range`` out, in place: all of its numbers, and the name of its column, which is ``id``."""
    start, end, step = bounds_of(node)
    numbers = [exp.Literal.number(one) for one in (start, end, step)]
    node.set("this", exp.Anonymous(this="range", expressions=numbers))
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier("range"))
    if not alias.args.get("columns"):
        alias.set("columns", [exp.to_identifier("id")])
    if len(alias.args["columns"]) != 1:
        raise InvalidStatement("a range has one column", found=len(alias.args["columns"]))
    node.set("alias", alias)
