"""A text that is no SQL is refused in words of SQL, with the place where it stops being so."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse.errors import InvalidPredicate, InvalidStatement
from lakehouse.predicate import parse
from lakehouse.sql.parse import parse_statement

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])
FILTERS = {
    "a >": "line=1 column=3 near='>' cause=something is missing here",
    "a = = 1": "column=5 near='=' cause=something is missing here",
    "(a = 1": r"near='1' cause=\) is missing here",
    "b LIKE 'x": "cause=a text, a name or a comment is begun and not ended",
}
STATEMENTS = {
    "SELECT a FROM": "line=1 column=13 near='FROM' cause=table name is missing here",
    "SELECT a\nFROM t WHERE": "line=2 column=12 near='WHERE' cause=something is missing here",
    "SELECT a FORM t": "column=15 near='t' cause=not expected here",
    "SELECT CAST(a AS FOO) FROM t": "near='FOO' cause=TYPE after CAST is missing here",
    "SELECT CASE a FROM t": "cause=END after CASE is missing here",
    "SELECT 1 /* x": "cause=a text, a name or a comment is begun and not ended",
}


@pytest.mark.parametrize(("where", "said"), FILTERS.items())
def test_a_filter_is_refused_where_it_is_wrong(where: str, said: str) -> None:
    with pytest.raises(InvalidPredicate, match=said):
        parse(where, SCHEMA)


@pytest.mark.parametrize(("text", "said"), STATEMENTS.items())
def test_a_statement_is_refused_where_it_is_wrong(text: str, said: str) -> None:
    with pytest.raises(InvalidStatement, match=said) as refused:
        parse_statement(text)
    assert "sqlglot" not in str(refused.value)
    assert "Token" not in str(refused.value)
