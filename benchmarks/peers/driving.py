"""Workers, a process for each system, and the order in which they take their turns."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.peers.bench import Size
from benchmarks.peers.environment import command
from benchmarks.peers.systems import Entry
from benchmarks.processes import Process, WorkerGone

T = TypeVar("T")


def rotated(listed: Sequence[T], by: int) -> list[T]:
    """The same in turn, another one first each time.

    >>> rotated("abc", 1), rotated("abc", 5)
    (['b', 'c', 'a'], ['c', 'a', 'b'])
    """
    start = by % len(listed)
    return [*listed[start:], *listed[:start]]


class Worker(Process):
    """One system's process. A new one has a new folder."""

    def __init__(self, entry: Entry, folder: Path, size: Size) -> None:
        super().__init__(folder / f"{entry.name}.log")
        self.entry = entry
        self.folder = folder
        self.size = size
        self.starts = 0
        self.versions: dict[str, str] = {}

    def command(self) -> tuple[Sequence[str], Mapping[str, str]]:
        """The worker with the packages of its system."""
        self.starts += 1
        root = self.folder / f"{self.entry.name}-{self.starts}"
        size = json.dumps(asdict(self.size))
        return command(self.entry.place, self.entry.name, str(root), str(self.folder / "shared"), size)

    def start(self) -> dict[str, Any]:
        """Begin a process. Raises `WorkerGone` if it does not come up."""
        greeting = super().start()
        self.versions = greeting["versions"]
        return greeting


def run(
    workers: Sequence[Worker], works: Sequence[str], repeats: dict[str, int], limit_seconds: float
) -> Iterator[dict[str, Any]]:
    """Each work, each repeat, each system in turn: a record of what came of it."""
    unsupported: set[tuple[str, str]] = set()
    for work in works:
        for repeat in range(repeats[work]):
            for worker in rotated(workers, repeat):
                name, only = worker.entry.name, worker.entry.only
                if (only is not None and work not in {*only, "warm"}) or (name, work) in unsupported:
                    continue
                try:
                    said = worker.ask({"work": work, "repeat": repeat}, limit_seconds)
                except WorkerGone as error:
                    said = {"error": f"{type(error).__name__}: {error}", "figures": {}, "facts": {}, "wrong": []}
                if said.pop("unsupported", False):
                    unsupported.add((name, work))
                    continue
                record = {"system": name, "work": work, "repeat": repeat, **said}
                _print(record)
                yield record


def _print(record: dict[str, Any]) -> None:
    figures = "  ".join(f"{name} {value:.4g}" for name, value in record["figures"].items() if ": " not in name)
    notes = [f"FAILED {record['error']}"] if "error" in record else []
    notes += [f"WRONG {one}" for one in record["wrong"]]
    head = f"{record['work']:4} {record['repeat']} {record['system']:16} {record.get('seconds', 0):7.1f} s"
    print(f"{head}  {figures}  {' '.join(notes)}".rstrip(), file=sys.stderr, flush=True)
