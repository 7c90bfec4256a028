"""Every order of two operations, and many of three, against the reference model and serial orders."""

from __future__ import annotations

import pytest

import lakehouse
from lakehouse.testing import schedules
from lakehouse.testing.schedules import drive, explore, new_model, sample, serial_outcomes


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("operations", "limit"), [(2, 400), (3, 200)])
def test_every_schedule_ends_as_some_serial_order_does(sqlite_url, warehouse, operations, limit):
    with lakehouse.connect(sqlite_url, str(warehouse)) as lake:
        ran, wrong = explore(lake, sample(operations, limit, seed=operations))
    assert wrong == []
    assert ran == limit


@pytest.mark.timeout(300)
def test_schedules_end_as_a_serial_order_does_on_postgresql(postgres_url, warehouse):
    with lakehouse.connect(postgres_url, str(warehouse)) as lake:
        ran, wrong = explore(lake, [*sample(2, 40, seed=9), *sample(3, 20, seed=9)])
    assert wrong == []
    assert ran == 60


@pytest.mark.parametrize("operations", [2, 3])
def test_the_reference_model_itself_is_serializable(operations):
    listed = schedules.cases(2) if operations == 2 else sample(3, 2000, seed=1)
    for planned, schedule in listed:
        results, rows = drive(new_model(), planned, schedule)
        done = [one for one, result in zip(planned, results, strict=True) if result == "ok"]
        assert rows in serial_outcomes(done), (planned, schedule)
