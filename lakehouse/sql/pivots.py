"""PIVOT and UNPIVOT as plain queries, with Spark's rows, columns and names: both engines get the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sqlglot import exp

from lakehouse.errors import InvalidStatement
from lakehouse.predicate.written import shown
from lakehouse.sql.tree import named

MOST_COLUMNS = 1_000
"""How many columns a PIVOT may make, and an UNPIVOT may take."""
_NULL_OF_NONE = (exp.Sum, exp.Min, exp.Max, exp.Avg)
"""Sums that are null where there is no row, as every column of a PIVOT is there."""
_LISTS = (exp.ArrayAgg, exp.ArrayUniqueAgg)
"""Sums that no row makes an empty list of, in a PIVOT too."""
_PLAIN = re.compile(r"(?:0|[1-9][0-9]*)\.[0-9]+")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_UNPIVOTED = "lake_unpivoted"
_NAME, _PLACE = "lake_name", "lake_place"


def check_pivot(node: exp.Pivot) -> None:
    """Raise `InvalidInput` unless a PIVOT or UNPIVOT stands at an item of a FROM, in Spark's form."""
    if not isinstance(node.parent, exp.Table | exp.Subquery | exp.Values):
        raise InvalidStatement("PIVOT and UNPIVOT follow a table or a query in parentheses; put a join into one")
    if len(node.args.get("fields") or ()) != 1 or not node.expressions:
        raise InvalidStatement("write PIVOT (sum(x) FOR column IN (...)) or UNPIVOT (value FOR name IN (...))")
    field = node.args["fields"][0]
    if not isinstance(field, exp.In) or not field.expressions:
        raise InvalidStatement("PIVOT and UNPIVOT list values, or columns, in parentheses after IN")
    alias = node.args.get("alias")
    if alias is not None and alias.args.get("this") is None:
        raise InvalidStatement("the columns of a PIVOT have names; give the whole one first")
    for entry in field.expressions:
        if isinstance(entry, exp.PivotAlias) and not isinstance(entry.args.get("alias"), exp.Identifier):
            raise InvalidStatement("a name stands after AS", found=shown(entry))
    if node.args.get("unpivot"):
        _check_unpivot(node, field)
    else:
        _check_summed(node, field)


def _check_summed(node: exp.Pivot, field: exp.In) -> None:
    if len(field.expressions) * len(node.expressions) > MOST_COLUMNS:
        raise InvalidStatement("a PIVOT makes too many columns", most=MOST_COLUMNS)
    width = len(_members(field.this))
    if not all(isinstance(one, exp.Column) and not one.is_star for one in _members(field.this)):
        raise InvalidStatement("a PIVOT is FOR a column, or columns in parentheses", found=shown(field.this))
    for entry in field.expressions:
        values = _members(_bare(entry))
        if len(values) != width or not all(_is_value(one) for one in values):
            raise InvalidStatement("a PIVOT lists values that stand in the statement, as many as columns")
        if not isinstance(entry, exp.PivotAlias) and _name_of_value(entry) is None:
            raise InvalidStatement("name the column that this value makes: IN (... AS name)", found=shown(entry))
    for one in node.expressions:
        whole = one.unalias()
        if not any(True for _ in _sums(whole)) or whole.find(exp.Window, exp.Query, exp.Grouping) is not None:
            raise InvalidStatement("a PIVOT calculates a sum, as in PIVOT (sum(x) FOR ...)", found=shown(whole))
        if len(node.expressions) > 1 and not isinstance(one, exp.Alias):
            raise InvalidStatement("several sums of a PIVOT need names: PIVOT (sum(x) AS total, count(*) AS n FOR ...)")


def _check_unpivot(node: exp.Pivot, field: exp.In) -> None:
    if len(node.expressions) != 1:
        raise InvalidStatement("several values of an UNPIVOT stand in parentheses: UNPIVOT ((a, b) FOR name IN (...))")
    width = len(_members(node.expressions[0]))
    names = [field.this, *_members(node.expressions[0])]
    if not all(isinstance(one, exp.Identifier) for one in names):
        raise InvalidStatement("an UNPIVOT names its new columns: UNPIVOT (value FOR name IN (...))")
    if len(field.expressions) * width > MOST_COLUMNS:
        raise InvalidStatement("an UNPIVOT takes too many columns", most=MOST_COLUMNS)
    for entry in field.expressions:
        columns = _members(_bare(entry))
        if len(columns) != width or not all(isinstance(one, exp.Column) and not one.is_star for one in columns):
            raise InvalidStatement("an UNPIVOT lists columns, as many in parentheses as it gives values")


def _is_value(node: exp.Expr) -> bool:
    if isinstance(node, exp.Neg | exp.Cast):
        return isinstance(node.this, exp.Literal)
    return isinstance(node, exp.Literal | exp.RawString | exp.Boolean | exp.Null)


def _name_of_value(node: exp.Expr) -> str | None:
    """What Spark calls the column of a value that has no name: its text."""
    match node:
        case exp.Null():
            return "null"
        case exp.Boolean():
            return "true" if node.this else "false"
        case exp.RawString():
            return str(node.this)
        case exp.Neg() if isinstance(node.this, exp.Literal) and node.this.name.isdecimal():
            return f"-{int(node.this.name)}"
        case exp.Literal() if node.is_string:
            return str(node.name)
        case exp.Literal() if node.name.isdecimal():
            return str(int(node.name))
        case exp.Literal() if _PLAIN.fullmatch(node.name):
            return str(node.name)
        case exp.Cast() if node.to.this is exp.DType.DATE and _DAY.fullmatch(node.this.name):
            return str(node.this.name)
    return None


def pivoted(pivot: exp.Pivot, alias: str, names: Sequence[str]) -> exp.Select:
    """The query of a PIVOT or UNPIVOT over an item of a FROM that is called ``alias`` and has these columns.

    The caller puts the item in: its FROM is empty.
    """
    folded = [name.casefold() for name in names]
    twice = sorted({name for name in folded if folded.count(name) > 1})
    if twice:
        raise InvalidStatement("a PIVOT of columns that have one name; give them names of their own", columns=twice)
    if pivot.args.get("unpivot"):
        return _rows(pivot, alias, names)
    return _sums_by_value(pivot, alias, names)


def _sums_by_value(pivot: exp.Pivot, alias: str, names: Sequence[str]) -> exp.Select:
    field = pivot.args["fields"][0]
    used = {_column_of(one, alias) for part in (*pivot.expressions, field.this) for one in part.find_all(exp.Column)}
    kept = [exp.column(name, table=alias or None, quoted=True) for name in names if name.casefold() not in used]
    has_lists = any(one.find(*_LISTS) is not None for one in pivot.expressions)
    items: list[exp.Expr] = [one.copy() for one in kept]
    for entry in field.expressions:
        pairs = zip(_members(field.this), _members(_bare(entry)), strict=True)
        test = exp.and_(*(exp.NullSafeEQ(this=one.copy(), expression=value.copy()) for one, value in pairs))
        for whole in pivot.expressions:
            name = entry.alias if isinstance(entry, exp.PivotAlias) else str(_name_of_value(entry))
            name += f"_{whole.alias}" if len(pivot.expressions) > 1 else ""
            value = _summed(whole.unalias(), test, may_be_empty=has_lists)
            items.append(named(value, name))
    return exp.Select(expressions=items, group=exp.Group(expressions=kept) if kept else None)


def _summed(whole: exp.Expr, test: exp.Expr, *, may_be_empty: bool) -> exp.Expr:
    """A sum over the rows of one value; null where there is none, whatever the sum itself says of no rows."""
    held = exp.Paren(this=whole.copy())
    for one in list(_sums(held)):
        if isinstance(one.parent, exp.Filter) and one.arg_key == "this":
            own = one.parent.expression
            own.set("this", exp.and_(own.this.copy(), test.copy()))
            continue
        here, key, index = one.parent, one.arg_key, one.index
        filtered = exp.Filter(this=one.copy(), expression=exp.Where(this=test.copy()))
        if here is not None and key is not None:
            here.set(key, filtered, index)
    if may_be_empty or isinstance(whole, _NULL_OF_NONE):
        return held.this  # type: ignore[no-any-return]
    count = exp.Filter(this=exp.Count(this=exp.Star(), big_int=True), expression=exp.Where(this=test.copy()))
    some = exp.GT(this=count, expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=some, true=held.this)])


def _sums(node: exp.Expr) -> Iterator[exp.Expr]:
    """The functions of several rows in an expression, each with its WITHIN GROUP, and none inside of another."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, exp.AggFunc | exp.WithinGroup):
            yield one
        else:
            waiting += list(one.iter_expressions(reverse=True))


def _rows(pivot: exp.Pivot, alias: str, names: Sequence[str]) -> exp.Select:
    """The query of an UNPIVOT: each row once for each entry, by its place."""
    field = pivot.args["fields"][0]
    entries = [_members(_bare(entry)) for entry in field.expressions]
    used = {_column_of(column, alias) for columns in entries for column in columns}
    listed = exp.Values(
        expressions=[
            exp.Tuple(expressions=[exp.Literal.string(_name_of_entry(entry)), exp.Literal.number(place)])
            for place, entry in enumerate(field.expressions)
        ],
        alias=exp.TableAlias(
            this=exp.to_identifier(_UNPIVOTED),
            columns=[exp.to_identifier(_NAME, quoted=True), exp.to_identifier(_PLACE, quoted=True)],
        ),
    )
    items: list[exp.Expr] = [
        exp.column(name, table=alias or None, quoted=True) for name in names if name.casefold() not in used
    ]
    items.append(named(exp.column(_NAME, table=_UNPIVOTED, quoted=True), field.this.name))
    values = [_chosen([columns[turn] for columns in entries]) for turn in range(len(entries[0]))]
    items += [
        named(value, one.name) for value, one in zip(values, _members(pivot.expressions[0]), strict=True)
    ]  # fmt: skip
    query = exp.Select(expressions=items, joins=[exp.Join(this=listed, kind="CROSS")])
    if not pivot.args.get("include_nulls"):
        some = [exp.Not(this=exp.Is(this=one.copy(), expression=exp.Null())) for one in values]
        query.set("where", exp.Where(this=exp.or_(*some)))
    return query


def _name_of_entry(entry: exp.Expr) -> str:
    if isinstance(entry, exp.PivotAlias):
        return str(entry.alias)
    return "_".join(one.name for one in _members(entry))


def _chosen(columns: Sequence[exp.Expr]) -> exp.Case:
    place = exp.column(_PLACE, table=_UNPIVOTED, quoted=True)
    ifs = [exp.If(this=exp.Literal.number(turn), true=one.copy()) for turn, one in enumerate(columns)]
    return exp.Case(this=place, ifs=ifs)


def _column_of(column: exp.Expr, alias: str) -> str:
    """The item's column that a name means, folded: the last part, or the first where a field of it follows."""
    parts = [part.name.casefold() for part in column.parts] if isinstance(column, exp.Column) else [""]
    return parts[1] if len(parts) > 1 and parts[0] == alias.casefold() else parts[0]


def _bare(entry: exp.Expr) -> exp.Expr:
    return entry.this if isinstance(entry, exp.PivotAlias) else entry


def _members(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Paren):
        return [node.this]
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]
