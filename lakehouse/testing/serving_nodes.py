"""Query nodes for tests: in a thread of this process, or as processes that can be paused and killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from lakehouse.lake import Lake
from lakehouse.serving.node import NodeSettings, ServingNode
from lakehouse.serving.server import listening_socket, server_config
from lakehouse.testing.processes import dies_with_parent

_RUN = "from lakehouse.command import main; main()"


@dataclass(frozen=True, slots=True)
class Served:
    """A node in this process, and where it answers."""

    node: ServingNode
    url: str


@contextmanager
def served(
    lake: Lake, group: str = "test", settings: NodeSettings | None = None, token: str | None = None
) -> Iterator[Served]:
    """A node that answers by HTTP, in threads of this process."""
    listener = listening_socket("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    node = ServingNode(lake, group, url.rpartition(":")[2], url, settings)
    server = uvicorn.Server(server_config(node, token, log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield Served(node, url)
    finally:
        server.should_exit = True
        thread.join()
        node.close()
        listener.close()


class NodeProcess:
    """``lakehouse serve`` as a process of its own, which ends with this one."""

    def __init__(
        self, catalog: str, warehouse: str, *options: str, group: str = "test", log: Path | None = None
    ) -> None:
        command = [sys.executable, "-c", _RUN, "serve", "--group", group, "--port", "0", *options]
        where = ["--catalog", catalog, "--warehouse", warehouse]
        self._log = None if log is None else log.open("ab")
        self.process = subprocess.Popen(
            [*dies_with_parent(), *command, *where], stdout=subprocess.PIPE, stderr=self._log, env=dict(os.environ)
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline().decode()
        found = [one.rstrip(",") for one in self.line.split() if one.startswith("http://")]
        if not found:
            self.kill()
            raise AssertionError(f"the node did not start: {self.line!r}")
        self.url = found[0]
        self.name = self.line.split()[1]

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, such as SIGSTOP."""
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self._end()

    def stop(self, seconds: float = 30.0) -> int:
        """Ask it to stop; its exit code."""
        self.process.terminate()
        try:
            code = self.process.wait(seconds)
        finally:
            self._end()
        return code

    def _end(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        if self._log is not None:
            self._log.close()

    def __enter__(self) -> NodeProcess:
        return self

    def __exit__(self, *_: Any) -> None:
        if self.process.poll() is None:
            self.kill()
        else:
            self._end()


def urls(nodes: Sequence[Served | NodeProcess]) -> list[str]:
    """Their addresses."""
    return [one.url for one in nodes]
