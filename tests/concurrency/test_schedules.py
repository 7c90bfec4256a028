"""Thousands of orders of the steps of two to six operations, against the reference model and serial orders."""

from __future__ import annotations

import pytest

import lakehouse
from lakehouse.table import Table
from lakehouse.testing.cases import STAGES, Case, places, sample
from lakehouse.testing.explore import explorer, main
from lakehouse.testing.planned import MENU
from lakehouse.testing.schedules import Explorer

SHARDS = 8
A_SHARD = 280
HERE = {one.kind for one in MENU if one.kind in ("restore", "expire", "compact") or hasattr(Table, f"begin_{one.kind}")}
CHOSEN = {"chosen": places(*HERE), "stages": [one for one in STAGES if not one.masked or "upsert" in HERE]}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_schedule_ends_as_the_model_and_a_serial_order_do(shard):
    with explorer() as found:
        assert found.explore(sample(A_SHARD, seed=1, first=shard * A_SHARD, **CHOSEN)) == (A_SHARD, [])


@pytest.mark.timeout(300)
def test_schedules_end_as_the_model_and_a_serial_order_do_on_postgresql(postgres_url, warehouse):
    with lakehouse.connect(postgres_url, str(warehouse), wait_seconds=0) as lake:
        assert Explorer(lake).explore(sample(100, seed=9, **CHOSEN)) == (100, [])


def test_the_command_runs_one_schedule(capsys):
    assert main(["--case", "day,split,commit,plain:0,2:0,1,1,0,0,1"]) == 0
    assert "schedules=1 wrong=0" in capsys.readouterr().out


def test_a_case_that_is_wrong_is_told_as_short_as_it_can_be(monkeypatch):
    monkeypatch.setattr("lakehouse.testing.schedules.differences", lambda target, case: case.menu[:1])
    with explorer() as found:
        short = found.shortest(Case.read("day,split,commit,plain:0,2,2:0,1,2,1,0,0,1,2,2"))
    assert str(short) == "day,split,commit,plain:2,2:0,1,0,0,1,1"
