"""The kills find what they look for: every broken library is caught, by what it breaks."""

from __future__ import annotations

import re

import pytest

from lakehouse.testing.crash import run
from lakehouse.testing.victim import Kill
from tests.crash import mutants


def at(point, *kinds):
    return [Kill(kind, point, number) for kind in kinds for number in (1, 2)]


MUTANTS = {
    mutants.two_transactions: (at("commit.table", "transaction"), "rows differ"),
    mutants.version_before_its_delta: (at("commit.table", "append", "replace"), "rows differ|given out twice"),
    mutants.acknowledged_before_commit: (
        at("commit.recorded", "append", "transaction"),
        "acknowledged versions are lost",
    ),
    mutants.lost_transactions: (at("commit.after", "append"), "acknowledged versions are lost|commit.after"),
    mutants.frames_without_their_last_entry: (at("commit.after", "append"), "rows differ|a version changed|key frame"),
    mutants.locks_for_ever: (at("write.after", "replace"), "LockTimeout"),
    mutants.marks_after_commit: (at("commit.after", "append once"), "a marked append was repeated"),
    mutants.files_after_commit: (at("commit.after", "append", "replace"), "data file is missing"),
    mutants.filters_without_their_last_value: (at("summaries.registered", "summarize"), "a look-up misses rows"),
    mutants.row_ids_twice: (at("commit.after", "append"), "the same row ids|a row id was given out twice|rows differ"),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda mutate: mutate.__name__)
def test_a_broken_library_is_caught(nursery, mutate):
    points, found = MUTANTS[mutate]
    report = run(nursery, 3 * points, 7, mutate=mutate)
    assert len(report.wrong) == 1
    assert re.search(found, report.wrong[0]), report.wrong[0][:600]
