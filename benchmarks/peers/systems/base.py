"""What a work asks of a system. An adapter gives as much of it as its system can do."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.peers.data import FIRST_US, Totals

SCAN = "SELECT client % 10 AS g, sum(value) AS s, count(*) AS n FROM {table} GROUP BY client % 10"
FIELDS = "ts, client, key, value, payload"
Groups = dict[int, tuple[float, int]]


class Unsupported(Exception):
    """The system cannot do this; that is no failure."""


class System:
    """One system in one process. Tables hold `benchmarks.peers.data.SCHEMA` and are laid out by day.

    ``root`` is the system's own folder, ``shared`` one for what several make once. Names of tables are plain words.
    """

    packages: tuple[str, ...] = ()
    """Distributions whose versions are reported."""
    shares_catalog = False
    """`metadata_bytes` is the size of the catalog of all tables."""

    def __init__(self, root: Path, shared: Path) -> None:
        self.root = root
        self.shared = shared

    def close(self) -> None:
        """Let go of what a process must not leave behind."""

    def versions(self) -> dict[str, str]:
        """Versions of what runs here."""
        return {name: metadata.version(name) for name in self.packages}

    # Tables

    def create(self, table: str) -> None:
        """Make an empty table."""
        raise Unsupported

    def drop(self, table: str) -> None:
        """Take a table and its files away."""
        raise Unsupported

    def batch(self, rows: pa.Table) -> Any:
        """Rows in the form that this system's writes take; made outside of what is timed."""
        return rows

    # Writes; each commits before it returns

    def load(self, table: str, files: list[str], *, scatter: int | None = None) -> None:
        """Ingest Parquet files in one commit; with ``scatter`` leave that many small files for each day."""
        raise Unsupported

    def append(self, table: str, batch: Any) -> None:
        """Add rows."""
        raise Unsupported

    def delete(self, table: str, clients: list[int], days: tuple[int, int] | None = None) -> None:
        """Delete the rows of some clients (from one day up to before another)."""
        raise Unsupported

    def overwrite(self, table: str, day: int, batch: Any) -> None:
        """Put rows in the place of one day's."""
        raise Unsupported

    def merge(self, table: str, batch: Any) -> None:
        """Update value and payload of rows with equal keys, insert the rest."""
        raise Unsupported

    def upsert(self, table: str, batch: Any) -> None:
        """The same by a blind write of whole rows, where there is such a thing."""
        raise Unsupported

    def compact(self, table: str) -> None:
        """Make few files of many."""
        raise Unsupported

    def maintain(self, table: str) -> None:
        """What the system's own maintenance does about small files."""
        self.compact(table)

    def begin(self, table: str, kind: str, argument: Any) -> Callable[[], None]:
        """Begin a delete, an overwrite or an append now; what is returned ends and commits it.

        ``argument``: clients and days, a day and a batch, or a batch.
        """
        raise Unsupported

    # Reads

    def totals(self, table: str, *, keys: bool = False) -> Totals:
        """Rows, the sum of their values, and with ``keys`` how many keys differ."""
        raise Unsupported

    def scan(self, table: str) -> Groups:
        """The whole table, grouped: see `SCAN`."""
        raise Unsupported

    def look(self, table: str, day: int, client: int) -> tuple[int, float]:
        """Count and sum of values of one client on one day."""
        raise Unsupported

    # Looks

    def files(self, table: str) -> dict[str, int]:
        """Bytes of each live data file by path."""
        raise Unsupported

    def metadata_bytes(self, table: str) -> int:
        """Bytes of everything that is kept beside the data files."""
        raise Unsupported

    # Metadata at scale, without data files behind it

    def fabricate(self, table: str, files: int, days: int) -> None:
        """A new table of that many files, evenly over the days, in 20 commits."""
        raise Unsupported

    def plan(self, table: str, day: int, *, cold: bool) -> int | None:
        """How many files a scan of one day would open (None: unknown); ``cold`` opens the table anew."""
        raise Unsupported

    def fabricate_versions(self, table: str, count: int) -> None:
        """A new table of that many commits, each of which adds one small file (or row)."""
        raise Unsupported

    def open_version(self, table: str, number: int) -> int:
        """Open the table as the commit of that number left it, anew, and say how many files (or rows) it has."""
        raise Unsupported


def groups_of(listed: Any) -> Groups:
    """What `SCAN` returned, as a mapping."""
    return {int(group): (float(total), int(count)) for group, total, count in listed}


def by_group(client: pa.ChunkedArray, value: pa.ChunkedArray) -> Groups:
    """`SCAN` over two columns in memory."""
    import pyarrow.compute as pc  # noqa: PLC0415 - only where this is used

    last = pc.subtract(client, pc.multiply(pc.divide(client, 10), 10))
    found = pa.table({"g": last, "v": value}).group_by("g").aggregate([("v", "sum"), ("v", "count")])
    return groups_of(zip(*(found[name].to_pylist() for name in ("g", "v_sum", "v_count")), strict=True))


def day_us(day: int) -> int:
    """When a day begins, in microseconds since 1970."""
    return FIRST_US + day * 86_400_000_000


def folder_bytes(folder: Path, *, but: str | None = None) -> int:
    """Bytes of the files in a folder, without those whose name ends in ``but``."""
    return sum(
        path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and not (but is not None and path.name.endswith(but))
    )
