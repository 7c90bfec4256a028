"""Cases: which operations run concurrently, and in which orders of their steps."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakehouse.testing.planned import AT_ONCE, MENU, Grain, Kind, Planned, Stage, WriteOrder

Schedule = tuple[int, ...]

STEPS = 3
"""Begin, write, commit."""
SIZES = {2: 8, 3: 10, 4: 2, 5: 1, 6: 1}
"""Weights of the number of operations in a random case."""
GRAINS: tuple[Grain, ...] = ("day", "hour", "all")
ORDERS: tuple[WriteOrder, ...] = ("commit", "start")
EVERY_STAGE = tuple(
    Stage(grain, ragged, order, masked)
    for grain in GRAINS
    for ragged in (False, True)
    for order in ORDERS
    for masked in (False, True)
    if not (ragged and grain == "all")
)
STAGES = tuple(one for one in EVERY_STAGE if one.ragged == (one.grain == "hour") and one.grain != "all")
"""The kinds of tables with a time that random cases are run on: split by day, and ragged by hour."""
TIMELESS = tuple(one for one in EVERY_STAGE if one.grain == "all" and one.masked)
"""Those without one."""


@dataclass(frozen=True, slots=True)
class Case:
    """Operations of `MENU`, by index, on a kind of table, and an order of their steps.

    The n-th mention of an operation in the schedule is its n-th step.

    >>> str(Case.read("day,split,commit,plain:0,2:0,1,1,0,0,1"))
    'day,split,commit,plain:0,2:0,1,1,0,0,1'
    """

    stage: Stage
    menu: tuple[int, ...]
    schedule: Schedule

    @property
    def planned(self) -> list[Planned]:
        """The operations; no two write the same values."""
        return [MENU[index].numbered(place) for place, index in enumerate(self.menu)]

    def __str__(self) -> str:
        menu, schedule = (",".join(str(one) for one in found) for found in (self.menu, self.schedule))
        return f"{self.stage}:{menu}:{schedule}"

    @classmethod
    def read(cls, text: str) -> Case:
        """A case from its `str`."""
        stage, menu, schedule = text.split(":")
        found = next(one for one in EVERY_STAGE if str(one) == stage)
        return cls(found, *(tuple(int(part) for part in listed.split(",")) for listed in (menu, schedule)))

    def without(self, place: int) -> Case:
        """The same without one of its operations."""
        menu = self.menu[:place] + self.menu[place + 1 :]
        return Case(self.stage, menu, tuple(one - (one > place) for one in self.schedule if one != place))


def schedules(menu: Sequence[int]) -> Iterator[Schedule]:
    """Every order of the operations' steps."""
    for found in _merges(tuple(1 if MENU[index].kind in AT_ONCE else STEPS for index in menu)):
        yield _with_whole_steps(menu, found)


def _merges(left: tuple[int, ...]) -> Iterator[Schedule]:
    """Every order of the operations' remaining steps."""
    if not any(left):
        yield ()
    for index, steps in enumerate(left):
        if steps:
            for rest in _merges((*left[:index], steps - 1, *left[index + 1 :])):
                yield (index, *rest)


def _with_whole_steps(menu: Sequence[int], found: Sequence[int]) -> Schedule:
    """The three steps of one-step operations stay together."""
    whole = ([place] * STEPS if MENU[menu[place]].kind in AT_ONCE else [place] for place in found)
    return tuple(itertools.chain.from_iterable(whole))


def every(stage: Stage, count: int, chosen: Sequence[int] = range(len(MENU))) -> Iterator[Case]:
    """Every schedule of every choice of ``count`` operations."""
    for menu in itertools.combinations_with_replacement(chosen, count):
        for schedule in schedules(menu):
            yield Case(stage, menu, schedule)


def places(*kinds: Kind) -> list[int]:
    """Indexes in `MENU` of operations of some kinds."""
    return [index for index, planned in enumerate(MENU) if planned.kind in kinds]


def sample(
    count: int,
    seed: int,
    *,
    first: int = 0,
    sizes: Sequence[int] | None = None,
    chosen: Sequence[int] = range(len(MENU)),
    stages: Sequence[Stage] = STAGES,
) -> Iterator[Case]:
    """Random cases, always the same for a seed; the ``first`` ones are skipped."""
    for number in range(first, first + count):
        chance = random.Random(f"{seed}:{number}")  # noqa: S311 - a repeatable choice of tests
        size = chance.choice(sizes) if sizes else chance.choices(list(SIZES), weights=list(SIZES.values()))[0]
        menu = tuple(chance.choices(chosen, k=size))
        steps = [1 if MENU[index].kind in AT_ONCE else STEPS for index in menu]
        mentions = [place for place, found in enumerate(steps) for _ in range(found)]
        chance.shuffle(mentions)
        yield Case(chance.choice(stages), menu, _with_whole_steps(menu, mentions))
