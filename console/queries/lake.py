"""What the Lake page asks: a row a table."""

from datetime import timedelta
from typing import Any

import pandas as pd

MICROSECOND = timedelta(microseconds=1)


def list_tables(lake: Any) -> pd.DataFrame:
    """A row a table, as stored: rows that tombstones hide are counted."""
    return pd.DataFrame([_summary(lake.table(name)) for name in lake.tables()])


def _summary(table: Any) -> dict[str, Any]:
    version = table.version
    segments = table.segments(as_of=version)
    return {
        "table": table.name,
        "version": version,
        "grain": str(table.grain),
        "first row": min((one.start for one in segments), default=None),
        "last row": max((one.end - MICROSECOND for one in segments), default=None),
        "segments": len(segments),
        "tombstones": len(table.tombstones(as_of=version)),
        "rows": sum(one.rows for one in segments),
        "size": sum(one.bytes for one in segments),
    }
