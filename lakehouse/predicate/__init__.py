"""Filters that users write: a small, closed part of Spark's SQL that means the same in both engines."""

from lakehouse.predicate.parse import (
    ParsedExpression,
    ParsedPredicate,
    equal_columns,
    equates_columns,
    parse,
    parse_expression,
)
from lakehouse.predicate.scope import whole_scope

__all__ = [
    "ParsedExpression",
    "ParsedPredicate",
    "equal_columns",
    "equates_columns",
    "parse",
    "parse_expression",
    "whole_scope",
]
