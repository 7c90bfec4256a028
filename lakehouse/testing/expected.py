"""The expected contents of a lake after a history of steps, whatever died meanwhile."""

from __future__ import annotations

import random
from typing import Any

from lakehouse.testing.history import UNVERSIONED, Author, Step, World, after, erased


class Wrong(Exception):
    """A required property does not hold."""

    def __init__(self, message: str, **facts: Any) -> None:
        listed = " ".join(f"{name}={value}" for name, value in facts.items())
        super().__init__(f"{message} ({listed})" if listed else message)


class Expected:
    """The rows of every version, and observed entries of the catalog.

    ``versions`` can still be read, ``forgotten`` may be gone, ``entries`` are those of each version of a table.
    """

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - a repeatable history
        self.world = World()
        self.versions: dict[int, World] = {}
        self.entries: dict[tuple[int, int], str] = {}
        self.horizon = 0
        self.forgotten: set[int] = set()
        self.made = 0

    def author(self) -> Author:
        """A maker of the following steps."""
        return Author(self.chance, self.world, dict(self.versions), self.made)

    def goes_on(self, step: Step) -> None:
        """Record what a step changed."""
        self.world, self.versions = after(self.world, step, self.versions), erased(step, self.versions)
        if step.kind == "erase":
            self.entries = {key: held for key, held in self.entries.items() if key[0] != step.place}

    def stepped(self, step: Step, made: int | None) -> None:
        """Record a finished step. Raises `Wrong` for a version that does not grow."""
        self.goes_on(step)
        if made is None:
            return
        if step.kind in UNVERSIONED or made <= max(self.versions):
            raise Wrong(f"version {made} follows {max(self.versions)}", step=step)
        self.versions[made] = self.world
