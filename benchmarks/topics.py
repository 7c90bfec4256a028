"""Many topics side by side with the table service: failures, lag, segments a chunk and memory over time.

``python benchmarks/topics.py --minutes 10`` runs ten topics with a small batch a second each, as ``lakehouse stream
run`` does, and ``lakehouse maintain`` beside it, as processes. At the end every row has to be there once.
``--floor`` measures what Spark alone takes for as many batches that go nowhere.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import lakehouse

SMALL_FILES = "4, 2 after 1m"
"""While batches come, four of like size become one, which rewrites little; a minute after the last, two do."""
_RUN = "from lakehouse.command import main; main()"
_TICK = os.sysconf("SC_CLK_TCK")
_FLOOR = """
import sys, time
from lakehouse.engine.spark.session import start_session
from lakehouse.streaming.topics.config import TopicsFile
from lakehouse.streaming.topics.sources import session_settings
spark = start_session(session_settings(TopicsFile("", ())))
topics, rows, every, seconds = int(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4])
queries = [
    spark.readStream.format("rate").option("rowsPerSecond", rows).load().writeStream.format("noop")
    .trigger(processingTime=every).option("checkpointLocation", f"{sys.argv[5]}/{one}").start()
    for one in range(topics)
]
time.sleep(seconds)
print(sum((one.lastProgress or {"batchId": 0})["batchId"] for one in queries), flush=True)
sys.stdin.read()
"""


def processes_of(root: int) -> list[int]:
    """A process and all that it started."""
    parents = {}
    for one in Path("/proc").iterdir():
        if one.name.isdecimal():
            try:
                parents[int(one.name)] = int((one / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = [root]
    for one in found:
        found.extend(child for child, parent in parents.items() if parent == one)
    return found


def memory_mb(root: int) -> float:
    """Memory of a process and its children, shared pages counted once each."""
    total = 0
    for one in processes_of(root):
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def cpu_seconds(root: int) -> float:
    """Processor time of a process and its living children, and of those that it has waited for."""
    total = 0
    for one in processes_of(root):
        try:
            parts = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(parts[place]) for place in (11, 12, 13, 14))
    return total / _TICK


class Trial:
    """Topics and a service over one lake."""

    def __init__(self, home: Path, topics: int, rows: int, every: str) -> None:
        self.place = {"LAKEHOUSE_CATALOG": f"sqlite:///{home}/catalog.db", "LAKEHOUSE_WAREHOUSE": str(home / "lake")}
        self.home, self.rows = home, rows
        self.names = [f"topic_{one}" for one in range(topics)]
        self.lake = lakehouse.connect(*self.place.values())
        text = f'[defaults]\ntrigger = "{every}"\ntransform = "SELECT timestamp AS at, value FROM source"\n'
        for one in self.names:
            self.lake.create_table(
                one, "at TIMESTAMP, value BIGINT", time="at", grain="hour", properties={"small_files": SMALL_FILES}
            )
            text += f'[topics.{one}]\ntable = "{one}"\nsource = {{format = "rate", rowsPerSecond = {rows}}}\n'
        self.file = home / "topics.toml"
        self.file.write_text(text)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.home / f"{arguments[0]}.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-c", _RUN, *arguments],
                env={**os.environ, **self.place},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def segments(self) -> int:
        """The most live segments that touch a chunk."""
        return max((chunk.segments for one in self.names for chunk in self.lake.table(one).chunks()), default=0)

    def lag_seconds(self) -> float:
        """How old the newest row is of the topic that is furthest behind."""
        now = self.lake.catalog.now()
        newest = [max((one.end for one in self.lake.table(name).segments()), default=None) for name in self.names]
        return max((float("inf") if one is None else (now - one).total_seconds() for one in newest), default=0.0)

    def sample(self, began: float, streams: int, service: int) -> dict[str, Any]:
        topics = self.lake.topics()
        return {
            "seconds": time.monotonic() - began,
            "batches": sum(one.progress.batches for one in topics),
            "restarts": sum(one.progress.restarts for one in topics),
            "stalled": sum(one.stall() is not None for one in topics),
            "lag_seconds": self.lag_seconds(),
            "segments": self.segments(),
            "streams_mb": memory_mb(streams),
            "service_mb": memory_mb(service),
            "behind": [one.name for one in topics if one.progress.busy_seconds > 20],
            "failed_tasks": len(self.lake.tasks(state="failed")),
        }

    def check(self) -> int:
        """Rows of all tables; every one has to be there once."""
        total = 0
        for one in self.names:
            values = self.lake.table(one).scan(columns=["value"]).to_arrow()["value"].to_pylist()
            twice = [value for value, count in Counter(values).items() if count > 1]
            if twice or sorted(values) != list(range(len(values))):
                raise AssertionError(f"{one}: {len(values)} rows, {len(twice)} of them twice")
            total += len(values)
        return total


def show(one: dict[str, Any], before: dict[str, Any] | None) -> None:
    then = one if before is None else before
    rate = (one["batches"] - then["batches"]) / max(one["seconds"] - then["seconds"], 1.0)
    memory = f"{one['streams_mb']:6.0f} + {one['service_mb']:4.0f} MB"
    print(
        f"{one['seconds']:7.0f} s {rate:6.1f} batches/s  lag {one['lag_seconds']:5.1f} s  {one['segments']:4d} "
        f"segments a chunk  {memory}  {one['restarts']} restarts  {one['failed_tasks']} failed tasks  "
        f"{one['stalled']} stalled {', '.join(one['behind'])}",
        flush=True,
    )


def measure(given: argparse.Namespace, home: Path) -> None:
    trial = Trial(home, given.topics, given.rows, given.every)
    streams = trial.start("stream", "run", str(trial.file), "--json")
    service = trial.start("maintain", "--every", "5")
    try:
        while not (known := trial.lake.topics()) or not all(one.progress.batches for one in known):
            if streams.poll() is not None:
                raise SystemExit((home / "stream.log").read_text()[-3000:])
            time.sleep(0.5)
        began, before = time.monotonic(), None
        used = cpu_seconds(streams.pid), cpu_seconds(service.pid)
        first = sum(one.progress.batches for one in known)
        while time.monotonic() - began < given.minutes * 60:
            time.sleep(given.sample)
            one = trial.sample(began, streams.pid, service.pid)
            show(one, before)
            before = one
        seconds = time.monotonic() - began
        batches = sum(one.progress.batches for one in trial.lake.topics()) - first
        spent = cpu_seconds(streams.pid) - used[0], cpu_seconds(service.pid) - used[1]
        each = [one / max(batches, 1) * 1000 for one in spent]
        print(
            f"{batches / seconds:.1f} batches/s; ms of a core a batch: {each[0]:.0f} for streams, {each[1]:.0f} for the"
            f" service; {sum(spent) / seconds:.2f} cores in all"
        )
        streams.send_signal(signal.SIGTERM)
        ended = time.monotonic()
        code = streams.wait(120)
        print(f"topics ended with {code} after {time.monotonic() - ended:.1f} s")
        print(f"{trial.segments()} segments a chunk at most, at once")
        while time.monotonic() - ended < 120:
            time.sleep(1)
        print(f"{trial.segments()} segments a chunk at most, {time.monotonic() - ended:.0f} s later")
    finally:
        for one in (streams, service):
            one.terminate()
            one.wait(120)
    print(f"{trial.check():,} rows, each once; sound: {trial.lake.check().is_sound}")
    trial.lake.close()


def measure_floor(given: argparse.Namespace, home: Path) -> None:
    seconds = given.minutes * 60
    command = [sys.executable, "-c", _FLOOR, str(given.topics), str(given.rows), given.every, str(seconds), str(home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as floor:
        assert floor.stdout is not None
        batches = int(floor.stdout.readline())
        used = cpu_seconds(floor.pid) / batches * 1000
        print(
            f"Spark alone: {batches / seconds:.1f} batches/s, {used:.0f} ms of a core a "
            f"batch (its start included), {memory_mb(floor.pid):.0f} MB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--topics", type=int, default=10)
    parser.add_argument("--rows", type=int, default=100, help="a second and topic")
    parser.add_argument("--every", default="1 second")
    parser.add_argument("--sample", type=float, default=10.0, help="seconds between two lines")
    parser.add_argument("--floor", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lakehouse-topics-") as home:
        (measure_floor if given.floor else measure)(given, Path(home))


if __name__ == "__main__":
    main()
