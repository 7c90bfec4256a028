"""Queries of the Schema page: a table's definition at a version, its columns, and its first rows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from lakehouse.core import Interval
from lakehouse.core.column import COMMENT
from lakehouse.core.spec import FIELD_ID, TableSpec
from lakehouse.engine.frames import first_rows
from lakehouse.sql.show import role_in
from lakehouse.sql.types import column_type_name, default_text, type_name
from shown import shown

PREVIEW_ROWS = 100
_MOST_LETTERS = 200


@dataclass(frozen=True, slots=True)
class Definition:
    """What a table is at a version: facts by name, a row a column and a part of one, a row a property."""

    facts: Mapping[str, str]
    columns: pd.DataFrame
    properties: pd.DataFrame


def read_definition(lake: Any, name: str, as_of: str | None) -> Definition:
    """A table's definition at a version, tag or time. Cost: the definition; no row. Raises `VersionNotFound`."""
    table = lake.table(name)
    spec = table.spec_at(as_of)
    facts = {
        "Time": spec.time or "none",
        "Chunks": f"one a {spec.grain.value}" if spec.time else "one, all of time",
        "Primary key": ", ".join(spec.primary_key) or "none",
        "Clustered by": ", ".join(spec.cluster_by) or "none",
        "Write order": f"by {spec.write_order}",
    }
    properties = pd.DataFrame({"property": shown(key), "value": shown(held)} for key, held in spec.properties.items())
    columns = pd.DataFrame(line for place, one in enumerate(spec.schema, 1) for line in _column(spec, place, one))
    return Definition({fact: shown(held, _MOST_LETTERS) for fact, held in facts.items()}, columns, properties)


def _column(spec: TableSpec, place: int, column: pa.Field) -> Iterator[dict[str, Any]]:
    yield {
        "place": str(place),
        "column": shown(column.name, _MOST_LETTERS),
        "type": shown(column_type_name(column), _MOST_LETTERS),
        "nullable": "yes" if column.nullable else "no",
        "role": role_in(spec, column.name),
        "comment": shown(spec.history(column).comment or ""),
        "default": shown(default_text(spec, column) or "", _MOST_LETTERS),
        "field id": _field_id(column),
    }
    yield from _parts(str(place), column.name, column.type)


def _parts(place: str, path: str, kind: pa.DataType) -> Iterator[dict[str, Any]]:
    """A row for each field of structs in a column, after the field that holds it."""
    if not pa.types.is_struct(kind):
        return
    for number, part in enumerate(kind, 1):
        yield {
            "place": f"{place}.{number}",
            "column": shown(f"{path}.{part.name}", _MOST_LETTERS),
            "type": shown(type_name(part.type), _MOST_LETTERS),
            "nullable": "yes" if part.nullable else "no",
            "role": "",
            "comment": shown((part.metadata or {}).get(COMMENT, b"").decode("utf-8", "replace")),
            "default": "",
            "field id": _field_id(part),
        }
        yield from _parts(f"{place}.{number}", f"{path}.{part.name}", part.type)


def _field_id(column: pa.Field) -> str:
    """Its number in Parquet files, by which a column stays the same under another name; nothing for what has none."""
    return (column.metadata or {}).get(FIELD_ID, b"").decode("ascii", "replace")


def preview(lake: Any, name: str, as_of: str | None, interval: Interval | None) -> pa.Table:
    """The first rows that are visible at a version, of an interval if one is given: as many as a page shows.

    Cost: a plan, and what it takes of the oldest files to have that many. Raises `SegmentUnreadable`.
    """
    with lake.table(name).scan(as_of=as_of, interval=interval).to_reader() as reader:
        return first_rows(reader, PREVIEW_ROWS)
