"""Other processes on the test's lake."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("child.py")


class Child:
    """A process that runs `child.py`."""

    def __init__(self, task: dict) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.tell(**task)

    def tell(self, **facts) -> None:
        """Let it go on."""
        self.process.stdin.write(json.dumps(facts) + "\n")
        self.process.stdin.flush()

    def hear(self) -> dict:
        """What it says next; nothing if it died first."""
        line = self.process.stdout.readline()
        return json.loads(line) if line else {}

    def ask(self, **facts) -> dict:
        """Let it go on, and hear what it says next."""
        self.tell(**facts)
        return self.hear()

    def end(self) -> int:
        """Wait until it is gone; its exit status."""
        self.process.stdin.close()
        status = self.process.wait(60)
        self.process.stdout.close()
        return status


@pytest.fixture
def start(catalog_url: str, warehouse: Path) -> Iterator[Callable[..., Child]]:
    """Start a process on the test's lake; those that still run at the end are killed."""
    children: list[Child] = []

    def one_more(do: str, **task) -> Child:
        children.append(Child({"do": do, "catalog": catalog_url, "warehouse": str(warehouse), **task}))
        return children[-1]

    yield one_more
    for child in children:
        child.process.kill()
        child.process.wait()
        child.process.stdin.close()
        child.process.stdout.close()
