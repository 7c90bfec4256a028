"""The words of a SHOW, which the parser does not know: what is asked for, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType

from lakehouse.errors import InvalidStatement
from lakehouse.sql.system import SCHEMA

_FORMS = (
    "SHOW TABLES [IN default] [LIKE 'x*'], SHOW SCHEMAS, SHOW VIEWS [LIKE 'x*'], SHOW COLUMNS IN t, "
    "SHOW CREATE TABLE t, SHOW TBLPROPERTIES t [('key')], SHOW CATALOGS, SHOW CURRENT SCHEMA, "
    "SHOW FUNCTIONS [LIKE 'x*']"
)
_IN = ("IN", "FROM")


@dataclass(frozen=True, slots=True)
class Show:
    """A SHOW: of ``what``, about a table, or of names like a pattern, or of one key."""

    what: str
    table: str | None = None
    like: str | None = None
    key: str | None = None


def read_show(tokens: Sequence[Token]) -> Show:
    """What a SHOW asks for, by the words after it. Raises `InvalidStatement` for any other form.

    >>> from lakehouse.predicate.dialect import DIALECT
    >>> read_show(DIALECT.tokenize("TABLES IN default LIKE 'tri*'"))
    Show(what='TABLES', table=None, like='tri*', key=None)
    """
    words = _Words(tokens)
    match words.next():
        case "TABLES" | "VIEWS" as what:
            if words.take(*_IN):
                words.schema()
            return words.end(Show(what, like=words.pattern()))
        case "SCHEMAS" | "DATABASES" | "NAMESPACES":
            return words.end(Show("SCHEMAS", like=words.pattern()))
        case "CATALOGS" | "FUNCTIONS" as what:
            return words.end(Show(what, like=words.pattern()))
        case "CURRENT" if words.take("SCHEMA", "DATABASE", "NAMESPACE"):
            return words.end(Show("CURRENT SCHEMA"))
        case "COLUMNS" if words.take(*_IN):
            show = Show("COLUMNS", table=words.table())
            if words.take(*_IN):
                words.schema()
            return words.end(show)
        case "CREATE" if words.take("TABLE"):
            return words.end(Show("CREATE TABLE", table=words.table()))
        case "TBLPROPERTIES":
            return words.end(Show("TBLPROPERTIES", table=words.table(), key=words.key()))
    raise _refused(tokens)


class _Words:
    """The words of a SHOW, taken one by one."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._place = 0

    def next(self) -> str:
        """The next word in capitals; empty for a text or the end."""
        token = self._token()
        return "" if token is None or token.token_type is TokenType.STRING else token.text.upper()

    def take(self, *words: str) -> bool:
        """Whether one of these words is next, which is then passed."""
        token = self._tokens[self._place] if self._place < len(self._tokens) else None
        is_there = token is not None and token.token_type is not TokenType.STRING and token.text.upper() in words
        self._place += is_there
        return is_there

    def schema(self) -> None:
        """Pass the name of the only schema."""
        if self._name() != SCHEMA:
            raise InvalidStatement("the lake has one schema", schema=SCHEMA)

    def table(self) -> str:
        """A table's name, with the schema before it or without."""
        name = self._name(folded=False)
        if self.take("."):
            if name.casefold() != SCHEMA:
                raise InvalidStatement("the lake has one schema", schema=SCHEMA)
            name = self._name(folded=False)
        return name

    def pattern(self) -> str | None:
        """``[LIKE] 'x*'``, if it is there."""
        is_said = self.take("LIKE")
        if not is_said and self._place >= len(self._tokens):
            return None
        return self._text()

    def key(self) -> str | None:
        """``('key')``, if it is there."""
        if not self.take("("):
            return None
        found = self._text()
        if not self.take(")"):
            raise _refused(self._tokens)
        return found

    def end(self, show: Show) -> Show:
        """The same, if nothing is left."""
        if self._place < len(self._tokens):
            raise _refused(self._tokens)
        return show

    def _token(self) -> Token | None:
        self._place += 1
        return self._tokens[self._place - 1] if self._place <= len(self._tokens) else None

    def _name(self, *, folded: bool = True) -> str:
        token = self._token()
        is_name = token is not None and token.token_type is not TokenType.STRING
        if token is None or not is_name or not (token.text.isidentifier() or token.token_type is TokenType.IDENTIFIER):
            raise _refused(self._tokens)
        return token.text.casefold() if folded else token.text

    def _text(self) -> str:
        token = self._token()
        if token is None or token.token_type is not TokenType.STRING:
            raise _refused(self._tokens)
        return token.text


def _refused(tokens: Sequence[Token]) -> InvalidStatement:
    found = " ".join(token.text for token in tokens)[:100]
    return InvalidStatement("no SHOW of this form is taken; use one of the list", found=found, forms=_FORMS)
