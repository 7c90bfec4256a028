"""A timeline as a small picture that fits into a materialization's metadata."""

import base64
from typing import TYPE_CHECKING

from lakehouse.core.bars import bars
from lakehouse.core.chunk_rows import chunk_rows
from lakehouse.core.interval import Interval
from lakehouse.core.svg import svg

if TYPE_CHECKING:
    from lakehouse.table.table import Table


def timeline_picture(table: "Table", version: int, within: Interval | None = None) -> str:
    """The timeline of an interval at a version as Markdown: versions stacked over time, and the rows of each chunk.

    A few kB whatever the number of segments: neighbours closer than two pixels are drawn as one, and only the twelve
    newest places in the write order are shown. Made from the catalog alone: rows are those stored.
    """
    segments = table.segments(as_of=version, interval=within)
    tombstones = table.tombstones(as_of=version, interval=within)
    drawn = bars(segments, tombstones, within)
    if not drawn:
        return "nothing is visible"
    origins = table.session.catalog.origins(table.spec, {bar.of.id for bar in drawn})
    versions = {entry: origin.version for entry, origin in origins.items()}
    picture = svg(drawn, versions=versions, rows=chunk_rows(drawn, table.spec.grain) if table.time else None)
    return _image(picture, f"timeline of {table.name} at version {version}")


def _image(picture: str, title: str) -> str:
    """SVG as an image in Markdown."""
    return f"![{title}](data:image/svg+xml;base64,{base64.b64encode(picture.encode()).decode()})"
