"""Rows of hostile types and values: read back as they were given, or refused by column and row, with nothing left."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import lakehouse
from lakehouse.errors import InvalidInput
from lakehouse.testing.hostile import any_column, holds_bad, plain
from lakehouse.testing.rows import TIME_TYPE

START = datetime(2013, 1, 5, tzinfo=UTC)


def given(chance, rows, columns):
    """A table of some hostile columns, perhaps a part of a longer one, and what its rows mean."""
    made = {f"c{number}": any_column(chance, rows) for number in range(columns)}
    times = pa.array([START + timedelta(hours=7 * row) for row in range(rows)], TIME_TYPE)
    table = pa.table({"time": times, **{name: one.given for name, one in made.items()}})
    schema = pa.schema([("time", TIME_TYPE), *((name, one.column) for name, one in made.items())])
    first, last = sorted(chance.sample(range(rows + 1), 2)) if chance.random() < 0.5 else (0, rows)
    wanted = {name: one.rows[first:last] for name, one in made.items()}
    return table.slice(first, last - first), schema, wanted


def bad_rows(wanted):
    """By column, the rows that a table must refuse."""
    return {name: [row for row, one in enumerate(rows) if holds_bad(one)] for name, rows in wanted.items()}


def attempt(lake, name, chance):
    """Append hostile rows to a table of their own; None if that was refused, as it had to be, else what they mean."""
    rows, schema, wanted = given(chance, rows=chance.randint(1, 12), columns=2)
    table = lake.create_table(name, schema, time="time")
    head, bad = lake.head, bad_rows(wanted)
    if any(bad.values()):
        with pytest.raises(InvalidInput) as refused:
            table.append(rows)
        assert refused.value.row in bad[refused.value.column]
        assert lake.head == head
        assert len(table.segments()) == 0
        return None
    table.append(rows)
    return wanted


def read_back(rows, wanted):
    ordered = rows.sort_by("time")
    return {name: [plain(one) for one in ordered[name].to_pylist()] for name in wanted} == {
        name: [plain(one) for one in rows] for name, rows in wanted.items()
    }


@pytest.mark.parametrize("seed", range(4))
def test_hostile_rows_are_read_back_in_process_as_they_were_given_or_refused_by_row(tmp_path, seed):
    chance = random.Random(seed)
    outcomes = set()
    with lakehouse.connect(f"sqlite:///{tmp_path}/c.db", str(tmp_path / "w")) as lake:
        for number in range(25):
            wanted = attempt(lake, f"t{number}", chance)
            outcomes.add(wanted is None)
            if wanted is not None:
                assert read_back(lake.table(f"t{number}").scan().to_arrow(), wanted), (seed, number)
    assert outcomes == {True, False}


def test_hostile_rows_are_read_back_by_spark_as_they_were_given(tmp_path, spark):
    chance = random.Random(7)
    with lakehouse.connect(f"sqlite:///{tmp_path}/c.db", str(tmp_path / "w"), spark=spark) as lake:
        for number in range(40):
            wanted = attempt(lake, f"t{number}", chance)
            if wanted is not None:
                assert read_back(lake.table(f"t{number}").scan().to_spark().toArrow(), wanted), number


def test_a_spark_frame_whose_text_is_not_utf8_is_refused_by_row_and_partition(tmp_path, spark):
    with lakehouse.connect(f"sqlite:///{tmp_path}/c.db", str(tmp_path / "w"), spark=spark) as lake:
        table = lake.create_table("t", "time TIMESTAMP, id BIGINT, name STRING", time="time", cluster_by=["name"])
        head = lake.head
        for frame in (
            spark.range(0, 10, 1, 2).selectExpr(
                "timestamp '2013-01-05 00:00:00' AS time", "id", "CAST(IF(id = 7, X'FF', X'41') AS STRING) AS name"
            ),
            spark.sql(
                "SELECT timestamp '2013-01-05 00:00:00' AS time, id, CAST(b AS STRING) AS name FROM VALUES"
                " (1L, X'41'), (2L, X'FF') AS v (id, b)"
            ),
        ):
            with pytest.raises(InvalidInput, match=r"not UTF-8.*column=name") as refused:
                table.append(frame)
            place = refused.value.facts.get("partition"), refused.value.row
            assert place in {(1, 2), (0, 1), (None, 1)}
            assert lake.head == head
        assert table.scan().count() == 0
