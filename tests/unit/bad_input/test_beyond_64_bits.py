"""Numbers and ages that no column of the catalog could hold: taken as for ever, or refused by name."""

import pytest

import lakehouse
from lakehouse.errors import InvalidInput


@pytest.fixture
def trips(tmp_path):
    with lakehouse.connect(f"sqlite:///{tmp_path}/catalog.db", tmp_path / "warehouse") as lake:
        yield lake, lake.create_table("trips", "at TIMESTAMP, client BIGINT", time="at")


def test_an_expiry_that_keeps_more_than_there_can_be_keeps_all(trips):
    lake, _ = trips
    assert lake.expire(keep_last=2**70).versions == 0
    assert lake.expire(older_than="99999999999999999999999999d").versions == 0


def test_a_retention_beyond_all_time_stops_nobody_from_collecting(trips):
    lake, table = trips
    table.set_properties({"retention": "99999999999d", "keep_last": "3"})
    lake.sql("INSERT INTO trips VALUES ('2013-01-05', 1)")
    assert {task.state.value for task in lake.maintain().tasks} == {"done"}
    assert "collect" in {task.kind.value for task in lake.tasks(state="done")}


@pytest.mark.parametrize("number", [2**70, -1, 0, True, "7", None])
def test_a_task_that_cannot_be_is_refused(trips, number):
    for method in (trips[0].run_task, trips[0].cancel_task):
        with pytest.raises(InvalidInput, match="task"):
            method(number)


@pytest.mark.parametrize("properties", [None, 5, "retention=3d", ["a"]])
def test_properties_that_are_no_mapping_are_refused(trips, properties):
    with pytest.raises(InvalidInput, match="map text to text"):
        trips[1].set_properties(properties)


@pytest.mark.parametrize(
    "text", ["DESCRIBE trips", "DESCRIBE HISTORY trips", "SHOW TABLES", "EXPLAIN SELECT * FROM trips"]
)
def test_limits_hold_for_every_statement_that_looks(trips, text):
    lake, _ = trips
    lake.sql("INSERT INTO trips VALUES ('2013-01-05', 1)")
    whole = lake.query(text)
    assert (len(whole.rows) > 0, whole.is_cut) == (True, False)
    for limits in ({"most_rows": 0}, {"most_bytes": 1}):
        cut = lake.query(text, **limits)
        assert (len(cut.rows), cut.is_cut) == (0, True)
