"""Records to tables: medians, how many times better ours is, ratios to plain Parquet, and what went wrong."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers.races import WAYS
from benchmarks.peers.systems import ENTRIES, Entry

BEGIN, END = "<!-- peers: begin -->", "<!-- peers: end -->"
OPERATIONS = ("compaction", "append", "delete", "overwrite")
Medians = dict[tuple[str, str], float]


@dataclass(frozen=True, slots=True)
class Figure:
    """A row of the table. ``over_floor``: a second row says its ratio to plain Parquet."""

    name: str
    work: str
    label: str
    more_is_better: bool = False
    over_floor: bool = False
    is_compared: bool = True


FIGURES = (
    Figure("ingest_s", "W1", "ingest, s", over_floor=True),
    Figure("append_p50_ms", "W2", "1,000-row append, p50, ms", over_floor=True),
    Figure("append_p95_ms", "W2", "1,000-row append, p95, ms"),
    Figure("scan_s", "W3", "full scan, s", over_floor=True),
    Figure("look_s", "W4", "one day, one client, s", over_floor=True),
    Figure("delete_s", "W5", "delete of 0.1 %, s"),
    Figure("delete_next_scan_s", "W5", "first scan after the delete, s"),
    Figure("delete_scan_s", "W5", "scan after the delete, s"),
    Figure("delete_scan_ratio", "W5", "scan after the delete over a clean one"),
    Figure("merge_s", "W6", "merge of 10,000 rows, s"),
    Figure("merge_next_read_s", "W6", "first scan after the merge, s"),
    Figure("merge_and_read_s", "W6", "merge and first scan, s"),
    Figure("upsert_s", "W6", "upsert of 10,000 rows, s"),
    Figure("upsert_next_read_s", "W6", "first scan after the upsert, s"),
    Figure("upsert_and_read_s", "W6", "upsert and first scan, s"),
    Figure("together_per_s", "W8", "appends a second by 8 threads", more_is_better=True),
    Figure("together_failed", "W8", "of 80 appends failed", is_compared=False),
    *(
        Figure(f"plan_{kind}_ms_{files}", "W9", f"plan of a day, {files:,} files, {kind}, ms")
        for files in (10_000, 100_000, 1_000_000)
        for kind in ("cold", "warm")
    ),
    Figure("open_old_ms", "W10", "open version 500 of 1,000, ms"),
    Figure("append_metadata_kib", "W11", "metadata an append, KiB"),
    *(
        Figure(f"plan_metadata_kib_{files}", "W11", f"metadata a file, {files:,} files, KiB")
        for files in (10_000, 100_000, 1_000_000)
    ),
    Figure("version_metadata_kib", "W11", "metadata a version of 1,000, KiB"),
    Figure("upkeep_rewritten", "W12", "bytes rewritten for each appended", is_compared=False),
    Figure("upkeep_files", "W12", "files at the end", is_compared=False),
    Figure("upkeep_scan_ratio", "W12", "scan over that of a fresh table"),
    Figure("upkeep_s", "W12", "seconds of maintenance", is_compared=False),
)
UPSERTS = {"upsert_s": "merge_s", "upsert_next_read_s": "merge_next_read_s", "upsert_and_read_s": "merge_and_read_s"}
"""What ours does by upsert, a peer does by merge."""


def medians(records: Iterable[dict[str, Any]]) -> Medians:
    """The median of each system's figure over the repeats.

    >>> medians([{"system": "a", "figures": {"scan_s": value}} for value in (3.0, 1.0, 2.0)])
    {('a', 'scan_s'): 2.0}
    """
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for record in records:
        for name, value in record["figures"].items():
            found[record["system"], name].append(value)
    return {key: statistics.median(values) for key, values in found.items()}


def advantage(figure: Figure, ours: float | None, theirs: float | None) -> float | None:
    """How many times better ours is; below 1 the other one is ahead.

    >>> advantage(Figure("scan_s", "W3", ""), 2.0, 3.0), advantage(Figure("rate", "W8", "", True), 2.0, 3.0)
    (1.5, 0.6666666666666666)
    """
    if not figure.is_compared or not ours or not theirs:
        return None
    return ours / theirs if figure.more_is_better else theirs / ours


def shown(value: float) -> str:
    """Three digits.

    >>> shown(0.012345), shown(123456.0), shown(0.0), shown(12.0)
    ('0.0123', '123,000', '0', '12')
    """
    if value == 0:
        return "0"
    rounded = round(value, 2 - math.floor(math.log10(abs(value))))
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:.6g}"


def systems_in(records: Sequence[dict[str, Any]], *, by_spark: bool) -> list[Entry]:
    """Those that took part, in the order of the tables."""
    seen = {record["system"] for record in records}
    listed = [one for one in ENTRIES.values() if one.name in seen and one.by_spark is by_spark]
    return [one for one in listed if one.is_floor or one.only is None]


def ours_of(entry: Entry) -> str:
    """The one of our own that a system is compared with."""
    return "lakehouse-spark" if entry.by_spark else "lakehouse"


def table(records: Sequence[dict[str, Any]], entries: Sequence[Entry]) -> list[str]:
    """A row a figure, a column a system."""
    if not entries:
        return []
    found = medians(records)
    marks = _marks(records)
    lines = [f"| work | {' | '.join(one.label for one in entries)} |", "|---" * (len(entries) + 1) + "|"]
    for figure in FIGURES:
        cells = [_cell(found, marks, figure, one) for one in entries]
        if any(cells):
            lines.append(f"| {figure.label} | {' | '.join(cells)} |")
        if figure.over_floor:
            ratios = [_over_floor(found, figure, one) for one in entries]
            if any(ratios):
                lines.append(f"| - over plain Parquet | {' | '.join(ratios)} |")
    return lines


def _cell(found: Medians, marks: dict[tuple[str, str], str], figure: Figure, entry: Entry) -> str:
    value = found.get((entry.name, figure.name))
    mark = marks.get((entry.name, figure.work), "")
    theirs = value
    if figure.name in UPSERTS and not entry.name.startswith("lakehouse"):
        theirs = found.get((entry.name, UPSERTS[figure.name]))
    if value is None and theirs is None:
        return mark
    ours = found.get((ours_of(entry), figure.name))
    better = None if entry.is_floor or entry.name == ours_of(entry) else advantage(figure, ours, theirs)
    if better is None:
        text = "" if value is None else shown(value)
    else:
        ratio = shown(better) if better >= 1 else f"**{shown(better)}**"
        text = f"({ratio})" if value is None else f"{shown(value)} ({ratio})"
    return f"{text} {mark}".strip()


def _over_floor(found: Medians, figure: Figure, entry: Entry) -> str:
    value = found.get((entry.name, figure.name))
    floor = None if entry.floor is None else found.get((entry.floor, figure.name))
    return "" if not value or not floor else f"{value / floor:.2f}"


def _marks(records: Iterable[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """WRONG or FAILED, by system and work."""
    marks: dict[tuple[str, str], str] = {}
    for record in records:
        key = record["system"], record["work"]
        if record["wrong"]:
            marks[key] = "WRONG"
        elif "error" in record:
            marks.setdefault(key, "FAILED")
    return marks


def races(records: Sequence[dict[str, Any]]) -> list[str]:
    """A row a system and a way of W7: who failed of those that ran beside a compaction, and whether rows were right."""
    counts: dict[tuple[str, str], float] = defaultdict(float)
    for record in records:
        if record["work"] == "W7":
            for name, value in record["figures"].items():
                counts[record["system"], name] += value
    lines = [f"| way | system | {' | '.join(OPERATIONS)} | rows right |", "|---" * (len(OPERATIONS) + 3) + "|"]
    for way in WAYS:
        for entry in ENTRIES.values():
            if not counts[entry.name, f"{way}: rounds"]:
                continue
            cells = [
                f"{counts[entry.name, f'{way}: {kind} failed']:.0f}/{counts[entry.name, f'{way}: {kind} tried']:.0f}"
                for kind in OPERATIONS
            ]
            right, rounds = counts[entry.name, f"{way}: right"], counts[entry.name, f"{way}: rounds"]
            text = f"{right:.0f}/{rounds:.0f}" if right == rounds else f"**{right:.0f}/{rounds:.0f} WRONG**"
            label = f"{entry.label} by Spark" if entry.name == "lakehouse-spark" else entry.label
            lines.append(f"| {way} | {label} | {' | '.join(cells)} | {text} |")
    return lines if len(lines) > 2 else []


def problems(records: Iterable[dict[str, Any]]) -> list[str]:
    """A line for each kind of wrong result or failure."""
    found: dict[str, int] = defaultdict(int)
    for record in records:
        where = f"{record['work']}, {record['system']}"
        for one in record["wrong"]:
            found[f"{where}: WRONG, {one.replace('|', '/')}"] += 1
        if "error" in record:
            found[f"{where}: FAILED, {record['error'].replace('|', '/')}"] += 1
    return [f"- {text}{f' ({count} times)' if count > 1 else ''}" for text, count in found.items()]


def behind(records: Sequence[dict[str, Any]]) -> list[str]:
    """Where a peer is ahead: figure, peer, and by how much."""
    found = medians(records)
    lines = []
    for figure in FIGURES:
        for entry in ENTRIES.values():
            if entry.is_floor or entry.name.startswith("lakehouse"):
                continue
            theirs = found.get((entry.name, UPSERTS.get(figure.name, figure.name)))
            better = advantage(figure, found.get((ours_of(entry), figure.name)), theirs)
            if better is not None and better < 0.995:
                lines.append(f"- {figure.label}: {entry.label} is {1 / better:.2f} times ahead")
    return lines


def page(results: dict[str, Any]) -> str:
    """What stands between the marks of the page."""
    records = results["records"]
    versions = ", ".join(f"{name} {version}" for name, version in sorted(_versions(results).items()))
    parts = [
        [
            f"{results['rows']:,} rows, medians of {results['repeats']}, {results['when']}, {results['machine']}.",
            f"Load when it began {results['load']}. {versions}.",
        ],
        ["In brackets: how many times better ours is; **below 1** the other one is ahead."],
        ["**In process**"],
        table(records, systems_in(records, by_spark=False)),
        ["![How many times better ours is, in process](peers/in_process.svg)"],
        ["**By Spark**"],
        table(records, systems_in(records, by_spark=True)),
        ["![How many times better ours is, by Spark](peers/by_spark.svg)"],
        ["**A compaction beside others**: failed of those tried that ran beside it"],
        races(records),
        ["**Where a peer is ahead**"],
        behind(records) or ["Nowhere."],
        ["**Wrong or failed**"],
        problems(records) or ["Nothing."],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _versions(results: dict[str, Any]) -> dict[str, str]:
    found: dict[str, set[str]] = defaultdict(set)
    for versions in results["versions"].values():
        for name, version in versions.items():
            found[name].add(version)
    return {name: " and ".join(sorted(several)) for name, several in found.items()}


def put_into(path: Path, text: str) -> None:
    """Put the text between the marks of a page. Raises `ValueError` if it has none."""
    held = path.read_text()
    if BEGIN not in held or END not in held:
        raise ValueError(f"{path.name} lacks the marks {BEGIN} and {END}")
    pattern = re.compile(re.escape(BEGIN) + ".*" + re.escape(END), re.DOTALL)
    path.write_text(pattern.sub(lambda _: f"{BEGIN}\n\n{text}\n\n{END}", held))


def read(path: Path) -> dict[str, Any]:
    """Stored results."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found
