"""A process killed at any point of its work: nothing acknowledged is lost, nothing is half there, all go on at once."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from lakehouse.faults import POINTS
from lakehouse.testing.crash import choose, run
from lakehouse.testing.victim import Kill

SEED = int(os.environ.get("LAKEHOUSE_SEED", "20130105"))
TIMES = int(os.environ.get("LAKEHOUSE_KILLS", "1"))
"""How many times as many kills as usual."""


@pytest.mark.timeout(600 * TIMES)
def test_no_death_loses_or_halves_a_commit_on_sqlite(nursery):
    report = run(nursery, 65 * TIMES, SEED)
    print(report)
    assert report.wrong == []
    assert len(report.deaths) >= 60 * TIMES
    assert {kill.at for kill in report.deaths} >= POINTS.keys()
    assert report.slowest_seconds < 5


@pytest.mark.timeout(600 * TIMES)
def test_no_death_loses_or_halves_a_commit_on_postgresql(nursery, postgres):
    report = run(nursery, 65 * TIMES, SEED + 100, server=postgres)
    print(report)
    assert report.wrong == []
    assert len(report.deaths) >= 60 * TIMES
    assert {kill.at for kill in report.deaths} >= POINTS.keys()
    assert report.slowest_seconds < 5


def test_kills_are_spread_evenly_over_points_and_statements():
    points = [Kill("append", at, number) for at in ("commit.before", "commit.after") for number in (1, 2)]
    points += [Kill("append", "statement", number) for number in range(1, 21)]
    kills = Counter(choose(points, 60, random.Random(1)))
    assert {kills[one] for one in points[:4]} == {5}
    assert {kills[one] for one in points[4:]} <= {1, 2}
    assert sum(kills.values()) == 60
