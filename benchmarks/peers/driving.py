"""Workers, a process for each system, and the order in which they take their turns."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.peers.bench import Size
from benchmarks.peers.environment import ROOT, command
from benchmarks.peers.systems import Entry

OPEN_SECONDS = 180.0
T = TypeVar("T")


class WorkerGone(Exception):
    """The process ended, or said nothing within its time."""


def rotated(listed: Sequence[T], by: int) -> list[T]:
    """The same in turn, another one first each time.

    >>> rotated("abc", 1), rotated("abc", 5)
    (['b', 'c', 'a'], ['c', 'a', 'b'])
    """
    start = by % len(listed)
    return [*listed[start:], *listed[:start]]


class Worker:
    """One system's process. It lives over the run, so that what is warm stays warm; a new one has a new folder."""

    def __init__(self, entry: Entry, folder: Path, size: Size) -> None:
        self.entry = entry
        self.folder = folder
        self.size = size
        self.starts = 0
        self.versions: dict[str, str] = {}
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Begin a process. Raises `WorkerGone` if it does not come up."""
        self.starts += 1
        root = self.folder / f"{self.entry.name}-{self.starts}"
        size = json.dumps(asdict(self.size))
        arguments, environment = command(
            self.entry.place, self.entry.name, str(root), str(self.folder / "shared"), size
        )
        with (self.folder / f"{self.entry.name}.log").open("a") as log:
            self.process = subprocess.Popen(
                arguments,
                env=environment,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self.lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=_pump, args=(self.process.stdout, self.lines), daemon=True).start()
        self.versions = self._next(OPEN_SECONDS)["versions"]

    def ask(self, work: str, repeat: int, limit_seconds: float) -> dict[str, Any]:
        """Have a work done. Raises `WorkerGone`; then the next one asked begins anew."""
        if self.process is None:
            self.start()
        assert self.process is not None
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"work": work, "repeat": repeat}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError as error:
            self.kill()
            raise WorkerGone("the process had ended") from error
        return self._next(limit_seconds)

    def _next(self, limit_seconds: float) -> dict[str, Any]:
        try:
            line = self.lines.get(timeout=limit_seconds)
        except queue.Empty:
            self.kill()
            raise WorkerGone(f"nothing was heard of it for {limit_seconds:.0f} s") from None
        if line is None:
            code = self.process.wait() if self.process else None
            self.kill()
            raise WorkerGone(f"the process ended with {code}; {self.entry.name}.log says why")
        found: dict[str, Any] = json.loads(line)
        return found

    def kill(self) -> None:
        """End the process and what it started."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def leave(self) -> None:
        """Let the process end by itself."""
        if self.process is not None:
            assert self.process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()

    def close(self) -> None:
        """End the process, if it does not by itself."""
        self.leave()
        if self.process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(15)
            self.kill()


def _pump(stream: Any, lines: queue.SimpleQueue[str | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


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
                    said = worker.ask(work, repeat, limit_seconds)
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
