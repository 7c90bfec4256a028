"""A process that answers a line of JSON for each that it is asked, and is killed when it says nothing in its time."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.environments import ROOT

OPEN_SECONDS = 180.0


class WorkerGone(Exception):
    """The process ended, or said nothing within its time."""


class Process:
    """One process over a run, so that what is warm stays warm. Its first line, unasked, is its greeting."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.process: subprocess.Popen[str] | None = None

    def command(self) -> tuple[Sequence[str], Mapping[str, str]]:
        """What is run, and its environment."""
        raise NotImplementedError

    def start(self) -> dict[str, Any]:
        """Begin a process, and give its greeting. Raises `WorkerGone` if it does not come up."""
        arguments, environment = self.command()
        with self.log.open("a") as log:
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
        return self._next(OPEN_SECONDS)

    def ask(self, question: Mapping[str, Any], limit_seconds: float) -> dict[str, Any]:
        """The answer to a question. Raises `WorkerGone`; then the next one asked begins anew."""
        if self.process is None:
            self.start()
        assert self.process is not None
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
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
            raise WorkerGone(f"the process ended with {code}; {self.log.name} says why")
        found: dict[str, Any] = json.loads(line)
        return found

    def kill(self) -> None:
        """End the process and what it started."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                assert pipe is not None
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
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
    with contextlib.suppress(ValueError):  # closed, as the process was killed
        for line in stream:
            lines.put(line)
    lines.put(None)
