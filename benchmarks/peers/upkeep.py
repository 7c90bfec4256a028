"""Small appends under each system's own maintenance."""

from __future__ import annotations

import statistics

import pyarrow as pa

from benchmarks.peers.bench import Bench, timed
from benchmarks.peers.data import Totals, rows, value_sum

APPENDS, ROWS, DAYS, EVERY = 200, 1_000, 10, 20


def keep_up(bench: Bench) -> None:
    """W12: 200 appends over ten days, maintenance after each 20.

    What is rewritten is what files that maintenance leaves behind have in bytes, over what the appends wrote.
    """
    system, name = bench.system, f"kept_{bench.repeat}"
    system.create(name)
    made = [rows(70_000_000 + number * ROWS, ROWS, days=1, day=number * DAYS // APPENDS) for number in range(APPENDS)]
    appended = rewritten = 0
    seconds = 0.0
    known: dict[str, int] = {}
    for number, one in enumerate(made, 1):
        system.append(name, system.batch(one))
        if number % EVERY == 0:
            before = system.files(name)
            appended += _new_bytes(before, known)
            seconds += timed(lambda: system.maintain(name))
            known = system.files(name)
            rewritten += _new_bytes(known, before)
    expected = Totals(APPENDS * ROWS, sum(map(value_sum, made)))
    bench.check("rows", system.totals(name), expected)
    bench.figures["upkeep_files"] = len(known)
    if appended:  # rows that are kept in the catalog are in no file
        bench.figures["upkeep_rewritten"] = rewritten / appended
    bench.figures["upkeep_s"] = seconds
    fresh = f"fresh_{bench.repeat}"
    system.create(fresh)
    system.append(fresh, system.batch(pa.concat_tables(made)))
    system.scan(name)
    system.scan(fresh)
    pairs = [(timed(lambda: system.scan(name)), timed(lambda: system.scan(fresh))) for _ in range(5)]
    bench.figures["upkeep_scan_ratio"] = statistics.median(kept for kept, _ in pairs) / statistics.median(
        new for _, new in pairs
    )


def _new_bytes(now: dict[str, int], before: dict[str, int]) -> int:
    return sum(size for path, size in now.items() if path not in before)
