"""The suites' texts, which are DuckDB's SQL, as Spark's, which both our engines and plain Spark take.

By sqlglot, once for all, with nothing about a query of its own. What it changes is how something is written, not what
is asked: ``NULLS FIRST`` and ``NULLS LAST`` stand where the two differ by themselves, quoted names have Spark's
quotes, a null in ``concat`` is written as the empty text that it is to DuckDB, and intervals are in Spark's words.
"""

from __future__ import annotations

import sqlglot
from sqlglot import exp


def for_spark(text: str) -> str:
    """A text of DuckDB's in Spark's SQL.

    >>> for_spark("SELECT a FROM t WHERE d < DATE '1998-12-01' - INTERVAL 3 MONTH ORDER BY a")
    "SELECT a FROM t WHERE d < CAST('1998-12-01' AS DATE) - INTERVAL '3' MONTH ORDER BY a NULLS LAST"
    """
    (written,) = sqlglot.transpile(text, read="duckdb", write="spark", comments=False)
    return written


def without_limit(text: str) -> str | None:
    """A text of DuckDB's without its outermost LIMIT; None if it has none.

    >>> without_limit("SELECT a FROM t ORDER BY a LIMIT 100")
    'SELECT a FROM t ORDER BY a'
    """
    tree = _query(text)
    if tree.args.get("limit") is None:
        return None
    tree.set("limit", None)
    return tree.sql(dialect="duckdb", comments=False)


def ordered_by(text: str) -> list[int]:
    """Places in the result of those columns that its rows are in order of, as far as the text says so by columns.

    >>> ordered_by("SELECT a, sum(b) AS s, c FROM t GROUP BY ALL ORDER BY s DESC, 1, c + 1, c")
    [1, 0]
    """
    tree = _query(text)
    first = tree
    while not isinstance(first, exp.Select):
        first = first.this
    names = [one.alias_or_name.casefold() for one in first.expressions]
    places: list[int] = []
    order = tree.args.get("order")
    for term in order.expressions if order is not None else ():
        of = term.this
        if isinstance(of, exp.Literal) and not of.is_string:
            places.append(int(of.name) - 1)
        elif isinstance(of, exp.Column) and names.count(of.name.casefold()) == 1:
            places.append(names.index(of.name.casefold()))
        else:
            break
    return places


def _query(text: str) -> exp.Expression:
    tree = sqlglot.parse_one(text, read="duckdb")
    assert isinstance(tree, exp.Query)
    return tree
