"""Planning and old versions on metadata alone."""

from __future__ import annotations

import statistics
from functools import partial

from benchmarks.peers.bench import Bench, timed

PLANNED_DAYS, VERSIONS = 100, 1_000


def plan_days(bench: Bench) -> None:
    """W9: which files a day needs, at growing numbers of files; the table opened anew, and again as it is open."""
    for files in bench.size.metadata_files:
        _plan_days(bench, f"planned_{files}", files)


def _plan_days(bench: Bench, name: str, files: int) -> None:
    if bench.kept.get(name) is None:
        before = bench.metadata_before()
        bench.system.fabricate(name, files, PLANNED_DAYS)
        bench.kept[name] = name
        bench.system.plan(name, 10, cold=True)
        bench.keep_metadata(f"plan_metadata_kib_{files}", name, before, files)
    found = bench.system.plan(name, 50, cold=True)
    if found is not None:
        bench.check(f"files of a day of {files}", found, files // PLANNED_DAYS)
    cold = [timed(lambda: bench.system.plan(name, 50, cold=True)) for _ in range(3)]
    days = range(20 + 10 * bench.repeat, 30 + 10 * bench.repeat)
    warm = [timed(partial(bench.system.plan, name, day, cold=False)) for day in days]
    bench.figures[f"plan_cold_ms_{files}"] = 1000 * statistics.median(cold)
    bench.figures[f"plan_warm_ms_{files}"] = 1000 * statistics.median(warm)


def open_old(bench: Bench) -> None:
    """W10: the version in the middle of a thousand, the table opened anew."""
    name = "versions"
    if bench.kept.get(name) is None:
        before = bench.metadata_before()
        bench.system.fabricate_versions(name, VERSIONS)
        bench.kept[name] = name
        bench.keep_metadata("version_metadata_kib", name, before, VERSIONS)
    bench.check("files of the version", bench.system.open_version(name, VERSIONS // 2), VERSIONS // 2)
    took = [timed(lambda: bench.system.open_version(name, VERSIONS // 2)) for _ in range(5)]
    bench.figures["open_old_ms"] = 1000 * statistics.median(took)
