"""What the catalog knows of a file in the warehouse, and so when it goes."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select

from lakehouse.catalog.store.models import garbage, lake_table, operation, segment, segment_summary, tombstone
from lakehouse.core.interval import from_us


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Files that versions read, files that wait for a collection, and operations by their folders."""

    live: frozenset[str]
    garbage: dict[str, str]
    """Since when each is, as text."""
    operations: dict[str, str]
    """State of each operation, by its folder."""
    tables: dict[str, str]
    """Names of tables, by folder."""

    def of(self, path: str) -> tuple[str, str]:
        """What a file is, and what takes a value away that it holds. ``path`` is relative to the warehouse."""
        parts = path.split("/")
        table = self.tables.get(parts[0], "no table")
        if path in self.live:
            return f"a file of {table} that versions read", f"erase these rows of {table}"
        if path in self.garbage:
            return f"garbage of {table} since {self.garbage[path]}", "run collect; it goes after its grace"
        match self.operations.get("/".join(parts[:2])):
            case "running":
                return f"a file of a running operation on {table}", "wait for it or release it, then search again"
            case None:
                return "a file that the catalog does not know", "delete it, or run check with --delete-unknown"
            case _:
                return f"a file that an operation on {table} left", "run collect; it goes after its grace"


def read_whereabouts(connection: Connection) -> Whereabouts:
    """What the catalog knows of files. Cost: the path of each."""
    named = [select(of.c.path).where(of.c.path != "") for of in (segment, tombstone, segment_summary)]
    waiting = connection.execute(select(garbage.c.path, garbage.c.marked_us))
    ran = connection.execute(
        select(lake_table.c.folder, operation.c.id, operation.c.state).join(
            lake_table, lake_table.c.id == operation.c.table_id
        )
    )
    return Whereabouts(
        live=frozenset(path for one in named for path in connection.execute(one).scalars()),
        garbage={path: f"{from_us(since):%Y-%m-%d %H:%M} UTC" for path, since in waiting},
        operations={f"{folder}/{name}": state for folder, name, state in ran},
        tables={row.folder: row.name for row in connection.execute(select(lake_table.c.folder, lake_table.c.name))},
    )
