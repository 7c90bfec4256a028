"""Tables of Delta and Iceberg that are metadata alone: no data file is behind them."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.peers.data import FIRST_DAY, FIRST_US, day_text

COMMITS = 20
ROWS, BYTES = 1_000, 50_000
_MILLISECONDS = 1_704_067_200_000
_TYPES = {"ts": "timestamp", "client": "long", "key": "string", "value": "double", "payload": "string", "day": "date"}


# Delta: a log of JSON, and a checkpoint by delta-rs


def delta_files(folder: Path, files: int, days: int) -> None:
    """``files`` files evenly over the days in 20 commits, then a checkpoint."""
    _delta_begin(folder)
    for turn in range(COMMITS):
        numbers = range(files * turn // COMMITS, files * (turn + 1) // COMMITS)
        _delta_commit(folder, turn + 1, [_delta_add(number, number * days // files) for number in numbers])
    _delta_checkpoint(folder)


def delta_versions(folder: Path, count: int) -> None:
    """``count`` commits of one file, with a checkpoint after each 100."""
    _delta_begin(folder)
    for number in range(1, count + 1):
        _delta_commit(folder, number, [_delta_add(number, number % 30)])
        if number % 100 == 0:
            _delta_checkpoint(folder)


def _delta_begin(folder: Path) -> None:
    (folder / "_delta_log").mkdir(parents=True)
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in _TYPES.items()]
    described = {
        "id": "00000000-0000-4000-8000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": ["day"],
        "configuration": {},
        "createdTime": 0,
    }
    protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
    _write_lines(folder, 0, [{"protocol": protocol}, {"metaData": described}])


def _delta_commit(folder: Path, version: int, added: list[dict[str, Any]]) -> None:
    info = {"commitInfo": {"timestamp": _MILLISECONDS + version, "operation": "WRITE"}}
    _write_lines(folder, version, [info, *added])


def _write_lines(folder: Path, version: int, lines: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "_delta_log" / f"{version:020d}.json").write_text(text)


def _delta_add(number: int, day: int) -> dict[str, Any]:
    start = datetime(2024, 1, 1) + timedelta(days=day)  # noqa: DTZ001 - only its text is used
    low, high = (one.strftime("%Y-%m-%dT%H:%M:%S.000Z") for one in (start, start + timedelta(hours=23)))
    known = {
        "numRecords": ROWS,
        "minValues": {"ts": low, "client": 0, "value": 0.0},
        "maxValues": {"ts": high, "client": 9999, "value": 999.75},
        "nullCount": dict.fromkeys(list(_TYPES)[:5], 0),
    }
    return {
        "add": {
            "path": f"day={day_text(day)}/part-{number:08d}.parquet",
            "partitionValues": {"day": day_text(day)},
            "size": BYTES,
            "modificationTime": _MILLISECONDS,
            "dataChange": True,
            "stats": json.dumps(known),
        }
    }


def _delta_checkpoint(folder: Path) -> None:
    from deltalake import DeltaTable  # noqa: PLC0415 - only the peers' environment has it

    DeltaTable(str(folder)).create_checkpoint()


# Iceberg: pyiceberg's own commits, made once for both of its systems


def iceberg_catalog(root: Path) -> Any:
    """A catalog in SQLite beside its warehouse."""
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 - only the peers' environment has it

    return SqlCatalog("peers", uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}/warehouse")


def iceberg_create(catalog: Any, table: str) -> Any:
    """An empty table, partitioned by the day of its time."""
    from pyiceberg.partitioning import PartitionField, PartitionSpec  # noqa: PLC0415
    from pyiceberg.schema import Schema  # noqa: PLC0415
    from pyiceberg.transforms import DayTransform  # noqa: PLC0415
    from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestamptzType  # noqa: PLC0415

    kinds = {"ts": TimestamptzType(), "client": LongType(), "key": StringType(), "value": DoubleType()}
    kinds["payload"] = StringType()
    schema = Schema(*(NestedField(number, name, kind) for number, (name, kind) in enumerate(kinds.items(), 1)))
    return catalog.create_table(
        f"db.{table}", schema, partition_spec=PartitionSpec(PartitionField(1, 1000, DayTransform(), "ts_day"))
    )


def iceberg_files(shared: Path, files: int, days: int) -> str:
    """The metadata file of a table of ``files`` files evenly over the days in 20 commits."""

    def make(table: Any) -> list[Any]:
        for turn in range(COMMITS):
            numbers = range(files * turn // COMMITS, files * (turn + 1) // COMMITS)
            _iceberg_commit(table, [(number, number * days // files) for number in numbers])
        return [table.metadata_location]

    return str(_once(shared, f"files_{files}_{days}", make)[0])


def iceberg_versions(shared: Path, count: int, commit_all: Callable[[], tuple[str, list[int]]] | None = None) -> Any:
    """The metadata file of a table of ``count`` commits of one file, and their snapshots.

    ``commit_all`` makes the table where that is faster than pyiceberg, whose commits grow slower with each.
    """
    known = shared / "iceberg" / f"versions_{count}.json"
    if commit_all is not None and not known.exists():
        known.parent.mkdir(parents=True, exist_ok=True)
        known.write_text(json.dumps(commit_all()))

    def make(table: Any) -> list[Any]:
        for number in range(count):
            _iceberg_commit(table, [(number, number % 30)])
        snapshots = sorted(table.metadata.snapshots, key=lambda one: one.sequence_number)
        return [table.metadata_location, [one.snapshot_id for one in snapshots]]

    return _once(shared, f"versions_{count}", make)


def _once(shared: Path, name: str, make: Callable[[Any], list[Any]]) -> list[Any]:
    folder = shared / "iceberg"
    known = folder / f"{name}.json"
    if not known.exists():
        folder.mkdir(parents=True, exist_ok=True)
        catalog = iceberg_catalog(folder)
        catalog.create_namespace_if_not_exists("db")
        if catalog.table_exists(f"db.{name}"):  # a run that was cut short left it
            catalog.drop_table(f"db.{name}")
        known.write_text(json.dumps(make(iceberg_create(catalog, name))))
    found: list[Any] = json.loads(known.read_text())
    return found


def _iceberg_commit(table: Any, numbered: list[tuple[int, int]]) -> None:
    with table.transaction() as change, change.update_snapshot().fast_append() as added:
        for number, day in numbered:
            added.append_data_file(_iceberg_file(table, number, day))


def _iceberg_file(table: Any, number: int, day: int) -> Any:
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat  # noqa: PLC0415
    from pyiceberg.typedef import Record  # noqa: PLC0415

    low = FIRST_US + day * 86_400_000_000
    made = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{table.location()}/data/ts_day={day_text(day)}/{number:08d}.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record((FIRST_DAY - date(1970, 1, 1)).days + day),
        record_count=ROWS,
        file_size_in_bytes=BYTES,
        column_sizes={1: 8000, 2: 8000, 3: 8000, 4: 8000, 5: 18000},
        value_counts=dict.fromkeys(range(1, 6), ROWS),
        null_value_counts=dict.fromkeys(range(1, 6), 0),
        nan_value_counts={},
        lower_bounds={1: struct.pack("<q", low), 2: struct.pack("<q", 0), 4: struct.pack("<d", 0.0)},
        upper_bounds={
            1: struct.pack("<q", low + 23 * 3_600_000_000),
            2: struct.pack("<q", 9999),
            4: struct.pack("<d", 999.75),
        },
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
    )
    made.spec_id = table.spec().spec_id
    return made
