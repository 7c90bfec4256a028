"""The systems, by the names that ``--systems`` takes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path

from benchmarks.peers.systems.base import System


class Place(Enum):
    """Which packages a system runs with."""

    OURS = "this tree's own lock"
    OURS_ON_PEERS_SPARK = "this tree's own lock, but the peers' Spark"
    PEERS = "the peers' environment"


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a system is found, and where it stands in the tables.

    ``floor`` names the plain Parquet that it is measured against. ``only``: the works that it takes part in.
    """

    name: str
    label: str
    module: str
    place: Place
    by_spark: bool = False
    floor: str | None = None
    is_floor: bool = False
    only: frozenset[str] | None = None
    options: tuple[str, ...] = ()


FLOOR = frozenset({"W1", "W2", "W3", "W4"})
"""The works that plain Parquet can do."""
# Iceberg by Java goes before that by Python, which takes what it has made.
_LISTED = (
    Entry(
        "lakehouse-spark", "lakehouse", "ours:BySpark", Place.OURS_ON_PEERS_SPARK, by_spark=True, floor="plain-spark",
    ),
    Entry("delta", "Delta Lake", "delta:Delta", Place.PEERS, by_spark=True, floor="plain-spark"),
    Entry("iceberg", "Iceberg", "iceberg:Iceberg", Place.PEERS, by_spark=True, floor="plain-spark"),
    Entry("plain-spark", "Parquet by Spark", "spark:PlainSpark", Place.PEERS, by_spark=True, is_floor=True, only=FLOOR),
    Entry("lakehouse", "lakehouse", "ours:InProcess", Place.OURS, floor="plain-duckdb"),
    Entry("delta-rs", "delta-rs", "delta_rs:DeltaRs", Place.PEERS, floor="plain-arrow"),
    Entry("pyiceberg", "pyiceberg", "pyiceberg_:PyIceberg", Place.PEERS, floor="plain-arrow"),
    Entry("ducklake", "DuckLake", "ducklake:DuckLake", Place.PEERS, floor="plain-duckdb-1"),
    Entry(
        "ducklake-files", "DuckLake, inlining off", "ducklake:DuckLakeFiles", Place.PEERS, only=frozenset({"W7"}),
    ),
    Entry("plain-duckdb", "Parquet by DuckDB 2", "plain:ByDuckDB", Place.OURS, is_floor=True, only=FLOOR),
    Entry("plain-duckdb-1", "Parquet by DuckDB 1.5", "plain:ByDuckDB", Place.PEERS, is_floor=True, only=FLOOR),
    Entry("plain-arrow", "Parquet by PyArrow", "plain:ByArrow", Place.OURS, is_floor=True, only=FLOOR),
)  # fmt: skip
ENTRIES = {one.name: one for one in _LISTED}


def open_system(name: str, root: Path, shared: Path) -> System:
    """The system of that name, in this process. Imports its packages."""
    module, _, wanted = ENTRIES[name].module.partition(":")
    found = getattr(import_module(f"benchmarks.peers.systems.{module}"), wanted)
    system: System = found(root, shared)
    return system
