"""One side in one process: a statement comes in as a line of JSON, its seconds and memory go out as another.

A side is an engine (duckdb, spark) over the lake (ours) or over views on the same rows as plain files (plain).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import duckdb
import pandas as pd  # pyarrow imports it at its first conversion: imported here, it is in no figure
import pyarrow as pa

from benchmarks.tpc.loading import connect
from lakehouse.engine.spark.session import start_session

_ = pd
MESSAGE_LETTERS = 700


@dataclass(frozen=True, slots=True)
class Place:
    """Where the rows are: a lake's folder, and plain files by table. ``memory`` is the most bytes of a process."""

    folder: str
    plain: dict[str, str]
    memory: int


def open_side(engine: str, side: str, place: Place) -> Callable[[str], Callable[[], pa.Table]]:
    """What begins a statement; what that gives ends it."""
    spark = _spark(place) if engine == "spark" else None
    if side == "ours":
        lake = connect(Path(place.folder), spark)
        if spark is not None:
            return lambda text: lake.sql(text, engine="spark").toArrow  # type: ignore[no-any-return]
        return lambda text: lake.sql(text, engine="duckdb").to_arrow_table  # type: ignore[no-any-return]
    if spark is not None:
        for name, path in place.plain.items():
            spark.read.parquet(path).createOrReplaceTempView(name)
        return lambda text: spark.sql(text).toArrow
    connection = duckdb.connect()
    # Ours keeps no bytes of files between statements, and each is to read its rows anew.
    connection.execute("SET TimeZone = 'UTC'; SET enable_external_file_cache = false")
    for name, path in place.plain.items():
        connection.execute(f"CREATE VIEW {name} AS FROM '{path}'")
    return lambda text: connection.sql(text).to_arrow_table


def _spark(place: Place) -> Any:
    settings = {
        "spark.driver.memory": f"{place.memory // 2 >> 20}m",
        "spark.log.level": "OFF",
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": "2",
    }
    return start_session(settings)


def serve(begin: Callable[[str], Callable[[], pa.Table]], requests: TextIO, answers: TextIO) -> None:
    """Answer until there are no more requests."""
    for line in requests:
        asked = json.loads(line)
        answers.write(json.dumps(answer(begin, asked["text"], asked.get("out"))) + "\n")
        answers.flush()


def answer(begin: Callable[[str], Callable[[], pa.Table]], text: str, out: str | None) -> dict[str, Any]:
    """Run a statement once; its rows go into the file ``out``, if it is named."""
    for process in _processes():
        with contextlib.suppress(OSError):  # one of Spark's workers that has ended
            Path(f"/proc/{process}/clear_refs").write_text("5", "ascii")  # the most ever in memory is counted anew
    before, used = _memory("VmRSS"), _cpu_seconds()
    began = time.perf_counter()
    said: dict[str, Any] = {}
    try:
        end = begin(text)
        begun = time.perf_counter()
        rows = end()
        ended = time.perf_counter()
        cpu = _cpu_seconds() - used
        said = {"seconds": ended - began, "cpu": cpu, "begin_seconds": begun - began, "rows": rows.num_rows}
    except Exception as error:  # noqa: BLE001 - reported to the driver, and shown in its line
        said["error"] = f"{type(error).__name__}: {' '.join(str(error).split())[:MESSAGE_LETTERS]}"
    said["memory"] = _memory("VmHWM") - before
    if out is not None and "error" not in said:
        with pa.OSFile(out, "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
    return said


def _processes() -> list[int]:
    """This process and, by Spark, its Java machine with what that starts."""
    found = [os.getpid()]
    for process in found:
        with contextlib.suppress(OSError):  # it has ended meanwhile
            for task in Path(f"/proc/{process}/task").iterdir():
                found += map(int, (task / "children").read_text("ascii").split())
    return found


def _told(process: int, what: str) -> str:
    """A file of a process; empty once it has ended."""
    try:
        return Path(f"/proc/{process}/{what}").read_text("utf-8")
    except OSError:
        return ""


def _memory(what: str) -> int:
    """Bytes in memory, now or at most, as the kernel has them, of all processes of this side."""
    total = 0
    for process in _processes():
        lines = _told(process, "status").splitlines()
        total += sum(int(line.split()[1]) for line in lines if line.startswith(what))
    return total << 10


def _cpu_seconds() -> float:
    """Seconds of processors that this side's processes have used, which other programs beside them hardly change.

    This process's own are exact; those of others come in hundredths.
    """
    ticks = 0
    for process in _processes()[1:]:
        fields = _told(process, "stat").rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))  # in user and system mode, with children that have ended
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Serve one side on standard input and output; what its packages print goes to standard error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=("duckdb", "spark"))
    parser.add_argument("side", choices=("ours", "plain"))
    parser.add_argument("place", type=json.loads)
    asked = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    place = Place(**asked.place)
    begin = open_side(asked.engine, asked.side, place)
    if asked.engine == "duckdb":  # a Java machine is held to its heap
        resource.setrlimit(resource.RLIMIT_AS, (place.memory, place.memory))
    begin("SELECT 1 AS one")()
    answers.write(json.dumps({"duckdb": duckdb.__version__}) + "\n")
    answers.flush()
    serve(begin, sys.stdin, answers)


if __name__ == "__main__":
    main()
