"""What the table service does with a table under load: `python benchmarks/service.py [policy|compact] [days|rows]`.

``policy`` simulates months of appends on segments without files, with the default policy, its strategies and their
combination, and times one plan of 1,000,000 segments. It prints bytes rewritten for each byte appended, tasks, and
segments a chunk. ``compact`` appends rows of one day in eight pieces to a real table, compacts them in
process by time or by the Z-order of time and keys, and prints how many segments a look-up of a time or key then opens.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
from figures import keep

import lakehouse
from lakehouse.core import Grain, Tombstone
from lakehouse.core.interval import to_us
from lakehouse.core.policy import Policy
from lakehouse.core.segments import Segments
from lakehouse.core.spec import TableId, TableSpec
from lakehouse.core.strategy import BUILT_IN, TableState, combine
from lakehouse.core.task import Candidate

START = datetime(2013, 1, 1, tzinfo=UTC)
DAY_US = 86_400_000_000
TICK_US = 600_000_000
ROW_BYTES = 20
SCHEMA = pa.schema([("time", pa.timestamp("us", "UTC")), ("client", pa.int64()), ("carrier", pa.string())])
COLUMNS = ("id", "start_us", "end_us", "ordinal", "rows", "bytes", "has_row_ids")


def main(part: str = "", size: str = "") -> None:
    figures: dict[str, float] = {}
    if part in ("", "policy"):
        days = size or "30"
        for appends, rows, late, rest in (
            (33, 1_000, 0.0, "1,000 in all"),
            (1_000, 1_000, 0.0, "in order of time"),
            (1_000, 1_000, 0.05, "a twentieth up to 7 days late"),
            (1_000, 50_000, 0.0, "large ones"),
            (5_000, 1_000, 0.01, "many, a hundredth late"),
        ):
            load = Load(appends, rows, late)
            load.run(int(days))
            print(f"{appends:>6,} appends a day of {rows:,} rows, {rest:<30} {load.report()}", flush=True)
            figures[f"{appends:,} appends a day, {rest}, rewritten over appended"] = load.rewritten / load.appended
        figures |= plans()
    if part in ("", "compact"):
        for order in ("time", "zorder"):
            with tempfile.TemporaryDirectory() as folder:
                figures[f"compaction by {order}, s"] = compacted(Path(folder), order, int(size or 4_000_000))
    keep(__file__, figures)


@dataclass
class Load:
    """A table in columns, and what became of it."""

    appends: int
    rows: int
    late: float
    policy: Policy = field(default_factory=Policy)
    segments: dict[str, np.ndarray] = field(default_factory=lambda: {name: np.empty(0, np.int64) for name in COLUMNS})
    commits: list[int] = field(default_factory=lambda: [to_us(START)])
    appended: int = 0
    rewritten: int = 0
    tasks: int = 0
    most: int = 0
    seconds: float = 0.0
    next_id: int = 0

    def run(self, days: int) -> None:
        """Append for so many days, plan and do all tasks every ten minutes, and go on for two days more."""
        random = np.random.default_rng(7)
        end = to_us(START) + days * DAY_US
        done = 0
        for now in range(to_us(START) + TICK_US, end + 2 * DAY_US, TICK_US):
            due = min(now, end)
            count = (due - to_us(START)) * self.appends // DAY_US - done
            self.append(now, count, random)
            done += count
            state = self.state(now)
            began = perf_counter()
            left = self.policy.write_amplification * self.appended - self.rewritten
            tasks = combine(state, proposed(state), rewritable_bytes=left)
            self.seconds = max(self.seconds, perf_counter() - began)
            for task in tasks:
                self.compact(task, now)
            self.most = max(self.most, int(self.chunks().max(initial=0)))

    def append(self, now: int, count: int, random: np.random.Generator) -> None:
        """So many appends of what happened in the last moments, some of them of a day before."""
        length = DAY_US // self.appends
        starts = now - length * np.arange(1, count + 1)
        is_late = random.random(count) < self.late
        starts = starts - np.where(is_late, random.integers(1, 8, count), 0) * DAY_US
        floor = starts - starts % DAY_US
        ordinals = np.arange(len(self.commits), len(self.commits) + count)
        self.commits.extend([now] * count)
        rows = np.full(count, self.rows)
        self.appended += int(rows.sum()) * ROW_BYTES
        self.add(starts, np.minimum(starts + length, floor + DAY_US), ordinals, rows, np.zeros(count, np.int64))

    def add(self, *columns: np.ndarray) -> None:
        starts, ends, ordinals, rows, has_row_ids = columns
        ids = np.arange(self.next_id, self.next_id + len(starts))
        self.next_id += len(starts)
        new = (ids, starts, ends, ordinals, rows, rows * ROW_BYTES, has_row_ids)
        self.segments = {name: np.append(self.segments[name], one) for name, one in zip(COLUMNS, new, strict=True)}

    def compact(self, task: Candidate, now: int) -> None:
        """Simulate one compaction: all rows by time, in segments of the target size, with the ordinal that was read."""
        taken = np.isin(self.segments["id"], task.segments)
        rows = int(self.segments["rows"][taken].sum())
        first, last = int(self.segments["start_us"][taken].min()), int(self.segments["end_us"][taken].max())
        self.segments = {name: column[~taken] for name, column in self.segments.items()}
        ordinal = len(self.commits) - 1
        self.commits.append(now)
        sizes = np.diff(np.append(np.arange(0, rows, self.policy.target_rows), rows))
        cuts = np.linspace(first, last, len(sizes) + 1).astype(np.int64)
        same = np.ones(len(sizes), np.int64)
        self.add(cuts[:-1], cuts[1:], same * ordinal, sizes, same)
        self.rewritten += rows * ROW_BYTES
        self.tasks += 1

    def state(self, now: int) -> TableState:
        commits = np.array(self.commits)
        ages = {age: int(np.searchsorted(commits, now - int(age * 1e6), "right")) - 1 for age in self.policy.ages}
        when = START + timedelta(microseconds=now - to_us(START))
        return TableState(SPEC, self.policy, len(commits), when, Segments.in_columns(body(self.segments)), settled=ages)

    def chunks(self) -> np.ndarray:
        return np.unique(self.segments["start_us"] // DAY_US, return_counts=True)[1]

    def report(self) -> str:
        chunks = self.chunks()
        return (
            f"rewritten over appended {self.rewritten / self.appended:.2f}, {self.tasks:,} tasks; "
            f"segments a chunk at the end {chunks.mean():.1f}, at most {chunks.max()}, ever {self.most}; "
            f"slowest plan {self.seconds * 1e3:.0f} ms"
        )


SPEC = TableSpec(
    TableId(1), "t", "t", SCHEMA, "time", Grain.DAY, primary_key=("client",), cluster_by={"client": 0, "carrier": 64}
)  # fmt: skip


def body(columns: dict[str, np.ndarray], **statistics: pa.Array) -> pa.Table:
    count = len(columns["id"])
    held = {name: column for name, column in columns.items() if name != "has_row_ids"}
    return pa.table(
        {
            **held,
            "first_row_id": np.cumsum(columns["rows"]) - columns["rows"],
            "has_row_ids": columns["has_row_ids"].astype(np.bool_),
            "path": pa.array([""] * count),
            **statistics,
        }
    )


def compacted(folder: Path, order: str, rows: int) -> float:
    """Seconds to compact a day of a real table; prints what look-ups of a time, a frequent and a rare key then open."""
    random, part = np.random.default_rng(7), rows // 8
    with lakehouse.connect(f"sqlite:///{folder}/catalog.db", warehouse=str(folder / "files")) as lake:
        properties = {"order": order, "target_rows": str(rows // 8)}
        table = lake.create_table(
            "t", SCHEMA, time="time", cluster_by={"client": 0, "carrier": 0}, properties=properties
        )
        for _ in range(8):
            times = pa.array(to_us(START) + random.integers(0, DAY_US, part), SCHEMA.field("time").type)
            carriers = pa.array(["AA", "B6", "DL", "UA", "WN"]).take(pa.array(random.integers(0, 5, part)))
            clients = pa.array(random.zipf(1.3, part).clip(max=100_000))
            table.append(pa.table([times, clients, carriers], schema=SCHEMA))
        began = perf_counter()
        with table.begin_compaction(START.date(), segments={one.id for one in table.segments()}) as compaction:
            compaction.run()
        seconds = perf_counter() - began
        noon = START + timedelta(hours=12)
        looks = {
            "one minute": (noon, noon + timedelta(minutes=1)),
            "client 3": "client = 3",
            "client 50,000": "client = 50000",
            "UA": "carrier = 'UA'",
        }
        scans = {
            name: table.scan(where=look) if isinstance(look, str) else table.scan(interval=look)
            for name, look in looks.items()
        }
        opened = [f"{name}: {len(scan.plan().segments)}" for name, scan in scans.items()]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"compaction of {rows:,} rows by {order}: {seconds:.1f} s, peak memory so far {peak:,.0f} MiB; "
            f"opened of {len(table.segments())} segments for {', '.join(opened)}"
        )
    return seconds


def proposed(state: TableState) -> list[Candidate]:
    return [one for _, strategy in BUILT_IN for one in strategy(state)]


def plans(count: int = 1_000_000, chunks: int = 4_000) -> dict[str, float]:
    """Seconds of one plan of a large table in several shapes, with and without tombstones."""
    figures: dict[str, float] = {}
    random = np.random.default_rng(7)
    policy = Policy()
    settled = {3_600.0: 900_000, 86_400.0: 800_000, 7 * 86_400.0: 500_000}
    for shape, rows, length in (
        ("small", random.integers(100, 5_000, count), DAY_US // 2),
        ("full and disjoint", np.full(count, 5_000_000), DAY_US * chunks // count),
        ("a third small, the others full and disjoint", np.where(random.random(count) < 1 / 3, 1_000, 5_000_000), 1),
    ):
        day = np.sort(random.integers(0, chunks, count)) * DAY_US + to_us(START)
        starts = day + (np.arange(count) * max(length, 1) % (DAY_US - DAY_US // 2))
        ordinals, ids = random.integers(1, 1_000_000, count), np.arange(count)
        table = body(
            dict(zip(COLUMNS, (ids, starts, starts + length, ordinals, rows, rows * ROW_BYTES, ids * 0), strict=True)),
            **{"min:client": pa.array(ids % 10_000), "max:client": pa.array(ids % 10_000 + 500)},
        )
        for tombstones in ((), gone(random, int(rows.sum()))):
            best, tasks = float("inf"), []
            for _ in range(3):
                state = TableState(SPEC, policy, 10**6, START, Segments.in_columns(table), tombstones, settled)
                began = perf_counter()
                tasks = combine(state, proposed(state))
                best = min(best, perf_counter() - began)
            figures[f"plan of {count:,} segments, {shape}, {len(tombstones)} tombstones, s"] = best
            counts = Counter(one.kind.value for one in tasks)
            kinds = ", ".join(f"{number:,} {kind}" for kind, number in counts.items())
            print(
                f"plan of {count:,} segments, {shape}; {len(tombstones)} tombstones: {best:.2f} s, {kinds or 'no task'}"
            )
    return figures


def gone(random: np.random.Generator, row_ids: int) -> tuple[Tombstone, ...]:
    """A hundred tombstones of each kind."""
    made = []
    for number, least in enumerate(random.integers(0, row_ids, 100).tolist()):
        bounds = {"min": {"_row_id": least}, "max": {"_row_id": least + row_ids // 1_000}}
        made.append(Tombstone(id=2_000_000 + number, kind="row", ordinal=10**6, rows=10_000, **bounds))
        day = START + timedelta(days=int(random.integers(0, 4_000)))
        made.append(Tombstone(id=2_001_000 + number, start=day, end=day + timedelta(hours=5), ordinal=600_000))
        low = int(random.integers(0, 10_000))
        keys = {"min": {"client": low}, "max": {"client": low + 10}}
        made.append(Tombstone(id=2_002_000 + number, kind="key", ordinal=700_000, rows=10, **keys))
    return tuple(made)


if __name__ == "__main__":
    main(*sys.argv[1:])
