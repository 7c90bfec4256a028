"""The change feed: a million changes, against reading those of Delta Lake (delta-rs) of the same rows in the same run.

    python benchmarks/changes.py [--rows 500000] [--rounds 7]

Three histories of one table: every row updated once (each change has a form before and one after), as many rows
appended in one commit, and in a hundred. Readings of both take turns; each figure is the least of its rounds, in
seconds by the clock, and of the processor (``cpu``), which other work on the machine changes least. What both read is
counted, and has to be the same.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from environments import ROOT, make_environment, python_of
from figures import keep

import lakehouse

START_US, DAY_US = 1_356_998_400_000_000, 86_400_000_000
PIECES = 100


def rows(first: int, count: int) -> pa.Table:
    """Rows of one month, in order of their numbers."""
    random = np.random.default_rng(first)
    ids = np.arange(first, first + count, dtype=np.int64)
    return pa.table(
        {
            "ts": pa.array(START_US + ids % (30 * DAY_US), pa.timestamp("us", "UTC")),
            "id": ids,
            "x": random.random(count),
            "y": random.integers(0, 1000, count),
            "name": pa.array([f"name {number}" for number in random.integers(0, 100_000, count)]),
        }
    )


PEER = """
import json, sys, time
from collections import Counter
import pyarrow as pa
import pyarrow.parquet
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

folder, files, update = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3] == "update"
for number, file in enumerate(files):
    write_deltalake(folder, pq.read_table(file), mode="append",
                    configuration={"delta.enableChangeDataFeed": "true"} if number == 0 else None)
first = 1
if update:
    DeltaTable(folder).update({"y": "y + 1"})
    first = DeltaTable(folder).version()
print("ready", flush=True)
for _ in sys.stdin:
    begun, worked = time.perf_counter(), time.process_time()
    found = pa.table(DeltaTable(folder).load_cdf(starting_version=first).read_all())
    seconds = time.perf_counter() - begun, time.process_time() - worked
    counts = Counter(found["_change_type"].to_pylist())
    print(json.dumps([*seconds, dict(counts)]), flush=True)
"""


def peer_python() -> str:
    """An interpreter with the release of delta-rs that the side-by-side benchmarks use."""
    folder = ROOT / ".tools" / "delta_rs"
    needed = ("deltalake", "arro3-core", "deprecated", "wrapt", "typing-extensions", "numpy", "pyarrow")
    pins = (ROOT / "benchmarks/peers/requirements.txt").read_text().splitlines()
    wanted = [one for one in pins if one.startswith(needed)]
    stamp = folder / "installed"
    if not stamp.exists() or stamp.read_text() != "\n".join(wanted):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as requirements:
            requirements.write("\n".join(wanted) + "\n")
            requirements.flush()
            make_environment(folder, Path(requirements.name))
        stamp.write_text("\n".join(wanted))
    return str(python_of(folder))


def ours(table: Any, since: int) -> tuple[float, float, dict[str, int]]:
    """Seconds to read the changes, those of the processor, and how many changes there are of each type."""
    begun, worked = time.perf_counter(), time.process_time()
    found = table.changes(since).to_arrow()
    seconds = time.perf_counter() - begun, time.process_time() - worked
    return *seconds, dict(Counter(found["_change_type"].to_pylist()))


def compared(parts: list[pa.Table], folder: Path, rounds: int, *, update: bool) -> dict[str, float]:
    """Both readings of one history; the first part is there before the changes if it only grows."""
    files = []
    for number, part in enumerate(parts):
        files.append(str(folder / f"{number}.parquet"))
        pa.parquet.write_table(part, files[-1])
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", folder / "warehouse") as lake:
        table = lake.create_table("t", parts[0].schema, time="ts", grain="month", primary_key=["id"])
        table.append(parts[0])
        since = table.version
        for part in parts[1:]:
            table.append(part)
        if update:
            table.update({"y": "y + 1"}, "id >= 0")
        command = [
            peer_python(),
            "-c",
            PEER,
            str(folder / "delta"),
            json.dumps(files),
            "update" if update else "append",
        ]
        best = dict.fromkeys(("ours", "delta-rs", "ours cpu", "delta-rs cpu"), 1e9)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
            assert peer.stdin is not None
            assert peer.stdout is not None
            peer.stdout.readline()
            for _ in range(rounds):
                *mine, found = ours(table, since)
                peer.stdin.write("\n")
                peer.stdin.flush()
                *theirs, its = json.loads(peer.stdout.readline())
                known = {"update_preimage": "update_before", "update_postimage": "update_after"}
                named = {known.get(kind, kind): count for kind, count in its.items()}
                if named != found:
                    sys.exit(f"the two read other changes: {found} and {named}")
                for reader, seconds in (("ours", mine), ("delta-rs", theirs)):
                    for key, one in zip((reader, f"{reader} cpu"), seconds, strict=True):
                        best[key] = min(best[key], one)
            peer.stdin.close()
    ratios = {"ratio": best["ours"] / best["delta-rs"], "cpu ratio": best["ours cpu"] / best["delta-rs cpu"]}
    return {**best, "changes": sum(found.values()), **ratios}


def main() -> None:
    """Print the figures of all histories."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=500_000)
    options.add_argument("--rounds", type=int, default=7)
    given = options.parse_args()
    whole = 2 * given.rows
    seed = rows(0, 1000)
    piece = whole // PIECES
    histories = {
        "updates": ([rows(0, given.rows)], True),
        "one append": ([seed, rows(1000, whole)], False),
        "a hundred appends": ([seed, *(rows(1000 + n * piece, piece) for n in range(PIECES))], False),
    }
    figures = {}
    for name, (parts, update) in histories.items():
        with tempfile.TemporaryDirectory() as folder:
            figures[name] = compared(parts, Path(folder), given.rounds, update=update)
        shown = ", ".join(f"{key} {value:.4g}" for key, value in figures[name].items())
        print(f"{name}: {shown}", flush=True)
    keep(__file__, figures)


if __name__ == "__main__":
    main()
