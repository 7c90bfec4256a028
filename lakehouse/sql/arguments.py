"""Arguments that a function takes in one form only: literals that bound what it makes, and lists of a fixed length."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from lakehouse.errors import InvalidStatement
from lakehouse.predicate.written import shown
from lakehouse.sql.functions import NAMED
from lakehouse.sql.lists import MOST_IN_SEQUENCE, WITH_LAMBDA, check_callee, check_lambda, series_of
from lakehouse.sql.literals import whole_number
from lakehouse.sql.patterns import Pattern, read_pattern, read_replacement

_KEY = re.compile("[A-Za-z_][A-Za-z0-9_]{0,99}")
_MOST_PADDED = 10_000
_MOST_REPEATED = 1_000
_REPEATED = "array_repeat"


def check_count(node: exp.Anonymous) -> None:
    """Raise `InvalidStatement` for a call of a function in `NAMED` with more or fewer arguments than it takes."""
    name, found = str(node.this).lower(), len(node.expressions)
    least, most = NAMED[name]
    if not least <= found <= most:
        raise InvalidStatement("wrong number of arguments", function=name, expected=most, found=found)


def check_arguments(node: exp.Expr) -> None:
    """Raise `InvalidInput` unless the arguments of a call are of the form that is asked of it.

    >>> check_arguments(exp.Repeat(this=exp.column("s"), times=exp.Literal.number(3)))
    """
    name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
    if name in WITH_LAMBDA:
        check_callee(node)
    if name == _REPEATED:
        _check_number(node, node.expressions[1], _MOST_REPEATED)
        _check_repeated(node)
    check = _CHECKS.get(type(node))
    if check is not None:
        check(node)


def at_most(part: str, most: int) -> Callable[[exp.Expr], None]:
    """A check that an argument is a whole number in the statement's text, and no more than ``most``."""
    return lambda node: _check_number(node, node.args.get(part), most)


def _check_number(call: exp.Expr, number: exp.Expr | None, most: int) -> None:
    found = whole_number(number)
    if found is None or found > most:
        raise InvalidStatement("say a whole number here, no column", found=shown(call), most=most)


def _check_repeated(node: exp.Expr) -> None:
    """Arrays of arrays make as many elements as their numbers' product."""
    count = 1
    around: exp.Expr | None = node
    while around is not None:
        if isinstance(around, exp.Anonymous) and str(around.this).lower() == _REPEATED:
            count *= max(whole_number(around.expressions[-1]) or 0, 1)
        around = around.parent
    if count > MOST_IN_SEQUENCE:
        raise InvalidStatement("arrays are repeated in each other too often", most=MOST_IN_SEQUENCE, found=count)


def _check_within(node: exp.WithinGroup) -> None:
    if not isinstance(node.this, exp.PercentileCont | exp.PercentileDisc) or len(node.expression.expressions) != 1:
        raise InvalidStatement("WITHIN GROUP (ORDER BY x) stands after percentile_cont and percentile_disc")


def _check_percentile(node: exp.Expr) -> None:
    if not isinstance(node.parent, exp.WithinGroup):
        raise InvalidStatement("write percentile_cont(0.5) WITHIN GROUP (ORDER BY x)", found=shown(node))


def _check_ignoring(node: exp.IgnoreNulls) -> None:
    if not isinstance(node.parent, exp.Window):
        raise InvalidStatement("IGNORE NULLS stands in window functions", found=shown(node))


def _check_length(least: int, most: int) -> Callable[[exp.Expr], None]:
    def check(node: exp.Expr) -> None:
        if not least <= len(node.expressions) <= most:
            raise InvalidStatement("wrong number of arguments", found=shown(node))

    return check


def _check_given(*parts: str) -> Callable[[exp.Expr], None]:
    """A check of arguments that the parser lets a call leave out, and Spark does not."""

    def check(node: exp.Expr) -> None:
        if any(node.args.get(part) is None for part in parts):
            raise InvalidStatement("a function lacks an argument", found=shown(node))

    return check


def pattern_of(node: exp.Expr) -> Pattern:
    """The pattern of a call. Raises `InvalidInput` unless it is text in the statement that can be taken."""
    return read_pattern(_text_of(node.expression))


def _text_of(node: exp.Expr | None) -> str:
    if isinstance(node, exp.RawString) or (isinstance(node, exp.Literal) and node.is_string):
        return str(node.this)
    raise InvalidStatement("a pattern, and what takes its place, is text in quotes")


def _check_extracted(node: exp.RegexpExtract | exp.RegexpExtractAll) -> None:
    group = whole_number(node.args.get("group"))
    most = pattern_of(node).groups
    if group is None or not 0 <= group <= min(most, 9):
        raise InvalidStatement("the pattern has no such group in parentheses; 0 is all of it", found=group, groups=most)


def _check_all_extracted(node: exp.RegexpExtractAll) -> None:
    _check_extracted(node)
    _check_not_nullable(node)


def _check_not_nullable(node: exp.Expr) -> None:
    if pattern_of(node).is_nullable:
        raise InvalidStatement("a pattern that matches the empty text cannot split, count, be replaced or be found")


def _check_replaced(node: exp.RegexpReplace) -> None:
    _check_not_nullable(node)
    replacement_of(node)


def replacement_of(node: exp.RegexpReplace) -> str:
    """What takes the place of a match, as RE2 says it."""
    return read_replacement(_text_of(node.args.get("replacement")), pattern_of(node).groups)


_WEEK = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def weekday_of(node: exp.NextDay) -> int:
    """The day that ``next_day`` looks for, from 1 for Monday. Raises `InvalidInput` for what Spark does not know.

    >>> weekday_of(exp.NextDay(this=exp.column("d"), expression=exp.Literal.string("TUE")))
    2
    """
    said = node.expression.name.lower() if isinstance(node.expression, exp.Literal) else ""
    days = [place for place, day in enumerate(_WEEK, 1) if said in (day, day[:3], day[:2])]
    if not days:
        raise InvalidStatement("say a day of the week in quotes, as in next_day(d, 'MON')", found=shown(node))
    return days[0]


def is_apart(delimiter: exp.Expr) -> bool:
    """Whether a text cannot overlap itself, as ``aa`` does in ``aaa``: Spark counts such pieces one letter apart.

    >>> is_apart(exp.Literal.string("--x")), is_apart(exp.Literal.string("a-a"))
    (True, False)
    """
    if not isinstance(delimiter, exp.Literal) or not delimiter.is_string:
        return False
    text = delimiter.name
    return not any(text.startswith(text[place:]) for place in range(1, len(text)))


def _check_schema(node: exp.FromJson) -> None:
    if not isinstance(node.expression, exp.Literal) or not node.expression.is_string:
        raise InvalidStatement("say what a JSON text holds, as in from_json(s, 'a INT, b STRING')", found=shown(node))


def _check_path(node: exp.JSONExtractScalar) -> None:
    path = node.expression
    if not isinstance(path, exp.JSONPath) or not all(_is_plain(one) for one in path.expressions):
        raise InvalidStatement("a path into JSON is text of plain names and places, as '$.a.b[0]'", found=shown(node))


def _is_plain(part: exp.Expr) -> bool:
    match part:
        case exp.JSONPathRoot():
            return True
        case exp.JSONPathKey():
            return isinstance(part.this, str) and _KEY.fullmatch(part.this) is not None
        case exp.JSONPathSubscript():
            return isinstance(part.this, int) and 0 <= part.this < 1_000_000_000
    return False


def _check_ascending(node: exp.ArraySort) -> None:
    if not isinstance(node.args.get("asc"), exp.Boolean | None):
        raise InvalidStatement("sort_array takes true or false after its array", found=shown(node))


def _check_separator(node: exp.GroupConcat) -> None:
    separator = node.args.get("separator")
    if separator is not None and not (isinstance(separator, exp.Literal) and separator.is_string):
        raise InvalidStatement("what stands between the texts is text in quotes", found=shown(node))


_CHECKS: dict[type[exp.Expr], Callable[[Any], object]] = {
    exp.Chr: _check_length(1, 1),
    exp.ArrayIntersect: _check_length(2, 2),
    exp.ArraySlice: _check_given("start", "end"),
    exp.ArraySort: _check_ascending,
    **dict.fromkeys((exp.ArrayFilter, exp.Reduce, exp.Transform), check_callee),
    exp.Exists: lambda node: None if isinstance(node.this, exp.Query) else check_callee(node),
    exp.FromJson: _check_schema,
    exp.GenerateSeries: series_of,
    exp.GroupConcat: _check_separator,
    exp.Grouping: _check_length(1, 1),
    exp.GroupingId: _check_length(1, 64),
    exp.IgnoreNulls: _check_ignoring,
    exp.Map: _check_given("keys", "values"),
    exp.MapContainsKey: _check_given("key"),
    exp.JSONExtractScalar: _check_path,
    exp.Lambda: check_lambda,
    exp.Levenshtein: _check_given("expression"),
    exp.NextDay: weekday_of,
    exp.Pad: at_most("expression", _MOST_PADDED),
    exp.RegexpExtract: _check_extracted,
    exp.RegexpLike: pattern_of,
    exp.RegexpReplace: _check_replaced,
    exp.RegexpExtractAll: _check_all_extracted,
    **dict.fromkeys((exp.RegexpCount, exp.RegexpInstr, exp.RegexpSplit), _check_not_nullable),
    exp.Repeat: at_most("times", _MOST_REPEATED),
    exp.SHA2: _check_given("length"),
    exp.SplitPart: _check_given("delimiter", "part_index"),
    exp.StrToUnix: _check_given("this"),
    exp.Translate: _check_given("from_", "to"),
    exp.WithinGroup: _check_within,
    **dict.fromkeys((exp.PercentileCont, exp.PercentileDisc), _check_percentile),
}
