"""The works, each for one system and one repeat: what is prepared, what is timed, what has to be right afterwards."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import numpy as np
import pyarrow as pa

from benchmarks.peers.bench import DAYS, Bench, median_of, named_error, percentile_ms, timed, without_keys
from benchmarks.peers.data import CLIENTS, Totals, make_source, rows, value_sum
from benchmarks.peers.races import race
from benchmarks.peers.scale import open_old, plan_days
from benchmarks.peers.systems.base import Unsupported
from benchmarks.peers.upkeep import keep_up

APPENDS, WARM = 50, 3
SMALL = 1_000
THREADS, EACH = 8, 10
DELETED_CLIENTS = CLIENTS // 1000
MERGED, LOOKED_DAY, LOOKED_CLIENT = 5_000, 12, 1234


def warm(bench: Bench) -> None:
    """Once through everything with few rows, so that no figure holds what loads at first use."""
    few = rows(90_000_000, SMALL, days=2)
    folder = bench.shared / "warm"
    source = make_source(folder, 2 * SMALL, 2, 2, is_ordered=True)
    system, name = bench.system, "warm"
    system.create(name)
    steps: list[Callable[[], object]] = [
        lambda: system.load(name, source.files),
        lambda: system.append(name, system.batch(few)),
        lambda: system.scan(name),
        lambda: system.look(name, 1, LOOKED_CLIENT),
        lambda: system.delete(name, [1, 2, 3]),
        lambda: system.merge(name, system.batch(few)),
        lambda: system.upsert(name, system.batch(few)),
        lambda: system.totals(name, keys=True),
        lambda: system.files(name),
        lambda: system.compact(name),
        lambda: system.scan(name),
    ]
    for step in steps:
        with suppress(Unsupported):
            step()


def ingest(bench: Bench) -> None:
    """W1: Parquet files in order of time into a new table, in one commit."""
    bench.drop("events")
    bench.system.create("events")
    bench.figures["ingest_s"] = timed(lambda: bench.system.load("events", bench.source.files))
    bench.kept["events"] = "events"
    bench.check("rows", bench.system.totals("events"), without_keys(bench.source.totals()))
    bench.facts["bytes"] = sum(bench.system.files("events").values())


def append(bench: Bench) -> None:
    """W2: small appends, one commit each."""
    name = f"small_{bench.repeat}"
    before = bench.metadata_before()
    bench.system.create(name)
    made = [rows(10_000_000 + number * SMALL, SMALL, days=1, day=number % 5) for number in range(APPENDS + WARM)]
    given = [bench.system.batch(one) for one in made]
    took = [timed(partial(bench.system.append, name, one)) for one in given][WARM:]
    bench.figures["append_p50_ms"] = percentile_ms(took, 50)
    bench.figures["append_p95_ms"] = percentile_ms(took, 95)
    expected = Totals(len(made) * SMALL, sum(map(value_sum, made)))
    bench.check("rows", bench.system.totals(name), expected)
    bench.keep_metadata("append_metadata_kib", name, before, len(made))


def scan(bench: Bench) -> None:
    """W3: the whole table, grouped."""
    name = bench.loaded("events")
    bench.check("groups", bench.system.scan(name), bench.source.groups())
    bench.figures["scan_s"] = median_of(lambda: bench.system.scan(name), 3)


def look(bench: Bench) -> None:
    """W4: one day and one client."""
    name = bench.loaded("events")
    source = bench.source
    keep = (source.day == LOOKED_DAY) & (source.client == LOOKED_CLIENT)
    expected = (int(keep.sum()), float(source.value[keep].sum()))
    bench.check("rows", bench.system.look(name, LOOKED_DAY, LOOKED_CLIENT), expected)
    bench.figures["look_s"] = median_of(lambda: bench.system.look(name, LOOKED_DAY, LOOKED_CLIENT), 5)


def delete(bench: Bench) -> None:
    """W5: a thousandth of the rows deleted, anew in each repeat; the scan after it beside one of a clean table."""
    clean, name = bench.loaded("events"), bench.loaded("deleted")
    gone = bench.kept.setdefault("gone", [])
    clients = [100 + bench.repeat * 1000 + number * 37 for number in range(DELETED_CLIENTS)]
    bench.figures["delete_s"] = timed(lambda: bench.system.delete(name, clients))
    gone.extend(clients)
    keep = ~np.isin(bench.source.client, gone)
    bench.figures["delete_next_scan_s"] = timed(lambda: bench.system.scan(name))
    bench.check("rows", bench.system.totals(name), without_keys(bench.source.totals(keep)))
    bench.system.scan(clean)
    pairs = [(timed(lambda: bench.system.scan(clean)), timed(lambda: bench.system.scan(name))) for _ in range(3)]
    before, after = (float(np.median([pair[place] for pair in pairs])) for place in (0, 1))
    bench.figures["delete_scan_s"] = after
    bench.figures["delete_scan_ratio"] = after / before


def merge(bench: Bench) -> None:
    """W6: rows of keys that are there and of new ones; then the next read. Then the same by a blind upsert."""
    _merge(bench, "merged", "merge", bench.system.merge)
    try:
        _merge(bench, "upserted", "upsert", bench.system.upsert)
    except Unsupported:
        bench.drop("upserted")


def _merge(bench: Bench, name: str, kind: str, write: Callable[[str, object], None]) -> None:
    bench.loaded(name)
    count = min(MERGED, bench.source.rows // 100)
    old = bench.source.sample(count, bench.repeat)
    changed = old.set_column(3, old.schema.field("value"), pa.array(np.arange(old.num_rows) / 4.0 + bench.repeat))
    new = rows(50_000_000 + bench.repeat * count, count, days=DAYS)
    given = bench.system.batch(pa.concat_tables([changed, new]))
    known: Totals = bench.kept.get(f"{name}_totals") or bench.source.totals()
    added = value_sum(changed) - value_sum(old) + value_sum(new)
    expected = Totals(known.rows + count, known.total + added, known.rows + count)
    bench.kept[f"{name}_totals"] = expected
    bench.figures[f"{kind}_s"] = timed(lambda: write(name, given))
    bench.figures[f"{kind}_next_read_s"] = timed(lambda: bench.system.scan(name))
    bench.figures[f"{kind}_and_read_s"] = bench.figures[f"{kind}_s"] + bench.figures[f"{kind}_next_read_s"]
    bench.check(f"rows after the {kind}", bench.system.totals(name, keys=True), expected)


def write_together(bench: Bench) -> None:
    """W8: appends by threads that start together; some may fail, none may be lost or half done."""
    name = f"together_{bench.repeat}"
    bench.system.create(name)
    bench.system.append(name, bench.system.batch(rows(60_000_000, SMALL, days=1)))
    first = 61_000_000
    given = [
        [bench.system.batch(rows(first + (one * EACH + turn) * SMALL, SMALL, days=1)) for turn in range(EACH)]
        for one in range(THREADS)
    ]
    took: list[float] = []
    failed: dict[str, int] = {}
    lock = threading.Lock()

    def write(batches: list[object]) -> None:
        for batch in batches:
            began = time.perf_counter()
            problem = None
            try:
                bench.system.append(name, batch)
            except Exception as error:  # noqa: BLE001 - a failure is a figure here
                problem = named_error(error)
            with lock:
                if problem is None:
                    took.append(time.perf_counter() - began)
                else:
                    failed[problem] = failed.get(problem, 0) + 1

    threads = [threading.Thread(target=write, args=(batches,)) for batches in given]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bench.figures["together_per_s"] = len(took) / (time.perf_counter() - began)
    bench.figures["together_failed"] = sum(failed.values())
    bench.facts["failures"] = failed
    made = (len(took) + 1) * SMALL
    found = bench.system.totals(name, keys=True)
    bench.check("rows and keys", (found.rows, found.keys), (made, made))


WORKS: dict[str, Callable[[Bench], None]] = {
    "warm": warm,
    "W1": ingest,
    "W2": append,
    "W3": scan,
    "W4": look,
    "W5": delete,
    "W6": merge,
    "W7": race,
    "W8": write_together,
    "W9": plan_days,
    "W10": open_old,
    "W12": keep_up,
}
