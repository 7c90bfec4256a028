"""TABLESAMPLE with a seed: the same rows of a version in both engines, whatever compactions did.

A row is in a sample by a hash of the seed and of its row id, which it keeps for life.
"""

from __future__ import annotations

import re
from decimal import Decimal

from sqlglot import exp

from lakehouse.core.spec import ROW_ID
from lakehouse.errors import InvalidStatement

_NUMBER = re.compile(r"[0-9]{1,18}")
_PERCENT = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,18})?")
_DIGITS = 32
_MOST_ROWS = 1_000_000_000


def check_sample(node: exp.TableSample) -> None:
    """Raise `InvalidInput` unless a sample of a table says how much, and by which seed."""
    seed, percent, size = (node.args.get(part) for part in ("seed", "percent", "size"))
    if seed is None:
        raise InvalidStatement("a sample needs a seed, so that it can be had again: add REPEATABLE (42)")
    if not isinstance(node.parent, exp.Table) or not isinstance(node.parent.this, exp.Identifier):
        raise InvalidStatement("TABLESAMPLE stands after a table of the lake")
    if not _is_number(seed, _NUMBER):
        raise InvalidStatement("a seed is a whole number of at most 18 digits", found=seed.sql()[:100])
    if percent is not None and not (_is_number(percent, _PERCENT) and Decimal(percent.name) <= 100):
        raise InvalidStatement("a sample is 0 to 100 PERCENT", found=percent.sql()[:100])
    if percent is None and not (size is not None and _is_number(size, _NUMBER) and int(size.name) <= _MOST_ROWS):
        raise InvalidStatement("a sample is a number of ROWS or PERCENT, as in (10 PERCENT)", most=_MOST_ROWS)


def _is_number(node: exp.Expr | None, pattern: re.Pattern[str]) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and pattern.fullmatch(node.name) is not None


def is_by_row(node: exp.Table) -> bool:
    """Whether each row of a table is taken or left by itself, so that conditions may come before."""
    sample = node.args.get("sample")
    return sample is None or sample.args.get("percent") is not None


def sampled(sample: exp.TableSample) -> exp.Select:
    """The query of a sample over a table that has row ids, which it does not give. The caller puts the table in.

    Of n per cent are the rows whose hash is below n per cent of all hashes, of n ROWS the n rows of the least hashes.
    """
    seed = exp.Literal.string(f"{int(sample.args['seed'].name)}:")
    text = exp.Cast(this=exp.column(ROW_ID, quoted=True), to=exp.DataType(this=exp.DType.TEXT, nested=False))
    hashed = exp.MD5(this=exp.Concat(expressions=[seed, text], safe=True))
    query = exp.Select(expressions=[exp.Star(except_=[exp.to_identifier(ROW_ID, quoted=True)])])
    percent = sample.args.get("percent")
    if percent is not None:
        below = exp.LT(this=hashed, expression=exp.Literal.string(_threshold(Decimal(percent.name))))
        query.set("where", exp.Where(this=below))
    else:
        by = [exp.Ordered(this=one, nulls_first=True) for one in (hashed, exp.column(ROW_ID, quoted=True))]
        query.set("order", exp.Order(expressions=by))
        query.set("limit", exp.Limit(expression=exp.Literal.number(int(sample.args["size"].name))))
    return query


def _threshold(percent: Decimal) -> str:
    """The hash, in hexadecimal, below which so many of a hundred are; all are below the letter g."""
    return f"{int(percent * 16**_DIGITS / 100):0{_DIGITS}x}" if percent < 100 else "g"
