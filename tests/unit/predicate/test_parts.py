"""The parser's own node types: whatever a node may say is read, or refused."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp
from sqlglot.parsers.spark import SparkParser

from lakehouse.engine.duckdb import DuckDBEngine
from lakehouse.errors import InvalidInput
from lakehouse.predicate.parsing import PARSER_ERRORS, parse, parse_condition, translated
from lakehouse.predicate.parts import READ, SAID
from tests.unit.engine.harness import HOSTILE, Store, spec_of

SCHEMA = spec_of(HOSTILE).schema
EVERY = sorted(
    {kind for _, kind in inspect.getmembers(exp, inspect.isclass) if issubclass(kind, exp.Expression)},
    key=lambda kind: kind.__name__,
)
SAMPLES = [
    "ID = 1 OR NOT `tiny` <> 2 AND (short < 3 OR int <= 4 OR id > 5 OR id >= 6)",
    "t.id = 1",
    "id <=> 1 AND tiny IS DISTINCT FROM 2 AND tiny IS NULL AND flag IS TRUE",
    "id IN (1, 2) AND id BETWEEN 1 AND 2",
    "text LIKE 'a%' AND text NOT LIKE 'b%' AND text LIKE 'c$%' ESCAPE '$' AND text = r'd' AND bytes = X'00'",
    "id + 1 - 2 * 3 = 4 AND id / 5 = 6 AND id % 7 = 8 AND id DIV 9 = 10 AND -id = 11",
    "text || 'x' = 'y' AND length(text) = 1",
    "CAST(tiny AS BIGINT) = 1 AND date(ts) = '2013-01-05' AND CAST('1.5' AS DECIMAL(3, 1)) = money",
    "CASE id WHEN 1 THEN 2 ELSE 3 END = 4 AND if(flag, 1, 2) = 3 AND coalesce(id, 1) = 2 AND nullif(id, 1) = 2",
    "isnull(id) AND abs(id) = 1 AND isnan(double)",
    "contains(text, 'a') AND startswith(text, 'a') AND endswith(text, 'a')",
    "year(ts) = 1 AND quarter(ts) = 1 AND month(ts) = 1 AND day(ts) = 1 AND dayofmonth(ts) = 1 AND dayofyear(ts) = 1",
    "hour(ts) = 1 AND minute(ts) = 1 AND second(ts) = 1 AND to_date(ts) = '2013-01-05'",
    "TRUE AND NULL AND FALSE",
]


def outcome(node: exp.Expr) -> Any:
    """What a tree is translated to; None where it is refused, or is one that no parser makes (a word for a node)."""
    try:
        found = translated(node, "", SCHEMA, {"t": SCHEMA})
    except (InvalidInput, *PARSER_ERRORS):
        return None
    return found.spark, found.duckdb, found.tree


def fillings() -> list[Any]:
    """What a part of a node may be set to."""
    column, literal = exp.column("text"), exp.Literal.string("x")
    return [True, "word", exp.Literal.number(7), literal, column, [literal], [column.copy(), literal.copy()]]


def places() -> list[tuple[str, int]]:
    """Each kind of node that is listed, once: the sample that has it, and its place there."""
    found: dict[type[exp.Expr], tuple[str, int]] = {}
    for text in SAMPLES:
        for place, node in enumerate(parse_condition(text).walk()):
            found.setdefault(type(node), (text, place))
    assert found.keys() == READ.keys()
    return list(found.values())


def changed(text: str, place: int, part: str, value: Any) -> exp.Expr:
    """The tree of a sample with one part of one node set anew."""
    tree = parse_condition(text)
    list(tree.walk())[place].set(part, value.copy() if isinstance(value, exp.Expr) else value)
    return tree


def test_the_samples_are_let_through() -> None:
    assert [text for text in SAMPLES if outcome(parse_condition(text)) is None] == []


def test_no_part_is_read_of_a_node_that_is_not_declared() -> None:
    """Whatever is set beside the declared parts is refused, also a part that no version of the parser has yet."""
    silent = []
    for text, place in places():
        kind = type(list(parse_condition(text).walk())[place])
        for part in {*kind.arg_types, "yet_unknown"} - set(READ[kind]):
            for value in fillings():
                if value is SAID.get(kind, {}).get(part):
                    continue
                if outcome(changed(text, place, part, value)) is not None:
                    silent.append((kind.__name__, part, value))
    assert silent == []


def test_every_part_that_is_declared_is_read() -> None:
    """Setting it anew gives another translation, or is refused."""
    silent = []
    for text, place in places():
        before = outcome(parse_condition(text))
        for part in READ[type(list(parse_condition(text).walk())[place])]:
            if all(outcome(changed(text, place, part, value)) == before for value in fillings()):
                silent.append((text, part))
    assert silent == []


def test_a_part_that_a_text_leaves_out_is_translated_or_refused() -> None:
    """``month()`` is a node of which the parser accepts that its argument is not there."""
    for text, place in places():
        for part in READ[type(list(parse_condition(text).walk())[place])]:
            outcome(changed(text, place, part, None))


@pytest.mark.parametrize("arguments", ["", "*", "text, id"])
def test_every_function_of_the_parser_with_any_arguments_is_translated_or_refused(arguments: str) -> None:
    for name in sorted(SparkParser.FUNCTIONS):
        with contextlib.suppress(InvalidInput):
            parse(f"{name}({arguments}) = 1", SCHEMA)


def test_every_other_kind_of_node_is_refused() -> None:
    passed = []
    for kind in EVERY:
        if kind in READ:
            continue
        for value in fillings():
            for parts in (kind.arg_types, [key for key, needed in kind.arg_types.items() if needed]):
                node = kind(**dict.fromkeys(parts, value))
                for tree in (node, exp.EQ(this=node, expression=exp.Literal.number(1)), exp.Not(this=node)):
                    if outcome(tree) is not None:
                        passed.append(kind.__name__)
    assert len(EVERY) > 900
    assert passed == []


@pytest.mark.parametrize(
    "where",
    [
        "text NOT ILIKE 'a%'",
        "text NOT RLIKE 'a'",
        "text NOT LIKE ALL ('a', 'b')",
        "text NOT LIKE ANY ('a', 'b')",
        "text LIKE SOME ('a', 'b')",
        "id NOT BETWEEN SYMMETRIC 2 AND 1",
        "length(text, 'x') = 1",
        "cast(ts AS DATE FORMAT 'yyyy') = '2013-01-05'",
        "to_date(ts, 'yyyy') = '2013-01-05'",
        "t.t.id = 1",
        "c.s.t.id = 1",
    ],
)
def test_a_part_that_changes_the_meaning_is_refused_by_name(where: str) -> None:
    with pytest.raises(InvalidInput, match="not allowed in a filter"):
        parse(where, SCHEMA)


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("text LIKE 'keep%'", ["keep", "keep%"]),
        ("text NOT LIKE 'keep%'", ["", "drop"]),
        ("NOT text LIKE 'keep%'", ["", "drop"]),
        ("NOT (text LIKE 'keep%')", ["", "drop"]),
        ("NOT text NOT LIKE 'keep%'", ["keep", "keep%"]),
        ("text NOT LIKE '%$%' ESCAPE '$'", ["", "drop", "keep"]),
        ("NOT text NOT LIKE '%$%' ESCAPE '$'", ["keep%"]),
        ("text NOT LIKE 'drop'", ["", "keep", "keep%"]),
        ("text NOT LIKE ''", ["drop", "keep", "keep%"]),
    ],
)
def test_not_like_is_the_opposite_of_like(tmp_path: Any, where: str, left: list[str]) -> None:
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("text", pa.string())])
    spec, store, engine = spec_of(schema), Store(tmp_path), DuckDBEngine()
    texts = ["keep", "drop", "keep%", "", None]
    segments = store.write(engine, pa.table({"ts": [0] * 5, "text": texts}).cast(schema), spec)
    found = engine.read(store.query(spec, segments, where=parse(where, spec.schema).duckdb)).to_arrow()
    assert sorted(found["text"].to_pylist()) == left
