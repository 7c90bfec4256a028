"""Other processes on the test's lake."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.concurrency import child

PROCESSES = multiprocessing.get_context("forkserver")
"""New processes are forked from one that has imported the library and done nothing with it."""
IMPORTED = [
    "lakehouse.lake", "lakehouse.testing.rows", "tests.concurrency.child", "psycopg", "pandas", "pyarrow.pandas_compat",
]  # fmt: skip
"""What it has imported. pyarrow imports the last two where it first makes a column of Python values: half a second."""


class Child:
    """A process that runs `child.main`."""

    def __init__(self, task: child.Task) -> None:
        self._pipe, theirs = PROCESSES.Pipe()
        self.process = PROCESSES.Process(target=child.main, args=(task, theirs))
        self.process.start()
        theirs.close()

    def signal(self) -> None:
        """Let it go on."""
        self._pipe.send(None)

    def hear(self) -> dict[str, Any]:
        """What it says next; nothing if it died first."""
        try:
            heard: dict[str, Any] = self._pipe.recv()
        except EOFError:
            return {}
        return heard

    def ask(self) -> dict[str, Any]:
        """Let it go on, and hear what it says next."""
        self.signal()
        return self.hear()

    def end(self) -> int | None:
        """Wait until it is gone; its exit status, negative for a signal."""
        self.process.join(60)
        return self.process.exitcode

    def kill(self) -> None:
        """End it at once, if it still runs."""
        self.process.kill()
        self.process.join()
        self._pipe.close()


@pytest.fixture
def start(catalog_url: str, warehouse: Path) -> Iterator[Callable[..., Child]]:
    """Start a process on the test's lake; those that still run at the end are killed."""
    PROCESSES.set_forkserver_preload(IMPORTED)
    children: list[Child] = []

    def one_more(do: str, **task: Any) -> Child:
        children.append(Child({"do": do, "catalog": catalog_url, "warehouse": str(warehouse), **task}))
        return children[-1]

    yield one_more
    for one in children:
        one.kill()
