"""Everything that the catalog's database holds, row by row, unpacked: for a search of what it should no longer hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlalchemy import Connection, LargeBinary, Text, select
from sqlalchemy.sql.schema import Table

from lakehouse.catalog.store.encoding import decode_keys, decode_map, decode_statistics
from lakehouse.catalog.store.rows import DamagedPage, page_tables
from lakehouse.catalog.store.tables import metadata
from lakehouse.core.column import DEFAULT
from lakehouse.core.erased import words_of
from lakehouse.core.segment_columns import HIGH, LOW
from lakehouse.core.sets import decode_set
from lakehouse.errors import InternalError
from lakehouse.schema.json_values import decode_value

OF_USERS = frozenset({"message", "app", "name", "query", "columns", "comment"})
"""Columns whose texts users wrote."""
_PART_DEFAULT = DEFAULT.decode()
_ESCAPED = re.compile(r"\\(.)")
_DEFAULTS = ("default", "default_for_new")


@dataclass(frozen=True, slots=True)
class Held:
    """What a cell holds: texts, words that users wrote, values by column of a user's table, or such columns."""

    place: str
    """The catalog's table and column, as in ``segment.statistics``."""
    texts: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    values: tuple[tuple[str | None, Any], ...] = ()
    """Each with the column that it is of, as far as that is known."""
    columns: tuple[tuple[str, pa.ChunkedArray], ...] = ()
    is_damaged: bool = False
    """Whether it is not what was written, and so was not unpacked."""


def read_cells(connection: Connection) -> Iterator[Held]:
    """What every text and every content of the database holds. Cost: every row of it."""
    for table in metadata.sorted_tables:
        columns = [one for one in table.columns if isinstance(one.type, Text | LargeBinary) and one.name != "checksum"]
        if columns:
            yield from _of_table(connection, table, columns)


def _of_table(connection: Connection, table: Table, columns: list[Any]) -> Iterator[Held]:
    for row in connection.execute(select(*columns).execution_options(yield_per=500)):
        for column, cell in zip(columns, row, strict=True):
            if cell is not None:
                yield unpacked(table.name, column.name, cell)


def unpacked(table: str, column: str, cell: Any) -> Held:
    """What a cell of a column of the catalog, or of the same column of an export, holds."""
    place = f"{table}.{column}"
    if isinstance(cell, bytes | memoryview):
        return _of_content(place, column, bytes(cell))
    if not isinstance(cell, str):
        return Held(place)
    if column == "statistics":
        low, high, _ = decode_statistics(cell)
        return Held(place, values=(*low.items(), *high.items()))
    if column == "properties":
        written = words_of(decode_map(cell))
        return Held(place, words=(*written, *written.values()))
    if column == "keys":
        return Held(place, values=_named(decode_keys(cell, {}) or {}))
    if column == "definition":
        words, values = told_in(cell)
        return Held(place, texts=tuple(texts_of(cell)), words=words, values=values)
    if column not in OF_USERS:
        return Held(place, texts=tuple(texts_of(cell)))
    # A view's query may have escaped what it compares with.
    plain = (_ESCAPED.sub(r"\1", cell), cell.replace("''", "'")) if column == "query" else ()
    return Held(place, words=(*texts_of(cell), *plain))


def _of_content(place: str, column: str, content: bytes) -> Held:
    """What a set of keys or a key frame's page holds; hashes and sets of row ids hold no value."""
    if column == "page":
        try:
            body, masks = page_tables(content)
        except (DamagedPage, pa.ArrowException, OSError):
            return Held(place, is_damaged=True)
        bounds = [
            (name.partition(":")[2], body.column(name)) for name in body.column_names if name.startswith((LOW, HIGH))
        ]
        rows = [] if masks is None else masks.select(["keys", "statistics"]).to_pylist()
        inside = [unpacked("", name, cell) for row in rows for name, cell in row.items() if cell is not None]
        return Held(place, values=tuple(value for one in inside for value in one.values), columns=tuple(bounds))
    return keys_in(place, content) if column == "content" and place.startswith("tombstone_set") else Held(place)


def keys_in(place: str, content: bytes) -> Held:
    """A set of primary keys, or of row ids, which hold no value."""
    try:
        found = decode_set("key", content)
    except InternalError:
        return Held(place, is_damaged=True)
    except (pa.ArrowException, OSError):  # Arrow raises OSError for bytes that are no stream: they are row ids
        return Held(place)
    assert isinstance(found, pa.Table)
    return Held(place, columns=tuple(zip(found.column_names, found.columns, strict=True)))


def texts_of(text: str) -> Iterator[str]:
    """A text, and the texts inside it if it is JSON, where characters are written in another way."""
    yield text
    for key, leaf in _leaves("", _json(text) if text[:1] in ("{", "[") else None):
        yield from (key, leaf) if isinstance(leaf, str) else (key,)


def told_in(definition: str) -> tuple[tuple[str, ...], tuple[tuple[str | None, Any], ...]]:
    """Words and values of users in a table's definition: comments, properties, defaults with their columns' names.

    >>> told_in('{"properties": {"comment": "of Ada"}, "columns": {"3": {"stored": "x", "default": 7}}}')
    (('of Ada',), (('x', 7),))
    """
    words: list[str] = []
    values: list[tuple[str | None, Any]] = []

    def look(held: Any) -> None:
        match held:
            case Mapping():
                stored = held.get("stored")
                values.extend((str(stored), decode_value(held[one])) for one in _DEFAULTS if stored and one in held)
                properties = held.get("properties")
                words.extend([str(held["comment"])] if held.get("comment") else [])
                values.extend([(None, decode_value(_json(held[_PART_DEFAULT])))] if _PART_DEFAULT in held else [])
                words.extend(map(str, properties.values()) if isinstance(properties, Mapping) else ())
                for one in (one for name, one in held.items() if name != "properties"):
                    look(one)
            case list():
                for one in held:
                    look(one)
            case str() if held[:1] in ("{", "["):
                look(_json(held))

    look(_json(definition))
    return tuple(words), tuple(values)


def _json(text: str) -> Any:
    """What a text is as JSON; None for others."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _leaves(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Every value inside another, with the name under which it is."""
    match value:
        case Mapping():
            for name, one in value.items():
                yield from _leaves(name, one)
        case list():
            for one in value:
                yield from _leaves(key, one)
        case None:
            return
        case _:
            yield key, value


def _named(keys: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, value) for name, values in keys.items() for value in values)
