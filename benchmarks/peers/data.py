"""The rows that every system gets: seeded, and with values whose sums are exact in any order."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

FIRST_DAY = date(2024, 1, 1)
DAY_US = 86_400_000_000
FIRST_US = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
CLIENTS = 10_000
GROUPS = 10
PAYLOAD_CHARACTERS = 40
SCHEMA = pa.schema(
    [
        pa.field("ts", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("client", pa.int64()),
        pa.field("key", pa.string(), nullable=False),
        pa.field("value", pa.float64()),
        pa.field("payload", pa.string()),
    ]
)
Array = np.ndarray[Any, Any]


def rows(
    first: int, count: int, *, days: int, day: int = 0, total: int | None = None, clients_from: int = 0, seed: int = 7
) -> pa.Table:
    """Events with keys ``k<first>`` and up, over ``days`` days from ``day`` on.

    They are in order of time as a part of ``total`` events, else at random. Values are multiples of 0.25.

    >>> some = rows(5, 3, days=1)
    >>> some["key"].to_pylist(), some.equals(rows(5, 3, days=1))
    (['k5', 'k6', 'k7'], True)
    """
    random = np.random.default_rng([seed, first, count])
    ids = np.arange(first, first + count, dtype=np.int64)
    times = random.integers(0, days * DAY_US, count) if total is None else ids * (days * DAY_US // total)
    letters = random.bytes(PAYLOAD_CHARACTERS // 2 * count).hex().encode()
    ends = np.arange(count + 1, dtype=np.int32) * PAYLOAD_CHARACTERS
    payload = pa.StringArray.from_buffers(count, pa.py_buffer(ends.tobytes()), pa.py_buffer(letters))
    columns = [
        pa.array(times + FIRST_US + day * DAY_US).cast(SCHEMA.field("ts").type),
        pa.array(random.integers(0, CLIENTS, count) + clients_from),
        pc.binary_join_element_wise("k", pa.array(ids).cast(pa.string()), ""),
        pa.array(random.integers(0, 4_000, count) / 4.0),
        payload,
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def empty() -> pa.Table:
    """No rows."""
    return SCHEMA.empty_table()


def with_day(table: pa.Table) -> pa.Table:
    """The rows with the day of each as a column of its own, for systems that partition by a column."""
    return table.append_column("day", table["ts"].cast(pa.date32()))


def day_text(day: int) -> str:
    """A day by its number.

    >>> day_text(31)
    '2024-02-01'
    """
    return (FIRST_DAY + timedelta(days=day)).isoformat()


def value_sum(table: pa.Table) -> float:
    """The exact sum of the values."""
    return float(pc.sum(table["value"]).as_py() or 0.0)


@dataclass(frozen=True, slots=True)
class Totals:
    """What a table holds: rows, the sum of their values, and (where asked for) how many keys differ."""

    rows: int
    total: float
    keys: int | None = None


@dataclass(frozen=True)
class Source:
    """Parquet files to be loaded, and what is known of their rows without asking any system."""

    folder: Path
    rows: int
    days: int

    @cached_property
    def files(self) -> list[str]:
        """Paths, in order of their rows."""
        return sorted(str(path) for path in self.folder.glob("*.parquet"))

    @cached_property
    def client(self) -> Array:
        """Each row's client."""
        return self._known("client")

    @cached_property
    def value(self) -> Array:
        """Each row's value."""
        return self._known("value")

    @cached_property
    def day(self) -> Array:
        """Each row's day, from 0."""
        return self._known("day")

    def _known(self, name: str) -> Array:
        found: Array = np.load(self.folder / f"{name}.npy", mmap_mode="r")
        return found

    def totals(self, keep: Array | None = None) -> Totals:
        """Of all rows, or of those that a mask keeps."""
        if keep is None:
            return Totals(self.rows, float(self.value.sum()), self.rows)
        count = int(keep.sum())
        return Totals(count, float(self.value[keep].sum()), count)

    def groups(self) -> dict[int, tuple[float, int]]:
        """By the client's last digit, the sum of the values and the number of rows."""
        groups = self.client % GROUPS
        sums = np.bincount(groups, weights=self.value, minlength=GROUPS)
        counts = np.bincount(groups, minlength=GROUPS)
        return {number: (float(sums[number]), int(counts[number])) for number in range(GROUPS) if counts[number]}

    def sample(self, count: int, quarter: int) -> pa.Table:
        """``count`` rows that lie evenly over all; another choice for each ``quarter`` from 0 to 3."""
        step = self.rows // count
        places = np.arange(count, dtype=np.int64) * step + quarter % 4 * step // 4
        each = self.rows // len(self.files)
        chosen = []
        for number, path in enumerate(self.files):
            inside = places[places // each == number] - number * each
            chosen.append(pq.read_table(path, schema=SCHEMA).take(pa.array(inside)))
        return pa.concat_tables(chosen)


def make_source(folder: Path, count: int, days: int, files: int, *, is_ordered: bool) -> Source:
    """The source in a folder; its files are written the first time.

    ``count`` is rounded down to a multiple of ``files``.
    """
    each = count // files
    source = Source(folder, each * files, days)
    if (folder / "done.json").exists():
        return source
    making = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    known: dict[str, list[Array]] = {"client": [], "value": [], "day": []}
    for number in range(files):
        table = rows(number * each, each, days=days, total=each * files if is_ordered else None)
        pq.write_table(table, making / f"{number:03d}.parquet")
        known["client"].append(table["client"].to_numpy().astype(np.int32))
        known["value"].append(table["value"].to_numpy())
        known["day"].append(((table["ts"].cast(pa.int64()).to_numpy() - FIRST_US) // DAY_US).astype(np.int16))
    for name, parts in known.items():
        np.save(making / f"{name}.npy", np.concatenate(parts))
    (making / "done.json").write_text(json.dumps({"rows": each * files, "days": days}))
    shutil.rmtree(folder, ignore_errors=True)
    making.rename(folder)
    return source
