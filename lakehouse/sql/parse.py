"""One statement's text into one tree. What the tree may hold is for `lakehouse.sql.allowed` to say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sqlglot import Token, TokenType, exp

from lakehouse.arguments import refuse_surrogates
from lakehouse.cancelling import check
from lakehouse.errors import InvalidStatement
from lakehouse.predicate.dialect import DIALECT
from lakehouse.predicate.faults import fault
from lakehouse.predicate.parsing import PARSER_ERRORS
from lakehouse.sql.shorthand import spelled_out
from lakehouse.sql.tree import too_deep
from lakehouse.sql.values import Values, bind_values, require_bound
from lakehouse.sql.words import Show, read_show

_MAX_LENGTH = 1_000_000
_MOST_STEPS = 1000
_BEGINNINGS = (
    "SELECT", "WITH", "FROM", "VALUES", "(", "INSERT", "DELETE FROM", "UPDATE", "MERGE INTO", "CREATE TABLE",
    "CREATE OR REPLACE TABLE", "CREATE VIEW", "CREATE OR REPLACE VIEW", "DROP TABLE", "DROP VIEW", "ALTER TABLE",
    "ALTER VIEW", "COMMENT ON", "TRUNCATE TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "USE",
)  # fmt: skip


_QUERIES = frozenset({"SELECT", "WITH", "FROM", "VALUES", "(", "EXPLAIN"})
_FIRST_WORD = re.compile(r"\s*([A-Za-z]+|\()(?!\w)")
_DESCRIBED = _QUERIES - {"EXPLAIN"}
_CHANGES = frozenset({TokenType.INSERT, TokenType.DELETE, TokenType.UPDATE, TokenType.MERGE})


_BEGIN = ("BEGIN", "BEGIN TRANSACTION", "START TRANSACTION")


_PLACES = (TokenType.PLACEHOLDER, TokenType.PARAMETER)


class Words(NamedTuple):
    """Words of a statement, and the text that they stand in."""

    tokens: tuple[Token, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement. ``explain`` has the tree of its query, ``script`` those of its steps, ``show`` what it asks for.

    ``alter``, ``alter view`` and ``comment`` have the words after ALTER TABLE, ALTER VIEW and COMMENT ON, of which the
    parser makes no tree.
    """

    kind: Literal["run", "show", "explain", "script", "alter", "alter view", "comment"]
    tree: exp.Expr | None = None
    show: Show | None = None
    words: Words | None = None
    steps: tuple[exp.Expr, ...] = ()


def parse_statement(text: Any, values: Values | None = None) -> Statement:
    """The tree of one statement, with the values that it is given. Comments are dropped; one semicolon may end it.

    Raises `InvalidInput` with line and column where the parser tells them.

    >>> parse_statement("SELECT client FROM trips -- all of them").tree.key
    'select'
    >>> parse_statement("SELECT 1; DROP TABLE trips")
    Traceback (most recent call last):
    lakehouse.errors.InvalidStatement: one statement at a time; ...
    """
    statement = _parsed(text)
    trees = statement.steps if statement.tree is None else (statement.tree,)
    if statement.words is not None and any(one.token_type in _PLACES for one in statement.words.tokens):
        raise InvalidStatement("this statement takes no values; write them into it")
    if values is not None:
        bind_values(trees, values)
    else:
        require_bound(trees)
    return statement


def _parsed(text: Any) -> Statement:
    check_text(text)
    tokens = _tokens(text)
    if tokens[0].token_type is TokenType.BEGIN or [one.text.upper() for one in tokens[:2]] == _BEGIN[-1].split():
        return Statement("script", steps=tuple(_steps(tokens, text)))
    _require_one(tokens)
    word = tokens[0].text.upper()
    if word in ("SHOW", "EXPLAIN"):
        text = text[tokens[0].end + 1 :]  # the tokenizer keeps it as one piece
        tokens = _tokens(text)
        _require_one(tokens)
    if word == "SHOW":
        return Statement("show", show=read_show(tokens))
    if word == "EXPLAIN":
        _check_beginning(tokens)
        return Statement("explain", _tree(tokens, text))
    _check_beginning(tokens)
    if word in ("ALTER", "COMMENT"):
        is_view = tokens[1].text.upper() == "VIEW"
        kind: Literal["alter", "alter view", "comment"] = (
            "comment" if word == "COMMENT" else "alter view" if is_view else "alter"
        )
        return Statement(kind, words=Words(tuple(tokens[2:]), text))
    if word in ("DESCRIBE", "DESC"):
        after = 2 if len(tokens) > 2 and tokens[1].text.upper() == "QUERY" else 1
        if len(tokens) > after and tokens[after].text.upper() in _DESCRIBED:
            return Statement("run", exp.Describe(this=_tree(tokens[after:], text)))
    return Statement("run", _tree(tokens, text))


def is_query(text: str) -> bool:
    """Whether a statement is a query, or EXPLAIN of one, decided by its words alone: nothing is parsed.

    >>> is_query("WITH a AS (SELECT 1) SELECT * FROM a"), is_query("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a")
    (True, False)
    """
    check_text(text)
    begun = _FIRST_WORD.match(text)
    if begun is not None and begun[1].upper() in _QUERIES - {"WITH"}:
        return True  # whatever follows: a text of a million characters is not taken apart twice
    tokens = _tokens(text)
    if tokens[0].text.upper() not in _QUERIES:
        return False
    return tokens[0].token_type is not TokenType.WITH or not any(one.token_type in _CHANGES for one in tokens)


def query_text(text: str) -> str:
    """The query of a CREATE VIEW, as it is written: what stands after the AS that belongs to no column.

    >>> query_text("CREATE VIEW `as` (a, b) COMMENT 'AS' AS SELECT 1 AS one, 2; ")
    'SELECT 1 AS one, 2'
    """
    tokens = _tokens(text)
    place = next((place for place, one in enumerate(tokens) if one.token_type is TokenType.ALIAS), len(tokens))
    if place + 1 >= len(tokens):
        raise InvalidStatement("write CREATE VIEW name AS and a query")
    return text[tokens[place + 1].start : tokens[-1].end + 1]


def check_text(text: Any) -> None:
    """Raise `InvalidInput` for what no statement can be, at the cost of a look at its letters."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidStatement('a statement is text in SQL, as in "SELECT * FROM trips"', found=repr(text)[:200])
    if len(text) > _MAX_LENGTH:
        raise InvalidStatement("the statement is too long", characters=len(text), most=_MAX_LENGTH)
    refuse_surrogates(text, "the statement")


def _tokens(text: str) -> Sequence[Token]:
    try:
        tokens = list(DIALECT.tokenize(text))
    except PARSER_ERRORS as error:
        raise InvalidStatement("not a statement in SQL", **fault(error)) from error
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise InvalidStatement("the statement is empty")
    for token in tokens:
        if token.token_type is TokenType.HINT:
            raise InvalidStatement("hints are not taken; leave /*+ ... */ out", line=token.line, column=token.col)
    return tokens


def _require_one(tokens: Sequence[Token]) -> None:
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            raise InvalidStatement(
                "one statement at a time; run them one by one, or as one transaction: BEGIN; ...; COMMIT",
                line=token.line,
                column=token.col,
            )


def _steps(tokens: Sequence[Token], text: str) -> Iterator[exp.Expr]:
    """The statements between BEGIN and COMMIT."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            parts.append([])
        else:
            parts[-1].append(token)
    words = [" ".join(token.text.upper() for token in part) for part in (parts[0], parts[-1])]
    if words[0] not in _BEGIN or words[1] not in ("COMMIT", "COMMIT TRANSACTION"):
        raise InvalidStatement("a transaction is BEGIN; statements; COMMIT", found=f"{words[0]} ... {words[1]}"[:200])
    if not parts[1:-1] or not all(parts):
        raise InvalidStatement("a transaction needs statements between BEGIN and COMMIT, and none that is empty")
    if len(parts) - 2 > _MOST_STEPS:
        raise InvalidStatement("a transaction has too many statements", found=len(parts) - 2, most=_MOST_STEPS)
    for part in parts[1:-1]:
        _check_beginning(part)
        yield _tree(part, text)


def _check_beginning(tokens: Sequence[Token]) -> None:
    words = [token.text.upper() for token in tokens[:4]]
    if not any(words[: len(wanted)] == wanted for wanted in (one.split() for one in _BEGINNINGS)):
        raise InvalidStatement(
            "no statement of this kind is taken; use one of the list",
            found=" ".join(words[:2])[:100],
            statements=", ".join(one for one in _BEGINNINGS if one not in "(DESC"),
        )


def _tree(tokens: Sequence[Token], text: str) -> exp.Expr:
    check()
    try:
        trees = DIALECT.parser().parse(list(tokens), text)
    except RecursionError as error:
        raise too_deep() from error
    except PARSER_ERRORS as error:
        raise InvalidStatement("not a statement in SQL", **fault(error)) from error
    check()
    if len(trees) != 1 or trees[0] is None:
        raise InvalidStatement("one statement at a time; run them one by one")
    return spelled_out(trees[0])
