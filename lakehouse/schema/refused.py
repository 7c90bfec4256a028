"""Types that no table holds: why, and what holds such values."""

from __future__ import annotations

import re

from lakehouse.errors import InvalidInput, InvalidSchema

_REASONS = (
    (
        "variant|jsonb?|object",
        "what writes files has no such type; use STRING for JSON text, and get_json_object for its parts",
    ),
    (
        r"time(tz|_ns)?|time(32|64)\[.*\]|time\(.*\)",
        "Spark has times of day behind a setting alone; use BIGINT for microseconds of the day",
    ),
    (
        r"timestamp(_ns|_ntz|_ltz|ntz|ltz|tz)?(\(.*\))?",
        "Spark has nanoseconds behind a setting alone; use TIMESTAMP_NTZ for microseconds, BIGINT for nanoseconds",
    ),
    (
        r"interval.*|duration\[.*\]|month_day_nano_interval",
        "engines disagree about lengths of time; use BIGINT for microseconds",
    ),
    ("uint64|ubigint", "no signed integer holds all of its values; use BIGINT, or DECIMAL(20, 0)"),
    ("u?int(128|256)|u?hugeint", "Spark has no such type; use DECIMAL(38, 0)"),
    ("bit|varbit", "Spark has no such type; use BINARY, or STRING of digits"),
    ("null|void", "nothing but null is in it; use any type, in which each value may be null"),
    (".*union.*|run_end_encoded.*", "engines do not share it; use lists, maps and structs, whose fields may be null"),
)
"""By the name of a type in DDL, of Arrow or of Spark."""


def refused(kind: object, column: str) -> InvalidInput:
    """The error for a column of a type that no table holds.

    >>> str(refused("HUGEINT", "n"))
    'a table cannot hold this type: Spark has no such type; use DECIMAL(38, 0) (column=n type=HUGEINT)'
    """
    told = "use another type" if (found := _reason(str(kind))) is None else found
    return InvalidSchema(f"a table cannot hold this type: {told}", column=column, type=kind)


def _reason(kind: str) -> str | None:
    return next((told for pattern, told in _REASONS if re.fullmatch(pattern, kind.lower())), None)
