"""A filter from an expression of pyarrow, where every part of it is on a list."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lakehouse.errors import InvalidPredicate
from lakehouse.predicate.written import too_deep
from lakehouse.predicate.written_parts import IN_SQL, among, column, is_float, nan_or_null, value

_COMPARED = {"equal": "=", "not_equal": "<>", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
_JOINED = {"and_kleene": "AND", "or_kleene": "OR"}
_TEXT_TESTS = {"starts_with": "startswith", "ends_with": "endswith", "match_substring": "contains"}
_MATCH, _SKIP = 0, 1
_MOST_NODES = 10_000


@dataclass(slots=True)
class _Node:
    """A call, a column or a value of an expression; the options of a call by their names."""

    kind: str
    name: str = ""
    value: Any = None
    arguments: list[_Node] = field(default_factory=list)
    options: Any = None


def from_arrow(expression: Any, schema: pa.Schema) -> str:
    """A filter in SQL that passes the rows for which an expression is true in Arrow.

    Arrow compares NaN as IEEE does: it is unequal to everything and neither less nor greater. Here NaN equals itself
    and is greater than any number, so it is excluded where a comparison would pass it.
    """
    try:
        return _condition(_tree(expression), schema)
    except RecursionError as error:
        raise too_deep() from error


def _condition(node: _Node, schema: pa.Schema) -> str:
    match node:
        case _Node("column"):
            return column(node.name, schema)
        case _Node("value", value=bool()):
            return value(node.value)
        case _Node("call", name, arguments=[left, right]) if name in _JOINED:
            return f"({_condition(left, schema)} {_JOINED[name]} {_condition(right, schema)})"
        case _Node("call", "invert", arguments=[inner]):
            return f"(NOT {_condition(inner, schema)})"
        case _Node("call", name, arguments=[left, right]) if name in _COMPARED:
            return _comparison(left, _COMPARED[name], right, schema)
        case _Node("call", name, arguments=[_Node("column") as inner]):
            return _of_column(node, column(inner.name, schema), is_float(inner.name, schema))
    raise _refused(node)


def _of_column(node: _Node, name: str, is_floating: bool) -> str:
    options = node.options or {}
    match node.name:
        case "is_valid":
            return f"({name} IS NOT NULL)"
        case "is_null":
            is_nan = options.get("nan_is_null") and is_floating
            return f"({name} IS NULL OR isnan({name}))" if is_nan else f"({name} IS NULL)"
        case "is_nan" if is_floating:
            return nan_or_null(name, is_floating=True)
        case "is_in" if options.get("null_matching_behavior") in (_MATCH, _SKIP):
            return _among(name, options["value_set"], matches_null=options["null_matching_behavior"] == _MATCH)
        case tested if tested in _TEXT_TESTS and options.get("ignore_case") is False:
            return f"{_TEXT_TESTS[tested]}({name}, {value(options['pattern'])})"
    raise _refused(node)


def _among(name: str, values: Sequence[Any], *, matches_null: bool) -> str:
    """In Arrow this is true or false, never null, and null may be among the values."""
    listed = among(name, [one for one in values if one is not None])
    found = "FALSE" if listed is None else f"({name} IS NOT NULL AND {listed})"
    return f"({found} OR {name} IS NULL)" if matches_null and None in values else found


def _comparison(left: _Node, operator: str, right: _Node, schema: pa.Schema) -> str:
    sides: list[str] = []
    columns: list[str] = []
    floats: list[str] = []
    for one in (left, right):
        match one:
            case _Node("column"):
                sides.append(column(one.name, schema))
                columns.append(sides[-1])
                floats += [sides[-1]] if is_float(one.name, schema) else []
            case _Node("value"):
                sides.append(value(one.value))
            case _:
                raise _refused(one)
    if not columns:
        raise InvalidPredicate("a comparison in a filter names a column", found=f"{left.value} {operator}"[:100])
    found = f"({sides[0]} {operator} {sides[1]})"
    if operator == "<>":
        return f"({found} OR (isnan({floats[0]}) AND isnan({floats[1]})))" if len(floats) == 2 else found
    if not floats:
        return found
    is_nan = " OR ".join(f"isnan({one})" for one in floats)
    # With null on the other side a comparison is null, not false.
    known = "".join(f" AND {one} IS NOT NULL" for one in columns) if len(columns) == 2 else ""
    return f"({found} AND NOT (({is_nan}){known}))"


def _refused(node: _Node) -> InvalidPredicate:
    options = f" with {node.options}" if node.options else ""
    found = node.name if node.kind == "call" else repr(node.value)
    return InvalidPredicate(f"a filter takes no such expression of pyarrow; {IN_SQL}", found=f"{found}{options}"[:200])


def _tree(expression: Any) -> _Node:
    """The parts of an expression. Arrow shows them only as it stores them, in the metadata of a batch's schema."""
    try:
        _, (stored,) = expression.__reduce__()
        file = pa.ipc.open_file(stored)
        batch, steps = file.get_batch(0), iter(list(_pairs(file.schema)))
    except pa.ArrowException as error:
        raise InvalidPredicate(
            "an expression of pyarrow names its columns; write pc.field('name')", found=str(expression)[:200]
        ) from error
    return _node(*next(steps), steps, batch)


def _node(step: str, text: str, steps: Iterator[tuple[str, str]], batch: pa.RecordBatch) -> _Node:
    match step:
        case "literal":
            return _Node("value", value=batch.column(int(text))[0].as_py())
        case "field_ref":
            return _Node("column", text)
        case "call":
            made = _Node("call", text)
            for inner, said in steps:
                match inner:
                    case "end":
                        return made
                    case "options":
                        made.options = batch.column(int(said))[0].as_py()
                    case _:
                        made.arguments.append(_node(inner, said, steps, batch))
    raise InvalidPredicate(f"a filter takes no such expression of pyarrow; {IN_SQL}", found=f"{step} {text}"[:200])


class _Schema(ctypes.Structure):
    """The first members of ArrowSchema, of Arrow's C data interface."""

    _fields_ = (("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p))


def _pairs(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """A schema's metadata as it is stored: keys come more than once, which a dict cannot show."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = schema.__arrow_c_schema__()  # owns what is read here
    at = _Schema.from_address(pointer(capsule, b"arrow_schema")).metadata
    if at is None:
        return

    def read(size: int) -> bytes:
        nonlocal at
        found = ctypes.string_at(at, size)
        at += size
        return found

    def number() -> int:
        return int(struct.unpack("=i", read(4))[0])

    for _ in range(min(number(), _MOST_NODES)):
        yield read(number()).decode(), read(number()).decode()
    del capsule
