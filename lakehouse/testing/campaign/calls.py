"""Calls of functions with what they are in plain Python. Most are null where an argument is, and are not asked then."""
# ruff: noqa: S324 - hashes that the functions are named for

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

_WHOLE = 1 << 64
_EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Call:
    """A call: its text over arguments, the kind of each (``i`` or ``s``), and its value. ``k`` is a small number.

    ``takes_nulls``: it need not be null where an argument is.
    """

    text: str
    kinds: str
    of: Callable[..., Any]
    takes_nulls: bool = False


def _signed(value: int) -> int:
    return (value + _WHOLE // 2) % _WHOLE - _WHOLE // 2


def _held(value: int) -> int | None:
    return value if value == _signed(value) else None


def _rest(one: int, other: int) -> int | None:
    return None if other == 0 else int(math.copysign(abs(one) % abs(other), one))


def _distance(one: str, other: str) -> int:
    """Levenshtein's, row by row of its table."""
    line = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        last, line[0] = line[0], place
        for at, held in enumerate(other, 1):
            last, line[at] = line[at], min(line[at] + 1, line[at - 1] + 1, last + (letter != held))
    return line[-1]


def _hex(text: str) -> str:
    return text.encode().hex().upper()


def _base64(text: str) -> str:
    found = base64.b64encode(text.encode()).decode()
    return "\r\n".join(found[place : place + 76] for place in range(0, len(found), 76))


def _part(text: str, count: int) -> str:
    parts = text.split("b")
    return "b".join(parts[:count] if count > 0 else parts[count:] if count else [])


def _found(text: str) -> int:
    found = re.search("b|ü", text)
    return found.start() + 1 if found else 0


def _tuesday(value: int) -> int:
    """The Tuesday after a day."""
    day = value % 1000
    return day + 7 - (date.fromordinal(day + _EPOCH).weekday() - 1) % 7


NUMBERS = (
    Call("try_add({0}, {1})", "ii", lambda a, b: _held(a + b)),
    Call("try_subtract({0}, {1})", "ii", lambda a, b: _held(a - b)),
    Call("pmod(try_multiply({0}, {1}), 1000)", "ii", lambda a, b: a * b % 1000),
    Call("try_mod({0}, {1})", "ii", _rest),
    Call("pmod(shiftleft(CAST({0} AS BIGINT), {1}), 1000)", "ik", lambda a, k: _signed(a << (k & 63)) % 1000),
    Call("shiftright(CAST({0} AS BIGINT), {1})", "ik", lambda a, k: a >> (k & 63)),
    Call("pmod(factorial(CAST(pmod({0}, 30) AS INT)), 1009)", "i",
         lambda a: math.factorial(a % 30) % 1009 if a % 30 < 21 else None),
    Call("levenshtein(hex({0}), hex({1}))", "ss", lambda a, b: _distance(_hex(a), _hex(b))),
    Call("regexp_instr({0}, 'b|ü')", "s", _found),
    Call("size(regexp_extract_all({0}, '(a)(b?)', 2))", "s", lambda a: len(re.findall("a", a))),
    Call("json_array_length(concat('[\"', {0}, '\", [', {1}, ']]'))", "si", lambda a, b: 2),
    Call("json_array_length(concat('{{\"', {0}, '\": []}}'))", "s", lambda a: None),
    Call("unix_timestamp(next_day(date_from_unix_date(CAST(pmod({0}, 1000) AS INT)), 'TU')) div 86400", "i", _tuesday),
    Call("CAST(hypot({0}, {0}) >= abs({0}) AS INT)", "i", lambda a: 1),
)  # fmt: skip
WORDS = (
    Call("hex({0})", "s", _hex),
    Call("hex(CAST({0} AS BIGINT))", "i", lambda a: f"{a % _WHOLE:X}"),
    Call("base64({0})", "s", _base64),
    Call("sha1({0})", "s", lambda a: hashlib.sha1(a.encode()).hexdigest()),
    Call("sha2({0}, 256)", "s", lambda a: hashlib.sha256(a.encode()).hexdigest()),
    Call("CAST(unhex(hex({0})) AS STRING)", "s", lambda a: a),
    Call("CAST(unbase64(base64({0})) AS STRING)", "s", lambda a: a),
    Call("substring_index({0}, 'b', {1})", "sk", _part),
    Call("array_join(array_repeat({0}, 2), '-')", "s", lambda a: "" if a is None else f"{a}-{a}", True),
    Call("array_join(regexp_extract_all({0}, '(a)(b?)', 2), '|')", "s",
         lambda a: "|".join(one[1] for one in re.findall("(a)(b?)", a))),
    Call("array_join(map_values(map_filter(map(1, {0}, 2, {1}), (k, e) -> e > 'a' AND k < 3)), ',')", "ss",
         lambda a, b: ",".join(one for one in (a, b) if one is not None and one > "a"), True),
    Call("array_join(map_keys(transform_keys(map('x', {0}), (k, e) -> concat(k, coalesce(e, '')))), ',')", "s",
         lambda a: f"x{a or ''}", True),  # a key that is null fails
    Call("element_at(transform_values(map('k', {0}), (k, e) -> concat(k, e)), 'k')", "s", lambda a: f"k{a}"),
    Call("element_at(map_from_entries(array(struct('k', {0}))), 'k')", "s", lambda a: a),
)  # fmt: skip
