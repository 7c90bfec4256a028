"""Hundreds of orders of the steps of two to six operations, against the reference model and serial orders."""

from __future__ import annotations

import pytest

import lakehouse
from lakehouse.testing.cases import STAGES, TIMELESS, Case, sample
from lakehouse.testing.explore import explorer, main
from lakehouse.testing.schedules import Explorer
from tests.concurrency.broken import BROKEN

A_STAGE = 40
"""`make explore` runs a hundred thousand."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("stage", [*STAGES, *TIMELESS], ids=str)
def test_every_schedule_ends_as_the_model_and_a_serial_order_do(stage):
    with explorer() as found:
        assert found.explore(sample(A_STAGE, seed=1, stages=[stage])) == (A_STAGE, [])


@pytest.mark.timeout(300)
def test_schedules_end_as_the_model_and_a_serial_order_do_on_postgresql(postgres_url, warehouse):
    with lakehouse.connect(postgres_url, str(warehouse), wait_seconds=0) as lake:
        assert Explorer(lake).explore(sample(A_STAGE, seed=9, stages=STAGES[:2])) == (A_STAGE, [])


@pytest.mark.parametrize("broken", BROKEN, ids=lambda found: found.__name__)
def test_a_broken_rule_is_noticed(monkeypatch, broken):
    with explorer() as found:
        cases = [Case.read(text) for text in BROKEN[broken]]
        assert found.explore(cases) == (len(cases), [])
        broken(monkeypatch)
        assert all(found.check(case) for case in cases)


def test_the_command_runs_one_schedule(capsys):
    assert main(["--case", "day,split,commit,plain:0,2:0,1,1,0,0,1"]) == 0
    assert "schedules=1 wrong=0" in capsys.readouterr().out


def test_a_case_that_is_wrong_is_reported_as_short_as_it_can_be(monkeypatch):
    monkeypatch.setattr("lakehouse.testing.schedules.differences", lambda target, case: case.menu[:1])
    with explorer() as found:
        short = found.shortest(Case.read("day,split,commit,plain:0,2,2:0,1,2,1,0,0,1,2,2"))
    assert str(short) == "day,split,commit,plain:2,2:0,1,0,0,1,1"
