"""What commits say of rows that readers lost, and what tables say of rows that can be seen."""

from __future__ import annotations

import pytest

from lakehouse.errors import VersionNotFound
from lakehouse.reading import row_count
from lakehouse.testing.rows import SCHEMA, arrow, values

DAY, NEXT = "2013-01-05", "2013-01-06"
ROWS = [(f"{day}T{hour:02}:00", client, hour) for day in (DAY, NEXT) for hour in range(12) for client in "ab"]


@pytest.fixture
def flights(lake):
    made = lake.create_table("kept", SCHEMA, time="time", cluster_by=["client"])
    made.append(arrow(ROWS))
    return made


CHANGES = [
    (lambda table: table.replace(arrow([(DAY, "a", 1)]), DAY), 24),
    (lambda table: table.replace(None, "2013-01-05T06:00/2013-01-06T06:00"), 24),
    (lambda table: table.replace(arrow([(DAY, "a", 1)]), DAY, keys={"client": "a"}), 12),
    (lambda table: table.replace(None, DAY, keys={"client": ["a", None]}), 12),
    (lambda table: table.replace(arrow([(DAY, "c", 1)]), DAY, keys={"client": "c"}), 0),
    (lambda table: table.drop("2013-01-05T00:00/2013-01-05T01:00"), 2),
    (lambda table: table.delete("client = 'a'"), 24),
    (lambda table: table.delete(f"client IN ('a', 'x') AND time >= '{DAY}' AND time < '{NEXT}'"), 12),
    (lambda table: table.delete(f"time >= '{NEXT}'"), 24),
    (lambda table: table.delete("value = 3"), 4),
    (lambda table: table.update({"value": "0"}, where="value = 3"), 4),
    (lambda table: table.compact(DAY), 0),
]


@pytest.mark.parametrize("place", range(len(CHANGES)))
@pytest.mark.parametrize("hidden", [None, "value = 2", "client = 'a' AND time < '2013-01-05T02:00'"])
def test_a_commit_shows_how_many_rows_readers_lost(lake, flights, place, hidden):
    change, lost = CHANGES[place]
    if hidden is not None:
        flights.delete(hidden)
    before = flights.scan().to_arrow()
    commit = change(flights)
    if commit is None:
        assert flights.scan().to_arrow().equals(before)
        return
    assert commit.is_exact
    assert len(before) - flights.scan().count() == commit.rows_deleted - commit.rows_added
    if hidden is None:
        assert commit.rows_deleted == lost
    assert flights.log(limit=1)[0] == commit
    assert commit.rows_lost == str(commit.rows_deleted)


def test_what_was_not_looked_at_is_reported_as_stored_or_unknown(lake, flights, monkeypatch):
    keyed = lake.create_table("keyed", SCHEMA, time="time", primary_key=["client", "value"])
    keyed.append(arrow(ROWS))
    for change in (
        lambda: keyed.upsert(arrow(ROWS[:3])),
        lambda: keyed.delete_keys(arrow(ROWS[:3]).select(["client", "value"])),
    ):
        commit = change()
        assert (commit.is_exact, commit.rows_deleted, commit.rows_lost) == (False, 0, "?")
        assert keyed.log(limit=1)[0] == commit
    flights.delete("value = 2")
    restored = flights.restore(flights.log()[-1].version)
    assert not restored.is_exact
    flights.delete("value = 2")
    monkeypatch.setattr(row_count.count_visible, "__kwdefaults__", {"most_rows": 20})
    whole = flights.replace(arrow([(DAY, "a", 1)]), f"{DAY}/2013-01-07")
    assert (whole.is_exact, whole.rows_lost) == (True, "44")  # the catalog knows, however many they are
    cut = flights.replace(None, f"{DAY}T00:00/{DAY}T01:00", keys={"client": "a"})
    assert cut.is_exact
    flights.append(arrow(ROWS))
    cut = flights.delete("client = 'a'")
    assert (cut.is_exact, cut.rows_lost) == (False, "?")


def test_a_replace_of_what_cannot_be_read_is_not_counted(lake, flights):
    (path,) = {lake.warehouse / one.path for one in flights.segments(interval=DAY)}
    path.unlink()
    commit = flights.replace(arrow([(DAY, "a", 1)]), DAY, keys={"client": "a"})
    assert (commit.rows_added, commit.is_exact, commit.rows_lost) == (1, False, "?")
    assert not flights.replace(arrow([(DAY, "a", 1)]), f"{DAY}/{NEXT}").rows_lost.isdigit()


def test_a_repeated_write_returns_the_first_one(flights):
    first = flights.replace(arrow([(DAY, "a", 1)]), DAY, txn=("feed", 1))
    again = flights.replace(arrow([(DAY, "a", 1)]), DAY, txn=("feed", 1))
    assert again == first
    assert first.rows_lost == "24"


def test_a_table_counts_what_can_be_seen(flights):
    assert flights.count() == 48
    assert flights.count(interval=DAY) == 24
    flights.delete("value < 6")
    assert flights.count() == flights.scan().count() == 24
    assert flights.count(as_of=2) == 48
    assert flights.count(interval="2013-01-05T06:00/2013-01-05T07:00") == 2
    assert flights.count(interval="2013-01-05T06:00/2013-01-05T07:00", most_rows=2) is None
    assert flights.count(most_rows=24) == 24  # places of rows are known without a look
    flights.delete("client = 'a'")
    assert flights.count() == len(values(flights)) == 12
    assert flights.count(most_rows=0) is None
    with pytest.raises(VersionNotFound):
        flights.count(as_of=99)
