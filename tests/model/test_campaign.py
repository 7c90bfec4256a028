"""A small slice of the campaign, and what its command prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lakehouse
from lakehouse.catalog.store.tables import metadata
from lakehouse.testing.campaign import __main__ as command
from lakehouse.testing.campaign import copies, histories, schedules, year
from lakehouse.testing.campaign.__main__ import main
from lakehouse.testing.campaign.outcome import Outcome
from lakehouse.testing.campaign.parts import PARTS, Part, shares

NONE = [f"--{part.option}=0" for part in PARTS]


def test_a_slice_of_histories_finds_nothing_wrong() -> None:
    outcome = histories.run(60, seed=3)
    assert outcome.wrong == []
    assert outcome.tried == 60


def test_a_slice_of_schedules_finds_nothing_wrong() -> None:
    outcome = schedules.run(40, seed=3)
    assert (outcome.tried, outcome.wrong) == (40, [])


def test_readers_that_are_killed_over_one_folder_of_copies_leave_nothing_wrong() -> None:
    outcome = copies.run(3, seed=3)
    assert (outcome.tried, outcome.wrong) == (3, [])
    assert outcome.refused > 0


def test_a_hole_in_a_copy_that_is_read_as_rows_is_noticed(tmp_path: Path) -> None:
    with lakehouse.connect(f"sqlite:///{tmp_path}/c.db", tmp_path / "w") as lake:
        table = lake.create_table("events", "id BIGINT, one BIGINT")
        ids = np.arange(100)
        table.append(pa.table({"id": ids, "one": copies.values("one", ids)}))
        assert copies.ask(table, "one", 0, 100) == ""
        table.update({"one": "0"}, "id = 7")
        assert "1 are zero" in copies.ask(table, "one", 0, 100)
        assert "of 120" in copies.ask(table, "one", 0, 120)


def test_a_history_that_loses_a_row_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = histories.visible
    monkeypatch.setattr(histories, "visible", lambda table, **scan: seen(table, **scan)[1:])
    outcome = histories.run(20, seed=3)
    assert len(outcome.wrong) >= 1
    assert "lost" in outcome.wrong[0]


def test_a_feed_that_leaves_out_a_change_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = histories.plain
    monkeypatch.setattr(histories, "plain", lambda table: plain(table)[1:])
    assert "changes" in histories.run(60, seed=3).wrong[0]


def test_two_months_of_operation_keep_the_catalog_flat() -> None:
    outcome = year.run(56, seed=0)
    assert (outcome.tried, outcome.wrong) == (56, [])


def test_a_catalog_that_grows_is_noticed() -> None:
    flat = dict.fromkeys(metadata.tables, 40)
    days = [year.Day({**flat, "txn": number}, 100, 100, {}) for number in range(84)]
    assert year.grown(days) == ["txn grew from 41 to 83 in 84 days"]


def test_the_command_runs_a_part_on_processes_and_shows_one_line() -> None:
    options = [*NONE, "--schedules=40", "--seed=3", "--processes=2", "--minutes=1"]
    command = [sys.executable, "-m", "lakehouse.testing.campaign", *options]
    lines = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout.splitlines()
    assert lines[0] == "seed=3 processes=2"
    assert lines[1].startswith("schedules: tried=40 refused=0 wrong=0 seconds=")


def test_the_command_fails_where_something_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def found(part: object, count: int, seed: int, **_: object) -> Outcome:
        return Outcome("filters", count, 1, ["x = 1 gives 2 rows"])

    monkeypatch.setattr(command, "run_part", found)
    assert main([*NONE, "--filters=10"]) == 1
    assert "tried=10 refused=1 wrong=1" in capsys.readouterr().out


def test_no_share_begins_when_the_time_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*NONE, "--steps=1000", "--minutes=0"]) == 0
    assert "tried=0 (of 1000: the time was over)" in capsys.readouterr().out


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.module)
def test_shares_make_the_whole(part: Part) -> None:
    for count in (0, 1, 63, 64, 999, part.count):
        assert sum(shares(part, count, 2)) == count
