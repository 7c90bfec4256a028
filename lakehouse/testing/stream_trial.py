"""A stream whose driver is killed within its batches, again and again: ``python -m`` this.

Each process goes on where the one before was killed, with -9, the second time that it reaches a fault point. Then every
row of the source is in the table, once, and the catalog is sound. Points may be given; without any all that a batch of
a stream passes are taken in turn, a start of Spark for each.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import lakehouse
from lakehouse.engine.spark.session import start_session
from lakehouse.testing.faults import armed, kill, on_count
from lakehouse.testing.processes import dies_with_parent

POINTS = (
    "begin.registered",
    "write.before",
    "write.after",
    "commit.before",
    "commit.head",
    "commit.recorded",
    "commit.after",
)
"""What a batch passes, in order."""
_ROWS = 5
"""Of a batch."""
_PATIENCE_SECONDS = 180.0
_SETTINGS = {"spark.master": "local[2]", "spark.driver.memory": "512m", "spark.ui.enabled": "false"}
_SCHEMA = pa.schema([("at", pa.timestamp("us", "UTC")), ("id", pa.int64())])


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of a trial: source, checkpoint, catalog and warehouse."""

    home: Path

    def lake(self) -> lakehouse.Lake:
        """The trial's lake."""
        return lakehouse.connect(f"sqlite:///{self.home}/catalog.db", self.home / "warehouse", lease_seconds=1)

    def fill(self, batches: int) -> None:
        """Make the source, a batch a file, and the table."""
        (self.home / "source").mkdir(parents=True)
        at = datetime(2026, 1, 1, tzinfo=UTC)
        for number in range(batches):
            ids = range(number * _ROWS, (number + 1) * _ROWS)
            rows = pa.table([[at] * _ROWS, list(ids)], schema=_SCHEMA)
            pq.write_table(rows, self.home / "source" / f"{number:05d}.parquet")
        with self.lake() as lake:
            lake.create_table("events", "at TIMESTAMP, id BIGINT", time="at")

    def run(self, point: str = "") -> None:
        """Write what there is of the source; with a point until that kills this process."""
        spark = start_session(_SETTINGS)
        with self.lake() as lake, armed({point: on_count(2, kill)} if point else {}):
            reader = spark.readStream.schema("at TIMESTAMP, id BIGINT").option("maxFilesPerTrigger", 1)
            lakehouse.streaming.write(
                reader.parquet(str(self.home / "source")),
                lake.table("events"),
                checkpoint=self.home / "checkpoint",
                trigger={"availableNow": True},
            ).awaitTermination()
        spark.stop()


def trial(place: Place, points: Sequence[str] = POINTS) -> str:
    """Kill a driver at each point in turn, then let one end; a line that says what was seen."""
    batches = 2 * len(points) + 2
    place.fill(batches)
    for point in (*points, ""):
        status = _child(place, point)
        wanted = -signal.SIGKILL if point else 0
        if status != wanted:
            said = (place.home / "child.log").read_text(errors="replace")
            raise AssertionError(f"at {point or 'the end'} the process ended with {status}: {said[-3000:]}")
    with place.lake() as lake:
        found = sorted(lake.table("events").scan(columns=["id"]).to_arrow()["id"].to_pylist())
        wrong = lake.check(deep=True).findings
    if found != list(range(batches * _ROWS)) or wrong:
        raise AssertionError(f"{len(found)} rows of {len(set(found))}, of {batches * _ROWS}; {list(wrong)[:3]}")
    return f"{len(found)} rows, each once; killed at {', '.join(points)}"


def _child(place: Place, point: str) -> int:
    """The status of a process that runs the stream."""
    command = [*dies_with_parent(), sys.executable, "-m", "lakehouse.testing.stream_trial", "--child"]
    with (place.home / "child.log").open("wb") as log:
        return subprocess.run(
            [*command, str(place.home), point],
            env=os.environ,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=_PATIENCE_SECONDS,
            check=False,
        ).returncode


def main(arguments: Sequence[str]) -> int:
    """Run the trial in a temporary folder, or as its child."""
    if arguments[:1] == ["--child"]:
        Place(Path(arguments[1])).run(arguments[2])
        return 0
    with tempfile.TemporaryDirectory(prefix="lakehouse-stream-") as home:
        sys.stdout.write(f"{trial(Place(Path(home)), list(arguments) or POINTS)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
