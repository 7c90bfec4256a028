"""The TLA+ model of the catalog's rules, with few operations side by side; `make check` explores it as a whole."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools/model"
UNAVAILABLE = 69


def run(*arguments: str) -> str | None:
    """What the check prints; None where it cannot run here, which is then the one thing that it says."""
    command = [sys.executable, str(SCRIPT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == UNAVAILABLE:
        print(done.stdout)
        assert done.stdout.startswith("model: skipped: ")
        assert done.stdout.count("\n") == 1
        return None
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def found() -> str | None:
    return run("--few", "none")


def test_every_rule_holds_in_every_state(found: str | None) -> None:
    assert found is None or found.startswith("model: every rule holds, ")


@pytest.mark.parametrize(
    ("mutant", "rule"),
    [
        ("ge_for_gt", "VisibleIsTheReference"),
        ("outputs_at_commit_number", "CompactionChangesNothing"),
        ("no_fencing", "FencedNeverCommits"),
        ("expired_lock_stays", "AChunkHasOneHolder"),
        ("steal_from_the_living", "LeasesAreRespected"),
        ("number_at_begin", "VersionsArePrefixes"),
        ("repeat_a_lost_answer", "AcknowledgedOnceAndForEver"),
        ("collect_ends_nobody", "WhatIsReachableExists"),
    ],
)
def test_a_broken_rule_is_noticed(found: str | None, mutant: str, rule: str) -> None:
    line = found and run("--few", mutant)
    assert line is None or line.startswith(f"mutant {mutant}: caught by {rule}, ")
