"""What the Versions page asks: the log."""

from typing import Any

import pandas as pd

import links
from queries.words import change


def list_versions(lake: Any, name: str, limit: int) -> pd.DataFrame:
    """A row a commit of one table, newest first, with the tags that name it and the run that made it."""
    tags: dict[int, list[str]] = {}
    for tag, version in lake.tags().items():
        tags.setdefault(version, []).append(tag)
    return pd.DataFrame(
        [
            {
                "version": commit.version,
                "committed": commit.committed_at,
                "operation": commit.operation,
                "tables": ", ".join(commit.tables),
                "segments": change(commit.added, commit.dropped),
                "rows": change(commit.rows_added, commit.rows_deleted),
                "tombstones": change(commit.tombstones_added, commit.tombstones_dropped),
                "tags": ", ".join(sorted(tags.get(commit.version, []))),
                "message": commit.message or "",
                "run": links.run(commit.properties),
            }
            for commit in lake.table(name).log(limit)
        ]
    )
