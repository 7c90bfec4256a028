"""Filters that users write: a small, closed part of Spark's SQL that means the same in both engines."""

from lakehouse.predicate.parse import ParsedPredicate, parse

__all__ = ["ParsedPredicate", "parse"]
