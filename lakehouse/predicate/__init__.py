"""Filters that users write: a small, closed part of Spark's SQL that means the same in both engines."""

from typing import TYPE_CHECKING

from lakehouse.late import names_of

if TYPE_CHECKING:
    from lakehouse.predicate.parsing import ParsedExpression as ParsedExpression
    from lakehouse.predicate.parsing import ParsedPredicate as ParsedPredicate
    from lakehouse.predicate.parsing import equal_columns as equal_columns
    from lakehouse.predicate.parsing import equates_columns as equates_columns
    from lakehouse.predicate.parsing import parse as parse
    from lakehouse.predicate.parsing import parse_expression as parse_expression
    from lakehouse.predicate.scope import whole_scope as whole_scope

_HOME = {
    "ParsedExpression": "parsing",
    "ParsedPredicate": "parsing",
    "equal_columns": "parsing",
    "equates_columns": "parsing",
    "parse": "parsing",
    "parse_expression": "parsing",
    "whole_scope": "scope",
}
__all__ = sorted(_HOME)  # noqa: PLE0605
__getattr__ = names_of(__name__, _HOME)
