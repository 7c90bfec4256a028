"""Files with one bit flipped: a reader gets an error or the rows that were written; nothing is made of them.

The oracle is the rows as they were given, kept as Python values.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

import lakehouse
from lakehouse.core.codec import CODECS
from lakehouse.errors import SegmentUnreadable
from lakehouse.testing.campaign.outcome import Outcome

SCHEMA = pa.schema(
    [
        pa.field("ts", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("id", pa.int64(), nullable=False),
        ("tiny", pa.int8()),
        ("ratio", pa.float64()),
        ("flag", pa.bool_()),
        ("word", pa.string()),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("local", pa.timestamp("us")),
        ("money", pa.decimal128(20, 2)),
        ("list", pa.list_(pa.int64())),
        ("struct", pa.struct([("x", pa.int32()), ("names", pa.list_(pa.string()))])),
        ("map", pa.map_(pa.string(), pa.float64())),
    ]
)
_START = datetime(2013, 1, 5, tzinfo=UTC)
_FILES = (1500, 60, 60)
"""Row counts of the files; the first has several blocks."""
_UPDATED = 30
_REGIONS = 3
"""One flip in this many is in the last quarter of a file, where its footer is."""


def run(count: int, seed: int) -> Outcome:
    """Flip ``count`` bits, one at a time, and read each file in every way."""
    wrong: list[str] = []
    refused = 0
    chance = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
    with tempfile.TemporaryDirectory(prefix="lakehouse-flips-") as folder:
        lakes = [Flipped.make(Path(folder, name), name, chance) for name in CODECS]
        for number in range(count):
            found = lakes[number % len(lakes)].flip(chance)
            refused += found.refused
            wrong += [f"seed={seed} flip={number} {one}" for one in found.wrong]
        for one in lakes:
            one.lake.close()
    return Outcome("flips", count, refused, wrong)


def rows_of(chance: random.Random, first: int, count: int) -> list[dict[str, Any]]:
    """Rows of every type, a fifth of their values null, texts out of few words."""

    def value(make: Callable[[], Any]) -> Any:
        return None if chance.random() < 0.2 else make()

    return [
        {
            "ts": _START + timedelta(seconds=number),
            "id": number,
            "tiny": value(lambda: chance.randrange(-128, 128)),
            "ratio": value(chance.random),
            "flag": value(lambda: chance.random() < 0.5),
            "word": value(lambda: chance.choice(["one", "two", "three", ""])),
            "raw": value(lambda: chance.randbytes(chance.randrange(9))),
            "day": value(lambda: date(2013, 1, 1) + timedelta(days=chance.randrange(900))),
            "local": value(lambda: datetime(1999, 1, 1) + timedelta(seconds=chance.randrange(10**9))),  # noqa: DTZ001
            "money": value(lambda: Decimal(chance.randrange(-(10**12), 10**12)).scaleb(-2)),
            "list": value(lambda: [chance.randrange(9) for _ in range(chance.randrange(4))]),
            "struct": value(lambda: {"x": chance.randrange(9), "names": ["a", None][: chance.randrange(3)]}),
            "map": value(lambda: [(name, chance.random()) for name in "ab"[: chance.randrange(3)]]),
        }
        for number in range(first, first + count)
    ]


@dataclass(slots=True)
class Found:
    """How often a flip was reported, and where it was not and should have been."""

    refused: int = 0
    wrong: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Flipped:
    """A lake of one table with a few small files, one of which stores row ids, and the rows that it holds."""

    lake: Any
    table: Any
    rows: list[dict[str, Any]]

    @classmethod
    def make(cls, folder: Path, compression: str, chance: random.Random) -> Flipped:
        """A lake below a folder."""
        lake = lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse")
        properties = {"compression": compression, "verify": "pages", "index": "word"}
        table = lake.create_table("flights", SCHEMA, time="ts", cluster_by={"id": 16}, properties=properties)
        rows: list[dict[str, Any]] = []
        for count in _FILES:
            fresh = rows_of(chance, len(rows), count)
            table.append(pa.Table.from_pylist(fresh, SCHEMA))
            rows += fresh
        table.update({"tiny": "1"}, f"id < {_UPDATED}")
        rows = [{**row, "tiny": 1} if row["id"] < _UPDATED else row for row in rows]
        return cls(lake, table, rows)

    def flip(self, chance: random.Random) -> Found:
        """Flip a bit of a file, read it in every way, and restore the file."""
        segment = chance.choice(self.table.segments())
        at = chance.randrange(segment.bytes)
        if chance.randrange(_REGIONS) == 0:
            at = segment.bytes - 1 - chance.randrange(segment.bytes // 4)
        bit = chance.randrange(8)
        place = f"{self.table.spec.codecs} byte {at} of {segment.bytes} bit {bit}"
        path = self.lake.warehouse / segment.path
        with changed(path, {at: 1 << bit}):
            found = self.look(segment.path)
        return Found(found.refused, [f"{place}: {one}" for one in found.wrong])

    def look(self, damaged: str) -> Found:
        """Read a lake with one damaged file in every way."""
        found = Found()
        for verify in ("pages", "content"):
            self.table.set_properties({"verify": verify})
            self._read(verify, found)
        self._check(damaged, found)
        self._compact(found)
        return found

    def _read(self, verify: str, found: Found) -> None:
        columns = (None, ["id", "word"], ["list", "id"])
        for chosen in columns:
            try:
                seen = self.table.scan(columns=chosen).to_arrow().to_pylist()
            except SegmentUnreadable:
                found.refused += 1
                continue
            except Exception as error:  # noqa: BLE001 - whatever it is, it is wrong
                found.wrong.append(f"a read under {verify} raised {error!r}")
                continue
            names = SCHEMA.names if chosen is None else chosen
            expected = [{name: row[name] for name in names} for row in self.rows]
            if sorted(seen, key=_id) != expected:
                found.wrong.append(f"a read under {verify} of {names} gave other rows without an error")
            elif verify == "content":
                found.wrong.append("a read under content noticed nothing")

    def _check(self, damaged: str, found: Found) -> None:
        try:
            findings = self.lake.check(deep=True).findings
        except Exception as error:  # noqa: BLE001 - whatever it is, it is wrong
            found.wrong.append(f"a deep check raised {error!r}")
            return
        if damaged in {one.subject for one in findings}:
            found.refused += 1
        else:
            found.wrong.append("a deep check did not name the file")

    def _compact(self, found: Found) -> None:
        before = self.table.version
        try:
            commit = self.table.compact()
        except SegmentUnreadable:
            found.refused += 1
        except Exception as error:  # noqa: BLE001 - whatever it is, it is wrong
            found.wrong.append(f"a compaction raised {error!r}")
        else:
            found.wrong.append(f"a compaction took the damaged file: {commit}")
        if self.table.version != before:
            found.wrong.append("a compaction of a damaged file made a version")


def _id(row: dict[str, Any]) -> int:
    number: int = row["id"]
    return number


class changed:  # noqa: N801 - read as a sentence: with changed(path, ...)
    """Change some bytes of a file, by exclusive or, until the context is left."""

    def __init__(self, path: Path, masks: dict[int, int]) -> None:
        self._path = path
        self._masks = masks

    def __enter__(self) -> None:
        self._apply()

    def __exit__(self, *_: object) -> None:
        self._apply()

    def _apply(self) -> None:
        with self._path.open("r+b") as file:
            for at, mask in self._masks.items():
                (held,) = os.pread(file.fileno(), 1, at)
                os.pwrite(file.fileno(), bytes([held ^ mask]), at)
