"""What a notebook shows of a table."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from lakehouse.core.column import COMMENT
from lakehouse.core.html import html_table


def columns_html(title: str, schema: pa.Schema, primary_key: Collection[str]) -> str:
    """A table's columns, one a row, with their types and comments."""
    rows = (
        [
            one.name,
            one.type,
            "" if one.nullable else "not null",
            "primary key" if one.name in primary_key else "",
            (one.metadata or {}).get(COMMENT, b"").decode(),
        ]
        for one in schema
    )
    return html_table(["column", "type", "nulls", "key", "comment"], rows, title, len(schema))
