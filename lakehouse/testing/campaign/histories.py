"""Random histories of one lake, compared step by step with lists of rows in plain Python, at all versions."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from typing import Any

import pyarrow as pa

import lakehouse
from lakehouse.catalog.versions.horizon import read_horizon
from lakehouse.errors import LakehouseError, VersionNotFound
from lakehouse.testing.campaign.outcome import Outcome
from lakehouse.testing.explore import SCRATCH
from lakehouse.testing.history import Author, Step, World, after, create_tables, do, erased
from lakehouse.testing.rows import COLUMNS, plain, visible

STEPS_OF_A_LAKE = 100
_ALL_EVERY = 25
"""Every this many steps, every version is read and the catalog checked."""


def run(count: int, seed: int) -> Outcome:
    """Take ``count`` steps, with a new lake every hundred. ``refused`` counts reads of expired versions."""
    refused, wrong = 0, []
    for first in range(0, count, STEPS_OF_A_LAKE):
        label = f"histories --seed {seed}, lake {first // STEPS_OF_A_LAKE}"
        folder = tempfile.mkdtemp(dir=SCRATCH)
        try:
            url = f"sqlite:///{folder}/catalog.db"
            with (
                lakehouse.connect(url, f"{folder}/warehouse") as lake,
                lakehouse.connect(url, f"{folder}/warehouse") as there,
            ):
                history = History(lake, there, random.Random(f"{seed} {first}"))  # noqa: S311 - a repeatable history
                wrong += [f"{label}: {one}" for one in history.live(min(STEPS_OF_A_LAKE, count - first))]
                refused += history.refused
        finally:
            shutil.rmtree(folder)
    return Outcome("histories", count, refused, wrong)


class History:
    """A lake that one handle writes, what should be visible at each version, and another handle that reads."""

    def __init__(self, lake: Any, there: Any, chance: random.Random) -> None:
        self._lake, self._there, self._chance = lake, there, chance
        self._world, self._made = World(), 0
        create_tables(lake)
        self._versions: dict[int, World] = {lake.head: self._world}
        self._forgotten: dict[int, World] = {}
        self.refused = 0

    def live(self, steps: int) -> list[str]:
        """Take steps and read after each; returns what was wrong, and stops there."""
        for number in range(1, steps + 1):
            author = Author(self._chance, self._world, dict(self._versions), self._made)
            step = author.step()
            self._made = author.made
            try:
                found = [*self._take(step), *self._at_the_head(), *self._before(), *self._feed(), *self._gone()]
                if number % _ALL_EVERY == 0 or number == steps:
                    found += self._everywhere()
            except (LakehouseError, AssertionError) as error:
                found = [f"{type(error).__name__}: {error}"]
            if found:
                return [f"step {number}, {step}: {one}" for one in found]
        return []

    def _take(self, step: Step) -> list[str]:
        made, before, known = do(self._lake, step), self._world, self._versions
        self._world, self._versions = after(self._world, step, self._versions), erased(step, self._versions)
        self._forgotten = erased(step, self._forgotten)
        if made is not None:
            self._versions[made] = self._world
        if step.kind == "clean up":
            horizon, tagged = self._lake.catalog._read(read_horizon), set(self._world.tags.values())
            gone = {one for one in self._versions if one < horizon and one not in tagged}
            self._forgotten |= {one: self._versions.pop(one) for one in gone}
        return [] if made in known or step.kind == "erase" else self._counts(made, before)

    def _counts(self, made: int | None, before: World) -> list[str]:
        """Check that the log's counts of added and lost rows, and a table's count, are right."""
        found = []
        for place, name in enumerate(self._world.names):
            table, rows = self._there.table(name), len(self._world.rows[place])
            if table.count() != rows:
                found.append(f"table {place} counts {table.count()} rows, not {rows}")
            for commit in table.log(limit=1):
                change = commit.rows_added - commit.rows_deleted
                if commit.version == made and commit.is_exact and change != rows - len(before.rows[place]):
                    found.append(f"version {made} reports +{commit.rows_added} -{commit.rows_deleted} of table {place}")
        return found

    def _at_the_head(self) -> list[str]:
        found = []
        if self._there.tables() != self._world.tables() or self._there.tags() != dict(self._world.tags):
            found.append(f"tables {self._there.tables()}, tags {self._there.tags()}")
        for place, name in enumerate(self._world.names):
            for lake in (self._lake, self._there):
                found += _differences(visible(lake.table(name)), self._world, place, "the head")
        return found

    def _before(self) -> list[str]:
        version = self._chance.choice(list(self._versions))
        return self._at(version)

    def _at(self, version: int) -> list[str]:
        found = []
        for place, name in enumerate(self._world.names):
            rows = visible(self._there.table(name), as_of=version)
            found += _differences(rows, self._versions[version], place, f"version {version}")
        return found

    def _feed(self) -> list[str]:
        """Check that the rows at a version, with the changes since, give the rows at a later one."""
        since, until = sorted(self._chance.choices(list(self._versions), k=2))
        place = self._chance.randrange(2)
        try:
            reported = self._there.table(self._world.names[place]).changes(since, until).to_arrow()
        except VersionNotFound:
            self.refused += 1
            return []
        rows = Counter(self._versions[since].rows[place])
        for change, sign in (("delete", -1), ("update_before", -1), ("insert", 1), ("update_after", 1)):
            mask = [one == change for one in reported["_change_type"].to_pylist()]
            for row in plain(reported.filter(pa.array(mask, pa.bool_())).select(list(COLUMNS))):
                rows[row] += sign
        wanted = Counter(self._versions[until].rows[place])
        if {row: many for row, many in rows.items() if many} == wanted:
            return []
        return [f"changes of table {place} from {since} to {until} lead elsewhere"]

    def _gone(self) -> list[str]:
        """Check that an expired version cannot be tagged, and reads unchanged (if a table's newest) or not at all."""
        if not self._forgotten:
            return []
        version = self._chance.choice(list(self._forgotten))
        try:
            self._lake.tag("late", version)
        except VersionNotFound:
            self.refused += 1
        else:
            return [f"the forgotten version {version} takes a tag"]
        found = []
        for place, name in enumerate(self._world.names):
            try:
                rows = visible(self._there.table(name), as_of=version)
            except VersionNotFound:
                self.refused += 1
            else:
                found += _differences(rows, self._forgotten[version], place, f"the forgotten version {version}")
        return found

    def _everywhere(self) -> list[str]:
        found = [one for version in self._versions for one in self._at(version)]
        return found + [str(one) for one in self._lake.check().findings]


def _differences(rows: Any, world: World, place: int, at: str) -> list[str]:
    wanted = list(world.rows[place])
    if rows == wanted:
        return []
    return [f"table {place} at {at}: lost {list(set(wanted) - set(rows))}, extra {list(set(rows) - set(wanted))}"]
