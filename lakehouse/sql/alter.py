"""ALTER TABLE, of which the parser knows too little: read word by word, and nothing else is taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from sqlglot import Token, TokenType, exp

from lakehouse.arguments import unknown_column
from lakehouse.errors import InvalidStatement, UnknownColumn
from lakehouse.predicate.dialect import DIALECT
from lakehouse.predicate.parsing import PARSER_ERRORS
from lakehouse.schema import SchemaChange, read_type
from lakehouse.schema.changes import (
    AddColumn,
    CommentColumn,
    DropColumn,
    LayoutChange,
    MakeNullable,
    MoveColumn,
    RenameColumn,
    SetClusterBy,
    SetDefault,
    SetGrain,
    SetPrimaryKey,
    WidenColumn,
)
from lakehouse.session.session import Session
from lakehouse.sql.define import GRAINS
from lakehouse.sql.define_view import create_view
from lakehouse.sql.names import plain_parts, table_name
from lakehouse.sql.parse import Words
from lakehouse.sql.query import fixed_rows
from lakehouse.sql.system import SCHEMA
from lakehouse.sql.target import refuse_view
from lakehouse.sql.view import live_view
from lakehouse.table.tables import open_table, table_names

if TYPE_CHECKING:
    from lakehouse.table.table import Table

T = TypeVar("T")
_FORMS = (
    "ALTER TABLE t ADD COLUMN a type [DEFAULT value] [COMMENT 'x'] [FIRST | AFTER b], DROP COLUMN a, "
    "RENAME COLUMN a TO b, ALTER COLUMN a TYPE type | COMMENT 'x' | FIRST | AFTER b | DROP NOT NULL | "
    "SET DEFAULT value | DROP DEFAULT, RENAME TO u, SET TBLPROPERTIES ('k' = 'v'), UNSET TBLPROPERTIES ('k'), "
    "ADD PRIMARY KEY (a, b), DROP PRIMARY KEY, CLUSTER BY (a, b) | NONE, CLUSTERED BY (a) INTO 16 BUCKETS, "
    "PARTITIONED BY (months(ts))"
)
_VIEW_FORMS = "ALTER VIEW v AS query; for another name, CREATE VIEW and DROP VIEW"
_COMMENT_FORMS = "COMMENT ON TABLE t IS 'text', COMMENT ON VIEW v IS 'text', COMMENT ON COLUMN t.a IS NULL"
_AFTER_TYPE = ("DEFAULT", "COMMENT", "FIRST", "AFTER", "NOT")
_AFTER_VALUE = ("COMMENT", "FIRST", "AFTER")
_OPENING, _CLOSING = {"(": 1, "<": 1, "[": 1}, {")": -1, ">": -1, "]": -1}


def alter_table(session: Session, alteration: Words) -> Any:
    """Change a table's columns, name or properties; the commit, or nothing for another name or for no change.

    Columns are named without regard to case. Raises `InvalidStatement` for other forms, and as `Table.alter`.
    """
    words = _Words(alteration)
    node = words.table()
    if live_view(session, node) is not None:
        raise InvalidStatement(
            "a view has no columns of its own to change; write CREATE OR REPLACE VIEW", view=plain_parts(node)[0].name
        )
    name = table_name(node, table_names(session))
    table = open_table(session, name)
    if words.take("RENAME", "TO"):
        session.catalog.rename_table(name, words.end(words.name()))
        return None
    for is_set in (True, False):
        if words.take("SET" if is_set else "UNSET", "TBLPROPERTIES"):
            if not is_set:
                words.take("IF", "EXISTS")
            return table.set_properties(words.end(words.properties(is_set=is_set)))
    changes = words.end(_changes(session, table, words))
    return table.alter(changes, message=alteration.text.strip()[:1000]) if changes else None


def alter_view(session: Session, alteration: Words) -> None:
    """ALTER VIEW v AS query: another query under the view's name; its comment stays. Raises `ViewNotFound`."""
    words = _Words(alteration, _VIEW_FORMS)
    node = words.table()
    view = live_view(session, node)
    if view is None:
        table_name(node, table_names(session), session.catalog.names()[1])
        raise InvalidStatement("this is a table; write ALTER TABLE", table=plain_parts(node)[0].name)
    if not words.take("AS"):
        raise words.refused()
    create_view(session, view.name, words.until(()), comment=view.comment, or_replace=True)


def comment_on(session: Session, comment: Words) -> Any:
    """COMMENT ON TABLE t IS 'text', COMMENT ON COLUMN t.a IS 'text', or IS NULL for none; the commit.

    A table's comment is its property ``comment``; that of a view belongs to it.
    """
    words = _Words(comment, _COMMENT_FORMS)
    if words.take("COLUMN"):
        path = words.path()
        if len(path) > 2 and path[0].casefold() == SCHEMA:
            path = path[1:]
        text = words.end(_comment(words)) or ""
        node = exp.Table(this=exp.to_identifier(path[0], True))
        refuse_view(session, node)
        table = open_table(session, table_name(node, table_names(session)))
        return table.alter([CommentColumn(_real(table, path[1:]), text)], message=comment.text.strip()[:1000])
    if not words.take("TABLE") and not words.take("VIEW"):
        raise words.refused()
    node = words.table()
    said = words.end(_comment(words))
    view = live_view(session, node)
    if view is not None:
        return create_view(session, view.name, view.text, view.names, said, or_replace=True)
    return open_table(session, table_name(node, table_names(session))).set_properties({"comment": said})


def _comment(words: _Words) -> str | None:
    if not words.take("IS"):
        raise words.refused()
    return None if words.take("NULL") else words.string()


def _changes(session: Session, table: Table, words: _Words) -> list[SchemaChange]:
    if words.take("ADD", "COLUMNS") or words.take("ADD", "COLUMN"):
        return words.several(lambda: _added(session, table, words))
    if words.take("DROP", "COLUMNS") or words.take("DROP", "COLUMN"):
        is_lenient = words.take("IF", "EXISTS")
        named = words.several(words.path)
        return [DropColumn(one) for path in named if (one := _found(table, path, is_lenient=is_lenient)) is not None]
    if words.take("RENAME", "COLUMN"):
        path = _real(table, words.path())
        if words.take("TO"):
            return [RenameColumn(path, words.name())]
    if words.take("ALTER", "COLUMN") or words.take("CHANGE", "COLUMN"):
        return [_altered(session, table, _real(table, words.path()), words)]
    return [_laid_out(table, words)]


def _laid_out(table: Table, words: _Words) -> LayoutChange:
    """A change of keys or layout."""

    def column() -> str:
        return _real(table, (words.name(),))[0]

    if words.take("ADD", "PRIMARY", "KEY"):
        return SetPrimaryKey(words.several(column))
    if words.take("DROP", "PRIMARY", "KEY"):
        return SetPrimaryKey(())
    if words.take("CLUSTER", "BY"):
        return SetClusterBy(() if words.take("NONE") else words.several(column))
    if words.take("CLUSTERED", "BY"):
        names = words.bracketed(column)
        if words.take("INTO"):
            buckets = words.number()
            if words.take("BUCKETS"):
                return SetClusterBy(dict.fromkeys(names, buckets))
    if words.take("PARTITIONED", "BY", "("):
        grain = GRAINS.get(words.name().lower())
        if grain is not None and words.bracketed(column) == [table.time] and words.take(")"):
            return SetGrain(grain)
    raise words.refused()


def _altered(session: Session, table: Table, path: tuple[str, ...], words: _Words) -> SchemaChange:
    if words.take("TYPE"):
        return WidenColumn(path, read_type(words.until(()), path[-1]))
    if words.take("COMMENT"):
        return CommentColumn(path, words.string())
    if words.take("FIRST"):
        return MoveColumn(path, first=True)
    if words.take("AFTER"):
        return MoveColumn(path, after=_after(table, path[:-1], words.name()))
    if words.take("DROP", "NOT", "NULL"):
        return MakeNullable(path)
    if words.take("SET", "DEFAULT"):
        return SetDefault(path, _value(session, words.until(())))
    if words.take("DROP", "DEFAULT"):
        return SetDefault(path)
    raise words.refused()


def _added(session: Session, table: Table, words: _Words) -> AddColumn:
    path = words.path()
    parent = _real(table, path[:-1]) if len(path) > 1 else ()
    kind = read_type(words.until(_AFTER_TYPE), path[-1])
    default, comment, after, first = None, "", None, False
    while not words.is_over:
        if words.take("DEFAULT"):
            default = _value(session, words.until(_AFTER_VALUE))
        elif words.take("COMMENT"):
            comment = words.string()
        elif words.take("FIRST"):
            first = True
        elif words.take("AFTER"):
            after = _after(table, parent, words.name())
        else:
            raise words.refused()
    for_new = None if parent else default
    return AddColumn((*parent, path[-1]), kind, default, for_new, after, first, comment)


def _after(table: Table, parent: tuple[str, ...], name: str) -> str:
    """The column or field that another one comes after, which may be new in the same statement."""
    found = _found(table, (*parent, name), is_lenient=True)
    return name if found is None else found[-1]


def _value(session: Session, text: str) -> Any:
    """The value of an expression that reads no table."""
    try:
        tree = DIALECT.parser().parse(list(DIALECT.tokenize(f"VALUES ({text})")), text)[0]
    except PARSER_ERRORS as error:
        raise InvalidStatement("a default is a value, as in DEFAULT 0", found=text[:100]) from error
    if not isinstance(tree, exp.Values) or len(tree.expressions) != 1 or tree.find(exp.Query) not in (None, tree):
        raise InvalidStatement("a default is a value, as in DEFAULT 0", found=text[:100])
    rows = fixed_rows(session, tree)
    if rows.num_columns != 1:
        raise InvalidStatement("a default is one value", found=text[:100])
    return rows.column(0)[0].as_py()


def _found(table: Table, path: tuple[str, ...], *, is_lenient: bool) -> tuple[str, ...] | None:
    try:
        return _real(table, path)
    except UnknownColumn:
        if is_lenient:
            return None
        raise


def _real(table: Table, path: tuple[str, ...]) -> tuple[str, ...]:
    """A path by the names that columns and fields have, which a statement may write in any case."""
    found: list[str] = []
    fields = list(table.schema)
    kind: pa.DataType | None = None
    for step in path:
        if kind is not None and not pa.types.is_struct(kind):
            found.append(step.lower())  # element, key or value
        else:
            known = next((one for one in fields if one.name.casefold() == step.casefold()), None)
            if known is None:
                raise unknown_column(
                    "no such column; choose among the table's",
                    ".".join(path),
                    [".".join([*found, one.name]) for one in fields],
                    table=table.name,
                )
            found.append(known.name)
        kind = _part(kind, found[-1], fields)
        fields = list(kind) if pa.types.is_struct(kind) else []
    return tuple(found)


def _part(kind: pa.DataType | None, step: str, fields: Sequence[pa.Field]) -> pa.DataType:
    if kind is None or pa.types.is_struct(kind):
        return next(one.type for one in fields if one.name == step)
    if pa.types.is_map(kind):
        return kind.key_type if step == "key" else kind.item_type
    return kind.value_type if pa.types.is_list(kind) else pa.null()


class _Words:
    """The words of an ALTER TABLE or its like, taken one by one."""

    def __init__(self, alteration: Words, forms: str = _FORMS) -> None:
        self._forms = forms
        self._tokens = alteration.tokens
        self._text = alteration.text
        self._place = 0
        self._end = len(self._tokens)

    @property
    def is_over(self) -> bool:
        """Whether nothing is left of the statement, or of the part of a list that is read."""
        return self._place >= self._end

    def take(self, *words: str) -> bool:
        """Whether these words are next, which are then passed."""
        place, left = self._place, list(words)
        while left:
            if place >= self._end or self._tokens[place].token_type is TokenType.STRING:
                return False
            pieces = self._tokens[place].text.upper().split(" ")  # the tokenizer keeps some pairs as one
            if left[: len(pieces)] != pieces:
                return False
            left = left[len(pieces) :]
            place += 1
        self._place = place
        return True

    def table(self) -> exp.Table:
        """The name of a table, with the schema before it or without."""
        path = self.path()
        parts = dict(zip(("this", "db", "catalog"), reversed(path[-3:]), strict=False))
        return exp.Table(**{part: exp.to_identifier(name, True) for part, name in parts.items()})

    def name(self) -> str:
        """A name."""
        token = self._token()
        if token.token_type is TokenType.STRING or not (
            token.text.isidentifier() or token.token_type is TokenType.IDENTIFIER
        ):
            raise self.refused()
        return token.text

    def path(self) -> tuple[str, ...]:
        """Names with dots between them."""
        found = [self.name()]
        while self.take("."):
            found.append(self.name())
        return tuple(found)

    def string(self) -> str:
        """A text in quotes."""
        token = self._token()
        if token.token_type is not TokenType.STRING:
            raise self.refused()
        return token.text

    def until(self, words: Sequence[str]) -> str:
        """The text up to one of some words that stands outside of brackets, or to the end."""
        first, depth = self._place, 0
        while not self.is_over:
            text = self._tokens[self._place].text.upper()
            if not depth and text in words and self._tokens[self._place].token_type is not TokenType.STRING:
                break
            depth += _OPENING.get(text, 0) + _CLOSING.get(text, 0)
            self._place += 1
        if self._place == first:
            raise self.refused()
        return self._text[self._tokens[first].start : self._tokens[self._place - 1].end + 1]

    def several(self, read: Any) -> list[Any]:
        """What is read of each part between commas, in brackets or not."""
        end = self._end
        if self.take("("):
            if self._tokens[-1].text != ")":
                raise self.refused()
            end -= 1
        found = []
        for first, last in self._parts(self._place, end):
            self._place, self._end = first, last
            found.append(read())
            if not self.is_over:
                raise self.refused()
        self._place, self._end = len(self._tokens), len(self._tokens)
        return found

    def bracketed(self, read: Callable[[], T]) -> list[T]:
        """What is read of each part between commas of a list in brackets, which more may follow."""
        if not self.take("("):
            raise self.refused()
        found = [read()]
        while self.take(","):
            found.append(read())
        if not self.take(")"):
            raise self.refused()
        return found

    def number(self) -> int:
        """A whole number."""
        text = self._token().text
        if not text.isdecimal():
            raise self.refused()
        return int(text)

    def properties(self, *, is_set: bool) -> dict[str, str | None]:
        """``('k' = 'v', ...)``, or ``('k', ...)`` to remove them."""
        found: dict[str, str | None] = {}

        def read() -> None:
            key = self.string() if self._tokens[self._place].token_type is TokenType.STRING else ".".join(self.path())
            found[key] = None
            if is_set:
                if not self.take("="):
                    raise self.refused()
                found[key] = self._token().text

        self.several(read)
        return found

    def end(self, found: Any) -> Any:
        """The same, if nothing is left."""
        if not self.is_over:
            raise self.refused()
        return found

    def refused(self) -> InvalidStatement:
        """The error for any other form."""
        found = " ".join(one.text for one in self._tokens)[:200]
        return InvalidStatement("not a form of this statement; use one of the list", found=found, forms=self._forms)

    def _parts(self, first: int, end: int) -> list[tuple[int, int]]:
        parts, depth = [], 0
        for place in range(first, end):
            text = self._tokens[place].text
            depth += _OPENING.get(text, 0) + _CLOSING.get(text, 0)
            if text == "," and not depth and self._tokens[place].token_type is not TokenType.STRING:
                parts.append((first, place))
                first = place + 1
        return [*parts, (first, end)]

    def _token(self) -> Token:
        if self.is_over:
            raise self.refused()
        self._place += 1
        return self._tokens[self._place - 1]
